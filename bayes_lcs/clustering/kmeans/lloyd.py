"""Lloyd's algorithm over batches of points that an executor holds.

Centres are sent to the batches; weighted sums of the points nearest to each centre are returned and
merged in the order of the batches. Initialisation, stopping rule and treatment of empty clusters
are those of scikit-learn, so that the result equals that of `sklearn.cluster.KMeans` up to
rounding.
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
    PointBatch,
    PointStore,
    correct_shift,
    open_points,
    save_points,
)
from bayes_lcs.io.formats.parquet_ranges import NumberReader, RowRange
from bayes_lcs.io.rebatch import rebatch
from bayes_lcs.runtime.checkpoints import fingerprint
from bayes_lcs.runtime.executors.base import merge_sums
from bayes_lcs.runtime.executors.protocol import Executor

__all__ = ["BLOCK_ROWS", "DistributedLloyd", "KMeansResult"]

FloatArray = NDArray[Any]

BLOCK_ROWS = 1 << 16
"""Rows of a batch."""


class KMeansResult(NamedTuple):
    """Result of a start: centres, their cost, and the number of iterations."""

    cluster_centers: FloatArray
    inertia: float
    n_iter: int


class _Sums(NamedTuple):
    """Weighted sums of points ``(k, d)``, weights ``(k,)``, and weighted squared distances."""

    totals: FloatArray
    weights: FloatArray
    inertia: float


class _FarthestPoint(NamedTuple):
    """A point far from its centre, the new centre of an empty cluster."""

    square: float
    label: int
    weight: float
    point: FloatArray


class DistributedLloyd:
    """Lloyd's algorithm on batches of points that an executor holds."""

    def __init__(
        self,
        executor: Executor,
        load: Any,
        keys: Sequence[Any],
        moments: Moments,
        shift: FloatArray | None = None,
    ) -> None:
        self._executor = executor
        # Points are centred, as in scikit-learn: distances lose fewer digits around zero.
        self._shift = moments.mean if shift is None else shift
        self._spread = float(np.mean(moments.squares)) / moments.num_rows
        self.num_rows = moments.num_rows
        self._placed = executor.place(partial(load, self._shift), keys)

    @classmethod
    def from_array(cls, executor: Executor, X: FloatArray, weights: FloatArray) -> DistributedLloyd:
        """Send points in memory to the executor, once."""
        size = BLOCK_ROWS
        slices = [(X[i : i + size], weights[i : i + size]) for i in range(0, len(X), size)]
        return cls(executor, _load, slices, Moments.of(X))

    @classmethod
    def from_files(
        cls, executor: Executor, read: NumberReader, ranges: list[list[RowRange]]
    ) -> DistributedLloyd:
        """Let workers read points of files, twice: for the mean, and to hold them in memory."""
        moments = executor.run(partial(_moments_of_rows, read), ranges)
        return cls(executor, partial(_load_rows, read), ranges, reduce(Moments.merge, moments))

    @classmethod
    def from_files_on_disk(
        cls, executor: Executor, read: NumberReader, groups: list[list[RowRange]], folder: Path
    ) -> DistributedLloyd:
        """Let workers read points of files and store them in a folder that all workers share."""
        first = next(batch for batch in read.batches(groups[0]) if len(batch))
        shift = first.mean(axis=0)
        store = partial(_store_rows, read, folder, shift, BLOCK_ROWS)
        stored = [one for some in executor.run(store, groups) for one in some]
        moments = reduce(Moments.merge, [own for _, own in stored])
        blocks, shift = correct_shift([path for path, _ in stored], shift, moments)
        return cls(executor, _identity, blocks, moments, shift)

    @classmethod
    def from_store(cls, executor: Executor, store: PointStore) -> DistributedLloyd:
        """Use points of a `PointStore`."""
        assert store.moments is not None
        if store.files:
            blocks, shift = correct_shift(store.files, store.shift, store.moments)
            return cls(executor, _identity, blocks, store.moments, shift)
        X = np.concatenate(store.batches)
        return cls.from_array(executor, X, np.ones(len(X)))

    def labels(self, centers: FloatArray) -> NDArray[np.int64]:
        """Return the nearest centre of each point."""
        parts = self._executor.each(self._placed, _labels, centers - self._shift)
        return np.concatenate(parts)

    def run(self, start: FloatArray, max_iter: int, tol: float) -> KMeansResult:
        """Run Lloyd's algorithm from initial centres."""
        centers = start - self._shift
        before: list[str] = []
        num_iter, is_over = 0, False
        while not is_over and num_iter < max_iter:
            num_iter += 1
            parts = self._executor.each(self._placed, _assign_and_sum, centers)
            sums = reduce(merge_sums, [part for part, _ in parts])
            new = self._update_centers(centers, sums)
            shift, centers = float(((new - centers) ** 2).sum()), new
            labels = [digest for _, digest in parts]
            # Stop when no label changes (by digests, whatever the tolerance) or steps are small.
            is_over = labels == before or shift <= tol * self._spread
            before = labels
        parts = self._executor.each(self._placed, _assign_and_sum, centers)
        inertia = float(sum(part.inertia for part, _ in parts))
        return KMeansResult(centers + self._shift, inertia, num_iter)

    def close(self) -> None:
        """Release the batches."""
        self._placed.release()

    def _update_centers(self, centers: FloatArray, sums: _Sums) -> FloatArray:
        totals, weights = sums.totals.copy(), sums.weights.copy()
        empty = np.flatnonzero(weights == 0)
        if len(empty):
            # As in scikit-learn: each empty cluster takes the point farthest from its centre.
            parts = self._executor.each(self._placed, _farthest, (centers, len(empty)))
            far = sorted((one for part in parts for one in part), key=lambda one: -one.square)
            for cluster, one in zip(empty, far, strict=False):
                if one.square == 0.0:
                    break  # there are fewer different points than clusters
                totals[one.label] -= one.weight * one.point
                totals[cluster] = one.weight * one.point
                weights[one.label] -= one.weight
                weights[cluster] = one.weight
        has_points = weights > 0
        means = centers.copy()
        means[has_points] = totals[has_points] / weights[has_points, None]
        return means


