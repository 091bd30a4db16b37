"""Passes of EM and of k-means on an executor, timed one by one.

Rows are drawn from clusters with known parameters. A job places its rows once and then passes over
them again and again, as a fit does: what it takes to place them, what the first pass takes (each
worker compiles its program) and what later ones take are told apart.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayes_lcs.clustering.kmeans import lloyd as lloyd_blocks
from bayes_lcs.core.model_protocols import MixtureParameters
from bayes_lcs.data.rows.encoded_rows import DenseRows
from bayes_lcs.inference.em import distributed_e_step
from bayes_lcs.inference.em.row_layout import lay_out_rows
from bayes_lcs.inference.em.sharded_e_step import MeshEStep

__all__ = ["JOBS", "Job", "em_job", "kmeans_job", "made_codes", "made_points", "repeated"]

COLUMNS, COMPONENTS = 16, 16


WEIGHTS_IN_LOOKUPS = 8
"""What the weights of a row cost, with their exponentials, for each component. Found by trial: with
0, 2, 4, 6, 8 and 12 the residuals of serial EM scatter by 29, 21, 14, 11, 10 and 12 per cent."""


class Job(NamedTuple):
    """What is worked on.

    Attributes
    ----------
    algorithm
        ``"em"`` or ``"k-means"``.
    rows
        Their number.
    block_rows
        Rows of a block.
    values
        Values of a column, for EM: more values are larger parameters and statistics.
    """

    algorithm: str
    rows: int
    block_rows: int = 1 << 16
    values: int = 4


class Timed(NamedTuple):
    """Seconds of placing and of each pass, the first one apart, and what a pass moved."""

    place: float
    first: float
    passes: list[float]
    units: float
    blocks: int
    sent: float
    received: float


def made_codes(num_rows: int, values: int, seed: int = 0) -> NDArray[np.int8]:
    """Codes from as many clusters as components are fitted."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, COMPONENTS, num_rows, dtype=np.int8)
    codes = np.empty((num_rows, COLUMNS), np.int8, order="F")
    for column in range(COLUMNS):
        upper = np.cumsum(rng.dirichlet(np.full(values, 0.5), COMPONENTS), axis=1)
        upper[:, -1] = 1.0
        # One sorted array for all clusters: that of cluster k lies between k and k + 1.
        steps = (upper + np.arange(COMPONENTS)[:, None]).ravel()
        place = np.searchsorted(steps, rng.random(num_rows) + kind, side="right")
        codes[:, column] = np.clip(place - kind.astype(np.int64) * values, 0, values - 1)
    return codes


def made_points(num_rows: int, seed: int = 0) -> NDArray[np.float64]:
    """Points from overlapping clouds, so that k-means does not end at once."""
    rng = np.random.default_rng(seed)
    centers = rng.normal(size=(COMPONENTS, COLUMNS))
    points = rng.normal(size=(num_rows, COLUMNS))
    points += centers[rng.integers(0, COMPONENTS, num_rows)]
    return points


def em_job(executor: Any, job: Job, enough: float, repeats: int) -> Timed:
    """Statistics at some parameters, again and again."""
    rng = np.random.default_rng(1)
    table = DenseRows(made_codes(job.rows, job.values), (job.values,) * COLUMNS)
    cells = rng.dirichlet(np.ones(job.values), (COLUMNS, COMPONENTS)).swapaxes(1, 2)
    parameters = MixtureParameters(
        np.full(COMPONENTS, 1 / COMPONENTS), cells.reshape(-1, COMPONENTS)
    )
    if executor.mesh is not None:
        began = time.perf_counter()
        plan = lay_out_rows(table)
        step = MeshEStep(plan, "mixed", executor.mesh)
        place = time.perf_counter() - began
        first, passes = repeated(lambda: step.statistics([parameters]), enough, repeats)
        # Every device is given the tables of all patterns in 32 bits, and adds up sums in 64.
        moved = float(executor.num_workers * plan.num_slots * COMPONENTS)
        units = em_units(job.rows, plan.slots_per_row)
        return Timed(place, first, passes, units, len(plan.chunks), 4 * moved, 8 * moved)
    distributed_e_step.BLOCK_ROWS = job.block_rows
    keys = distributed_e_step.RowSlices(table)
    began = time.perf_counter()
    block_step = distributed_e_step.DistributedEStep(
        executor, distributed_e_step.identity, keys, "mixed"
    )
    place = time.perf_counter() - began
    with closing(block_step):
        before = executor.traffic.sent, executor.traffic.received
        first, passes = repeated(lambda: block_step.statistics([parameters]), enough, repeats)
        number = len(passes) + 1
        sent, received = (
            (after - former) / number
            for after, former in zip(
                (executor.traffic.sent, executor.traffic.received), before, strict=True
            )
        )
    lookups = lay_out_rows(table.take(slice(0, job.block_rows))).slots_per_row
    units = em_units(job.rows, lookups)
    return Timed(place, first, passes, units, len(keys), sent, received)


def em_units(rows: int, lookups: int) -> float:
    """Arithmetic of a pass of EM: look-ups of all rows, and weights that are made to sum to one."""
    return float(rows * (lookups + WEIGHTS_IN_LOOKUPS) * COMPONENTS)


def kmeans_job(executor: Any, job: Job, enough: float, repeats: int) -> Timed:
    """Two iterations of Lloyd from one start, again and again; each looks at all points thrice."""
    lloyd_blocks.BLOCK_ROWS = job.block_rows
    points = made_points(job.rows)
    start = points[np.random.default_rng(1).choice(job.rows, COMPONENTS, replace=False)]
    began = time.perf_counter()
    lloyd = lloyd_blocks.DistributedLloyd.from_array(executor, points, np.ones(job.rows))
    place = time.perf_counter() - began
    with closing(lloyd):
        before = executor.traffic.sent, executor.traffic.received
        looks = 3
        first, passes = repeated(lambda: lloyd.run(start, looks - 1, 0.0), enough, repeats)
        number = looks * (len(passes) + 1)
        sent = (executor.traffic.sent - before[0]) / number
        received = (executor.traffic.received - before[1]) / number
    blocks = -(-job.rows // job.block_rows)
    units = job.rows * COLUMNS * COMPONENTS
    return Timed(
        place, first / looks, [one / looks for one in passes], units, blocks, sent, received
    )


JOBS: dict[str, Callable[[Any, Job, float, int], Timed]] = {"em": em_job, "k-means": kmeans_job}


def repeated(work: Callable[[], Any], enough: float, repeats: int) -> tuple[float, list[float]]:
    """Seconds of the first time, and of up to so many later ones, fewer if that is enough."""
    times: list[float] = []
    while len(times) < 4 or (len(times) <= repeats and sum(times[1:]) < enough):
        began = time.perf_counter()
        work()
        times.append(time.perf_counter() - began)
    return times[0], times[1:]
