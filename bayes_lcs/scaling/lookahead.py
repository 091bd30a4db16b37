"""When to stop, and where to go next, by looking at all sizes ahead.

Beyond the paper. The curve is foreseen with its uncertainty (`bayes_lcs.scaling.forecast`), and so
is the score of all rows, on which the scale of benefit rests. For every future size the expected
utility of going there at once and stopping is held against that of stopping now. If some size is
better, the next stage is the size that a cautious quarter of the drawn curves would not yet call
too large: sizes in between are skipped, and where the curves disagree the step is short.

A fit that did not foresee the last score is not trusted: then the myopic rule decides.
"""

from __future__ import annotations

import numpy as np

from bayes_lcs.scaling.forecast import Forecast, forecast
from bayes_lcs.scaling.rates import seconds_text
from bayes_lcs.scaling.stopping import Decision, Situation, myopic
from bayes_lcs.scaling.utility import Preferences

__all__ = ["SURPRISE", "fitted"]

SURPRISE = 4.0
"""Beyond so many standard deviations from what was foreseen, the fit is poor."""

CAUTION = 0.25
"""Share of the drawn curves that may find the next size too large."""


def fitted(situation: Situation, preferences: Preferences, *, seed: int = 0) -> Decision:
    """Stop unless some future size is expected to be worth its cost.

    Examples
    --------
    >>> sizes = (1000, 2000, 4000)
    >>> seen = Situation(
    ...     sizes, tuple(-1 - n**-0.5 for n in sizes), -1.2, (8000, 16_000), 16_000,
    ...     spent=1.0, to_stop=0.0, to_go=(1.0, 2.0),
    ... )
    >>> fitted(seen, Preferences(alpha=0.2)).stop, fitted(seen, Preferences(alpha=500.0)).stop
    (False, True)
    """
    if not situation.future or len(situation.sizes) < 2:
        return myopic(situation, preferences)
    if max(situation.scores) <= situation.base:
        return myopic(situation, preferences, rule="myopic (no gain over the baseline to fit)")
    surprise = _surprise(situation, seed)
    if surprise > SURPRISE:
        because = f"myopic (poor fit: the last score was {surprise:.1f} standard deviations off)"
        return myopic(situation, preferences, rule=because)
    ahead = forecast(
        situation.sizes,
        situation.scores,
        situation.base,
        situation.future,
        situation.total_rows,
        seed=seed,
    )
    now, later = _utilities(situation, preferences, ahead)
    expected = later.mean(axis=0)
    best = int(np.argmax(expected))
    stop = bool(now.mean() >= expected[best])
    target = best if stop else _next(now, later)
    seconds = situation.to_go[target] - situation.to_stop
    cost = preferences.price(situation.spent + situation.to_go[target])
    cost -= preferences.price(situation.spent + situation.to_stop)
    gain = float(expected[target] - now.mean() + cost)
    chance = float((later[:, target] > now).mean())
    size = situation.future[target]
    reason = (
        f"{'stops' if stop else 'goes on'}: {size:,} rows are expected to bring {gain:+.3g} "
        f"benefit at a cost of {cost:.3g} ({seconds_text(max(seconds, 0.0))}); "
        f"{chance:.0%} of the curves say it pays"
    )
    return Decision(
        stop,
        None if stop else size,
        gain,
        cost,
        seconds,
        "fitted",
        reason,
        {n: ahead.mean_and_sd(n) for n in ahead.sizes},
    )


def _surprise(situation: Situation, seed: int) -> float:
    """How many standard deviations the last score lies from what the stages before foresaw."""
    before = situation.scores[:-1]
    if len(before) < 2 or max(before) <= situation.base:
        return 0.0
    last = situation.sizes[-1]
    seen = forecast(
        situation.sizes[:-1], before, situation.base, [last], situation.total_rows, seed=seed
    )
    return seen.surprise(last, situation.scores[-1])


def _utilities(
    situation: Situation, preferences: Preferences, ahead: Forecast
) -> tuple[np.ndarray, np.ndarray]:
    """Utility of stopping now, and of stopping at each future size, for each drawn curve."""
    base, score = situation.base, situation.scores[-1]
    # Scores of all rows below what is measured already are noise of the draw.
    rise = np.maximum(ahead.at(situation.total_rows), max(situation.scores)) - base
    worth = np.vectorize(preferences.worth, otypes=[float])
    price = preferences.price
    now = worth((score - base) / rise) - price(situation.spent + situation.to_stop)
    later = [
        worth((ahead.at(size) - base) / rise) - price(situation.spent + seconds)
        for size, seconds in zip(situation.future, situation.to_go, strict=True)
    ]
    return now, np.stack(later, axis=1)


def _next(now: np.ndarray, later: np.ndarray) -> int:
    """The place of the next size: the cautious quantile of each curve's own best size."""
    own = np.argmax(np.column_stack([now, later]), axis=1) - 1
    return max(int(np.quantile(own, CAUTION, method="lower")), 0)
