"""EM iterations: nanoseconds a row, against peers, on sparse logs, and how they grow.

Dense data are drawn from a mixture of as many components as are fitted, with 2 to 10 values a
column. Every peer starts from the same parameters, and ours, numba's and pomegranate's
log-likelihoods must agree before anything is timed. Compilation and laying out the rows are in no
iteration; the latter is reported beside them. Peers that are not installed are left out.
"""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.exceptions import ConvergenceWarning

import bayes_lcs as bl
from bayes_lcs.core.errors import DatasetNotFound
from bayes_lcs.core.model_protocols import MixtureParameters
from bayes_lcs.core.schema import Schema
from bayes_lcs.data.datasets import dataset_path
from bayes_lcs.data.rows.encoded_rows import DenseRows, EncodedColumns
from bayes_lcs.data.rows.ordinal_encoding import encode_sparse
from bayes_lcs.inference.em.e_step import LocalEStep
from bayes_lcs.inference.em.row_layout import RowLayout, lay_out_rows
from bayes_lcs.models.multinomial_mixture import MultinomialMixture
from bayes_lcs.runtime.memory import num_cores
from experiments.benchmarks import em_peers
from experiments.benchmarks.tables import Scale, Table

AGREEMENT = 1e-5  # of log-likelihoods; peers compute in float32
MIB = 2.0**20
STEPMIX_ITERATIONS = 6  # of which the fastest counts, as it does for the others
BUSY = (
    f"{num_cores()} cores. CPU: processor time of all threads, which a busy "
    "machine changes less than wall time; ours and numba's divide by the cores on an idle one."
)


class Size(NamedTuple):
    rows: int
    columns: int
    components: int
    sparse_rows: int
    sparse_columns: int
    many_rows: int
    repeats: int


SIZES = {
    Scale.SMOKE: Size(3_000, 8, 3, 4_000, 40, 6_000, 1),
    Scale.NORMAL: Size(200_000, 68, 25, 600_000, 303, 2_400_000, 7),
    Scale.FULL: Size(200_000, 68, 25, 600_000, 303, 2_400_000, 15),
}


# Data -------------------------------------------------------------------------------------------


def dense_rows(
    num_rows: int, num_columns: int, num_components: int, seed: int = 0
) -> tuple[DenseRows, MultinomialMixture, MixtureParameters]:
    """Rows of 2 to 10 values, drawn piece by piece so that wide integers never take much room."""
    rng = np.random.default_rng(seed)
    sizes = tuple(int(size) for size in rng.integers(2, 11, num_columns))
    model = MultinomialMixture(schema=Schema(1, sizes), num_components=num_components)
    codes = np.empty((num_rows, num_columns), np.int8, order="F")
    truth = None
    for start in range(0, num_rows, 50_000):
        size = min(50_000, num_rows - start)
        part, _, truth = model.simulate(size, [seed, start], truth)
        codes[start : start + size] = part
    assert truth is not None
    return DenseRows(codes, sizes), model, truth


def sparse_log(num_rows: int, num_columns: int, seed: int = 0) -> EncodedColumns:
    """A log of ten kinds of visitors, about three items a row, some far more common than others."""
    rng = np.random.default_rng(seed)
    popularity = 1.0 / np.arange(1, num_columns + 1)
    kinds = popularity * rng.gamma(0.5, size=(10, num_columns))
    kinds *= 3.0 / kinds.sum(axis=1, keepdims=True)
    kinds = np.minimum(kinds, 0.9)
    pieces = []
    for start in range(0, num_rows, 20_000):
        kind = rng.integers(0, 10, min(20_000, num_rows - start))
        pieces.append(csr_array(rng.random((len(kind), num_columns)) < kinds[kind]))
    from scipy.sparse import vstack

    return encode_sparse(vstack(pieces).astype(np.int8))


