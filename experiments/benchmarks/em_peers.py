"""One EM iteration of a mixture of products of multinomials, by others.

*numba*        rows in equal parts, one a thread: a loop over rows, columns and components in
               float32, counts in float32 of each thread's own. `numba_pass` takes any codes: raw
               columns, or the groups of patterns that our plan made.
*pomegranate*  `GeneralMixtureModel` of `Categorical`s: ``summarize`` and ``from_summaries``.
*StepMix*      its ``categorical`` measurement model; from one E-step to the next.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray


def numba_pass(
    codes: NDArray[Any], tables: NDArray[np.float32], base: NDArray[np.float32], threads: int
) -> Callable[[], tuple[NDArray[Any], float]]:
    """A compiled pass over ``codes`` ``(N, F)``, row by row, into ``tables`` ``(T, K)``."""
    import numba

    @numba.njit(parallel=True, fastmath=True)
    def run(
        codes: Any, tables: Any, base: Any, counts: Any, logs: Any
    ) -> None:  # pragma: no cover - compiled
        num_rows, num_columns = codes.shape
        num_components = base.shape[0]
        parts = counts.shape[0]
        for part in numba.prange(parts):
            joint = np.empty(num_components, np.float32)
            total_log = 0.0
            mine = counts[part]
            for row in range(part * num_rows // parts, (part + 1) * num_rows // parts):
                for k in range(num_components):
                    joint[k] = base[k]
                for column in range(num_columns):
                    code = codes[row, column]
                    for k in range(num_components):
                        joint[k] += tables[code, k]
                top = joint[0]
                for k in range(1, num_components):
                    top = max(top, joint[k])
                total = np.float32(0.0)
                for k in range(num_components):
                    joint[k] = np.exp(joint[k] - top)
                    total += joint[k]
                total_log += top + np.log(total)
                for k in range(num_components):
                    joint[k] /= total
                for column in range(num_columns):
                    code = codes[row, column]
                    for k in range(num_components):
                        mine[code, k] += joint[k]
            logs[part] = total_log

    numba.set_num_threads(min(threads, numba.config.NUMBA_NUM_THREADS))

    def work() -> tuple[NDArray[Any], float]:
        counts = np.zeros((threads, *tables.shape), np.float32)
        logs = np.zeros(threads)
        run(codes, tables, base, counts, logs)
        return counts.sum(axis=0), float(logs.sum())

    return work


def pomegranate_pass(rows: NDArray[Any], weights: Any, tables: list[Any]) -> Callable[[], float]:
    """An EM iteration from given parameters; returns the log-likelihood before it."""
    import torch
    from pomegranate.distributions import Categorical
    from pomegranate.gmm import GeneralMixtureModel

    widest = max(table.shape[1] for table in tables)
    data = torch.tensor(np.ascontiguousarray(rows), dtype=torch.int64)

    def work() -> float:
        components = []
        for k in range(len(weights)):
            probs = np.full((len(tables), widest), 1e-30)
            for f, table in enumerate(tables):
                probs[f, : table.shape[1]] = table[k]
            probs /= probs.sum(axis=1, keepdims=True)
            components.append(Categorical(torch.tensor(probs, dtype=torch.float32)))
        model = GeneralMixtureModel(components, priors=torch.tensor(np.asarray(weights)).float())
        log_likelihood = float(model.summarize(data).double().sum())
        model.from_summaries()
        return log_likelihood

    return work


def stepmix_seconds(
    rows: NDArray[Any], num_components: int, iterations: int
) -> tuple[float, float]:
    """Wall and processor time of the fastest iteration of a fit, from E-step to E-step."""
    clock: list[tuple[float, float]] = []
    fitted, _ = _stepmix_fit(rows, num_components, iterations, clock)
    # The fit ends with an E-step of its own: one interval for each iteration.
    assert fitted.n_iter_ == iterations == len(clock) - 1, "StepMix stopped early"
    wall, cpu = np.diff(np.array(clock), axis=0).min(axis=0)
    return float(wall), float(cpu)


def _stepmix_fit(
    rows: NDArray[Any],
    num_components: int,
    iterations: int,
    clock: list[tuple[float, float]] | None = None,
) -> tuple[Any, float]:
    """A fitted StepMix and the seconds that it took; ``clock`` gets the time of each E-step."""
    import warnings

    from stepmix import StepMix

    class Clocked(StepMix):
        def _e_step(self, *args: Any, **kwargs: Any) -> Any:
            if clock is not None:
                clock.append((time.perf_counter(), time.process_time()))
            return super()._e_step(*args, **kwargs)

    model = Clocked(
        num_components,
        measurement="categorical",
        n_init=1,
        max_iter=iterations,
        abs_tol=0.0,
        rel_tol=0.0,
        random_state=0,
        progress_bar=0,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        began = time.perf_counter()
        model.fit(rows.astype(np.float64))
        return model, time.perf_counter() - began


def stepmix_curve(
    rows: NDArray[Any], held_out: NDArray[Any], num_components: int, iterations: tuple[int, ...]
) -> list[tuple[int, float, float]]:
    """Iterations, seconds and mean hold-out log-likelihood of fits of growing length."""
    curve = []
    for number in iterations:
        model, seconds = _stepmix_fit(rows, num_components, number)
        curve.append((number, seconds, float(model.score(held_out.astype(np.float64)))))
    return curve
