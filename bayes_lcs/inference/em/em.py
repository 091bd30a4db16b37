"""EM for mixtures of products of multinomials (Dempster, Laird and Rubin 1977).

The objective is the log-likelihood plus the model's log prior. Expected counts come from an
executor (`bayes_lcs.inference.em.e_step`), the M-step is the model's.

*Starts.* The steps of a start are a generator: it yields the parameters at which it needs
statistics, is sent them, and returns its `EMResult`. Each request also holds the state from which
the steps can be resumed. :func:`run_em` serves all starts together, on all cores, and writes
checkpoints in between.

*Remaining gap.* The gain ``g`` of an M-step is the increase of the expected complete log posterior,
to second order ``d' I d / 2`` with the step ``d`` and the complete information ``I``. Near a
maximum a step in the slowest direction shrinks by the same rate ``r`` every time; the objective is
then ``g / (1 - r)`` below its maximum, and the next gain is ``r^2 g``. So two successive gains tell
how far the maximum is (:func:`remaining_gap`), without another pass over the rows. This is Aitken's
extrapolation of the objective (Böhning et al. 1994), taken from gains because differences of
objectives lose their digits where EM is slow.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from bayes_lcs.core.model_protocols import MixtureModel, MixtureParameters, MixtureStatistics
from bayes_lcs.inference.em.e_step import Precision
from bayes_lcs.inference.em.initialization import LEAST_COUNT
from bayes_lcs.inference.em.squarem import (
    FIRST_LIMIT,
    SMALLEST,
    EMPoint,
    extrapolate,
    next_limit,
    stack,
)
from bayes_lcs.runtime.checkpoints import Arrays, checkpointed_task
from bayes_lcs.runtime.progress import progress_bar

__all__ = [
    "EMRequest",
    "EMResult",
    "EMSteps",
    "EStep",
    "GapRule",
    "RelativeRule",
    "StoppingRule",
    "em_steps",
    "remaining_gap",
    "run_em",
]

FloatArray = NDArray[np.float64]

ROUNDING = {"double": 4e-15, "mixed": 1e-9}
"""Share of the objective below which an improvement is rounding."""
LEAST_RATE = 0.998
"""Rate assumed of EM if a faster one is observed: a slow direction may not show yet."""
LARGEST_RATIO = 1e9
"""Ratio of two probabilities above which only that it is large matters."""
PLAIN_PASSES = 10
"""Passes before acceleration begins; the runs of Meek et al. that are cut short are plain EM."""


class EMResult(NamedTuple):
    """Final or intermediate state of a start.

    Attributes
    ----------
    parameters
        The parameters.
    trace
        The objective, log-likelihood plus log prior, at all parameters that were kept. If EM
        converged the last entry is that of ``parameters``; if it ran out of iterations they are
        one M-step further.
    statistics
        At the last entry of the trace; None if there is none.
    num_iter
        Number of passes over the rows.
    converged
        Whether the stopping rule was met.
    ended
        Whether the start has ended; False for a state to resume from.
    gap
        Estimated distance of the last objective from the maximum, in nats; infinite where two
        successive steps do not shrink.
    limit
        Upper limit of the next extrapolation's step.
    """

    parameters: MixtureParameters
    trace: FloatArray
    statistics: MixtureStatistics | None
    num_iter: int
    converged: bool
    ended: bool = True
    gap: float = np.inf
    limit: float = FIRST_LIMIT

    @property
    def objective(self) -> float:
        """Last entry of the trace."""
        return float(self.trace[-1]) if len(self.trace) else -np.inf

    @property
    def log_likelihood(self) -> float:
        """Log-likelihood at the last entry of the trace."""
        return -np.inf if self.statistics is None else self.statistics.log_likelihood


class EMRequest(NamedTuple):
    """Parameters at which statistics are needed, and the state to resume the steps from."""

    parameters: MixtureParameters
    reached: EMResult


EMSteps = Generator[EMRequest, MixtureStatistics, EMResult]
EMStart = Callable[[EMResult | None], EMSteps]
"""Begins the steps of a start, or resumes them from a state."""


class EStep(Protocol):
    """E-step over rows."""

    def statistics(self, requests: Sequence[MixtureParameters]) -> list[MixtureStatistics]:
        """Take statistics at each of some parameters, all together."""

    def identity(self) -> list[Any]:
        """List everything that decides the statistics."""


def remaining_gap(previous: float, gain: float) -> float:
    """Estimate how far the objective is below its maximum, from the gains of two EM steps.

    Examples
    --------
    >>> round(remaining_gap(1e-4 / 0.999**2, 1e-4), 9)
    0.1
    >>> round(remaining_gap(1.0, 1e-4), 9)  # too fast to be the slowest direction
    0.05
    >>> remaining_gap(1e-4, 2e-4)
    inf
    """
    rate = np.sqrt(gain / previous) if previous > 0.0 else 0.0
    return float(gain / (1.0 - max(rate, LEAST_RATE))) if rate < 1.0 else np.inf


class StoppingRule(Protocol):
    """Rule that ends a start, asked where the last two objectives are one EM step apart."""

    def __call__(self, trace: Sequence[float], gap: float) -> bool:
        """Tell whether to stop, given the objectives so far and the estimated remaining gap."""


class GapRule:
    """Stop when the estimated distance from the maximum is at most ``tol`` nats, or rounding."""

    def __init__(self, tol: float) -> None:
        self.tol = tol

    def __call__(self, trace: Sequence[float], gap: float) -> bool:
        """Tell whether to stop, given the objectives so far and the estimated remaining gap."""
        return gap <= max(self.tol, ROUNDING["double"] * abs(trace[-1]))


class RelativeRule:
    """Stop when the last improvement is less than ``tol`` times the whole one since the start.

    The rule of Meek, Thiesson and Heckerman (2002), section 3.2. An improvement within rounding
    also stops: it says nothing about the next one.

    Parameters
    ----------
    tol
        Share of the whole improvement.
    precision
        Of the statistics.
    origin
        The whole improvement is counted from here if the start lies above. A start near the
        maximum would otherwise have nothing to compare its improvements with.
    """

    def __init__(self, tol: float, precision: Precision, origin: float = np.inf) -> None:
        self.tol = tol
        self.rounding = ROUNDING[precision]
        self.origin = origin

    def __call__(self, trace: Sequence[float], gap: float = np.inf) -> bool:  # noqa: ARG002
        """Tell whether to stop, given the objectives so far; the gap is ignored."""
        last, total = trace[-1] - trace[-2], trace[-1] - min(trace[0], self.origin)
        return last < self.tol * total or last <= self.rounding * abs(trace[-1])


def em_steps(
    model: MixtureModel,
    start: MixtureParameters,
    max_iter: int,
    stop: StoppingRule,
    before: EMResult | None = None,
    *,
    is_accelerated: bool = False,
    row_weight: float = 1.0,
) -> EMSteps:
    """EM from a start, or resumed from a state, for :func:`run_em`.

    Parameters
    ----------
    is_accelerated
        Whether steps are extrapolated (`bayes_lcs.inference.em.squarem`) after the first
        ``PLAIN_PASSES``. ``max_iter`` counts the passes of rejected extrapolations; the trace does
        not hold them.
    row_weight
        Weight of a row, the unit of :func:`_point`.
    """
    reached = before or EMResult(start, np.zeros(0), None, 0, False, False)
    trace, passes, gap, limit = reached.trace.tolist(), reached.num_iter, reached.gap, reached.limit
    statistics = reached.statistics
    if statistics is None:
        statistics = yield EMRequest(start, reached)
        passes += 1
    last = _point(model, reached.parameters, statistics, row_weight)
    if not trace:
        trace.append(last.objective)
    while passes < max_iter:
        reached = EMResult(
            last.parameters, np.array(trace), last.statistics, passes, False, False, gap, limit
        )
        statistics = yield EMRequest(last.update, reached)
        passes += 1
        this = _point(model, last.update, statistics, row_weight)
        trace.append(this.objective)
        gap = remaining_gap(last.gain, this.gain) + this.edge_gain / (1.0 - LEAST_RATE)
        if stop(trace, gap):
            return EMResult(
                this.parameters, np.array(trace), this.statistics, passes, True, gap=gap
            )
        if is_accelerated and PLAIN_PASSES <= passes < max_iter:
            bold, step = extrapolate(model.schema, last, this, limit)
            statistics = yield EMRequest(bold, reached)
            passes += 1
            tried = _point(model, bold, statistics, row_weight)
            is_better = tried.objective >= this.objective
            limit = next_limit(limit, step, is_better)
            if is_better:
                this = tried
                trace.append(tried.objective)
        last = this
    return EMResult(last.update, np.array(trace), last.statistics, passes, False, gap=gap)


def _point(
    model: MixtureModel,
    parameters: MixtureParameters,
    statistics: MixtureStatistics,
    row_weight: float,
) -> EMPoint:
    """Compute objective, M-step and the gain that it expects.

    With ``n`` the expected count of a probability and ``m`` its relative change the gain is ``sum n
    m^2 / 2``. EM can leave a boundary that it was driven to. While a probability grows from next to
    nothing its count does not show what there is to gain, so that it counts as one row; the
    difference is the gain at the edge, which says nothing about the rate.
    """
    update = model.update(statistics)
    counts = model.totals(statistics)
    old, new = stack(parameters), stack(update)
    new = np.where(new < SMALLEST, 0.0, new)
    update = MixtureParameters(new[0], new[1:])
    known = old > 0.0
    ratio = np.minimum(new / np.where(known, old, 1.0), LARGEST_RATIO)
    change = np.where(known, ratio - 1.0, 0.0)
    expected = counts * old
    importance = np.where(change > 0.0, np.maximum(expected, row_weight), expected)
    gain = 0.5 * float((expected * change**2).sum())
    return EMPoint(
        parameters,
        statistics,
        statistics.log_likelihood + model.log_prior(parameters),
        update,
        gain,
        0.5 * float((importance * change**2).sum()) - gain,
        importance,
        np.log(LEAST_COUNT * row_weight / np.maximum(counts, row_weight)),
    )


def run_em(
    executor: EStep,
    starts: Sequence[EMStart],
    *,
    max_iter: int,
    log_prior: Callable[[MixtureParameters], float],
    progress: bool | None = None,
    decisive: Any = None,
) -> tuple[list[EMResult], bool]:
    """Run all starts to their ends, and say whether Ctrl-C cut them short.

    After Ctrl-C a start that has not ended returns the parameters that it asked for last, one step
    further than the log-likelihood that it returns with them, and only that in its trace.

    Parameters
    ----------
    decisive
        What decides the course of the starts beside the executor, their first parameters and
        ``max_iter``: a checkpoint is only taken up where it is the same.
    """
    runs = [_Run(start) for start in starts]
    firsts = [run.request.parameters for run in runs if run.request is not None]
    identity = (executor.identity(), firsts, max_iter, decisive)
    interrupted = False
    with (
        checkpointed_task("em", *identity) as written,
        progress_bar("EM", max_iter * len(starts), progress) as tick,
    ):
        if written.state is not None:
            runs = [_Run(start, _result_from(written.state, i)) for i, start in enumerate(starts)]
            tick(sum(run.passes for run in runs))
        try:
            while waiting := [run for run in runs if run.request is not None]:
                asked = [run.request.parameters for run in waiting if run.request is not None]
                answers = executor.statistics(asked)
                for run, answer in zip(waiting, answers, strict=True):
                    run.send(answer)
                written.update(partial(_all_as_arrays, [run.reached for run in runs]))
                tick(len(waiting), f"log-likelihood {max(a.log_likelihood for a in answers):,.1f}")
            written.finish(partial(_all_as_arrays, [run.reached for run in runs]))
        except KeyboardInterrupt:
            interrupted = True
            written.save()
            if not any(run.known or run.result for run in runs):
                raise
    results = [run.outcome(log_prior) for run in runs]
    return [result for result in results if result is not None], interrupted


class _Run:
    """A start under way.

    Attributes
    ----------
    request
        What it waits for; None when it has ended.
    result
        How it ended.
    known
        The statistics that it was sent last.
    passes
        How often it was sent any.
    """

    def __init__(self, start: EMStart, before: EMResult | None = None) -> None:
        self.request: EMRequest | None = None
        self.result: EMResult | None = None
        self.known: MixtureStatistics | None = None
        self.passes = 0 if before is None else before.num_iter
        if before is not None and before.ended:
            self.result = before
            return
        self._steps = start(before)
        self._advance(None)

    def send(self, answer: MixtureStatistics) -> None:
        """One pass over the rows more."""
        self.known, self.passes = answer, self.passes + 1
        self._advance(answer)

    def _advance(self, answer: MixtureStatistics | None) -> None:
        try:
            self.request = next(self._steps) if answer is None else self._steps.send(answer)
        except StopIteration as stop:
            self.request, self.result = None, stop.value

    @property
    def reached(self) -> EMResult:
        """How it ended, or from where it could go on."""
        if self.result is not None:
            return self.result
        assert self.request is not None
        return self.request.reached

    def outcome(self, log_prior: Callable[[MixtureParameters], float]) -> EMResult | None:
        """How it ended, or what is known after Ctrl-C; None if that is nothing."""
        if self.result is not None or self.known is None or self.request is None:
            return self.result
        parameters = self.request.parameters
        last = np.array([self.known.log_likelihood + log_prior(parameters)])
        return EMResult(parameters, last, self.known, self.passes, False)


def _all_as_arrays(results: list[EMResult]) -> Arrays:
    written: dict[str, NDArray[Any]] = {}
    for i, result in enumerate(results):
        values: dict[str, Any] = {
            "weights": result.parameters.weights,
            "cells": result.parameters.cells,
            "trace": result.trace,
            "numbers": [result.num_iter, result.converged, result.ended, result.gap, result.limit],
        }
        if result.statistics is not None:
            values |= dict(zip(("sums", "cell_sums", "log"), result.statistics, strict=True))
        written |= {f"{name}-{i}": np.asarray(value) for name, value in values.items()}
    return written


def _result_from(written: Arrays, i: int) -> EMResult:
    statistics = None
    if f"sums-{i}" in written:
        cells, log = written[f"cell_sums-{i}"], float(written[f"log-{i}"])
        statistics = MixtureStatistics(written[f"sums-{i}"], cells, log)
    num_iter, converged, ended, gap, limit = written[f"numbers-{i}"].tolist()
    parameters = MixtureParameters(written[f"weights-{i}"], written[f"cells-{i}"])
    trace = written[f"trace-{i}"]
    return EMResult(
        parameters, trace, statistics, int(num_iter), bool(converged), bool(ended), gap, limit
    )
