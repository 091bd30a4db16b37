"""Lloyd's algorithm over blocks of points that lie wherever an executor has placed them.

Centres go out, weighted sums of the points nearest to each come back and are merged in the order of
the blocks. Start, stopping rule and what is done with empty clusters are scikit-learn's, so that it
ends where `sklearn.cluster.KMeans` does, but for rounding.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial, reduce
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from bayes_lcs.clustering.kmeans.init import nearest
from bayes_lcs.clustering.kmeans.point_store import (
    Moments,
    PointBlock,
    PointStore,
    keep_points,
    open_points,
    stored_points,
)
from bayes_lcs.io.formats.parquet_ranges import NumberReader, RowRange
from bayes_lcs.io.rebatch import rebatch
from bayes_lcs.runtime.checkpoints import fingerprint
from bayes_lcs.runtime.executors.base import merge_sums
from bayes_lcs.runtime.executors.protocol import Executor

__all__ = ["BLOCK_ROWS", "KMeansResult", "LloydOnBlocks"]

FloatArray = NDArray[Any]

BLOCK_ROWS = 1 << 16


class KMeansResult(NamedTuple):
    """Where a start ended: its centres, their cost, and the iterations that it took."""

    cluster_centers: FloatArray
    inertia: float
    n_iter: int


class _Sums(NamedTuple):
    """Weighted sums of points ``(k, d)``, weights ``(k,)``, and weighted squared distances."""

    totals: FloatArray
    weights: FloatArray
    inertia: float


class _Far(NamedTuple):
    """A point far from its centre, to begin a cluster that has lost all its points."""

    square: float
    label: int
    weight: float
    point: FloatArray


class LloydOnBlocks:
    """Points in blocks, and Lloyd's algorithm on them from any start."""

    def __init__(
        self,
        executor: Executor,
        load: Any,
        keys: Sequence[Any],
        moments: Moments,
        shift: FloatArray | None = None,
    ) -> None:
        self._executor = executor
        # As scikit-learn does: distances lose fewer digits around zero.
        self._shift = moments.mean if shift is None else shift
        self._spread = float(np.mean(moments.squares)) / moments.num_rows
        self.num_rows = moments.num_rows
        self._placed = executor.place(partial(load, self._shift), keys)

    @classmethod
    def of_array(cls, executor: Executor, X: FloatArray, weights: FloatArray) -> LloydOnBlocks:
        """Points in memory, which are sent once."""
        size = BLOCK_ROWS
        slices = [(X[i : i + size], weights[i : i + size]) for i in range(0, len(X), size)]
        return cls(executor, _load, slices, Moments.of(X))

    @classmethod
    def of_files(
        cls, executor: Executor, read: NumberReader, ranges: list[list[RowRange]]
    ) -> LloydOnBlocks:
        """Points of files, which workers read: for their mean, and to keep them."""
        found = executor.run(partial(_moments_of_rows, read), ranges)
        return cls(executor, partial(_load_rows, read), ranges, reduce(Moments.joined, found))

    @classmethod
    def of_large_files(
        cls, executor: Executor, read: NumberReader, groups: list[list[RowRange]], folder: Path
    ) -> LloydOnBlocks:
        """The same, but kept in a folder, where all workers see them."""
        first = next(piece for piece in read.batches(groups[0]) if len(piece))
        shift = first.mean(axis=0)
        keep = partial(_stored_rows, read, folder, shift, BLOCK_ROWS)
        stored = [one for some in executor.run(keep, groups) for one in some]
        moments = reduce(Moments.joined, [own for _, own in stored])
        blocks, shift = stored_points([path for path, _ in stored], shift, moments)
        return cls(executor, _as_it_is, blocks, moments, shift)

    @classmethod
    def of_store(cls, executor: Executor, store: PointStore) -> LloydOnBlocks:
        """Points that were read before."""
        assert store.moments is not None
        if store.files:
            blocks, shift = stored_points(store.files, store.shift, store.moments)
            return cls(executor, _as_it_is, blocks, store.moments, shift)
        X = np.concatenate(store.held)
        return cls.of_array(executor, X, np.ones(len(X)))

    def labels(self, centers: FloatArray) -> NDArray[np.int64]:
        """The nearest centre of each point."""
        parts = self._executor.each(self._placed, _labels, centers - self._shift)
        return np.concatenate(parts)

    def run(self, start: FloatArray, max_iter: int, tol: float) -> KMeansResult:
        """Where a start ends."""
        centers = start - self._shift
        before: list[str] = []
        num_iter, is_over = 0, False
        while not is_over and num_iter < max_iter:
            num_iter += 1
            parts = self._executor.each(self._placed, _look, centers)
            sums = reduce(merge_sums, [part for part, _ in parts])
            new = self._moved(centers, sums)
            shift, centers = float(((new - centers) ** 2).sum()), new
            labels = [digest for _, digest in parts]
            # Labels that stay the same end it, whatever the tolerance; so do small steps.
            is_over = labels == before or shift <= tol * self._spread
            before = labels
        parts = self._executor.each(self._placed, _look, centers)
        inertia = float(sum(part.inertia for part, _ in parts))
        return KMeansResult(centers + self._shift, inertia, num_iter)

    def close(self) -> None:
        """Let the blocks go."""
        self._placed.release()

    def _moved(self, centers: FloatArray, sums: _Sums) -> FloatArray:
        totals, weights = sums.totals.copy(), sums.weights.copy()
        empty = np.flatnonzero(weights == 0)
        if len(empty):
            found = self._executor.each(self._placed, _farthest, (centers, len(empty)))
            far = sorted((one for part in found for one in part), key=lambda one: -one.square)
            for cluster, one in zip(empty, far, strict=False):
                if one.square == 0.0:
                    break  # there are fewer different points than clusters
                totals[one.label] -= one.weight * one.point
                totals[cluster] = one.weight * one.point
                weights[one.label] -= one.weight
                weights[cluster] = one.weight
        held = weights > 0
        moved = centers.copy()
        moved[held] = totals[held] / weights[held, None]
        return moved


