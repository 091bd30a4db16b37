"""Mixture clustering of a file: the run, and the files that it leaves."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayes_lcs.clustering.mixture import MixtureClusterer
from bayes_lcs.core.executors import Executor
from bayes_lcs.core.memory import available_memory
from bayes_lcs.core.progress import says_lines
from bayes_lcs.data.checkpoints import Arrays, work
from bayes_lcs.data.errors import DataError
from bayes_lcs.data.extent import table_extent
from bayes_lcs.data.needs import rows_that_fit
from bayes_lcs.data.reader import raw_from_file
from bayes_lcs.data.row_source import RowSource, row_source
from bayes_lcs.data.storage import write_atomically
from bayes_lcs.report.mixture_page import save_mixture_page
from bayes_lcs.report.mixture_plots import plot_mixture_profiles
from bayes_lcs.report.page import Origin
from bayes_lcs.report.pictures import save_picture
from bayes_lcs.report.sampling_plots import plot_sampling_curve
from bayes_lcs.report.spreadsheet import free_name, safe_cells, safe_text, write_csv
from bayes_lcs.scaling.learning_curve import learning_curve_sample
from bayes_lcs.scaling.result import LearningCurveResult

__all__ = ["check_enough_rows", "cluster_file", "save_clusters"]

ROWS_AT_ONCE = 1 << 14
"""Rows whose probabilities of all clusters lie in memory together."""


def cluster_file(
    path: str | PathLike[str],
    num_clusters: int,
    *,
    alpha: float | str,
    abbreviated: str | None = None,
    initial_size: int = 10_000,
    holdout_size: int = 10_000,
    ignore: Iterable[str] = (),
    header: bool = True,
    seed: int = 0,
    executor: Executor | None = None,
) -> tuple[LearningCurveResult, RowSource]:
    """Learning-curve sampling of a mixture; small files have smaller samples.

    No sample is larger than what fits into memory.
    """
    free = available_memory()
    source = row_source(path, ignore=list(ignore), header=header, seed=seed)
    rows = source.num_rows
    extent = replace(table_extent(path, ignore), rows=rows)  # counted now, no longer estimated
    if rows < 2:
        raise DataError(
            "there is one row only; at least one to train on and one to test with are needed",
            file=Path(path).name,
        )
    check_enough_rows(rows, num_clusters, path)
    holdout = min(holdout_size, max(rows // 5, 1))
    result = learning_curve_sample(
        MixtureClusterer(
            num_clusters,
            random_state=seed,
            verbose=None if says_lines() else False,
            executor=executor,
        ),
        source,
        alpha=alpha,
        abbreviated=abbreviated,
        initial_size=min(initial_size, max((rows - holdout) // 2, 1)),
        holdout_size=holdout,
        most_rows=None if free is None else rows_that_fit(extent, num_clusters, free) - holdout,
    )
    if result.full_score[0] == result.baseline_score:
        raise DataError(
            "clusters tell nothing about these rows: they are all alike, or too few",
            file=Path(path).name,
        )
    return result, source


def check_enough_rows(rows: int, num_clusters: int, path: str | PathLike[str]) -> None:
    """Refuse to look for more clusters than there are rows."""
    if num_clusters > rows:
        raise DataError(
            f"there are only {rows} rows, too few for {num_clusters} clusters; ask for fewer",
            file=Path(path).name,
        )


def save_clusters(
    result: LearningCurveResult,
    path: str | PathLike[str],
    folder: Path,
    *,
    header: bool = True,
    options: Mapping[str, Any] | None = None,
) -> list[Path]:
    """Write the model, the curve, pictures, and the cluster of every row in the input's format.

    The report comes first; ``options`` are what was asked, for its end.
    """
    model: Any = result.model
    model.save(folder / "mixture.nc")
    written = [folder / "mixture.nc", write_csv(_curve(result), folder / "curve.csv")]
    written.append(
        save_picture(folder / "curve.png", (6.8, 4.3), lambda ax: plot_sampling_curve(result, ax))
    )
    written.append(
        save_picture(folder / "profiles.png", (8, 6), lambda ax: plot_mixture_profiles(model, ax))
    )
    counts = None
    if not result.interrupted:  # who presses Ctrl-C does not want to wait for all rows
        assignments, counts = _save_assignments(model, Path(path), folder, header)
        written.append(assignments)
    origin = Origin("cluster", Path(path), result.random_state, options or {})
    return [save_mixture_page(result, folder, origin, counts), *written]


def _curve(result: LearningCurveResult) -> pd.DataFrame:
    return result.curve.assign(interrupted=True) if result.interrupted else result.curve


def _save_assignments(
    model: Any, path: Path, folder: Path, header: bool
) -> tuple[Path, NDArray[np.int64]]:
    """A column ``cluster`` beside the rows, written piece by piece; and rows a cluster."""
    import pyarrow as pa
    from pyarrow import csv, parquet

    raw = raw_from_file(path, header=header)
    assert raw.blocks is not None
    names = [str(name) for name in model.feature_names_in_]
    as_parquet = path.suffix.lower() in (".parquet", ".pq")
    target = folder / f"assignments.{'parquet' if as_parquet else 'csv'}"

    counts = np.zeros(len(model.weights_), dtype=np.int64)

    def write(part: Path) -> None:
        writer: Any = None
        assert raw.blocks is not None
        # A file that is written in one go is written again; clusters are not computed again.
        with work("assignments", raw.stamp, model.weights_, *model.probabilities_) as kept:
            known: Iterator[Arrays] = kept.each_piece()
            for block, _ in raw.blocks(list(raw.names)):
                piece = next(known, None)
                if piece is None:
                    piece = _best_clusters(model, block, names)
                    kept.keep(dict, piece)
                np.add.at(counts, piece["cluster"], 1)
                if not as_parquet:
                    safe = [safe_cells(column) for column in block.columns]
                    block = pa.table(safe, names=[safe_text(name) for name in block.column_names])
                for name, values in piece.items():
                    column = pa.array(values)
                    block = block.append_column(free_name(name, block.column_names), column)
                if writer is None:
                    kind = parquet.ParquetWriter if as_parquet else csv.CSVWriter
                    writer = kind(str(part), block.schema)
                writer.write_table(block)
            kept.end()
        if writer is not None:
            writer.close()

    return write_atomically(target, write), counts


def _best_clusters(model: Any, block: Any, names: list[str]) -> Arrays:
    """The most probable cluster of each row of a piece, and its probability."""
    chosen = np.empty(block.num_rows, dtype=np.int64)
    probability = np.empty(block.num_rows)
    for start in range(0, block.num_rows, ROWS_AT_ONCE):  # all clusters of all rows may be many
        some = slice(start, start + ROWS_AT_ONCE)
        part = block.slice(start, ROWS_AT_ONCE)
        rows = pd.DataFrame({name: _text(part.column(name)) for name in names})
        shares = model.predict_proba(rows)
        chosen[some], probability[some] = shares.argmax(axis=1), shares.max(axis=1)
    return {"cluster": chosen, "cluster_probability": probability}


def _text(cells: Any) -> Any:
    """Cells of a piece as the text that names them, None where missing."""
    from bayes_lcs.data.arrow_columns import column_from_arrow
    from bayes_lcs.data.columns import Source

    column = column_from_arrow("", cells, Source())
    names = [None if name == "" else name for name in column.names]
    return np.array([*names, None], dtype=object)[column.codes]
