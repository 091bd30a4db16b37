"""Coresets from files of numbers, and as files."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator
from contextlib import closing
from functools import partial
from os import PathLike
from pathlib import Path

import numpy as np
import pandas as pd

from bayes_lcs.core.executors import Executor
from bayes_lcs.data.checkpoints import Arrays, work
from bayes_lcs.data.errors import DataError
from bayes_lcs.data.file_source import FileSource
from bayes_lcs.data.kept_models import model_arrays, model_from_arrays
from bayes_lcs.data.number_blocks import number_blocks
from bayes_lcs.data.storage import write_atomically
from bayes_lcs.report.mixture_files import check_enough_rows
from bayes_lcs.report.spreadsheet import write_csv
from bayes_lcs.scaling.coreset_stream import CoresetStream
from bayes_lcs.scaling.coreset_tree import LARGEST_NUMBER, coreset_tree
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
    if executor is not None:
        return _coreset_of_blocks(path, k, size, method, ignore, header, seed, executor)
    with closing(number_blocks(path, ignore=list(ignore), header=header)) as blocks:
        make = _streamed if stream else _at_once
        return make(blocks, Path(path), k, size, method, seed)


def _at_once(
    blocks: Iterator[pd.DataFrame], path: Path, k: int, size: int, method: str, seed: int
) -> tuple[Coreset, list[str]]:
    frame = pd.concat(blocks, ignore_index=True)
    _check(frame.columns, path)
    _check_sizes(frame, path)
    check_enough_rows(len(frame), k, path)
    small = coreset(frame.to_numpy(), k, size, method=method, random_state=seed)
    return small, list(map(str, frame.columns))


def _streamed(
    blocks: Iterator[pd.DataFrame], path: Path, k: int, size: int, method: str, seed: int
) -> tuple[Coreset, list[str]]:
    tree = CoresetStream(k, size, method=method, random_state=seed)
    names: list[str] = []
    with work("stream", k, size, method, seed, path.name) as written:
        done = 0
        if written.state is not None:
            done, tree = int(written.state["blocks"]), model_from_arrays(written.state, tree)
        for number, block in enumerate(blocks):
            names = names or list(map(str, block.columns))
            _check(names, path)
            _check_sizes(block, path)
            if number >= done:
                tree.push(block.to_numpy())
                if written.is_kept:
                    written.keep(partial(_reached, copy.deepcopy(tree), number + 1))
    check_enough_rows(tree.num_rows, k, path)
    return tree.coreset(reduced=True), names


def _coreset_of_blocks(
    path: str | PathLike[str],
    k: int,
    size: int,
    method: str,
    ignore: Iterable[str],
    header: bool,
    seed: int,
    executor: Executor,
) -> tuple[Coreset, list[str]]:
    source = FileSource(path, ignore=list(ignore), kind="numbers", header=header)
    _check(source.features, path)
    small = coreset_tree(source, k, size, method=method, random_state=seed, executor=executor)
    check_enough_rows(small.num_rows, k, path)
    return small, source.features


def _reached(tree: CoresetStream, blocks: int) -> Arrays:
    return {**(model_arrays(tree) or {}), "blocks": np.asarray(blocks)}


def save_coreset(small: Coreset, names: list[str], path: Path) -> Path:
    """Points and weights as CSV, or as Parquet if the file is called so."""
    frame = pd.DataFrame(np.asarray(small.points), columns=names)
    frame[WEIGHT] = small.weights
    if path.suffix.lower() in (".parquet", ".pq"):
        return write_atomically(path, lambda part: frame.to_parquet(part, index=False))
    return write_csv(frame, path)


def _check_sizes(frame: pd.DataFrame, path: str | PathLike[str]) -> None:
    """Refuse numbers whose squares would be infinite."""
    largest = frame.abs().max()
    if len(frame) and largest.max() > LARGEST_NUMBER:
        raise DataError(
            f"holds numbers as large as {largest.max():.3g}, whose squares a computer cannot hold; "
            "divide the column by some number, or leave it out",
            file=Path(path).name,
            column=str(largest.idxmax()),
        )


def _check(names: Iterable[object], path: str | PathLike[str]) -> None:
    if WEIGHT in names:
        raise DataError(
            "the weights of the coreset need this name; rename the column, or leave it out",
            file=str(path),
            column=WEIGHT,
        )
