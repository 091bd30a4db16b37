"""Rule for stopping: one stage ahead, with the noise of the learning curve taken into account.

Meek, Thiesson and Heckerman (2002), equations 5, 7, 8 and 9, stop when the last step of the curve,
relative to the best gain over the baseline so far, is worth no more than the next stage costs.
A single step that falls by chance stops that rule, even when time costs nothing. Here

- the expected gain is the rise of the best score so far over the last two stages, divided by two,
- two standard errors of the score difference, from the same rows of the hold-out, are added to it,
- a run stops only if this upper limit does not exceed a cost above zero,
- and never before the second stage, nor there if the score did not rise.

So one falling step never stops a run, and a run whose time costs nothing uses all rows. Adding the
standard errors makes the rule go on where noise hides whether the next stage pays. Going on for
that reason costs at most two standard errors a stage.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate

from bayes_lcs.learning_curve_sampling.time_cost import seconds_text
from bayes_lcs.learning_curve_sampling.training_run import RowScores, mean_error
from bayes_lcs.learning_curve_sampling.utility import Preferences

__all__ = ["Decision", "Rule", "Situation", "myopic", "within_memory"]

STANDARD_ERRORS = 2.0
"""Standard errors that are added to the expected gain."""

WINDOW = 2
"""Stages over which the rise is averaged."""


@dataclass(frozen=True)
class Situation:
    """Known facts after a stage.

    Attributes
    ----------
    sizes, scores
        The stages so far: rows, and scores on the hold-out. Scores of training cut short have the
        offset of the first stage added.
    base
        Score of the baseline.
    next_size
        Rows of the next stage; None when all rows are used.
    spent
        Seconds so far.
    to_stop
        Seconds that stopping now still takes: full training, where the stages are cut short.
    to_go
        Seconds to train on the next size and stop there.
    row_scores
        Scores of the rows of the hold-out, for each stage; empty if they are not known.
    places
        Number of each stage. They leave gaps where only some stages were trained to the end; by
        default 0, 1, 2, ….
    """

    sizes: tuple[int, ...]
    scores: tuple[float, ...]
    base: float
    next_size: int | None
    spent: float
    to_stop: float
    to_go: float
    row_scores: tuple[RowScores | None, ...] = ()
    places: tuple[int, ...] = ()


@dataclass(frozen=True)
class Decision:
    """Decision after a stage, with its reason.

    Attributes
    ----------
    stop
        Whether to stop.
    next_size
        The size of the next stage; None to stop.
    expected_gain
        Expected worth of the next stage, where the best score so far has benefit 1.
    largest_gain
        The same with two standard errors added, which is compared with the cost.
    expected_cost
        Cost of the seconds that it takes, on the same scale.
    expected_seconds
        The seconds themselves.
    rule
        The rule that decided.
    reason
        A sentence.
    """

    stop: bool
    next_size: int | None
    expected_gain: float | None
    largest_gain: float | None
    expected_cost: float | None
    expected_seconds: float | None
    rule: str
    reason: str


Rule = Callable[[Situation, Preferences], Decision]


def within_memory(rule: Rule, most_rows: int) -> Rule:
    """Return a rule that stops before a sample that does not fit into memory.

    Examples
    --------
    >>> seen = Situation((40, 80), (-8.0, -7.0), -11.0, 160, 20.0, 0.0, 36.0)
    >>> within_memory(myopic, 100)(seen, Preferences(alpha=20.0)).reason
    'stops: 160 rows do not fit into memory'
    """

    def decide(situation: Situation, preferences: Preferences) -> Decision:
        size = situation.next_size
        if size is None or size <= most_rows:
            return rule(situation, preferences)
        reason = f"stops: {size:,} rows do not fit into memory"
        return Decision(True, None, None, None, None, None, "memory", reason)

    return decide


def myopic(situation: Situation, preferences: Preferences) -> Decision:
    """Stop unless the next stage may be worth its cost.

    Examples
    --------
    >>> seen = Situation((40, 80), (-8.0, -7.0), -11.0, 160, 20.0, 0.0, 36.0)
    >>> decision = myopic(seen, Preferences(alpha=20.0))
    >>> decision.stop, decision.expected_gain, decision.expected_cost
    (False, 0.25, 0.2)
    """
    size = situation.next_size
    if size is None:
        return Decision(True, None, None, None, None, None, "myopic", "all rows are used")
    seconds = situation.to_go - situation.to_stop
    cost = preferences.price(situation.spent + situation.to_go)
    cost -= preferences.price(situation.spent + situation.to_stop)

    def decide(
        stop: bool, why: str, gain: float | None = None, most: float | None = None
    ) -> Decision:
        reason = f"{'stops' if stop else 'goes on'}: {why}"
        return Decision(stop, None if stop else size, gain, most, cost, seconds, "myopic", reason)

    if cost <= 0:
        return decide(False, "the next stage costs nothing")
    scores = situation.scores
    if len(scores) < 2:
        return decide(False, "one stage has no step to judge by")
    step, error = _step(situation)
    scale = max(scores) - situation.base
    if step <= 0 and len(scores) == 2:
        return decide(False, "the score did not rise, but one step may be noise")
    if scale <= 0:
        rising = "rising" if step > 0 else "not rising"
        return decide(step <= 0, f"no better than the baseline, and {rising}")
    gain = _worth(preferences, step, scale)
    most = _worth(preferences, step + STANDARD_ERRORS * error, scale)
    limit = f", at most {most:.3g}" if most > gain else ""
    why = (
        f"{size:,} rows are expected to add {gain:.3g} benefit{limit}, at a cost of {cost:.3g} "
        f"({seconds_text(max(seconds, 0.0))})"
    )
    return decide(most <= cost, why, gain, most)


def _step(situation: Situation) -> tuple[float, float]:
    """Return the mean rise of the best score over the last two stages, with its standard error.

    The standard error is that of the difference of the two scores at the ends, on the same rows of
    the hold-out; 0 if scores of rows are not known.
    """
    first = max(0, len(situation.scores) - 1 - WINDOW)
    best = list(accumulate(situation.scores, max))
    places = situation.places or tuple(range(len(best)))
    stages = places[-1] - places[first]
    error = 0.0
    if situation.row_scores:
        error = mean_error(situation.row_scores[-1], situation.row_scores[first])
    return (best[-1] - best[first]) / stages, error / stages if error > 0 else 0.0


def _worth(preferences: Preferences, step: float, scale: float) -> float:
    """Return the worth of a step up.

    With benefit as it is, equations 7 and 8: the step over the best rise so far. Where worth is a
    function of benefit, that would put the model at hand at benefit 1 and the next beyond it, where
    such functions may not be defined; the next model is then taken for the one of all rows.
    """
    if preferences.benefit is None:
        return step / scale
    return preferences.worth(1.0) - preferences.worth(scale / (scale + step))
