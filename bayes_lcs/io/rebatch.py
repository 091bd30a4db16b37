"""Regroup batches of any length into batches of equal length."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["rebatch"]


def rebatch(batches: Iterable[NDArray[Any]], size: int) -> Iterator[NDArray[Any]]:
    """Yield batches of ``size`` rows each, in order, and a last one with the remaining rows.

    Examples
    --------
    >>> [batch.tolist() for batch in rebatch([np.arange(3), np.arange(3, 8)], 3)]
    [[0, 1, 2], [3, 4, 5], [6, 7]]
    """
    buffer: list[NDArray[Any]] = []
    length = 0
    for batch in batches:
        buffer.append(batch)
        length += len(batch)
        if length >= size:
            rows = np.concatenate(buffer)
            for start in range(0, length - length % size, size):
                yield rows[start : start + size]
            buffer, length = [rows[length - length % size :]], length % size
    if length:
        yield np.concatenate(buffer)
