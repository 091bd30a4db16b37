"""The best k-means clustering of a few weighted points, by looking at all of them.

The cost of a set of points as one cluster is ``sum w |x|^2 - |sum w x|^2 / sum w``; the least cost
of ``k`` clusters of a set is the least, over its subsets, of the subset as one cluster and the rest
as ``k - 1``. Subsets are numbered by their bits, so that the work is of the order of ``3 **
points``.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["MOST_POINTS", "exhaustive_kmeans"]

MOST_POINTS = 14


def exhaustive_kmeans(
    points: ArrayLike, weights: ArrayLike, num_clusters: int
) -> tuple[NDArray[np.float64], float]:
    """Centres of the cheapest clustering of all, and its cost.

    Examples
    --------
    >>> centers, cost = exhaustive_kmeans([[0.0], [1.0], [9.0]], [1.0, 3.0, 1.0], 2)
    >>> sorted(centers.ravel().tolist()), cost
    ([0.75, 9.0], 0.75)
    """
    X, w = np.asarray(points, np.float64), np.asarray(weights, np.float64)
    size = len(X)
    if size > MOST_POINTS:
        raise ValueError(
            f"{size} points have too many clusterings to look at all; at most {MOST_POINTS}"
        )
    if not 1 <= num_clusters <= size:
        raise ValueError(f"{size} points cannot be put into {num_clusters} clusters")
    cost = _costs(X, w)
    best, choice = cost, []
    for _ in range(num_clusters - 1):
        best, chosen = _one_more(cost, best)
        choice.append(chosen)
    mask, clusters = (1 << size) - 1, []
    for chosen in reversed(choice):
        clusters.append(int(chosen[mask]))
        mask ^= clusters[-1]
    clusters.append(mask)
    members = [np.flatnonzero((c >> np.arange(size)) & 1) for c in clusters]
    centers = [np.average(X[m], axis=0, weights=w[m]) for m in members if len(m)]
    # Fewer clusters may cost nothing more where points are equal: give the rest any of them.
    centers += [X[0]] * (num_clusters - len(centers))
    return np.array(centers), float(best[-1])


def _costs(X: NDArray[np.float64], w: NDArray[np.float64]) -> NDArray[np.float64]:
    """Cost of every subset as one cluster."""
    held = (np.arange(1 << len(X))[:, None] >> np.arange(len(X))) & 1
    centred = X - np.average(X, axis=0, weights=w)
    weight = held @ w
    total = held @ (w[:, None] * centred)
    squares = held @ (w * (centred**2).sum(axis=1))
    mean = (total**2).sum(axis=1) / np.where(weight > 0.0, weight, 1.0)
    return np.maximum(squares - mean, 0.0)


def _one_more(
    cost: NDArray[np.float64], best: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Least cost of each set with one cluster more, and that cluster."""
    found, chosen = best.copy(), np.zeros(len(cost), np.int64)
    for mask in range(1, len(cost)):
        parts = _subsets(mask)
        values = cost[parts] + best[mask ^ parts]
        place = int(values.argmin())
        if values[place] < found[mask]:
            found[mask], chosen[mask] = values[place], parts[place]
    return found, chosen


def _subsets(mask: int) -> NDArray[np.int64]:
    """Subsets of a set that hold its lowest member."""
    lowest = mask & -mask
    rest = mask ^ lowest
    parts = np.zeros(1, np.int64)
    while rest:
        bit = rest & -rest
        parts = np.concatenate([parts, parts | bit])
        rest ^= bit
    return parts | lowest
