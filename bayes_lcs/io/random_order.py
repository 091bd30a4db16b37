"""One random order of rows, and the rows at its beginning, found in one pass over a file.

Every row draws a key of 64 random bits from one seeded stream, in the order in which the rows lie.
Sorted by key, the rows are in a uniformly random order; the first ``n`` of it are a simple random
sample without replacement, and samples of growing ``n`` contain each other. The keys do not depend
on the kind of source nor on the size of the blocks in which it is read, so an array and a file of
the same rows give the same samples.
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
        # A stream of its own: simulated data is often drawn with default_rng(seed) and the same
        # seed, and keys that repeat its numbers would sort the rows by what is in them.
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
    """The rows with the smallest keys among all rows so far.

    Parameters
    ----------
    size
        Number of rows to keep. Up to half as many again are in memory for a while.

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
        self._held = 0
        self._bound = np.uint64(np.iinfo(np.uint64).max)

    def wanted(self, keys: KeyArray) -> NDArray[np.bool_]:
        """Return which rows may still be among the first, judged by their keys."""
        return keys <= self._bound

    def update(self, keys: KeyArray, rows: NDArray[Any]) -> None:
        """Consider more rows, in the order of the source."""
        chosen = self.wanted(keys)
        if not chosen.all():
            keys, rows = keys[chosen], rows[chosen]
        self._keys.append(keys)
        self._rows.append(rows)
        self._held += len(keys)
        if self._held >= self.size + max(self.size // 2, 1):
            self._shrink()

    def _shrink(self) -> None:
        """Drop rows that are no longer among the first."""
        keys = np.concatenate(self._keys)
        rows = np.concatenate(self._rows)
        # Stable: of two equal keys the earlier row comes first, as in `random_order`.
        first = np.argsort(keys, kind="stable")[: self.size]
        self._keys, self._rows, self._held = [keys[first]], [rows[first]], len(first)
        if self._held == self.size:
            self._bound = self._keys[0][-1]

    def rows(self) -> NDArray[Any]:
        """Return the rows kept, in the random order."""
        self._shrink()
        return self._rows[0]