def _load(shift: FloatArray, key: tuple[FloatArray, FloatArray]) -> PointBlock:
    X, weights = key
    return X - shift, weights


def _moments_of_rows(read: NumberReader, ranges: list[RowRange]) -> Moments:
    return Moments.of(read(ranges))


def _load_rows(read: NumberReader, shift: FloatArray, ranges: list[RowRange]) -> PointBlock:
    X = read(ranges)
    return X - shift, np.ones(len(X))


def _stored_rows(
    read: NumberReader, folder: Path, shift: FloatArray, size: int, ranges: list[RowRange]
) -> list[tuple[Path, Moments]]:
    blocks = rebatch(read.batches(ranges), size)
    return [(keep_points(block - shift, folder), Moments.of(block)) for block in blocks]


def _as_it_is(_: FloatArray, block: PointBlock) -> PointBlock:
    return block


def _labels(centers: FloatArray, block: PointBlock) -> NDArray[np.int64]:
    return nearest(open_points(block)[0], centers)[0]


def _look(centers: FloatArray, block: PointBlock) -> tuple[_Sums, str]:
    """Sums of a block, and a digest of which centre is nearest to each point."""
    X, weights = open_points(block)
    labels, squares = nearest(X, centers)
    shares = csr_array((weights, labels, np.arange(len(X) + 1)), (len(X), len(centers)))
    held = np.bincount(labels, weights, minlength=len(centers))
    return _Sums(shares.T @ X, held, float(weights @ squares)), fingerprint(labels)


def _farthest(params: tuple[FloatArray, int], block: PointBlock) -> list[_Far]:
    (centers, count), (X, weights) = params, open_points(block)
    labels, squares = nearest(X, centers)
    return [
        _Far(float(squares[i]), int(labels[i]), float(weights[i]), X[i].copy())
        for i in np.argsort(-squares, kind="stable")[:count]
    ]
