"""Exact k-means of a few weighted points, by dynamic programming over subsets.

The cost of a set of points as one cluster is ``sum w |x|^2 - |sum w x|^2 / sum w``. The minimal
cost of ``k`` clusters of a set is the minimum, over its subsets, of the cost of the subset as one
cluster plus the minimal cost of the rest as ``k - 1`` clusters. Subsets are bit masks; the work is
of order ``3 ** points``.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["MAX_POINTS", "exhaustive_kmeans"]

MAX_POINTS = 14


def exhaustive_kmeans(
    points: ArrayLike, weights: ArrayLike, num_clusters: int
) -> tuple[NDArray[np.float64], float]:
    """Return the centres of the cheapest of all clusterings, and its cost.

    Examples
    --------
    >>> centers, cost = exhaustive_kmeans([[0.0], [1.0], [9.0]], [1.0, 3.0, 1.0], 2)
    >>> sorted(centers.ravel().tolist()), cost
    ([0.75, 9.0], 0.75)
    """
    X, w = np.asarray(points, np.float64), np.asarray(weights, np.float64)
    size = len(X)
    if size > MAX_POINTS:
        raise ValueError(
            f"an exhaustive search takes at most {MAX_POINTS} points, got {size}; use k-means with "
            "several starts"
        )
    if not 1 <= num_clusters <= size:
        raise ValueError(f"num_clusters must be between 1 and {size}, got {num_clusters}")
    cost = _subset_costs(X, w)
    best, choice = cost, []
    for _ in range(num_clusters - 1):
        best, chosen = _add_cluster(cost, best)
        choice.append(chosen)
    mask, clusters = (1 << size) - 1, []
    for chosen in reversed(choice):
        clusters.append(int(chosen[mask]))
        mask ^= clusters[-1]
    clusters.append(mask)
    members = [np.flatnonzero((c >> np.arange(size)) & 1) for c in clusters]
    centers = [np.average(X[m], axis=0, weights=w[m]) for m in members if len(m)]
    # With equal points fewer clusters may be as cheap: any point serves as a superfluous centre.
    centers += [X[0]] * (num_clusters - len(centers))
    return np.array(centers), float(best[-1])


def _subset_costs(X: NDArray[np.float64], w: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the cost of every subset as one cluster."""
    is_member = (np.arange(1 << len(X))[:, None] >> np.arange(len(X))) & 1
    # Centred points keep the difference of the two sums accurate.
    centred = X - np.average(X, axis=0, weights=w)
    weight = is_member @ w
    total = is_member @ (w[:, None] * centred)
    squares = is_member @ (w * (centred**2).sum(axis=1))
    mean = (total**2).sum(axis=1) / np.where(weight > 0.0, weight, 1.0)
    return np.maximum(squares - mean, 0.0)


def _add_cluster(
    cost: NDArray[np.float64], best: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return the minimal cost of each set with one more cluster, and that cluster."""
    lowest, chosen = best.copy(), np.zeros(len(cost), np.int64)
    for mask in range(1, len(cost)):
        subsets = _subsets_with_lowest(mask)
        values = cost[subsets] + best[mask ^ subsets]
        i = int(values.argmin())
        if values[i] < lowest[mask]:
            lowest[mask], chosen[mask] = values[i], subsets[i]
    return lowest, chosen


def _subsets_with_lowest(mask: int) -> NDArray[np.int64]:
    """Return the subsets of a set that contain its lowest member.

    Some cluster contains it, so that the other subsets need not be tried.
    """
    lowest = mask & -mask
    rest = mask ^ lowest
    subsets = np.zeros(1, np.int64)
    while rest:
        bit = rest & -rest
        subsets = np.concatenate([subsets, subsets | bit])
        rest ^= bit
    return subsets | lowest
