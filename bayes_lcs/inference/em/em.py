"""EM for mixtures of products of multinomials (Dempster, Laird and Rubin 1977).

The objective is the log-likelihood plus the model's log prior. Expected counts come from an
`EStep` (`bayes_lcs.inference.em.e_step`); the M-step is a method of the model.

*Starts.* The steps of a start are a generator: it yields the parameters at which it needs
statistics, receives these, and returns its `EMResult`. Each request also holds the state from which
the steps can be resumed. :func:`run_em` runs all starts together, with one E-step on all cores for
the requests of all starts, and writes checkpoints in between.

*Remaining gap.* The gain ``g`` of an M-step is the increase of the expected complete log posterior,
to second order ``d' I d / 2`` with the step ``d`` and the complete information ``I``. Near a
maximum a step in the slowest direction shrinks by the same rate ``r`` every time; the objective is
then ``g / (1 - r)`` below its maximum, and the next gain is ``r^2 g``. Two successive gains thus
determine the distance to the maximum (:func:`remaining_gap`), without another pass over the rows.
This is Aitken's extrapolation of the objective (Böhning et al. 1994), computed from gains because
differences of objectives lose their digits where EM is slow.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from bayes_lcs.core.model_protocols import MixtureModel, MixtureParameters, MixtureStatistics
from bayes_lcs.inference.em.e_step import Precision
from bayes_lcs.inference.em.initialization import MIN_COUNT
from bayes_lcs.inference.em.squarem import (
    FIRST_LIMIT,
    MIN_PROBABILITY,
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
"""Relative improvement of the objective below which it counts as rounding."""
MIN_RATE = 0.998
"""Lower limit of the estimated rate of EM: a slow direction may not show yet."""
MAX_RATIO = 1e9
"""Upper limit of the ratio of two probabilities."""
PLAIN_PASSES = 10
"""Passes before acceleration begins; the truncated runs of Meek et al. are plain EM."""


class EMResult(NamedTuple):
    """Final or intermediate state of a start.

    Attributes
    ----------
    parameters
        The parameters.
    trace
        The objective, log-likelihood plus log prior, after each accepted step. If EM converged the
        last entry is that of ``parameters``; if it ran out of iterations these are one M-step
        further.
    statistics
        Statistics at the last entry of the trace; None if there is none.
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
    state: EMResult


EMSteps = Generator[EMRequest, MixtureStatistics, EMResult]
EMStart = Callable[[EMResult | None], EMSteps]
"""Function that begins the steps of a start, or resumes them from a state."""


class EStep(Protocol):
    """E-step over rows."""

    def statistics(self, requests: Sequence[MixtureParameters]) -> list[MixtureStatistics]:
        """Compute statistics at each of the requested parameters."""

    def identity(self) -> list[Any]:
        """List everything that the statistics depend on besides parameters, as a cache key."""


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
    return float(gain / (1.0 - max(rate, MIN_RATE))) if rate < 1.0 else np.inf


class StoppingRule(Protocol):
    """Stopping rule, called when the last two objectives are one EM step apart."""

    def __call__(self, trace: Sequence[float], gap: float) -> bool:
        """Return whether to stop, given the objectives so far and the estimated remaining gap."""


class GapRule:
    """Stop when the estimated distance from the maximum is at most ``tol`` nats, or rounding."""

    def __init__(self, tol: float) -> None:
        self.tol = tol

    def __call__(self, trace: Sequence[float], gap: float) -> bool:
        """Return whether to stop, given the objectives so far and the estimated remaining gap."""
        return gap <= max(self.tol, ROUNDING["double"] * abs(trace[-1]))


class RelativeRule:
    """Stop when the last improvement is less than ``tol`` times the total one since the start.

    The rule of Meek, Thiesson and Heckerman (2002), section 3.2. It also stops when the improvement
    is within rounding, which predicts nothing about the next one.

    Parameters
    ----------
    tol
        Share of the total improvement.
    precision
        Precision of the statistics.
    origin
        Objective from which the total improvement is counted if the start lies above it: the total
        improvement of a start near the maximum would be too small.
    """

    def __init__(self, tol: float, precision: Precision, origin: float = np.inf) -> None:
        self.tol = tol
        self.rounding = ROUNDING[precision]
        self.origin = origin

    def __call__(self, trace: Sequence[float], gap: float = np.inf) -> bool:  # noqa: ARG002
        """Return whether to stop, given the objectives so far; the gap is ignored."""
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
    """Run EM from a start, or from a state ``before``, as a generator for :func:`run_em`.

    Parameters
    ----------
    is_accelerated
        Whether steps are extrapolated (`bayes_lcs.inference.em.squarem`) after the first
        ``PLAIN_PASSES``. Passes of rejected extrapolations count towards ``max_iter``, but are not
        in the trace.
    row_weight
        Weight of one row; see :func:`_point`.
    """
    state = before or EMResult(start, np.zeros(0), None, 0, False, False)
    trace, passes, gap, limit = state.trace.tolist(), state.num_iter, state.gap, state.limit
    statistics = state.statistics
    if statistics is None:
        statistics = yield EMRequest(start, state)
        passes += 1
    last = _point(model, state.parameters, statistics, row_weight)
    if not trace:  # a fresh start, not one resumed from a state
        trace.append(last.objective)
    while passes < max_iter:
        state = EMResult(
            last.parameters, np.array(trace), last.statistics, passes, False, False, gap, limit
        )
        statistics = yield EMRequest(last.update, state)
        passes += 1
        this = _point(model, last.update, statistics, row_weight)
        trace.append(this.objective)
        gap = remaining_gap(last.gain, this.gain) + this.edge_gain / (1.0 - MIN_RATE)
        if stop(trace, gap):
            return EMResult(
                this.parameters, np.array(trace), this.statistics, passes, True, gap=gap
            )
        if is_accelerated and PLAIN_PASSES <= passes < max_iter:
            extrapolated, step = extrapolate(model.schema, last, this, limit)
            statistics = yield EMRequest(extrapolated, state)
            passes += 1
            tried = _point(model, extrapolated, statistics, row_weight)
            # Accepted only if the objective does not fall; otherwise EM continues from `this`.
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
    """Compute the objective, the M-step and its expected gain.

    With ``n`` the expected count of a probability and ``m`` its relative change, the gain is ``sum
    n m^2 / 2``. EM can leave a boundary again. While a probability grows from almost zero, its
    count understates the possible gain, so it is raised to one row; the difference is
    ``edge_gain``, which is not used to estimate the rate.
    """
    update = model.update(statistics)
    counts = model.totals(statistics)
    old, new = stack(parameters), stack(update)
    new = np.where(new < MIN_PROBABILITY, 0.0, new)
    update = MixtureParameters(new[0], new[1:])
    positive = old > 0.0
    ratio = np.minimum(new / np.where(positive, old, 1.0), MAX_RATIO)
    change = np.where(positive, ratio - 1.0, 0.0)
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
        np.log(MIN_COUNT * row_weight / np.maximum(counts, row_weight)),
    )