def msnbc() -> EncodedColumns:
    """Which of 17 kinds of pages each visitor of msnbc.com saw."""
    with gzip.open(dataset_path("msnbc", "msnbc990928.seq.gz"), "rt") as stream:
        lines = [line.split() for line in stream]
    visits = [line for line in lines if line and line[0].isdigit()]
    rows = np.repeat(np.arange(len(visits)), [len(visit) for visit in visits])
    items = np.array([int(item) - 1 for visit in visits for item in visit])
    return _sparse(rows, items, (len(visits), 17))


def msweb() -> EncodedColumns:
    """Which of 294 areas of microsoft.com each visitor saw."""
    text = Path(dataset_path("msweb", "anonymous-msweb.data")).read_text(encoding="latin-1")
    rows, items, visitor = [], [], -1
    for line in text.splitlines():
        if line.startswith("C,"):
            visitor += 1
        elif line.startswith("V,"):
            rows.append(visitor)
            items.append(int(line.split(",")[1]))
    places = np.unique(items, return_inverse=True)[1]
    return _sparse(np.array(rows), places, (visitor + 1, int(places.max()) + 1))


def _sparse(rows: NDArray[Any], items: NDArray[Any], shape: tuple[int, int]) -> EncodedColumns:
    matrix = csr_array((np.ones(len(rows), np.int8), (rows, items)), shape=shape)
    matrix.sum_duplicates()
    matrix.data[:] = 1
    return encode_sparse(matrix)


def parameters_for(sizes: tuple[int, ...], num_components: int, seed: int = 0) -> MixtureParameters:
    model = MultinomialMixture(schema=Schema(1, sizes), num_components=num_components)
    return model.simulate(1, seed)[2]


# Ours -------------------------------------------------------------------------------------------


class Clock(NamedTuple):
    """Least wall time, and least processor time of all threads, of some repeats, in seconds."""

    wall: float
    cpu: float


def clocked(work: Callable[[], Any], repeats: int, enough: float = 30.0) -> Clock:
    """On a busy machine processor time is what can be compared: waiting is not in it."""
    times: list[Clock] = []
    while len(times) < repeats and sum(one.wall for one in times) < enough:
        wall, cpu = time.perf_counter(), time.process_time()
        work()
        times.append(Clock(time.perf_counter() - wall, time.process_time() - cpu))
    return least(times)


def least(times: list[Clock]) -> Clock:
    return Clock(min(one.wall for one in times), min(one.cpu for one in times))


def seconds_of_pass(
    plan: RowLayout,
    parameters: MixtureParameters,
    precision: Any = "mixed",
    repeats: int = 7,
    cores: int | None = None,
) -> Clock:
    """Fastest of some whole iterations: tables, both steps, counts of cells."""
    executor = LocalEStep(plan, precision, cores)
    model = MultinomialMixture(schema=plan.schema, num_components=parameters.num_components)

    def work() -> None:
        (statistics,) = executor.statistics([parameters])
        model.update(statistics)
        model.log_prior(parameters)

    work()
    return clocked(work, repeats)


# Tables -----------------------------------------------------------------------------------------


