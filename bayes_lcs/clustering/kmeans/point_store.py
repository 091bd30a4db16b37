"""Blocks of points, in memory or on disk, and their moments."""

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
    "PointBlock",
    "PointStore",
    "StoredPoints",
    "keep_points",
    "open_points",
    "stored_points",
]

FloatArray = NDArray[Any]

FAR = 2.0
"""Standard deviations from the mean of all points."""


class Moments(NamedTuple):
    """Number of points, their mean ``(d,)``, and sums of squares around it ``(d,)``."""

    num_rows: int
    mean: FloatArray
    squares: FloatArray

    @classmethod
    def of(cls, X: FloatArray) -> Moments:
        """Those of some points."""
        return cls(len(X), X.mean(axis=0), np.var(X, axis=0) * len(X))

    def joined(self, other: Moments) -> Moments:
        """Of two sets of points together (Chan, Golub and LeVeque 1983).

        Examples
        --------
        >>> a, b = np.array([[1.0], [2.0]]), np.array([[6.0]])
        >>> Moments.of(a).joined(Moments.of(b))
        Moments(num_rows=3, mean=array([3.]), squares=array([14.]))
        """
        size, apart = self.num_rows + other.num_rows, other.mean - self.mean
        mean = self.mean + apart * (other.num_rows / size)
        between = apart**2 * (self.num_rows * other.num_rows / size)
        return Moments(size, mean, self.squares + other.squares + between)


class StoredPoints(NamedTuple):
    """Points of weight 1 in a file; they are still to be moved by ``rest``, unless it is None."""

    path: Path
    rest: FloatArray | None


PointBlock = tuple[FloatArray, FloatArray] | StoredPoints
"""Points and their weights, or where they are."""


def keep_points(X: FloatArray, folder: Path) -> Path:
    """Write points to a file of their own."""
    # A block that was lost may be made again while its old worker still writes.
    path = folder / f"points-{uuid4().hex}.rows"
    save_arrays(path, {"points": X})
    return path


def open_points(block: PointBlock) -> tuple[FloatArray, FloatArray]:
    """Points and their weights; a file that was changed is refused."""
    if not isinstance(block, StoredPoints):
        return block
    try:
        X = open_arrays(block.path)["points"]
    except DataError as error:
        raise DataError(
            f"a block of points that was kept here {error.message}; all workers must see this "
            "folder. Fit again",
            file=error.file,
        ) from None
    return X if block.rest is None else X - block.rest, np.ones(len(X))


def stored_points(
    paths: Sequence[Path], shift: FloatArray, moments: Moments
) -> tuple[list[PointBlock], FloatArray]:
    """Points that were moved by ``shift`` as they were written, and by what they are in the end.

    Distances lose digits far from zero. A shift that turned out to be far from the mean is put
    right whenever points are read; one that did not is good enough.
    """
    away = moments.mean - shift
    spread = np.sqrt(moments.squares / moments.num_rows)
    is_near = bool(np.all(np.abs(away) <= FAR * spread))
    rest = None if is_near else away
    return [StoredPoints(path, rest) for path in paths], shift if is_near else moments.mean


class PointStore:
    """Blocks that are added one after the other: in memory, and on disk once they are too many.

    On disk they are moved by the mean of the first block; see `stored_points`.

    Parameters
    ----------
    memory
        Bytes that points may take in memory.
    folder
        Where they are kept beyond that.
    """

    def __init__(self, memory: int, folder: Path) -> None:
        self._memory, self._folder = memory, folder
        self.held: list[FloatArray] = []
        self.files: list[Path] = []
        self.moments: Moments | None = None
        self.shift: FloatArray = np.zeros(0)
        self._size = 0

    def add(self, X: FloatArray) -> None:
        """Take a block in."""
        own = Moments.of(X)
        if self.moments is None:
            self.shift, self.moments = own.mean, own
        else:
            self.moments = self.moments.joined(own)
        self.held.append(X)
        self._size += X.nbytes
        if self._size > self._memory:
            self.files += [keep_points(block - self.shift, self._folder) for block in self.held]
            self.held = []
