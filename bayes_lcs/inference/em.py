"""EM for mixtures of products of multinomials (Dempster, Laird and Rubin 1977).

The estimator is the mode of the log-likelihood plus the model's log prior. Expected counts come
from an executor (`bayes_lcs.inference.em_executor`), the M-step is the model's.

*Starts.* The steps of a start are a generator that yields the parameters at which it wants
statistics, is sent them, and returns its `EMResult`: plain EM below, SQUAREM in
`bayes_lcs.inference.em_acceleration`. With what it asks for it says from where it could go on, if
it were begun again. The driver answers all starts together, on all cores, looks at the clock and
the keyboard in between, and writes down where they are.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from bayes_lcs.core.mixture import MixtureModel, MixtureParameters, MixtureStatistics
from bayes_lcs.core.progress import progress_bar
from bayes_lcs.data.checkpoints import Arrays, work
from bayes_lcs.inference.em_executor import Precision

__all__ = ["ConvergenceRule", "EMRequest", "EMResult", "EMSteps", "EStep", "em_steps", "run_em"]

FloatArray = NDArray[np.float64]

ROUNDING = {"double": 4e-15, "mixed": 1e-9}
"""An improvement that is a smaller share of the objective than this is rounding."""


class EMResult(NamedTuple):
    """Where a start ended.

    Attributes
    ----------
    parameters
        The parameters.
    trace
        The objective, log-likelihood plus log prior, at every parameters at which statistics were
        taken. If EM converged the last is that of ``parameters``; if it ran out of iterations they
        are one M-step further.
    statistics
        At the last entry of the trace; None if there is none.
    num_iter
        Number of passes over the rows.
    converged
        Whether the stopping rule was met.
    ended
        Whether there is nothing left to do; False of a place on the way.
    """

    parameters: MixtureParameters
    trace: FloatArray
    statistics: MixtureStatistics | None
    num_iter: int
    converged: bool
    ended: bool = True

    @property
    def objective(self) -> float:
        """Last entry of the trace."""
        return float(self.trace[-1]) if len(self.trace) else -np.inf

    @property
    def log_likelihood(self) -> float:
        """Log-likelihood at the last entry of the trace."""
        return -np.inf if self.statistics is None else self.statistics.log_likelihood


class EMRequest(NamedTuple):
    """Parameters at which statistics are wanted, and from where the steps could be begun again."""

    parameters: MixtureParameters
    reached: EMResult


EMSteps = Generator[EMRequest, MixtureStatistics, EMResult]
EMStart = Callable[[EMResult | None], EMSteps]
"""Begins the steps of a start: at its beginning, or where they were."""


class EStep(Protocol):
    """Whoever takes statistics of rows."""

    def statistics(self, requests: Sequence[MixtureParameters]) -> list[MixtureStatistics]:
        """Statistics at each of some parameters, all together."""

    def identity(self) -> list[Any]:
        """Everything that decides what statistics come out."""


class ConvergenceRule:
    """Stop when the last improvement is less than ``tol`` times the whole one since the start.

    The rule of Meek, Thiesson and Heckerman (2002), section 3.2. An improvement that is within
    rounding also stops: it says nothing about the next one.
    """

    def __init__(self, tol: float, precision: Precision) -> None:
        self.tol = tol
        self.rounding = ROUNDING[precision]

    def __call__(self, trace: Sequence[float]) -> bool:
        """Whether to stop, given the objectives so far."""
        if len(trace) < 2:
            return False
        last, total = trace[-1] - trace[-2], trace[-1] - trace[0]
        return last < self.tol * total or last <= self.rounding * abs(trace[-1])


def em_steps(
    model: MixtureModel,
    start: MixtureParameters,
    max_iter: int,
    stop: ConvergenceRule,
    before: EMResult | None = None,
) -> EMSteps:
    """Plain EM from a start, or from where it was before, for :func:`run_em`."""
    parameters, statistics = start, None
    trace: list[float] = []
    if before is not None:
        parameters, trace = before.parameters, before.trace.tolist()
    for _ in range(len(trace), max_iter):
        reached = EMResult(parameters, np.array(trace), None, len(trace), False, False)
        statistics = yield EMRequest(parameters, reached)
        trace.append(statistics.log_likelihood + model.log_prior(parameters))
        if stop(trace):
            return EMResult(parameters, np.array(trace), statistics, len(trace), True)
        parameters = model.update(statistics)
    return EMResult(parameters, np.array(trace), statistics, len(trace), False)


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
        work("em", *identity) as written,
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
                written.keep(partial(_all_as_arrays, [run.reached for run in runs]))
                tick(len(waiting), f"log-likelihood {max(a.log_likelihood for a in answers):,.1f}")
            written.end(partial(_all_as_arrays, [run.reached for run in runs]))
        except KeyboardInterrupt:
            interrupted = True
            written.flush()
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
            "numbers": [result.num_iter, result.converged, result.ended],
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
    num_iter, converged, ended = written[f"numbers-{i}"].tolist()
    parameters = MixtureParameters(written[f"weights-{i}"], written[f"cells-{i}"])
    trace = written[f"trace-{i}"]
    return EMResult(parameters, trace, statistics, num_iter, bool(converged), bool(ended))
