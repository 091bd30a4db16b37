"""Workflow of ``bayes-lcs coreset``: compute a coreset of a file of numbers and write it."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from functools import partial
from os import PathLike
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayes_lcs.clustering.coresets.coreset import Coreset, coreset
from bayes_lcs.clustering.coresets.merge_reduce import check_size
from bayes_lcs.clustering.coresets.stream import CoresetStream
from bayes_lcs.clustering.coresets.tree import coreset_tree
from bayes_lcs.core.errors import DataError
from bayes_lcs.io.options import CsvOptions
from bayes_lcs.io.sampler import FileSampler
from bayes_lcs.report.safe_csv import write_csv
from bayes_lcs.runtime.atomic_files import write_atomically
from bayes_lcs.runtime.checkpoints import Arrays, source_task
from bayes_lcs.runtime.estimator_io import model_from_arrays, model_to_arrays
from bayes_lcs.runtime.executors.protocol import Executor
from bayes_lcs.workflows.cluster import check_enough_rows

__all__ = ["coreset_of_file", "save_coreset"]

WEIGHT = "weight"


def coreset_of_file(
    path: str | PathLike[str],
    k: int,
    size: int,
    *,
    method: str = "sensitivity",
    stream: bool = False,
    ignore: Iterable[str] = (),
    missing_values: Iterable[str] | None = None,
    header: bool = True,
    seed: int = 0,
    executor: Executor | None = None,
) -> tuple[Coreset, list[str]]:
    """Compute the coreset of a file; return it with the names of its columns.

    Parameters
    ----------
    stream
        If True, merge and reduce rows as they are read, in memory independent of the size of the
        file. Otherwise all numbers are read first, which gives a smaller error.
    executor
        Executor that reduces batches in a tree (`bayes_lcs.coreset_tree`); ``stream`` is then
        ignored.
    """
    source = FileSampler(
        path,
        ignore=list(ignore),
        kind="numbers",
        missing_values=missing_values,
        options=CsvOptions(header=header),
    )
    _check(source.features, path)
    if executor is not None:
        small = coreset_tree(source, k, size, method=method, random_state=seed, executor=executor)
        check_enough_rows(small.num_rows, k, path)
    elif stream:
        tree = CoresetStream(k, size, method=method, random_state=seed)
        tree = _push_all(source, tree, seed, Path(path))
        check_enough_rows(tree.num_rows, k, path)
        small = tree.coreset(reduced=True)
    else:
        rows = _all_numbers(source, Path(path))
        check_enough_rows(len(rows), k, path)
        small = coreset(rows, k, size, method=method, random_state=seed)
    return small, source.features


def _all_numbers(source: FileSampler, path: Path) -> NDArray[np.float64]:
    batches = []
    for frame in source.number_blocks():
        batches.append(frame.to_numpy())
        check_size(batches[-1], source.features, path.name)
    return np.concatenate(batches)


def _push_all(source: FileSampler, tree: CoresetStream, seed: int, path: Path) -> CoresetStream:
    """Push all rows into a stream, with checkpoints."""
    with source_task(source, "stream", tree.k, tree.size, tree.method, seed) as kept:
        if kept.state is not None:
            tree = model_from_arrays(kept.state, tree)
        for frame in source.number_blocks(skip_rows=tree.num_rows):
            rows = frame.to_numpy()
            check_size(rows, source.features, path.name)
            tree.push(rows)
            if kept.is_active:
                kept.update(partial(_stream_state, copy.deepcopy(tree)))
    return tree


def _stream_state(tree: CoresetStream) -> Arrays:
    arrays = model_to_arrays(tree)
    if arrays is None:  # the checkpoint before this one stays
        raise OSError("not enough disk space to write the rows of the stream")
    return arrays


def save_coreset(small: Coreset, names: list[str], path: Path) -> Path:
    """Write points and weights as CSV, or as Parquet if the file name ends so."""
    frame = pd.DataFrame(np.asarray(small.points), columns=names)
    frame[WEIGHT] = small.weights
    if path.suffix.lower() in (".parquet", ".pq"):
        return write_atomically(path, lambda part: frame.to_parquet(part, index=False))
    return write_csv(frame, path)


def _check(names: Iterable[object], path: str | PathLike[str]) -> None:
    if WEIGHT in names:
        raise DataError(
            "the weights of the coreset need this name; rename the column, or leave it out",
            file=str(path),
            column=WEIGHT,
        )