def peers_table(scale: Scale) -> Table:
    size = SIZES[scale]
    table, _, truth = dense_rows(size.rows, size.columns, size.components)
    began = time.perf_counter()
    plan = lay_out_rows(table)
    planning = time.perf_counter() - began
    executor = LocalEStep(plan, "double")
    reference = executor.statistics([truth])[0].log_likelihood
    works: dict[str, Callable[[], Any]] = {}
    rows_of_codes = np.ascontiguousarray(table.codes)
    if find_spec("numba"):
        works |= _numba_works(table, plan, truth, reference)
    schema = plan.schema
    tables = [truth.cells[schema.cells_of(f)].T for f in range(schema.num_features)]
    if find_spec("pomegranate") and find_spec("torch"):
        work = em_peers.pomegranate_pass(rows_of_codes, truth.weights, tables)
        _agree("pomegranate", work(), reference)
        works["pomegranate"] = work
    # In turn, so that a busy moment of the machine meets all of them.
    seconds: dict[str, list[Clock]] = {}
    for turn in range(size.repeats):
        for name, precision in (("ours, mixed", "mixed"), ("ours, double", "double")):
            seconds.setdefault(name, []).append(seconds_of_pass(plan, truth, precision, 3))
        for name, work in works.items():
            if name == "pomegranate" and turn >= 2:
                continue
            seconds.setdefault(name, []).append(clocked(work, 3 if "numba" in name else 1))
    best = {name: least(times) for name, times in seconds.items()}
    if find_spec("stepmix"):
        best["StepMix"] = Clock(
            *em_peers.stepmix_seconds(rows_of_codes, size.components, STEPMIX_ITERATIONS)
        )
    ours = best["ours, mixed"]
    return Table(
        "em_iterations_peers",
        f"One EM iteration: {size.rows:,} x {size.columns}, {size.components} components",
        ("who", "ns a row", "CPU ns a row", "time over ours", "CPU over ours", "CPU over double"),
        [
            (
                name,
                1e9 * value.wall / size.rows,
                1e9 * value.cpu / size.rows,
                value.wall / ours.wall,
                value.cpu / ours.cpu,
                value.cpu / best["ours, double"].cpu,
            )
            for name, value in best.items()
        ],
        [repr(plan), f"Laying out the rows took {planning:.2f} s, once.", BUSY],
    )


def _numba_works(
    table: DenseRows, plan: RowLayout, truth: MixtureParameters, reference: float
) -> dict[str, Callable[[], Any]]:
    threads = num_cores()
    schema = plan.schema
    raw = (table.codes.astype(np.int32) + schema.offsets[:-1].astype(np.int32)).copy(order="C")
    with np.errstate(divide="ignore"):
        cells = np.log(truth.cells).astype(np.float32)
        base = np.log(truth.weights).astype(np.float32)
    works = {
        f"numba, {threads} threads, raw columns": em_peers.numba_pass(raw, cells, base, threads)
    }
    coded = _pattern_codes(plan)
    if coded is not None:
        import jax

        with jax.enable_x64(True):
            padded = np.asarray(LocalEStep(plan, "mixed").tables(truth)[0])
        tables = np.ascontiguousarray(padded[:, : len(base)])
        name = f"numba, {threads} threads, our groups of patterns"
        works[name] = em_peers.numba_pass(coded, tables, base, threads)
    for name, work in works.items():
        _agree(name, work()[1], reference)
    return works


def _pattern_codes(plan: RowLayout) -> NDArray[np.int32] | None:
    """Numbers of patterns, row by row; None if common ones were left out."""
    if len(plan.common_cells) or plan.distinct is not None:
        return None
    pieces = []
    for chunk in plan.chunks:
        for b in range(chunk.num_blocks):
            pieces.append(chunk.slots[chunk.starts[b] : chunk.starts[b + 1]].T)
    return np.ascontiguousarray(np.concatenate(pieces)[: plan.num_distinct], dtype=np.int32)


def _agree(name: str, found: float, expected: float) -> None:
    if abs(found - expected) > AGREEMENT * abs(expected):
        raise AssertionError(f"{name}: log-likelihood {found}, not {expected}")


