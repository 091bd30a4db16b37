"""When to stop, and where to go next, by looking at all sizes ahead.

Beyond the paper. The curve is foreseen with its uncertainty (`bayes_lcs.scaling.forecast`), and so
is the score of all rows, on which the scale of benefit rests. For every future size the expected
utility of going there at once and stopping is held against that of stopping now. If some size is
better, the next stage is the size that a cautious quarter of the drawn curves would not yet call
too large: sizes in between are skipped, and where the curves disagree the step is short.

It may stop after the first stage, where the paper's rule cannot: when the next one costs more than
curves are known to rise.

A fit that did not foresee the last score is not trusted: then the myopic rule decides.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bayes_lcs.scaling.forecast import Forecast, forecast
from bayes_lcs.scaling.rates import seconds_text
from bayes_lcs.scaling.stopping import Decision, Situation, myopic
from bayes_lcs.scaling.utility import Preferences

__all__ = ["SURPRISE", "fitted"]

Array = NDArray[np.float64]

SURPRISE = 4.0
"""Beyond so many standard deviations from what was foreseen, the fit is poor."""


def fitted(situation: Situation, preferences: Preferences, *, seed: int = 0) -> Decision:
    """Stop unless some future size is expected to be worth its cost.

    Examples
    --------
    >>> sizes = (1000, 2000, 4000)
    >>> seen = Situation(
    ...     sizes, tuple(-1 - n**-0.5 for n in sizes), -1.2, (8000, 16_000), 16_000,
    ...     spent=1.0, to_stop=0.0, to_go=(1.0, 2.0), to_look=(1.0, 2.0),
    ... )
    >>> fitted(seen, Preferences(alpha=0.2)).stop, fitted(seen, Preferences(alpha=500.0)).stop
    (False, True)
    """
    if not situation.future:
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
    now, later = _worths(situation, preferences, ahead)
    stopping = preferences.price(situation.spent + situation.to_stop)
    costs = np.array([preferences.price(situation.spent + s) - stopping for s in situation.to_go])
    net = later.mean(axis=0) - now.mean() - costs
    stop = bool(net.max() <= 0)
    target = int(np.argmax(net)) if stop else _next(situation, preferences, later)
    cost, seconds = float(costs[target]), situation.to_go[target] - situation.to_stop
    gain = float(net[target] + cost)
    chance = float((later[:, target] - now > cost).mean())
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


def _worths(situation: Situation, preferences: Preferences, ahead: Forecast) -> tuple[Array, Array]:
    """Worth of the model at hand, and of the model of each future size, for each drawn curve."""
    base = situation.base
    # Scores of all rows below what is measured already are noise of the draw.
    rise = np.maximum(ahead.at(situation.total_rows), max(situation.scores)) - base
    now = (situation.scores[-1] - base) / rise
    later = np.stack([(ahead.at(size) - base) / rise for size in situation.future], axis=1)
    if preferences.benefit is None:
        return now, later
    worth = np.vectorize(preferences.worth, otypes=[float])
    return worth(now), worth(later)


def _next(situation: Situation, preferences: Preferences, later: Array) -> int:
    """The place of the next size, by what going there first would leave to be had.

    For each drawn curve: stop there, or go on to the size that is best for this curve. A size that
    is too large for many curves loses on them, one that is too small costs a stage more on the
    others. After one stage it is the next size: only the prior has a say in how far to go.
    """
    if len(situation.sizes) < 2:
        return 0
    values = []
    for place, look in enumerate(situation.to_look):
        utilities = [later[:, place] - preferences.price(situation.spent + situation.to_go[place])]
        for further in range(place + 1, len(situation.future)):
            seconds = situation.spent + look + situation.to_go[further]
            utilities.append(later[:, further] - preferences.price(seconds))
        values.append(np.max(utilities, axis=0).mean())
    return int(np.argmax(values))
