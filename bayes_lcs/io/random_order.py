"""Random order of rows by random keys, and bottom-k sampling in one pass over a file.

Every row gets a key of 64 random bits from one seeded stream, in the order of the source. Sorted by
key, the rows are in uniformly random order; the first ``n`` are a simple random sample without
replacement, and samples of increasing ``n`` are nested. The keys depend neither on the kind of
source nor on the batch size, so that an array and a file with the same rows give the same samples.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["BottomK", "KeyStream", "random_order"]

KeyArray = NDArray[np.uint64]

_STREAM = 0x6B657973


class KeyStream:
    """Random keys of the rows, in the order of the source.

    Examples
    --------
    >>> whole = KeyStream(7).draw(10)
    >>> stream = KeyStream(7)
    >>> np.array_equal(np.concatenate([stream.draw(4), stream.draw(6)]), whole)
    True
    """

    def __init__(self, seed: int) -> None:
        # Separate stream: data simulated with default_rng(seed) and the same seed would otherwise
        # have keys equal to their random numbers, and be sorted by content.
        own = np.random.SeedSequence(seed, spawn_key=(_STREAM,))
        self._bits = np.random.PCG64(own)

    def draw(self, num_rows: int) -> KeyArray:
        """Return the keys of the next rows."""
        return self._bits.random_raw(num_rows)


def random_order(num_rows: int, seed: int) -> NDArray[np.int64]:
    """Return row numbers sorted by key: a uniformly random permutation.

    Examples
    --------
    >>> sorted(random_order(5, seed=0).tolist())
    [0, 1, 2, 3, 4]
    """
    return np.argsort(KeyStream(seed).draw(num_rows), kind="stable")


class BottomK:
    """Bottom-k sample: the rows with the smallest keys so far.

    Parameters
    ----------
    size
        Number of rows to store. Up to 1.5 times as many are in memory temporarily.

    Examples
    --------
    >>> first = BottomK(2)
    >>> first.update(np.array([5, 1], np.uint64), np.array([[50], [10]]))
    >>> first.update(np.array([9, 3], np.uint64), np.array([[90], [30]]))
    >>> first.rows().tolist()
    [[10], [30]]
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self._keys: list[KeyArray] = []
        self._rows: list[NDArray[Any]] = []
        self._num_stored = 0
        self._bound = np.uint64(np.iinfo(np.uint64).max)

    def select(self, keys: KeyArray) -> NDArray[np.bool_]:
        """Return a mask of the rows whose keys may still be among the smallest."""
        return keys <= self._bound

    def update(self, keys: KeyArray, rows: NDArray[Any]) -> None:
        """Add more rows, in the order of the source."""
        chosen = self.select(keys)
        if not chosen.all():
            keys, rows = keys[chosen], rows[chosen]
        self._keys.append(keys)
        self._rows.append(rows)
        self._num_stored += len(keys)
        if self._num_stored >= self.size + max(self.size // 2, 1):
            self._shrink()

    def _shrink(self) -> None:
        """Drop rows whose keys are no longer among the smallest."""
        keys = np.concatenate(self._keys)
        rows = np.concatenate(self._rows)
        # Stable: of two equal keys the earlier row comes first, as in `random_order`.
        first = np.argsort(keys, kind="stable")[: self.size]
        self._keys, self._rows, self._num_stored = [keys[first]], [rows[first]], len(first)
        if self._num_stored == self.size:
            self._bound = self._keys[0][-1]

    def rows(self) -> NDArray[Any]:
        """Return the sampled rows, in random order."""
        self._shrink()
        return self._rows[0]