def sparse_table(scale: Scale) -> Table:
    size = SIZES[scale]
    dense, _, truth = dense_rows(size.rows, size.columns, size.components)
    plan = lay_out_rows(dense)
    yardstick = seconds_of_pass(plan, truth, repeats=size.repeats)
    rows: list[tuple[Any, ...]] = [
        _sparse_row("dense", "", plan, yardstick, yardstick.cpu / size.rows)
    ]
    notes = [BUSY]
    data: dict[str, Callable[[], EncodedColumns]] = {
        "sparse log": lambda: sparse_log(size.sparse_rows, size.sparse_columns)
    }
    if scale is not Scale.SMOKE:
        data |= {"msnbc": msnbc, "msweb": msweb}
    for name, load in data.items():
        try:
            table = load()
        except DatasetNotFound as error:
            notes.append(f"{name}: {error}")
            continue
        parameters = parameters_for(table.num_values, size.components)
        for what, choices in (
            ("all patterns", {"merge_rows": False, "leave_out_common": False}),
            ("common ones left out", {"merge_rows": False, "leave_out_common": True}),
            ("and equal rows merged", {"merge_rows": True, "leave_out_common": True}),
        ):
            plan = lay_out_rows(table, **choices)  # type: ignore[arg-type]
            value = seconds_of_pass(plan, parameters, repeats=size.repeats)
            rows.append(_sparse_row(name, what, plan, value, yardstick.cpu / size.rows))
    return Table(
        "em_iterations_sparse",
        f"Sparse logs, {size.components} components, mixed precision",
        (
            "data",
            "rows",
            "distinct",
            "plan",
            "look-ups",
            "ns a row",
            "CPU ns a row",
            "CPU: dense over this",
        ),
        rows,
        notes,
    )


def _sparse_row(
    name: str, what: str, plan: RowLayout, value: Clock, yardstick: float
) -> tuple[Any, ...]:
    cpu = value.cpu / plan.num_rows
    return (
        name,
        plan.num_rows,
        plan.num_distinct,
        what,
        plan.slots_per_row,
        1e9 * value.wall / plan.num_rows,
        1e9 * cpu,
        yardstick / cpu,
    )


