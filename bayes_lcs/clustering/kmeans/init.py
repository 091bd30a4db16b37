"""Initial centres of k-means, drawn from weighted points.

``"farthest"``
    A random point, then repeatedly the point farthest from all centres so far.
``"k-means++"``
    A random point, then points with probability proportional to their squared distance from the
    centres so far (Arthur and Vassilvitskii 2007); scikit-learn's implementation.
``"k-means||"``
    A few rounds, each of which draws many points independently with probabilities in that
    proportion. The candidates, weighted by the points nearest to them, are reduced by k-means++
    (Bahmani et al. 2012). The number of passes does not depend on the number of centres.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import kmeans_plusplus
from threadpoolctl import ThreadpoolController

from bayes_lcs.runtime.memory import num_cores

__all__ = ["STARTS", "draw_centers", "nearest", "squared_distances", "thread_pools"]

FloatArray = NDArray[Any]

ROUNDS = 5
OVERSAMPLING = 2.0
"""k-means|| draws about this many times ``k`` points in each round."""
BLOCK_ROWS = 1024
"""Rows whose distances are computed together, so that they stay in the processor's cache."""
THREAD_ROWS = 64 * BLOCK_ROWS
"""Rows of one task of a thread."""
LARGE_PRODUCT = 1 << 18
"""Number of multiplications from which BLAS uses threads, which cost more than they gain here."""


def nearest(X: FloatArray, centers: FloatArray) -> tuple[NDArray[np.int64], FloatArray]:
    """Return the centre nearest to each point, and its squared distance.

    Examples
    --------
    >>> labels, squares = nearest(np.array([[0.0], [7.0]]), np.array([[1.0], [5.0]]))
    >>> labels.tolist(), squares.tolist()
    ([0, 1], [1.0, 4.0])
    """
    # |c|^2 - 2 x.c loses digits far from the origin: with an offset of 1e8, all of a unit distance.
    # So products of centred rows find the nearest centre, and differences give its distance. The
    # (lower) median is robust against a few far centres, and each coordinate is one of a centre's.
    centers = np.asarray(centers, np.float64)
    shift = np.sort(centers, axis=0)[(len(centers) - 1) // 2]
    centers = centers - shift
    products, norms = np.ascontiguousarray(-2.0 * centers.T), (centers**2).sum(axis=1)
    # If distances of centres from the median differ by a factor above 1e5, products are too
    # inaccurate: compute all distances from differences.
    is_exact = norms.max() > 1e10 * norms.min(initial=np.inf, where=norms > 0.0)
    labels, squares = np.empty(len(X), np.int64), np.empty(len(X))
    is_large = BLOCK_ROWS * centers.size >= LARGE_PRODUCT

    def assign(first: int) -> None:
        for start in range(first, min(first + THREAD_ROWS, len(X)), BLOCK_ROWS):
            block = slice(start, start + BLOCK_ROWS)
            away = X[block] - shift
            if is_exact:
                scores = np.stack([squared_distances(away, own) for own in centers], axis=1)
            else:
                scores = away @ products + norms
            labels[block] = scores.argmin(axis=1)
            away -= centers[labels[block]]
            np.einsum("nd,nd->n", away, away, out=squares[block])

    with thread_pools().limit(limits=1, user_api="blas") if is_large else nullcontext():
        parts = range(0, len(X), THREAD_ROWS)
        if len(parts) < 2 or num_cores() < 2:
            for first in parts:
                assign(first)
        else:
            with ThreadPoolExecutor(num_cores()) as pool:
                list(pool.map(assign, parts))
    return labels, squares


@cache
def thread_pools() -> ThreadpoolController:
    """Find the thread pools of this process; cached, because it takes milliseconds."""
    return ThreadpoolController()


def squared_distances(X: FloatArray, center: FloatArray) -> FloatArray:
    """Return squared distances of points from one centre, in float64."""
    away = X - center
    return np.einsum("nd,nd->n", away, away, dtype=np.float64)


def draw_centers(
    X: FloatArray, num_clusters: int, method: str, rng: np.random.RandomState, weights: FloatArray
) -> FloatArray:
    """Draw initial centres ``(k, d)``; points of weight 0 are never drawn."""
    return STARTS[method](X, num_clusters, rng, weights)


def _farthest(
    X: FloatArray, num_clusters: int, rng: np.random.RandomState, weights: FloatArray
) -> FloatArray:
    chosen = [int(rng.choice(len(X), p=weights / weights.sum()))]
    distance = np.where(weights > 0, np.inf, -1.0)
    while len(chosen) < num_clusters:
        distance = np.minimum(distance, squared_distances(X, X[chosen[-1]]))
        chosen.append(int(distance.argmax()))
    return X[chosen]


def _plus_plus(
    X: FloatArray, num_clusters: int, rng: np.random.RandomState, weights: FloatArray
) -> FloatArray:
    centred = X - X.mean(axis=0, dtype=np.float64).astype(X.dtype)
    _, chosen = kmeans_plusplus(centred, num_clusters, sample_weight=weights, random_state=rng)
    return X[chosen]


def _parallel(
    X: FloatArray, num_clusters: int, rng: np.random.RandomState, weights: FloatArray
) -> FloatArray:
    candidates = X[[int(rng.choice(len(X), p=weights / weights.sum()))]]
    labels, distance = np.zeros(len(X), np.int64), squared_distances(X, candidates[0])
    for _ in range(ROUNDS):
        mass = weights * distance
        total = mass.sum()
        if total <= 0.0:
            break
        # Independent draws: about OVERSAMPLING * num_clusters points are expected in each round.
        drawn = rng.random_sample(len(X)) < OVERSAMPLING * num_clusters * mass / total
        if not drawn.any():
            continue
        own, squares = nearest(X, X[drawn])
        closer = squares < distance
        labels = np.where(closer, own + len(candidates), labels)
        distance = np.minimum(distance, squares)
        candidates = np.vstack([candidates, X[drawn]])
    if len(candidates) < num_clusters:
        # Too few candidates, for want of distinct points or by chance.
        return _plus_plus(X, num_clusters, rng, weights)
    mass = np.bincount(labels, weights, minlength=len(candidates))
    return _plus_plus(candidates, num_clusters, rng, mass.astype(X.dtype))


STARTS = {"farthest": _farthest, "k-means++": _plus_plus, "k-means||": _parallel}
