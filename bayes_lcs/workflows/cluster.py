"""Workflow of ``bayes-lcs cluster``: fit a mixture to a file and write the results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayes_lcs.clustering.mixture.estimator import MixtureClusterer
from bayes_lcs.core.errors import DataError
from bayes_lcs.data.rows.array_sampler import row_source
from bayes_lcs.data.rows.encoded_rows import DenseRows
from bayes_lcs.inference.em.row_densities import map_rows, responsibilities
from bayes_lcs.io.category_encoder import CategoryEncoder
from bayes_lcs.io.open_tables import open_file
from bayes_lcs.io.options import CsvOptions, MissingRule
from bayes_lcs.io.sampler import RowSource
from bayes_lcs.io.size_estimate import table_extent
from bayes_lcs.learning_curve_sampling.default_sizes import (
    default_holdout_size,
    default_initial_size,
)
from bayes_lcs.learning_curve_sampling.result import LearningCurveResult
from bayes_lcs.learning_curve_sampling.sample import learning_curve_sample
from bayes_lcs.plots.figure import save_figure
from bayes_lcs.plots.learning_curve import plot_sampling_curve
from bayes_lcs.plots.mixture import plot_mixture_profiles
from bayes_lcs.report.cluster import save_mixture_page
from bayes_lcs.report.html import Provenance
from bayes_lcs.report.safe_csv import free_name, safe_cells, safe_text, write_csv
from bayes_lcs.runtime.atomic_files import write_atomically
from bayes_lcs.runtime.executors.protocol import Executor
from bayes_lcs.runtime.memory import available_memory
from bayes_lcs.runtime.progress import prints_plain_lines
from bayes_lcs.workflows.resource_estimates import rows_that_fit

__all__ = ["check_enough_rows", "cluster_file", "sample_sizes", "save_clusters"]

MAX_INITIAL_SIZE = 10_000
"""Maximum number of rows of the first sample, so that a command gives a first answer soon."""


def cluster_file(
    path: str | PathLike[str],
    num_clusters: int,
    *,
    alpha: float | str,
    abbreviated: str | None = None,
    initial_size: int | None = None,
    holdout_size: int | None = None,
    ignore: Iterable[str] = (),
    categorical: Iterable[str] = (),
    missing_values: Iterable[str] | None = None,
    header: bool = True,
    seed: int = 0,
    executor: Executor | None = None,
) -> tuple[LearningCurveResult, RowSource]:
    """Run learning-curve sampling of a mixture; samples are limited by the available memory.

    By default a fifth of the rows is held out and the first sample is an eighth, at most 10,000
    rows each.
    """
    free = available_memory()
    source = row_source(
        path,
        ignore=list(ignore),
        categorical=list(categorical),
        missing_values=missing_values,
        header=header,
        seed=seed,
    )
    rows = source.num_rows
    extent = replace(table_extent(path, ignore), rows=rows)  # rows are counted, not estimated
    if rows < 2:
        raise DataError(
            "there is only one row; at least two are needed, one to train and one to test",
            file=Path(path).name,
        )
    check_enough_rows(rows, num_clusters, path)
    first, holdout = sample_sizes(rows, num_clusters, initial_size, holdout_size)
    result = learning_curve_sample(
        MixtureClusterer(
            num_clusters,
            random_state=seed,
            verbose=None if prints_plain_lines() else False,
            executor=executor,
        ),
        source,
        alpha=alpha,
        abbreviated=abbreviated,
        initial_size=first,
        holdout_size=holdout,
        most_rows=None if free is None else rows_that_fit(extent, num_clusters, free) - holdout,
    )
    if result.gain == 0:
        raise DataError(
            "clusters do not describe these rows better than a single cluster: the rows are all "
            "alike, or too few",
            file=Path(path).name,
        )
    return result, source


def sample_sizes(
    num_rows: int, num_clusters: int, initial_size: int | None, holdout_size: int | None
) -> tuple[int, int]:
    """Return the sizes of the first sample and of the hold-out set, with defaults for None."""
    holdout = default_holdout_size(num_rows) if holdout_size is None else holdout_size
    if initial_size is None:
        left = max(num_rows - holdout, 1)
        initial_size = default_initial_size(left, num_clusters, most=MAX_INITIAL_SIZE)
    return initial_size, holdout


def check_enough_rows(rows: int, num_clusters: int, path: str | PathLike[str]) -> None:
    """Raise an error if there are fewer rows than clusters."""
    if num_clusters > rows:
        raise DataError(
            f"there are only {rows} rows, too few for {num_clusters} clusters; use fewer clusters",
            file=Path(path).name,
        )


def save_clusters(
    result: LearningCurveResult,
    path: str | PathLike[str],
    folder: Path,
    *,
    missing_values: Iterable[str] | None = None,
    header: bool = True,
    options: Mapping[str, Any] | None = None,
) -> list[Path]:
    """Write the model, the curve, figures, and the cluster of every row in the input's format.

    The path of the report comes first; ``options`` are shown in its provenance table.
    """
    model: Any = result.model
    model.save(folder / "mixture.nc")
    written = [folder / "mixture.nc", write_csv(_curve(result), folder / "curve.csv")]
    written.append(
        save_figure(folder / "curve.png", (6.8, 4.3), lambda ax: plot_sampling_curve(result, ax))
    )
    written.append(
        save_figure(folder / "profiles.png", (8, 6), lambda ax: plot_mixture_profiles(model, ax))
    )
    counts = None
    if not result.interrupted:  # after Ctrl-C do not wait for the assignment of all rows
        assignments, counts = _save_assignments(
            model, Path(path), folder, header, _rule(missing_values)
        )
        written.append(assignments)
    origin = Provenance("cluster", Path(path), result.random_state, options or {})
    return [save_mixture_page(result, folder, origin, counts), *written]


def _curve(result: LearningCurveResult) -> pd.DataFrame:
    return result.curve.assign(interrupted=True) if result.interrupted else result.curve


def _save_assignments(
    model: Any, path: Path, folder: Path, header: bool, rule: MissingRule
) -> tuple[Path, NDArray[np.int64]]:
    """Write the rows with a column ``cluster`` in batches; return path and rows per cluster."""
    import pyarrow as pa
    from pyarrow import csv, parquet

    raw = open_file(path, CsvOptions(header=header))
    as_parquet = path.suffix.lower() in (".parquet", ".pq")
    target = folder / f"assignments.{'parquet' if as_parquet else 'csv'}"
    counts = np.zeros(len(model.weights_), dtype=np.int64)
    encoders = [
        CategoryEncoder(str(name), rule, values, limit=None)
        for name, values in zip(model.feature_names_in_, model.categories_, strict=True)
    ]

    def write(part: Path) -> None:
        writer: Any = None
        row = 0
        for batch in raw.batches(list(raw.names)):
            assigned = _best_clusters(model, encoders, batch, raw.source, row)
            row += batch.num_rows
            np.add.at(counts, assigned["cluster"], 1)
            if not as_parquet:
                safe = [safe_cells(column) for column in batch.columns]
                batch = pa.table(safe, names=[safe_text(name) for name in batch.column_names])
            for name, values in assigned.items():
                batch = batch.append_column(free_name(name, batch.column_names), pa.array(values))
            if writer is None:
                kind = parquet.ParquetWriter if as_parquet else csv.CSVWriter
                writer = kind(str(part), batch.schema)
            writer.write_table(batch)
        if writer is not None:
            writer.close()

    return write_atomically(target, write), counts


def _rule(missing_values: Iterable[str] | None) -> MissingRule:
    return MissingRule(None if missing_values is None else frozenset(missing_values))


def _best_clusters(
    model: Any, encoders: list[CategoryEncoder], batch: Any, source: Any, start: int
) -> dict[str, NDArray[Any]]:
    """Return the most probable cluster of each row of a batch, and its probability."""
    codes = np.empty((batch.num_rows, len(encoders)), np.int32, order="F")
    for f, encoder in enumerate(encoders):
        raw = encoder.encode(batch.column(encoder.name), source, start)
        codes[:, f] = encoder.finish().recode[raw]
    table = DenseRows(codes, tuple(max(len(values), 1) for values in model.categories_))
    shares = map_rows(model._parameters, table, responsibilities)
    return {"cluster": shares.argmax(axis=1), "cluster_probability": shares.max(axis=1)}
