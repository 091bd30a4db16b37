"""Rows that come in pieces of any length, as blocks of one length."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["even_blocks"]


def even_blocks(pieces: Iterable[NDArray[Any]], size: int) -> Iterator[NDArray[Any]]:
    """Blocks of ``size`` rows each, in their order, and what is left.

    Examples
    --------
    >>> [block.tolist() for block in even_blocks([np.arange(3), np.arange(3, 8)], 3)]
    [[0, 1, 2], [3, 4, 5], [6, 7]]
    """
    waiting: list[NDArray[Any]] = []
    length = 0
    for piece in pieces:
        waiting.append(piece)
        length += len(piece)
        if length >= size:
            rows = np.concatenate(waiting)
            for start in range(0, length - length % size, size):
                yield rows[start : start + size]
            waiting, length = [rows[length - length % size :]], length % size
    if length:
        yield np.concatenate(waiting)
