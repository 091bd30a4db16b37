"""Batches of points, in memory or on disk, and their moments."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from bayes_lcs.core.errors import DataError
from bayes_lcs.runtime.array_store import open_arrays, save_arrays

__all__ = [
    "Moments",
    "PointBatch",
    "PointStore",
    "PointsOnDisk",
    "correct_shift",
    "open_points",
    "save_points",
]

FloatArray = NDArray[Any]

MAX_SHIFT_ERROR = 2.0
"""Largest accepted distance of the shift from the mean of all points, in standard deviations."""


class Moments(NamedTuple):
    """Number of points, their mean ``(d,)``, and sums of squares around it ``(d,)``."""

    num_rows: int
    mean: FloatArray
    squares: FloatArray

    @classmethod
    def of(cls, X: FloatArray) -> Moments:
        """Compute the moments of points."""
        return cls(len(X), X.mean(axis=0), np.var(X, axis=0) * len(X))

    def merge(self, other: Moments) -> Moments:
        """Return the moments of two sets of points together (Chan, Golub and LeVeque 1983).

        Examples
        --------
        >>> a, b = np.array([[1.0], [2.0]]), np.array([[6.0]])
        >>> Moments.of(a).merge(Moments.of(b))
        Moments(num_rows=3, mean=array([3.]), squares=array([14.]))
        """
        size, apart = self.num_rows + other.num_rows, other.mean - self.mean
        mean = self.mean + apart * (other.num_rows / size)
        between = apart**2 * (self.num_rows * other.num_rows / size)
        return Moments(size, mean, self.squares + other.squares + between)


class PointsOnDisk(NamedTuple):
    """Points of weight 1 in a file; ``correction``, unless None, is to be subtracted from them."""

    path: Path
    correction: FloatArray | None


PointBatch = tuple[FloatArray, FloatArray] | PointsOnDisk
"""Points and their weights, in memory or on disk."""


def save_points(X: FloatArray, folder: Path) -> Path:
    """Write points to a new file."""
    # The name is unique: a lost batch may be written again while its old worker still writes.
    path = folder / f"points-{uuid4().hex}.rows"
    save_arrays(path, {"points": X})
    return path


def open_points(block: PointBatch) -> tuple[FloatArray, FloatArray]:
    """Return points and their weights; raise `DataError` if their file was changed."""
    if not isinstance(block, PointsOnDisk):
        return block
    try:
        X = open_arrays(block.path)["points"]
    except DataError as error:
        raise DataError(
            f"a batch of points in this file {error.message}; fit again, with a folder that all "
            "workers can read",
            file=error.file,
        ) from None
    return X if block.correction is None else X - block.correction, np.ones(len(X))


def correct_shift(
    paths: Sequence[Path], shift: FloatArray, moments: Moments
) -> tuple[list[PointBatch], FloatArray]:
    """Return the stored batches, and the final shift of their points.

    Points were written less ``shift``. Distances lose digits far from zero, so a shift that turns
    out to be far from the mean is corrected whenever points are read.
    """
    away = moments.mean - shift
    spread = np.sqrt(moments.squares / moments.num_rows)
    is_near = bool(np.all(np.abs(away) <= MAX_SHIFT_ERROR * spread))
    correction = None if is_near else away
    return [PointsOnDisk(path, correction) for path in paths], shift if is_near else moments.mean


class PointStore:
    """Growing list of batches: in memory, and on disk once they exceed ``memory``.

    On disk, points are shifted by the mean of the first batch; see `correct_shift`.

    Parameters
    ----------
    memory
        Bytes that points may take in memory.
    folder
        Folder for points beyond that.
    """

    def __init__(self, memory: int, folder: Path) -> None:
        self._memory, self._folder = memory, folder
        self.batches: list[FloatArray] = []
        self.files: list[Path] = []
        self.moments: Moments | None = None
        self.shift: FloatArray = np.zeros(0)
        self._size = 0

    def add(self, X: FloatArray) -> None:
        """Add a batch."""
        own = Moments.of(X)
        if self.moments is None:
            self.shift, self.moments = own.mean, own
        else:
            self.moments = self.moments.merge(own)
        self.batches.append(X)
        self._size += X.nbytes
        if self._size > self._memory:
            self.files += [save_points(batch - self.shift, self._folder) for batch in self.batches]
            self.batches = []
