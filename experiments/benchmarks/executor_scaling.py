"""Executors: what passes of EM and k-means take on them, what they cost, and what that predicts.

Each kind of executor and number of workers is measured in a process of its own. More blocks, and
more values a column, are measured beside more rows: otherwise what arithmetic costs could not be
told from what is sent. Ratios are to the serial executor in the same run; medians, with quartiles.
"""

from __future__ import annotations

import os
import platform
from datetime import date
from importlib.metadata import version
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from bayes_lcs.runtime.memory import num_cores
from experiments.benchmarks.tables import Scale, Table
from experiments.executors.cells import Cell, measure_cells
from experiments.executors.cost_model import (
    NAMES,
    CostModel,
    Elsewhere,
    Pass,
    fit_cost_model,
    left_out_errors,
    predict_elsewhere,
)
from experiments.executors.disk import PASSES, measure_disk
from experiments.executors.jobs import Job
from experiments.executors.peers import PEERS, installed_peers
from experiments.executors.picture import figure

__all__ = ["figure", "run"]


class Size(NamedTuple):
    """Rows of the smallest job of each algorithm and of the file, and how long to repeat."""

    em: int
    kmeans: int
    file: int
    enough: float
    repeats: int


SIZES = {
    Scale.SMOKE: Size(2_000, 2_000, 20_000, 0.0, 3),
    Scale.NORMAL: Size(1 << 17, 1 << 16, 1 << 21, 1.0, 15),
    Scale.FULL: Size(1 << 20, 1 << 18, 1 << 23, 10.0, 30),
}
TIMES = (1, 4, 16)
KINDS = {"serial": (1,), "dask": (1, 2), "devices": (1, 2, 4)}  # "processes" is Dask as well
FEW_KINDS = {"serial": (1,), "dask": (2,), "devices": (2,)}
MAX_CATEGORY_NUMBERS = 64
FAR_ROWS, FAR_WORKERS = 10**9, 100


def jobs_of(kind: str, size: Size, scale: Scale) -> list[Job]:
    """Rows 1, 4 and 16 times, and for the cost model small blocks and many values."""
    block = 1 << 16 if scale is not Scale.SMOKE else 1_000
    small = block // 8
    times = TIMES if scale is not Scale.SMOKE else TIMES[:2]
    em = [Job("em", many * size.em, block) for many in times]
    em += [Job("em", many * size.em, block, MAX_CATEGORY_NUMBERS) for many in times[:2]]
    points = [Job("k-means", many * size.kmeans, block) for many in times]
    if kind != "devices":  # whose chunks are the plan's
        em += [Job("em", many * size.em, small) for many in times[:2]]
        em += [Job("em", size.em, small, MAX_CATEGORY_NUMBERS)]
    if kind not in PEERS:
        points += [Job("k-means", many * size.kmeans, small) for many in times[:2]]
    return em + points


def scaling_table(cells: list[Cell]) -> Table:
    """Every measured pass."""
    serial = {cell.job: cell.seconds for cell in cells if cell.kind == "serial"}
    fewest = sorted(cells, key=lambda cell: -cell.workers)
    alone = {(cell.kind, cell.job): cell.seconds for cell in fewest}
    rows = []
    for cell in cells:
        job, timed = cell.job, cell.timed
        lower, upper = cell.spread
        rows.append(
            (
                job.algorithm,
                cell.kind,
                cell.workers,
                job.rows,
                timed.blocks,
                job.values if job.algorithm == "em" else None,
                1e3 * cell.seconds,
                1e3 * lower,
                1e3 * upper,
                cell.seconds / serial[job],
                alone[cell.kind, job] / cell.seconds,
                timed.sent / 1e3,
                timed.received / 1e3,
                timed.place,
                timed.first,
            )
        )
    return Table(
        "executor_scaling",
        "A pass over the rows: EM (16 columns, 16 components) and k-means (16 columns, 16 centres)",
        (
            "algorithm",
            "executor",
            "workers",
            "rows",
            "blocks",
            "values",
            "ms a pass",
            "quartile",
            "quartile ",
            "over serial",
            "gain by workers",
            "kB out",
            "kB back",
            "s to place",
            "s of the first pass",
        ),
        rows,
        [
            "Bytes of devices are those of tables put onto them and of sums that they add up.",
            "BLAS and OpenMP have one thread for each worker; XLA decides for itself.",
        ],
    )


