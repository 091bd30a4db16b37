"""What stopping at each stage would have brought, known afterwards.

The oracle of the paper (its Table 4) is the myopic rule with the true benefit and cost of the next
stage in place of expected ones. Beside it stands the best stage of all: the regret of a rule is
what it lost against that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bayes_lcs.scaling.stages import Fit, Trainer
from bayes_lcs.scaling.utility import Preferences, relative_benefit

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Hindsight", "hindsight"]


@dataclass(frozen=True)
class Hindsight:
    """Every stage of a method, gone through to the end.

    Attributes
    ----------
    sizes
        Sizes of the stages; the last is all rows.
    scores, seconds
        Of stopping at each stage: the score of the model, and the time to get it, with all stages
        before.
    base, full
        Scores of the baseline and of full training on all rows.
    finals
        The run that gives the model of each stage.
    """

    sizes: tuple[int, ...]
    scores: tuple[float, ...]
    seconds: tuple[float, ...]
    base: float
    full: float
    finals: tuple[Fit, ...] = ()

    def benefits(self) -> NDArray[np.float64]:
        """Relative benefit of stopping at each stage."""
        return np.array([relative_benefit(score, self.base, self.full) for score in self.scores])

    def utilities(self, preferences: Preferences) -> NDArray[np.float64]:
        """Utility of stopping at each stage."""
        pairs = zip(self.benefits(), self.seconds, strict=True)
        return np.array([preferences.utility(float(b), t) for b, t in pairs])

    def oracle(self, preferences: Preferences) -> int:
        """The first stage from which the next one does not pay (equation 5 with the truth).

        Examples
        --------
        >>> known = Hindsight((1, 2, 4), (1.0, 1.8, 2.0), (0.0, 3600.0, 7200.0), 0.0, 2.0)
        >>> known.oracle(Preferences(alpha=0.2)), known.oracle(Preferences(alpha=0.05))
        (1, 2)
        """
        utilities = self.utilities(preferences)
        not_paid = np.flatnonzero(np.diff(utilities) <= 0)
        return int(not_paid[0]) if not_paid.size else len(self.sizes) - 1

    def best(self, preferences: Preferences) -> int:
        """The stage of the greatest utility."""
        return int(np.argmax(self.utilities(preferences)))

    def frame(self, preferences: Preferences) -> pd.DataFrame:
        """Size, score, seconds, benefit and utility of stopping at each stage."""
        import pandas as pd

        return pd.DataFrame(
            {
                "size": self.sizes,
                "score": self.scores,
                "seconds": self.seconds,
                "benefit": self.benefits(),
                "utility": self.utilities(preferences),
            }
        )


def hindsight(
    trainer: Trainer, sizes: Sequence[int], base: float, *, spent: float = 0.0
) -> Hindsight:
    """Go through all stages, and where they are cut short also finish each of them."""
    scores, seconds, finals = [], [], []
    first: Fit | None = None
    for place, size in enumerate(sizes):
        if not trainer.abbreviated:
            fit = trainer.fit(size, "full")
            spent += fit.seconds
            final, more = fit, 0.0
        else:
            if first is None:
                first = trainer.fit(size, "full")
                spent += first.seconds
            short = trainer.fit(size, "abbreviated")
            spent += short.seconds
            final = first if place == 0 else trainer.fit(size, "final", start=short)
            more = 0.0 if place == 0 else final.seconds
        scores.append(final.score)
        seconds.append(spent + more)
        finals.append(final)
    full = scores[-1]
    if trainer.abbreviated:
        full = trainer.fit(sizes[-1], "full").score
    return Hindsight(tuple(sizes), tuple(scores), tuple(seconds), base, full, tuple(finals))