def scaling_table(scale: Scale) -> Table:
    size = SIZES[scale]
    few, middle = size.rows // 4, size.rows
    cases: list[tuple[str, int, int, int, int | None]] = [
        ("rows", few, size.columns, size.components, None),
        ("rows", middle, size.columns, size.components, None),
        ("columns", middle, size.columns // 4, size.components, None),
        ("columns", middle, size.columns // 2, size.components, None),
        ("components", middle, size.columns, max(size.components // 5, 2), None),
        ("components", middle, size.columns, 2 * size.components, None),
        ("cores", middle, size.columns, size.components, 1),
        ("cores", middle, size.columns, size.components, 2),
    ]
    rows = []
    for what, num_rows, columns, components, cores in cases:
        table, _, truth = dense_rows(num_rows, columns, components)
        plan = lay_out_rows(table)
        value = seconds_of_pass(plan, truth, repeats=size.repeats, cores=cores)
        rows.append(
            (
                what,
                num_rows,
                columns,
                components,
                cores or num_cores(),
                len(plan.groups),
                1e3 * value.wall,
                1e9 * value.wall / num_rows,
                1e9 * value.cpu / num_rows,
            )
        )
    return Table(
        "em_iterations_scaling",
        "How an iteration grows (mixed precision)",
        (
            "varied",
            "rows",
            "columns",
            "components",
            "cores",
            "groups",
            "ms",
            "ns a row",
            "CPU ns a row",
        ),
        rows,
        [BUSY],
    )


MEMORY_CHILD = """
import json, sys, time, warnings
from sklearn.exceptions import ConvergenceWarning
from experiments.benchmarks.em_iterations import dense_rows
import bayes_lcs as bl
def peak_memory():  # of this program alone, unlike getrusage, which remembers its parent
    with open("/proc/self/status") as status:
        (line,) = (line for line in status if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024

rows, columns, components = map(int, sys.argv[1:])
table, _, _ = dense_rows(rows, columns, components)
before = peak_memory()
began = time.perf_counter()
warnings.simplefilter("ignore", ConvergenceWarning)
clusterer = bl.MixtureClusterer(components, max_iter=3, tol=0, random_state=0).fit(table.codes)
seconds = time.perf_counter() - began
print(json.dumps([table.codes.nbytes, before, peak_memory(), seconds, repr(clusterer.plan_)]))
"""


def memory_table(scale: Scale) -> Table:
    size = SIZES[scale]
    arguments = [str(size.many_rows), str(size.columns), str(size.components)]
    done = subprocess.run(
        [sys.executable, "-c", MEMORY_CHILD, *arguments],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[2],
    )
    coded, before, peak, seconds, plan = json.loads(done.stdout.splitlines()[-1])
    return Table(
        "em_iterations_memory",
        f"Memory of a fit to {size.many_rows:,} rows of {size.columns} columns, three iterations",
        ("coded data, MiB", "before, MiB", "peak, MiB", "peak beyond data, MiB", "seconds"),
        [(coded / MIB, before / MIB, peak / MIB, (peak - coded) / MIB, seconds)],
        [plan, "Peak of the whole process, Python and JAX included."],
    )


def holdout_table(scale: Scale) -> Table:
    """Seconds until the hold-out likelihood is within one per cent of what EM finds in the end."""
    size = SIZES[scale]
    num_rows, components = (size.rows // 4, min(size.components, 10))
    table, _, _ = dense_rows(num_rows + num_rows // 5, size.columns, components)
    codes = np.ascontiguousarray(table.codes)
    train, test = codes[:num_rows], codes[num_rows:]
    values = [np.arange(count) for count in table.num_values]
    base = bl.MixtureClusterer(1, categories=values).fit(train).score(test)
    settings = {"categories": values, "random_state": 0}
    full = bl.MixtureClusterer(components, **settings).fit(train)
    goal = base + 0.99 * (full.score(test) - base)

    def em(acceleration: str | None) -> tuple[float, float]:
        clusterer = bl.MixtureClusterer(
            components, warm_start=True, max_iter=20, acceleration=acceleration, **settings
        )
        spent = 0.0
        while spent < 600:
            began = time.perf_counter()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)  # cut short to be scored
                clusterer.fit(train)
            spent += time.perf_counter() - began
            score = clusterer.score(test)
            if score >= goal or clusterer.converged_:
                break
        return spent, score

    def batches() -> tuple[float, float]:
        size_of_batch = max(num_rows // 25, 500)
        clusterer = bl.MixtureClusterer(components, **settings)
        spent, score = 0.0, -np.inf
        for epoch in range(8):
            order = np.random.default_rng(epoch).permutation(num_rows)
            for start in range(0, num_rows, size_of_batch):
                began = time.perf_counter()
                clusterer.partial_fit(train[order[start : start + size_of_batch]])
                spent += time.perf_counter() - began
            score = clusterer.score(test)
            if score >= goal:
                break
        return spent, score

    em(None)  # compiles
    rows: list[tuple[Any, ...]] = []
    for name, work in (
        ("ours, EM", lambda: em(None)),
        ("ours, SQUAREM", lambda: em("squarem")),
        ("ours, partial_fit", batches),
    ):
        spent, score = work()
        rows.append((name, spent, score, score >= goal, spent / rows[0][1] if rows else 1.0))
    if find_spec("stepmix"):
        iterations = (2, 4) if scale is Scale.SMOKE else (10, 20, 40, 80)
        for number, spent, score in em_peers.stepmix_curve(train, test, components, iterations):
            reached = score >= goal
            rows.append((f"StepMix, {number} it.", spent, score, reached, spent / rows[0][1]))
            if reached:
                break
    return Table(
        "em_iterations_holdout",
        f"Time to the same hold-out likelihood, {num_rows:,} rows, {components} components",
        ("who", "seconds", "mean hold-out log-likelihood", "goal reached", "time over ours"),
        rows,
        [f"Goal {goal:.4f}: 99 per cent of the way from one component ({base:.4f}) to EM's end."],
    )


def run(scale: Scale) -> list[Table]:
    return [
        peers_table(scale),
        sparse_table(scale),
        scaling_table(scale),
        memory_table(scale),
        holdout_table(scale),
    ]
