"""Subsets of at most a few dozen groups as bit masks; bit ``u`` stands for group ``u``."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["members", "popcounts", "subset_sums", "subsets_of"]

IntArray = NDArray[np.int64]


def subsets_of(mask: int) -> IntArray:
    """Return all subsets of a mask in increasing order, the empty one first.

    Examples
    --------
    >>> subsets_of(0b101).tolist()
    [0, 1, 4, 5]
    """
    result = np.zeros(1, dtype=np.int64)
    rest = int(mask)
    # Add the lowest bit first, so that the subsets stay in increasing order.
    while rest:
        bit = rest & -rest
        result = np.concatenate([result, result | bit])
        rest ^= bit
    return result


def subset_sums(values: NDArray[Any]) -> NDArray[Any]:
    """Return ``sum_{u in T} values[u]`` for every subset ``T``, indexed by mask; ``(2**U,)``.

    Integers are summed in int64.
    """
    sums = np.zeros(1, dtype=np.int64 if values.dtype.kind in "biu" else values.dtype)
    for value in values:
        sums = np.concatenate([sums, sums + value])
    return sums


def popcounts(num_bits: int) -> IntArray:
    """Return the number of members of every subset of ``num_bits`` groups."""
    return subset_sums(np.ones(num_bits, dtype=np.int64))


def members(mask: int) -> list[int]:
    """Return the groups in a mask, in increasing order."""
    return [u for u in range(int(mask).bit_length()) if mask >> u & 1]
