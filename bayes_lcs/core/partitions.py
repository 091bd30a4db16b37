"""Partitions of a set of groups, and the Chinese restaurant process (CRP) over them.

A partition is an array with one integer label per group. The values of the labels are arbitrary.
The canonical form numbers the blocks in the order of their first member: ``[7, 7, 2]`` becomes
``[0, 0, 1]``.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayes_lcs.core.dirichlet import log_rising

__all__ = [
    "block_sizes",
    "blocks",
    "coclustering_matrix",
    "first_occurrence",
    "log_crp",
]

IntArray = NDArray[np.int64]


def first_occurrence(partition: ArrayLike) -> IntArray:
    """Renumber the blocks in the order of their first member; works on ``(..., U)`` arrays.

    Examples
    --------
    >>> first_occurrence([5, 5, 0, 9, 0]).tolist()
    [0, 0, 1, 2, 1]
    """
    z = np.asarray(partition)
    if z.ndim == 0:
        raise ValueError("a partition must be an array with one label per group, got a scalar")
    flat = z.reshape(-1, z.shape[-1])
    result = np.empty(flat.shape, dtype=np.int64)
    for row, labels in enumerate(flat):
        _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
        # The rank of a label's first position is its canonical number.
        result[row] = np.argsort(np.argsort(first, kind="stable"), kind="stable")[
            inverse.reshape(-1)
        ]
    return result.reshape(z.shape)


def block_sizes(partition: ArrayLike) -> IntArray:
    """Return the number of groups in each block, in canonical order."""
    return np.bincount(first_occurrence(partition)).astype(np.int64)


def blocks(partition: ArrayLike) -> list[list[int]]:
    """Return the members of each block, in canonical order.

    Examples
    --------
    >>> blocks([1, 0, 1])
    [[0, 2], [1]]
    """
    z = first_occurrence(partition)
    return [np.flatnonzero(z == k).tolist() for k in range(int(z.max()) + 1 if z.size else 0)]


def log_crp(partition: ArrayLike, concentration: float) -> float:
    """Return the log probability of a partition under the Chinese restaurant process.

    ``P(z) = a^K prod_k Gamma(size_k) Gamma(a) / Gamma(a + U)`` with ``a`` the concentration.
    For 21 users the thesis's bound for all singletons, (4.8)-(4.10), ends at ``Gamma(20 + a)``;
    the product that it abbreviates ends at ``Gamma(21 + a)``.

    Examples
    --------
    >>> round(log_crp(range(21), 1.0), 1)  # 21 singletons: 1 / 21!
    -45.4
    """
    sizes = block_sizes(partition)
    normaliser = float(log_rising(concentration, int(sizes.sum())))
    inside = float(log_rising(1.0, sizes - 1).sum())
    return len(sizes) * float(np.log(concentration)) + inside - normaliser


def coclustering_matrix(
    partitions: ArrayLike, counts: ArrayLike | None = None
) -> NDArray[np.float64]:
    """Return the share of draws in which each pair of groups is in the same cluster, ``(U, U)``.

    Parameters
    ----------
    partitions : (S, U)
        Draws of the partition.
    counts : (S,), optional
        Multiplicity of each draw; one by default.
    """
    z = np.atleast_2d(np.asarray(partitions))
    if counts is None:
        z, counts = np.unique(z, axis=0, return_counts=True)
    times = np.asarray(counts)
    together = np.zeros((z.shape[1], z.shape[1]))
    if z.size and z.min() >= 0:
        z = z.astype(np.min_scalar_type(z.max()))
    # Bytes are compared and added several times faster than floats; 255 sums fit into a byte.
    single = z[times == 1]
    for start in range(0, len(single), 255):
        block = np.zeros(together.shape, np.uint8)
        for draw in single[start : start + 255]:
            block += (draw[:, None] == draw).view(np.uint8)
        together += block
    for draw, number in zip(z[times != 1], times[times != 1], strict=True):
        together += number * (draw[:, None] == draw)
    return together / times.sum()
