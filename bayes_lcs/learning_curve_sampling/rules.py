"""Myopic stopping rule, which accounts for the noise of the learning curve.

Meek, Thiesson and Heckerman (2002), equations 5, 7, 8 and 9, stop when the last step of the curve,
relative to the best gain over the baseline so far, is worth no more than the next stage costs.
A single step that falls by chance stops that rule, even when time costs nothing. Here

- the expected gain is the rise of the best score so far over the last two stages, divided by two,
- two standard errors of the score difference, from the same rows of the hold-out, are added to it,
- a run stops only if this upper limit does not exceed a cost above zero,
- and never before the second stage, nor there if the score did not rise.

Hence one falling step never stops a run, and a run whose time costs nothing uses all rows. With the
standard errors the rule continues when noise hides whether the next stage pays. Continuing for this
reason costs at most two standard errors per stage.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate

from bayes_lcs.learning_curve_sampling.time_cost import seconds_text
from bayes_lcs.learning_curve_sampling.training_run import RowScores, mean_error
from bayes_lcs.learning_curve_sampling.utility import Preferences

__all__ = ["CurveSoFar", "Decision", "Rule", "myopic", "within_memory"]

STANDARD_ERRORS = 2.0
"""Number of standard errors that are added to the expected gain."""

WINDOW = 2
"""Number of stages over which the rise is averaged."""


@dataclass(frozen=True)
class CurveSoFar:
    """Learning curve and costs after a stage, the input of a rule.

    Attributes
    ----------
    sizes, scores
        Number of rows and score on the hold-out of each stage so far. Scores of truncated runs
        include the offset of the first stage.
    base
        Score of the baseline.
    next_size
        Rows of the next stage; None when all rows are used.
    spent
        Seconds so far.
    seconds_to_stop
        Seconds to finish if stopped now: those of full training, if stages are truncated.
    seconds_to_continue
        Seconds to train on the next size and stop there.
    row_scores
        Scores of the rows of the hold-out, for each stage; empty if they are not known.
    stage_numbers
        Number of each stage, by default 0, 1, 2, …; with gaps if only some stages were trained to
        convergence.
    """

    sizes: tuple[int, ...]
    scores: tuple[float, ...]
    base: float
    next_size: int | None
    spent: float
    seconds_to_stop: float
    seconds_to_continue: float
    row_scores: tuple[RowScores | None, ...] = ()
    stage_numbers: tuple[int, ...] = ()


@dataclass(frozen=True)
class Decision:
    """Decision after a stage, with its reason.

    Attributes
    ----------
    stop
        Whether to stop.
    next_size
        Size of the next stage; None to stop.
    expected_gain
        Expected worth of the next stage, on a scale where the best score so far has benefit 1.
    largest_gain
        Expected gain plus two standard errors, which is compared with the cost.
    expected_cost
        Cost of the expected seconds, on the same scale.
    expected_seconds
        Expected seconds of the next stage.
    rule
        Name of the rule.
    reason
        Reason in one sentence.
    """

    stop: bool
    next_size: int | None
    expected_gain: float | None
    largest_gain: float | None
    expected_cost: float | None
    expected_seconds: float | None
    rule: str
    reason: str


Rule = Callable[[CurveSoFar, Preferences], Decision]


def within_memory(rule: Rule, most_rows: int) -> Rule:
    """Return a rule that stops before a sample that does not fit into memory.

    Examples
    --------
    >>> seen = CurveSoFar((40, 80), (-8.0, -7.0), -11.0, 160, 20.0, 0.0, 36.0)
    >>> within_memory(myopic, 100)(seen, Preferences(alpha=20.0)).reason
    'stops: 160 rows do not fit into memory'
    """

    def decide(curve: CurveSoFar, preferences: Preferences) -> Decision:
        size = curve.next_size
        if size is None or size <= most_rows:
            return rule(curve, preferences)
        reason = f"stops: {size:,} rows do not fit into memory"
        return Decision(True, None, None, None, None, None, "memory", reason)

    return decide


def myopic(curve: CurveSoFar, preferences: Preferences) -> Decision:
    """Stop unless the upper limit of the expected gain exceeds the cost of the next stage.

    Examples
    --------
    >>> seen = CurveSoFar((40, 80), (-8.0, -7.0), -11.0, 160, 20.0, 0.0, 36.0)
    >>> decision = myopic(seen, Preferences(alpha=20.0))
    >>> decision.stop, decision.expected_gain, decision.expected_cost
    (False, 0.25, 0.2)
    """
    size = curve.next_size
    if size is None:
        return Decision(True, None, None, None, None, None, "myopic", "all rows are used")
    seconds = curve.seconds_to_continue - curve.seconds_to_stop
    cost = preferences.price(curve.spent + curve.seconds_to_continue)
    cost -= preferences.price(curve.spent + curve.seconds_to_stop)

    def decide(
        stop: bool, why: str, gain: float | None = None, upper: float | None = None
    ) -> Decision:
        reason = f"{'stops' if stop else 'continues'}: {why}"
        return Decision(stop, None if stop else size, gain, upper, cost, seconds, "myopic", reason)

    if cost <= 0:
        return decide(False, "the next stage costs nothing")
    scores = curve.scores
    if len(scores) < 2:
        return decide(False, "one stage does not show the slope of the curve")
    step, error = _step(curve)
    scale = max(scores) - curve.base
    if step <= 0 and len(scores) == 2:
        return decide(False, "the score did not rise, but one step may be noise")
    if scale <= 0:
        rising = "rising" if step > 0 else "not rising"
        return decide(step <= 0, f"no better than the baseline, and {rising}")
    gain = _step_worth(preferences, step, scale)
    upper = _step_worth(preferences, step + STANDARD_ERRORS * error, scale)
    limit = f", at most {upper:.3g}" if upper > gain else ""
    why = (
        f"{size:,} rows are expected to add {gain:.3g} benefit{limit}, at a cost of {cost:.3g} "
        f"({seconds_text(max(seconds, 0.0))})"
    )
    return decide(upper <= cost, why, gain, upper)


def _step(curve: CurveSoFar) -> tuple[float, float]:
    """Return the mean rise of the best score over the last two stages, and its standard error.

    The standard error is that of the difference of the first and last score on the same rows of the
    hold-out; 0 if scores of rows are not known.
    """
    first = max(0, len(curve.scores) - 1 - WINDOW)
    best = list(accumulate(curve.scores, max))
    stage_numbers = curve.stage_numbers or tuple(range(len(best)))
    stages = stage_numbers[-1] - stage_numbers[first]
    error = 0.0
    if curve.row_scores:
        error = mean_error(curve.row_scores[-1], curve.row_scores[first])
    return (best[-1] - best[first]) / stages, error / stages if error > 0 else 0.0


def _step_worth(preferences: Preferences, step: float, scale: float) -> float:
    """Return the worth of a rise of the score by ``step``.

    By default that is the step over the best rise so far (equations 7 and 8). With a user's
    function of benefit, this would put the current model at benefit 1 and the next one above 1,
    where the function may be undefined; then the next model is taken as that of all rows.
    """
    if preferences.benefit is None:
        return step / scale
    return preferences.worth(1.0) - preferences.worth(scale / (scale + step))