def _load(shift: FloatArray, key: tuple[FloatArray, FloatArray]) -> PointBatch:
    X, weights = key
    return X - shift, weights


def _moments_of_rows(read: NumberReader, ranges: list[RowRange]) -> Moments:
    return Moments.of(read(ranges))


def _load_rows(read: NumberReader, shift: FloatArray, ranges: list[RowRange]) -> PointBatch:
    X = read(ranges)
    return X - shift, np.ones(len(X))


def _store_rows(
    read: NumberReader, folder: Path, shift: FloatArray, size: int, ranges: list[RowRange]
) -> list[tuple[Path, Moments]]:
    blocks = rebatch(read.batches(ranges), size)
    return [(save_points(block - shift, folder), Moments.of(block)) for block in blocks]


def _identity(_: FloatArray, block: PointBatch) -> PointBatch:
    return block


def _labels(centers: FloatArray, block: PointBatch) -> NDArray[np.int64]:
    return nearest(open_points(block)[0], centers)[0]


def _assign_and_sum(centers: FloatArray, block: PointBatch) -> tuple[_Sums, str]:
    """Return the sums of a batch, and a digest of its labels."""
    X, weights = open_points(block)
    labels, squares = nearest(X, centers)
    # Assignment matrix with the weights as entries: its product with X sums the points by centre.
    shares = csr_array((weights, labels, np.arange(len(X) + 1)), (len(X), len(centers)))
    totals = np.bincount(labels, weights, minlength=len(centers))
    return _Sums(shares.T @ X, totals, float(weights @ squares)), fingerprint(labels)


def _farthest(params: tuple[FloatArray, int], block: PointBatch) -> list[_FarthestPoint]:
    (centers, count), (X, weights) = params, open_points(block)
    labels, squares = nearest(X, centers)
    return [
        _FarthestPoint(float(squares[i]), int(labels[i]), float(weights[i]), X[i].copy())
        for i in np.argsort(-squares, kind="stable")[:count]
    ]
