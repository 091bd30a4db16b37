"""When to stop: the myopic rule of Meek, Thiesson and Heckerman (2002), equations 5, 7, 8 and 9.

After stage ``i`` a rule compares two things: stopping now, and going on. The myopic rule pretends
that one may go on by one stage only. It takes the last step of the curve for the next one (curves
are concave in the logarithm of the size, so that is rather too much), the best score so far for
that of all rows, and the measured costs, and stops when

``[(l_i - l_{i-1}) / (max l - l_base)] / (expected seconds, in hours) <= α``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from bayes_lcs.scaling.rates import seconds_text
from bayes_lcs.scaling.utility import Preferences

__all__ = ["Decision", "Rule", "Situation", "myopic", "within_memory"]


@dataclass(frozen=True)
class Situation:
    """What a rule may look at after a stage.

    Attributes
    ----------
    sizes, scores
        The stages so far: rows, and scores of the models that full training gives (those of
        training cut short have the offset added).
    base
        Score of the baseline.
    future
        The sizes that may follow; empty when all rows are used.
    total_rows
        Rows that there are to train on.
    spent
        Seconds so far.
    to_stop
        Seconds that stopping now still takes: full training, where the stages are cut short.
    to_go
        For each future size the seconds to go there at once and stop there.
    to_look
        For each future size the seconds to go there and decide again: less than ``to_go``
        where stages are cut short.
    """

    sizes: tuple[int, ...]
    scores: tuple[float, ...]
    base: float
    future: tuple[int, ...]
    total_rows: int
    spent: float
    to_stop: float
    to_go: tuple[float, ...]
    to_look: tuple[float, ...]


@dataclass(frozen=True)
class Decision:
    """What was decided after a stage, and why.

    Attributes
    ----------
    stop
        Whether to stop.
    next_size
        The size of the next stage; None to stop.
    expected_gain
        Worth that going on is expected to add.
    expected_cost
        What the seconds for it cost, on the same scale.
    expected_seconds
        The seconds themselves.
    rule
        The rule that decided.
    reason
        A sentence.
    forecast
        What a rule that fits the curve foresaw: expected score by size, and its standard deviation.
    """

    stop: bool
    next_size: int | None
    expected_gain: float | None
    expected_cost: float | None
    expected_seconds: float | None
    rule: str
    reason: str
    forecast: dict[int, tuple[float, float]] = field(default_factory=dict)


Rule = Callable[[Situation, Preferences], Decision]


def within_memory(rule: Rule, most_rows: int) -> Rule:
    """A rule that knows of no size beyond what fits into memory, and stops where none is left.

    Examples
    --------
    >>> seen = Situation((40, 80), (-8.0, -7.0), -11.0, (160,), 1000, 20.0, 0.0, (36.0,), (36.0,))
    >>> within_memory(myopic, 100)(seen, Preferences(alpha=20.0)).reason
    'stops: 160 rows do not fit into memory'
    """

    def decide(situation: Situation, preferences: Preferences) -> Decision:
        room = sum(size <= most_rows for size in situation.future)
        if situation.future and not room:
            reason = f"stops: {situation.future[0]:,} rows do not fit into memory"
            return Decision(True, None, None, None, None, "memory", reason)
        near = replace(
            situation,
            future=situation.future[:room],
            to_go=situation.to_go[:room],
            to_look=situation.to_look[:room],
        )
        return rule(near, preferences)

    return decide


def myopic(situation: Situation, preferences: Preferences, *, rule: str = "myopic") -> Decision:
    """Stop unless the next stage is expected to be worth its cost.

    Never after the first stage: one point has no step. A curve that has not left the baseline has
    no scale of benefit: it goes on while the score rises.

    Examples
    --------
    >>> seen = Situation((40, 80), (-8.0, -7.0), -11.0, (160,), 1000, 20.0, 0.0, (36.0,), (36.0,))
    >>> decision = myopic(seen, Preferences(alpha=20.0))
    >>> decision.stop, decision.expected_gain, decision.expected_cost
    (False, 0.25, 0.2)
    """
    if not situation.future:
        return Decision(True, None, None, None, None, rule, "all rows are used")
    size, seconds = situation.future[0], situation.to_go[0] - situation.to_stop
    cost = preferences.price(situation.spent + situation.to_go[0])
    cost -= preferences.price(situation.spent + situation.to_stop)
    if len(situation.sizes) < 2:
        reason = "goes on: one stage has no step to judge by"
        return Decision(False, size, None, cost, seconds, rule, reason)
    step = situation.scores[-1] - situation.scores[-2]
    scale = max(situation.scores) - situation.base
    if scale <= 0:
        stop = step <= 0
        reason = "no better than the baseline, and " + ("not rising" if stop else "rising")
        reason = f"{'stops' if stop else 'goes on'}: {reason}"
        return Decision(stop, None if stop else size, None, cost, seconds, rule, reason)
    gain = _gain(situation, preferences, step, scale)
    stop = gain <= cost
    reason = (
        f"{'stops' if stop else 'goes on'}: expects {gain:+.3g} benefit from {size:,} rows, at a "
        f"cost of {cost:.3g} ({seconds_text(max(seconds, 0.0))})"
    )
    return Decision(stop, None if stop else size, gain, cost, seconds, rule, reason)


def _gain(situation: Situation, preferences: Preferences, step: float, scale: float) -> float:
    """Expected worth of one more stage.

    With benefit as it is, equations 7 and 8: the step over the best rise so far. Where worth is a
    function of benefit, that would put the model at hand at benefit 1 and the next beyond it, where
    such functions may not be defined; the next model is then taken for the one of all rows.
    """
    if preferences.benefit is None:
        return step / scale
    if step <= 0:
        return preferences.worth(1.0 + step / scale) - preferences.worth(1.0)
    now = (situation.scores[-1] - situation.base) / (scale + step)
    return preferences.worth(1.0) - preferences.worth(now)
