"""The statistics protocol: how everything that works in bulk is written.

An algorithm that goes over rows in bulk is three functions: ``statistics(params, block)`` of one
block of rows, a pytree of sums; ``merge(a, b)``, which adds two of them; and
``update(params, statistics)``, which makes the next parameters of the sums over all blocks. EM,
online EM and k-means have this shape. Nothing in it says where a block lives or in which order
blocks come, so that one version runs over the blocks of a file, over threads, devices or machines.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

__all__ = ["Statistics", "fold_blocks", "merge_sums"]

FloatArray = NDArray[np.float64]
Sums = TypeVar("Sums", bound=NamedTuple)


class Statistics(Protocol):
    """An algorithm in bulk."""

    def statistics(self, params: Any, block: Any) -> Any:
        """Sufficient statistics of one block of rows, a pytree."""

    def merge(self, a: Any, b: Any) -> Any:
        """Statistics of two blocks together; associative and commutative up to rounding."""

    def update(self, params: Any, statistics: Any) -> Any:
        """New parameters from the statistics of all blocks."""


def merge_sums(a: Sums, b: Sums) -> Sums:
    """Add two named tuples of sums, field by field.

    Examples
    --------
    >>> class Moments(NamedTuple):
    ...     count: float
    ...     total: float
    >>> merge_sums(Moments(1, 2.0), Moments(3, 4.0))
    Moments(count=4, total=6.0)
    """
    return type(a)(*(x + y for x, y in zip(a, b, strict=True)))


def fold_blocks(algorithm: Statistics, params: Any, blocks: Iterable[Any]) -> Any:
    """Statistics of all blocks together, one block after the other.

    The plainest executor; others differ in where they run, not in what they compute.

    Examples
    --------
    >>> class Mean:
    ...     def statistics(self, params, block):
    ...         return (len(block), sum(block))
    ...     def merge(self, a, b):
    ...         return (a[0] + b[0], a[1] + b[1])
    ...     def update(self, params, statistics):
    ...         return statistics[1] / statistics[0]
    >>> mean = Mean()
    >>> mean.update(None, fold_blocks(mean, None, [[1, 2], [3]]))
    2.0
    """
    return reduce(algorithm.merge, (algorithm.statistics(params, block) for block in blocks))