def run_em(
    e_step: EStep,
    starts: Sequence[EMStart],
    *,
    max_iter: int,
    log_prior: Callable[[MixtureParameters], float],
    progress: bool | None = None,
    cache_key: Any = None,
) -> tuple[list[EMResult], bool]:
    """Run all starts to the end; return their results, and whether Ctrl-C interrupted them.

    After Ctrl-C, a start that has not ended returns the parameters of its pending request. They are
    one step further than the log-likelihood from which the only entry of its trace is computed.

    Parameters
    ----------
    cache_key
        Everything that the results depend on besides the E-step, the initial parameters and
        ``max_iter``. A run is resumed from a checkpoint only if the key is equal.
    """
    runs = [_Run(start) for start in starts]
    firsts = [run.request.parameters for run in runs if run.request is not None]
    identity = (e_step.identity(), firsts, max_iter, cache_key)
    interrupted = False
    with (
        checkpointed_task("em", *identity) as written,
        progress_bar("EM", max_iter * len(starts), progress) as tick,
    ):
        if written.state is not None:
            runs = [
                _Run(start, _result_from_arrays(written.state, i)) for i, start in enumerate(starts)
            ]
            tick(sum(run.passes for run in runs))
        try:
            while waiting := [run for run in runs if run.request is not None]:
                requests = [run.request.parameters for run in waiting if run.request is not None]
                answers = e_step.statistics(requests)
                for run, answer in zip(waiting, answers, strict=True):
                    run.send(answer)
                written.update(partial(_results_to_arrays, [run.state for run in runs]))
                tick(len(waiting), f"log-likelihood {max(a.log_likelihood for a in answers):,.1f}")
            written.finish(partial(_results_to_arrays, [run.state for run in runs]))
        except KeyboardInterrupt:
            interrupted = True
            written.save()
            if not any(run.statistics or run.result for run in runs):
                raise
    results = [run.outcome(log_prior) for run in runs]
    return [result for result in results if result is not None], interrupted


class _Run:
    """A start in progress.

    Attributes
    ----------
    request
        The pending request; None when the start has ended.
    result
        Result, when the start has ended.
    statistics
        Statistics received last.
    passes
        Number of passes so far.
    """

    def __init__(self, start: EMStart, before: EMResult | None = None) -> None:
        self.request: EMRequest | None = None
        self.result: EMResult | None = None
        self.statistics: MixtureStatistics | None = None
        self.passes = 0 if before is None else before.num_iter
        if before is not None and before.ended:
            self.result = before
            return
        self._steps = start(before)
        self._advance(None)

    def send(self, answer: MixtureStatistics) -> None:
        """Continue with the statistics of one more pass."""
        self.statistics, self.passes = answer, self.passes + 1
        self._advance(answer)

    def _advance(self, answer: MixtureStatistics | None) -> None:
        try:
            self.request = next(self._steps) if answer is None else self._steps.send(answer)
        except StopIteration as stop:
            self.request, self.result = None, stop.value

    @property
    def state(self) -> EMResult:
        """The result, or the state from which the start can be resumed."""
        if self.result is not None:
            return self.result
        assert self.request is not None
        return self.request.state

    def outcome(self, log_prior: Callable[[MixtureParameters], float]) -> EMResult | None:
        """Return the result, after Ctrl-C an intermediate one; None before the first pass."""
        if self.result is not None or self.statistics is None or self.request is None:
            return self.result
        parameters = self.request.parameters
        last = np.array([self.statistics.log_likelihood + log_prior(parameters)])
        return EMResult(parameters, last, self.statistics, self.passes, False)


def _results_to_arrays(results: list[EMResult]) -> Arrays:
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


def _result_from_arrays(written: Arrays, i: int) -> EMResult:
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