def overhead_table(found: dict[tuple[str, int], dict[str, Any]]) -> Table:
    """What each costs where there is nothing to gain."""
    serial = found["serial", 1]["fit"]
    rows = [
        (kind, workers, one["start"], 1e3 * one["call"], one["first fit"], one["fit"])
        for (kind, workers), one in found.items()
    ]
    return Table(
        "executor_overhead",
        "A small job: 20 passes of EM over 2,000 rows",
        (
            "executor",
            "workers",
            "s to start",
            "ms of an empty call",
            "s of the first fit",
            "s of a later fit",
            "over serial",
        ),
        [(*row, row[-1] / serial) for row in rows],
    )


def disk_table(rows: int) -> Table:
    """A file in a tenth of its size."""
    mega = 1e6
    found = []
    for algorithm, kind in product(("em", "k-means"), ("csv", "parquet")):
        one = measure_disk(algorithm, kind, rows)
        found.append(
            (
                algorithm,
                kind,
                one.rows,
                one.size / mega,
                one.limit / mega,
                one.peak / mega,
                one.size / mega / one.file_read,
                one.size / mega / one.prepared,
                one.kept / mega,
                one.kept / mega / one.kept_read,
                one.kept / mega / one.passing,
                one.kept / mega / one.passing_again,
                1e9 * one.passing / one.rows,
                one.prepared + PASSES * one.passing + one.finished,
                (1 + PASSES) * one.file_read,
            )
        )
    return Table(
        "executor_disk",
        f"A file fitted out of core: 16 columns, 16 components or centres, {PASSES} passes",
        (
            "algorithm",
            "file",
            "rows",
            "MB",
            "MB allowed for rows",
            "MB that memory rose",
            "MB/s of the disk, the file",
            "MB/s of the file until the first pass",
            "MB kept",
            "MB/s of the disk, what is kept",
            "MB/s of a pass",
            "MB/s of a pass, held by the system",
            "ns a row and pass",
            "s of the fit",
            "s of the disk to read the file as often",
        ),
        found,
        [
            (
                "What is read was forgotten by the system before, unless it is said. The disk's "
                "speeds are those of reading plainly, and doing nothing with it."
            ),
        ],
    )


def models_of(cells: list[Cell]) -> dict[tuple[str, str], CostModel]:
    """A cost model for each algorithm and executor that has enough cells."""
    found = {}
    for key in dict.fromkeys((cell.job.algorithm, cell.kind) for cell in cells):
        own = [cell for cell in cells if (cell.job.algorithm, cell.kind) == key]
        if len(own) > len(NAMES) + 1:  # one more is left out at a time
            found[key] = fit_cost_model([c.terms for c in own], [c.seconds for c in own])
    return found


def model_table(cells: list[Cell], models: dict[tuple[str, str], CostModel]) -> Table:
    """Coefficients with errors, and how well cells are foreseen by all others."""
    rows = []
    for (algorithm, kind), model in models.items():
        own = [c for c in cells if (c.job.algorithm, c.kind) == (algorithm, kind)]
        passes, seconds = [c.terms for c in own], [c.seconds for c in own]
        errors = left_out_errors(passes, seconds)
        held = max(range(len(own)), key=lambda i: (own[i].job.rows, own[i].workers == 2))
        units = (1e9, 1e3, 1e9, 1e3)
        found = [
            f"{c * u:.3g} ± {e * u:.2g}" if c else "0"
            for c, e, u in zip(model.coefficients, model.errors, units, strict=True)
        ]
        rows.append(
            (
                algorithm,
                kind,
                len(own),
                *found,
                100 * model.scatter,
                1e3 * seconds[held],
                1e3 * seconds[held] * (1 + errors[held]),
                100 * float(np.median(np.abs(errors))),
            )
        )
    return Table(
        "executor_cost_model",
        "A pass = work * units / workers + task * blocks / workers + byte * bytes + fixed",
        (
            "algorithm",
            "executor",
            "cells",
            "work, ns",
            "task, ms",
            "byte, ns",
            "fixed, ms",
            "scatter, %",
            "largest job, ms",
            "foreseen by the others, ms",
            "median error of all left out, %",
        ),
        rows,
    )


