"""Coreset of many rows, block by block, wherever an executor runs.

Each block of rows becomes a coreset; two neighbours are merged and reduced again, level by level, a
binary tree as in the module `stream`. The nodes and their seeds depend on the rows and on nothing
else: every executor gives the same points.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayes_lcs.clustering.coresets.checks import SAMPLE_FORMAT, CheckSample, check_on_sample
from bayes_lcs.clustering.coresets.coreset import Coreset
from bayes_lcs.clustering.coresets.merge_reduce import (
    Node,
    Unread,
    UnreadLeaves,
    build_leaves,
    check_size,
)
from bayes_lcs.clustering.coresets.sampling_scores import check_method, reduce_points
from bayes_lcs.io.formats.parquet_ranges import NumberReader
from bayes_lcs.io.frames import numeric_rows
from bayes_lcs.io.open_tables import is_streamed
from bayes_lcs.io.sampler import FileSampler
from bayes_lcs.runtime.checkpoints import Arrays
from bayes_lcs.runtime.executors.local import LocalExecutor
from bayes_lcs.runtime.executors.protocol import Executor

__all__ = ["coreset_tree"]

FloatArray = NDArray[np.float64]

BLOCK_ROWS = 1 << 16
BLOCKS_AT_ONCE = 2
"""Blocks in memory for each worker."""


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
    """Reduce an array or files to a coreset, block by block.

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
        Points and weights; row numbers are not known. Its errors are estimated on a weighted
        sample of 1,000 to 4,000 rows, or one to four times ``size``, in which rows far from all
        others are kept almost surely.

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
    check_method(method)
    runner: Executor = LocalExecutor() if executor is None else executor
    reduce_node = partial(_reduce_node, k, size, method, int(random_state))
    if sample_weight is not None and (is_streamed(X) or isinstance(X, FileSampler)):
        raise ValueError("sample_weight is for arrays")
    source = FileSampler(X, kind="numbers") if is_streamed(X) else numeric_rows(X)
    leaves = build_leaves(source, sample_weight, block_rows, workers_read=executor is not None)
    reduce_leaf: Any = partial(_reduce_leaf, k, size, method, int(random_state))
    if isinstance(leaves, UnreadLeaves):
        reduce_leaf = partial(_read_and_reduce, source.number_reader, reduce_leaf)
    waiting: dict[int, Node] = {}
    sample = CheckSample.for_coreset(k, size)
    num_rows, total = 0, 0.0
    with leaves.work(k, size, method, block_rows, int(random_state), SAMPLE_FORMAT) as kept:
        if kept.state is not None:
            num_rows, total, waiting = _from_state(kept.state, sample)
            leaves.load_state(kept.state)
        coming = iter(leaves)
        while some := list(islice(coming, BLOCKS_AT_ONCE * runner.num_workers)):
            num_rows += sum(leaf.num_rows for leaf in some)
            total += sum(leaf.weight for leaf in some)
            reduced = runner.run(reduce_leaf, some)
            for _, rows in reduced:
                sample.merge(rows)
            _carry(runner, reduce_node, [node for node, _ in reduced], waiting)
            kept.update(
                partial(_state, num_rows, total, dict(waiting), replace(sample), leaves.place)
            )
        kept.finish(partial(_state, num_rows, total, dict(waiting), replace(sample), leaves.place))
    if isinstance(leaves, UnreadLeaves):
        source.count_pass()
    if not num_rows:
        raise ValueError("there are no rows to make a coreset of")
    rest = [waiting[level] for level in sorted(waiting, reverse=True)]
    whole = _concatenate(rest, max(waiting) + 1, 0)
    if len(whole.weights) > size:
        whole = reduce_node(whole)
    points, weights = whole.points, whole.weights
    data = sample.with_rows(points[:0], weights[:0])
    found = check_on_sample(data, num_rows, points, weights, k, method)
    return Coreset(points, weights, None, method, "kmeans", num_rows, total, **found)


def _carry(runner: Executor, reduce_node: Any, nodes: list[Node], waiting: dict[int, Node]) -> None:
    """Merge neighbours, all of a level together, until no two are left on one."""
    while nodes:
        level = nodes[0].level
        row = [*([waiting.pop(level)] if level in waiting else []), *nodes]
        if len(row) % 2:
            waiting[level] = row.pop()
        pairs = list(zip(row[::2], row[1::2], strict=True))
        joined = [_concatenate(pair, level + 1, pair[0].number // 2) for pair in pairs]
        nodes = runner.run(reduce_node, joined)


def _concatenate(nodes: Any, level: int, number: int) -> Node:
    points = np.concatenate([node.points for node in nodes])
    return Node(level, number, points, np.concatenate([node.weights for node in nodes]))


def _generator(seed: int, *place: int) -> np.random.Generator:
    """Return the random numbers of a node; they do not depend on the worker."""
    return np.random.default_rng(np.random.SeedSequence((seed, *place)))


def _reduce_node(k: int, size: int, method: str, seed: int, node: Node) -> Node:
    rng = _generator(seed, node.level, node.number)
    points, weights, _ = reduce_points(method, node.points, node.weights, k, size, rng)
    return node._replace(points=points, weights=weights)


def _reduce_leaf(k: int, size: int, method: str, seed: int, leaf: Node) -> tuple[Node, CheckSample]:
    """Reduce a leaf, and sample its rows for checks."""
    kept = leaf.weights > 0
    X, weights = leaf.points[kept], leaf.weights[kept]
    rng = _generator(seed, leaf.level, leaf.number)
    points, drawn, found = reduce_points(method, X, weights, k, size, rng)
    sample = CheckSample.for_coreset(k, size)
    sample.add_leaf(X, weights, rng, found)
    return leaf._replace(points=points, weights=drawn), sample


def _read_and_reduce(
    read: NumberReader, reduce_leaf: Any, leaf: Unread
) -> tuple[Node, CheckSample]:
    rows = read(leaf.ranges)
    check_size(rows, read.columns, Path(leaf.ranges[0].path).name)
    found: tuple[Node, CheckSample] = reduce_leaf(Node(0, leaf.number, rows, np.ones(len(rows))))
    return found


def _state(
    num_rows: int, total: float, waiting: dict[int, Node], sample: CheckSample, place: Arrays
) -> Arrays:
    """Return the tree so far, the sample of its rows, and where its next leaf begins."""
    nodes: dict[str, Any] = {"places": np.array([(n.level, n.number) for n in waiting.values()])}
    for node in waiting.values():
        nodes |= {f"points{node.level}": node.points, f"weights{node.level}": node.weights}
    kept = {f"sample_{name}": array for name, array in sample.arrays().items()}
    return {**place, **nodes, **kept, "rows": np.array(num_rows), "total": np.array(total)}


def _from_state(state: Arrays, sample: CheckSample) -> tuple[int, float, dict[int, Node]]:
    sample.restore({name: state[f"sample_{name}"] for name in sample.arrays()})
    nodes = {
        level: Node(level, number, state[f"points{level}"], state[f"weights{level}"])
        for level, number in state["places"].tolist()
    }
    return int(state["rows"]), float(state["total"]), nodes
