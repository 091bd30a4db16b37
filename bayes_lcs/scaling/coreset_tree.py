"""A coreset of many rows, block by block, wherever an executor runs.

Each block of rows becomes a coreset; two neighbours are merged and reduced again, level by level, a
binary tree as in `bayes_lcs.scaling.coreset_stream`. Which nodes there are, and the seed of each,
depend on the rows and on nothing else: every executor gives the same points.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import _check_sample_weight, check_array

from bayes_lcs.core.executors import Executor
from bayes_lcs.core.local_executor import LocalExecutor
from bayes_lcs.data.errors import DataError
from bayes_lcs.data.file_source import FileSource
from bayes_lcs.data.number_rows import NumberReader, RowRange
from bayes_lcs.data.raw_tables import lies_in_pieces
from bayes_lcs.scaling.coresets import Coreset, coreset

__all__ = ["coreset_tree"]

FloatArray = NDArray[np.float64]

LARGEST_NUMBER = 1e140
"""Distances are sums of squares, which larger numbers would turn into infinity."""
BLOCK_ROWS = 1 << 16
BLOCKS_AT_ONCE = 2
"""Blocks handed out together, for each worker: so many are in memory."""


class _Node(NamedTuple):
    """Weighted points, and their place in the tree."""

    level: int
    number: int
    points: NDArray[Any]
    weights: FloatArray

    @property
    def num_rows(self) -> int:
        """Rows that it has now."""
        return len(self.weights)

    @property
    def weight(self) -> float:
        """Of its rows."""
        return float(self.weights.sum())


class _Unread(NamedTuple):
    """A leaf that whoever reduces it reads himself."""

    number: int
    ranges: list[RowRange]

    @property
    def num_rows(self) -> int:
        """Rows that it will have."""
        return sum(one.stop - one.start for one in self.ranges)

    @property
    def weight(self) -> float:
        """Rows of files weigh one each."""
        return float(self.num_rows)


def coreset_tree(
    X: Any,
    k: int,
    size: int,
    *,
    method: str = "sensitivity",
    sample_weight: Any = None,
    block_rows: int = BLOCK_ROWS,
    random_state: int = 0,
    executor: Executor | None = None,
) -> Coreset:
    """A coreset of an array or of files, block by block.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features), path, or source
        Points; or what :func:`bayes_lcs.row_source` reads in pieces (files, Arrow data sets, Dask
        dataframes), read once; or a source of it from ``bayes_lcs.row_source(path,
        kind="numbers", ...)``, which has options.
    k
        Number of clusters for which it is made.
    size
        Points of each coreset in the tree, and of the result.
    method
        As for :func:`bayes_lcs.coreset`.
    sample_weight : array-like of shape (n_samples,)
        Weights of the rows of an array.
    block_rows
        Rows that are reduced at once.
    random_state
        Seed, of all nodes of the tree.
    executor
        Where blocks are reduced, from :func:`bayes_lcs.executor`; None is this process. Rows are
        sent there once, but for those of Parquet files, which workers read themselves: all must see
        the files. Points do not depend on it.

    Returns
    -------
    Coreset
        Points and weights; which rows they were is not known.

    Examples
    --------
    >>> import numpy as np
    >>> import bayes_lcs as bl
    >>> X = np.random.default_rng(0).normal(size=(10_000, 2))
    >>> small = bl.coreset_tree(X, 3, 200, block_rows=1000)
    >>> len(small) <= 200, small.num_rows
    (True, 10000)
    """
    for name, value in (("k", k), ("size", size), ("block_rows", block_rows)):
        if value < 1:
            raise ValueError(f"{name} must be at least 1, got {value}")
    runner: Executor = LocalExecutor() if executor is None else executor
    reduce_node = partial(_reduced, k, size, method, int(random_state))
    if sample_weight is not None and (lies_in_pieces(X) or isinstance(X, FileSource)):
        raise ValueError("sample_weight is for arrays")
    source = FileSource(X, kind="numbers") if lies_in_pieces(X) else X
    blocks: Iterator[Any] = _leaves(source, sample_weight, block_rows)
    reduce_leaf: Any = reduce_node
    ranges = _ranges(source, block_rows, executor)
    if ranges is not None:
        reduce_leaf = partial(_read_and_reduced, source.number_reader, reduce_node)
        blocks = (_Unread(number, block) for number, block in enumerate(ranges))
    waiting: dict[int, _Node] = {}
    num_rows, total = 0, 0.0
    while leaves := list(islice(blocks, BLOCKS_AT_ONCE * runner.num_workers)):
        num_rows += sum(leaf.num_rows for leaf in leaves)
        total += sum(leaf.weight for leaf in leaves)
        _carry(runner, reduce_node, runner.run(reduce_leaf, leaves), waiting)
    if ranges is not None:
        source.count_pass()
    if not num_rows:
        raise ValueError("there are no rows to make a coreset of")
    rest = [waiting[level] for level in sorted(waiting, reverse=True)]
    whole = _joined(rest, max(waiting) + 1, 0)
    if len(whole.weights) > size:
        whole = reduce_node(whole)
    return Coreset(whole.points, whole.weights, None, method, "kmeans", num_rows, total)


def _carry(
    runner: Executor, reduce_node: Any, nodes: list[_Node], waiting: dict[int, _Node]
) -> None:
    """Merge neighbours, all of a level together, until no two are left on one."""
    while nodes:
        level = nodes[0].level
        row = [*([waiting.pop(level)] if level in waiting else []), *nodes]
        if len(row) % 2:
            waiting[level] = row.pop()
        pairs = list(zip(row[::2], row[1::2], strict=True))
        joined = [_joined(pair, level + 1, pair[0].number // 2) for pair in pairs]
        nodes = runner.run(reduce_node, joined)


def _joined(nodes: Any, level: int, number: int) -> _Node:
    points = np.concatenate([node.points for node in nodes])
    return _Node(level, number, points, np.concatenate([node.weights for node in nodes]))


def _reduced(k: int, size: int, method: str, seed: int, node: _Node) -> _Node:
    # A seed of its own, whoever comes when.
    state = np.random.SeedSequence((seed, node.level, node.number)).generate_state(1)
    small = coreset(
        node.points,
        k,
        size,
        method=method,
        sample_weight=node.weights,
        queries=0,
        random_state=int(state[0] % np.iinfo(np.int32).max),
    )
    return node._replace(points=np.asarray(small.points), weights=small.weights)


def _ranges(source: Any, size: int, executor: Executor | None) -> list[list[RowRange]] | None:
    """Where leaves lie, if there is somebody to read them and files of which rows can be told."""
    if executor is None or not isinstance(source, FileSource):
        return None
    return source.row_ranges(size)


def _read_and_reduced(read: NumberReader, reduce_node: Any, leaf: _Unread) -> _Node:
    rows = read(leaf.ranges)
    _check_size(rows, read.columns, Path(leaf.ranges[0].path).name)
    return cast(_Node, reduce_node(_Node(0, leaf.number, rows, np.ones(len(rows)))))


def _check_size(rows: FloatArray, columns: Sequence[str], file: str | None) -> None:
    largest = np.abs(rows).max(axis=0, initial=0.0)
    if largest.max(initial=0.0) > LARGEST_NUMBER:
        raise DataError(
            f"holds numbers as large as {largest.max():.3g}, whose squares a computer cannot hold; "
            "divide the column by some number, or leave it out",
            file=file,
            column=str(columns[int(largest.argmax())]),
        )


def _leaves(X: Any, sample_weight: Any, size: int) -> Iterator[_Node]:
    """Blocks of one length, and what is left."""
    if not isinstance(X, FileSource):
        X = check_array(X, dtype=[np.float64, np.float32])
        weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        for number, start in enumerate(range(0, len(X), size)):
            yield _Node(0, number, X[start : start + size], weights[start : start + size])
        return
    number, rest = 0, None
    for frame in X.number_blocks():
        piece = frame.to_numpy()
        _check_size(piece, X.features, None)
        rows = piece if rest is None else np.concatenate([rest, piece])
        whole = len(rows) - len(rows) % size
        for start in range(0, whole, size):
            yield _Node(0, number, rows[start : start + size], np.ones(size))
            number += 1
        rest = rows[whole:]
    if rest is not None and len(rest):
        yield _Node(0, number, rest, np.ones(len(rest)))
