"""Coresets from files of numbers, and as files."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from functools import partial
from os import PathLike
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayes_lcs.core.executors import Executor
from bayes_lcs.data.checkpoints import Arrays
from bayes_lcs.data.errors import DataError
from bayes_lcs.data.file_source import FileSource
from bayes_lcs.data.kept_models import model_arrays, model_from_arrays
from bayes_lcs.data.place import START, Place
from bayes_lcs.data.storage import write_atomically
from bayes_lcs.report.mixture_files import check_enough_rows
from bayes_lcs.report.spreadsheet import write_csv
from bayes_lcs.scaling.coreset_leaves import check_size
from bayes_lcs.scaling.coreset_stream import CoresetStream
from bayes_lcs.scaling.coreset_tree import coreset_tree
from bayes_lcs.scaling.coresets import Coreset, coreset

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
    header: bool = True,
    seed: int = 0,
    executor: Executor | None = None,
) -> tuple[Coreset, list[str]]:
    """The coreset of a file, and the names of its columns.

    Parameters
    ----------
    stream
        Whether rows are merged and reduced as they are read, in memory that does not grow with the
        file; otherwise all numbers are read first, which gives the smaller error.
    executor
        Where blocks are reduced, in a tree (`bayes_lcs.coreset_tree`); ``stream`` is then not
        looked at.
    """
    source = FileSource(path, ignore=list(ignore), kind="numbers", header=header)
    _check(source.features, path)
    if executor is not None:
        small = coreset_tree(source, k, size, method=method, random_state=seed, executor=executor)
        check_enough_rows(small.num_rows, k, path)
    elif stream:
        tree = CoresetStream(k, size, method=method, random_state=seed)
        tree = _streamed(source, tree, seed, Path(path))
        check_enough_rows(tree.num_rows, k, path)
        small = tree.coreset(reduced=True)
    else:
        rows = _all_numbers(source, Path(path))
        check_enough_rows(len(rows), k, path)
        small = coreset(rows, k, size, method=method, random_state=seed)
    return small, source.features


def _all_numbers(source: FileSource, path: Path) -> NDArray[np.float64]:
    with source.work("reading") as kept:
        pieces = [piece["rows"] for piece in kept.each_piece()]
        place = START if kept.state is None else Place.of_numbers(kept.state["place"])
        for block in source.number_blocks(place):
            pieces.append(block.to_numpy())
            check_size(pieces[-1], source.features, path.name)
            kept.keep(partial(_reached, source.place), {"rows": pieces[-1]})
        kept.end(partial(_reached, source.place))
    return np.concatenate(pieces)


def _streamed(source: FileSource, tree: CoresetStream, seed: int, path: Path) -> CoresetStream:
    """All rows pushed into a stream."""
    with source.work("stream", tree.k, tree.size, tree.method, seed) as kept:
        place = START
        if kept.state is not None:
            place = Place.of_numbers(kept.state["place"])
            tree = model_from_arrays(kept.state, tree)
        for block in source.number_blocks(place):
            rows = block.to_numpy()
            check_size(rows, source.features, path.name)
            tree.push(rows)
            if kept.is_kept:
                kept.keep(partial(_reached, source.place, copy.deepcopy(tree)))
    return tree


def _reached(place: Place, tree: CoresetStream | None = None) -> Arrays:
    """How far reading has come, and what was made of the rows."""
    own = {} if tree is None else model_arrays(tree) or {}
    return {**own, "place": np.array(place.numbers)}


def save_coreset(small: Coreset, names: list[str], path: Path) -> Path:
    """Points and weights as CSV, or as Parquet if the file is called so."""
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