def far_passes(cell: Cell) -> dict[str, Pass]:
    """A billion rows on a hundred workers: as it is, with larger blocks, and merged by workers."""
    timed, scale = cell.timed, FAR_ROWS / cell.job.rows
    units, blocks = timed.units * scale, timed.blocks * scale
    # Dask is sent parameters once and passes them on; here each worker is sent its own.
    out, back = timed.sent * FAR_WORKERS, timed.received / timed.blocks
    return {
        "as it is": Pass(units, blocks, out + back * blocks, FAR_WORKERS),
        "blocks of 16 times the rows": Pass(
            units, blocks / 16, out + back * blocks / 16, FAR_WORKERS
        ),
        "each worker merges its own": Pass(units, blocks, out + back * FAR_WORKERS, FAR_WORKERS),
    }


def prediction_table(cells: list[Cell], models: dict[tuple[str, str], CostModel]) -> Table:
    """On paper."""
    assumed = Elsewhere()
    rows = []
    for (algorithm, kind), model in models.items():
        if kind != "dask":
            continue
        own = [c for c in cells if (c.job.algorithm, c.kind, c.workers) == (algorithm, kind, 2)]
        cell = max(own, key=lambda c: (c.job.rows, -c.job.values))
        for name, job in far_passes(cell).items():
            found = predict_elsewhere(model, job, assumed)
            alone = predict_elsewhere(model, job._replace(workers=1), assumed)
            rows.append(
                (
                    algorithm,
                    name,
                    job.bytes / 1e6,
                    found.lower,
                    found.median,
                    found.upper,
                    alone.median / found.median,
                )
            )
    return Table(
        "executor_prediction",
        f"On paper: a pass over {FAR_ROWS:,} rows on {FAR_WORKERS} Dask workers of one core",
        ("algorithm", "how", "MB moved", "s, lower", "s, median", "s, upper", "gain over 1 worker"),
        rows,
        [_words_of(assumed)],
    )


def _words_of(assumed: Elsewhere) -> str:
    gigabits, spread, slowness, each = (f"{lo:g} to {hi:g}" for lo, hi in assumed)
    return (
        f"Assumed: {gigabits} Gbit/s at the process that merges; logarithms of speeds of workers "
        f"with a standard deviation of {spread}; cores {slowness} times as slow as here; {each} s "
        "for each worker and pass. Nine of ten draws lie between lower and upper."
    )


def run(scale: Scale) -> list[Table]:
    size = SIZES[scale]
    loads = [os.getloadavg()[0]]
    cells: list[Cell] = []
    overhead = {}
    for kind, numbers in (FEW_KINDS if scale is Scale.SMOKE else KINDS).items():
        for workers in numbers:
            jobs = jobs_of(kind, size, scale)
            own, overhead[kind, workers] = measure_cells(
                kind, workers, jobs, enough=size.enough, repeats=size.repeats
            )
            cells += own
            loads.append(os.getloadavg()[0])
    ours = list(cells)
    for kind in installed_peers():
        for workers in (1, 2):
            jobs = [job for job in jobs_of(kind, size, scale) if job.algorithm == "k-means"]
            cells += measure_cells(kind, workers, jobs, enough=size.enough, repeats=size.repeats)[0]
    models = models_of(ours)
    tables = [
        scaling_table(cells),
        overhead_table(overhead),
        disk_table(size.file),
        model_table(ours, models),
        prediction_table(ours, models),
    ]
    loads.append(os.getloadavg()[0])
    tables[0].notes.append(
        f"{date.today()}, {num_cores()} cores, Python {platform.python_version()}, JAX "
        f"{version('jax')}; load of the machine, this run included, {min(loads):.1f} to "
        f"{max(loads):.1f} ({loads[0]:.1f} before it began)."
    )
    return tables
