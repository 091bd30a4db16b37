"""Choice of the number of components together with the sample size.

This goes beyond the paper, in which the number is fixed. Larger samples support more clusters, so
larger numbers are tried again at every stage: after training with the current number, the next
larger one is trained on the same sample, and accepted if its additional benefit on the hold-out
exceeds the cost of its longer run; then the next. Truncated runs cannot distinguish numbers of
components (after one step of EM all are nearly one cluster), so full training is used.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from bayes_lcs.learning_curve_sampling.training_run import Trainer, TrainingRun
from bayes_lcs.learning_curve_sampling.utility import Preferences

__all__ = ["ComponentSearch"]


class ComponentSearch:
    """Sequential search over increasing numbers of components as the sample grows.

    Parameters
    ----------
    ladder
        Numbers of components to consider, in increasing order.
    """

    def __init__(self, ladder: Sequence[int]) -> None:
        self.ladder = tuple(int(k) for k in ladder)
        if not self.ladder or list(self.ladder) != sorted(set(self.ladder)) or self.ladder[0] < 1:
            raise ValueError(
                f"components must be increasing numbers of at least 1, got {list(ladder)}"
            )
        self._index = 0

    def train_stage(
        self, trainer: Trainer, size: int, base: float, preferences: Preferences
    ) -> tuple[TrainingRun, list[TrainingRun]]:
        """Train on a sample; return the run with the chosen number, and all runs."""
        best = trainer.fit(size, "full", components=self.ladder[self._index])
        tried = [best]
        while not best.interrupted and self._index + 1 < len(self.ladder):
            larger = trainer.fit(size, "full", components=self.ladder[self._index + 1])
            tried.append(larger)
            if larger.interrupted:
                return replace(best, interrupted=True), tried
            if not _pays(best, larger, base, preferences):
                break
            best, self._index = larger, self._index + 1
        return best, tried


def _pays(smaller: TrainingRun, larger: TrainingRun, base: float, preferences: Preferences) -> bool:
    """Return whether more components add more benefit than their longer run costs."""
    gain = larger.score - smaller.score
    scale = max(larger.score, smaller.score) - base
    if scale <= 0:
        return gain > 0
    longer = preferences.price(larger.seconds) - preferences.price(smaller.seconds)
    return gain / scale > max(longer, 0.0)
