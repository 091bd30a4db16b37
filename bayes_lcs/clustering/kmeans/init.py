"""Where k-means begins: centres drawn from weighted points.

``"farthest"``
    The lecture's: a point at random, then again and again the point farthest from all so far.
``"k-means++"``
    A point at random, then points with probability in proportion to their squared distance from
    those so far (Arthur and Vassilvitskii 2007); scikit-learn's.
``"k-means||"``
    A few rounds that each draw many points at once in that proportion, each point for itself; the
    candidates, weighted by the points nearest to them, are then reduced by k-means++ (Bahmani et
    al. 2012). Few passes over the points, however many centres.
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

__all__ = ["STARTS", "draw_centers", "nearest", "squares_from", "thread_pools"]

FloatArray = NDArray[Any]

ROUNDS = 5
OVERSAMPLING = 2.0
"""k-means|| draws about this many times ``k`` points a round."""
BLOCK_ROWS = 1024
"""Rows whose distances are computed at once: they stay in the processor's cache."""
THREAD_ROWS = 64 * BLOCK_ROWS
"""Rows that one thread takes at once."""
LARGE_PRODUCT = 1 << 18
"""Multiplications from which BLAS uses threads, which cost more than they gain here."""


def nearest(X: FloatArray, centers: FloatArray) -> tuple[NDArray[np.int64], FloatArray]:
    """The centre nearest to each point, and its squared distance.

    Examples
    --------
    >>> labels, squares = nearest(np.array([[0.0], [7.0]]), np.array([[1.0], [5.0]]))
    >>> labels.tolist(), squares.tolist()
    ([0, 1], [1.0, 4.0])
    """
    # Products of numbers far from zero lose digits: with an offset of 1e8, all of a unit distance.
    # So products of centred rows find the nearest centre, and differences give its distance. The
    # median is not moved by a few centres far from the others, and is one of the centres.
    centers = np.asarray(centers, np.float64)
    shift = np.sort(centers, axis=0)[(len(centers) - 1) // 2]
    centers = centers - shift
    products, norms = np.ascontiguousarray(-2.0 * centers.T), (centers**2).sum(axis=1)
    # Distances between centres that differ by more than 1e5 are beyond the digits of products.
    is_exact = norms.max() > 1e10 * norms.min(initial=np.inf, where=norms > 0.0)
    labels, squares = np.empty(len(X), np.int64), np.empty(len(X))
    is_large = BLOCK_ROWS * centers.size >= LARGE_PRODUCT

    def look(first: int) -> None:
        for start in range(first, min(first + THREAD_ROWS, len(X)), BLOCK_ROWS):
            block = slice(start, start + BLOCK_ROWS)
            away = X[block] - shift
            if is_exact:
                scores = np.stack([squares_from(away, own) for own in centers], axis=1)
            else:
                scores = away @ products + norms
            labels[block] = scores.argmin(axis=1)
            away -= centers[labels[block]]
            np.einsum("nd,nd->n", away, away, out=squares[block])

    with thread_pools().limit(limits=1, user_api="blas") if is_large else nullcontext():
        parts = range(0, len(X), THREAD_ROWS)
        if len(parts) < 2 or num_cores() < 2:
            for first in parts:
                look(first)
        else:
            with ThreadPoolExecutor(num_cores()) as pool:
                list(pool.map(look, parts))
    return labels, squares


@cache
def thread_pools() -> ThreadpoolController:
    """Find the thread pools of this process, once: it takes milliseconds."""
    return ThreadpoolController()


def squares_from(X: FloatArray, center: FloatArray) -> FloatArray:
    """Squared distances of points from one, in float64."""
    away = X - center
    return np.einsum("nd,nd->n", away, away, dtype=np.float64)


def draw_centers(
    X: FloatArray, num_clusters: int, method: str, rng: np.random.RandomState, weights: FloatArray
) -> FloatArray:
    """Centres to begin with, ``(k, d)``; points of weight 0 are never drawn."""
    return STARTS[method](X, num_clusters, rng, weights)


def _farthest(
    X: FloatArray, num_clusters: int, rng: np.random.RandomState, weights: FloatArray
) -> FloatArray:
    chosen = [int(rng.choice(len(X), p=weights / weights.sum()))]
    distance = np.where(weights > 0, np.inf, -1.0)
    while len(chosen) < num_clusters:
        distance = np.minimum(distance, squares_from(X, X[chosen[-1]]))
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
    labels, distance = np.zeros(len(X), np.int64), squares_from(X, candidates[0])
    for _ in range(ROUNDS):
        mass = weights * distance
        total = mass.sum()
        if total <= 0.0:
            break
        drawn = rng.random_sample(len(X)) < OVERSAMPLING * num_clusters * mass / total
        if not drawn.any():
            continue
        own, squares = nearest(X, X[drawn])
        closer = squares < distance
        labels = np.where(closer, own + len(candidates), labels)
        distance = np.minimum(distance, squares)
        candidates = np.vstack([candidates, X[drawn]])
    if len(candidates) < num_clusters:
        # So few different points, or so bad luck, that there is nothing to choose from.
        return _plus_plus(X, num_clusters, rng, weights)
    held = np.bincount(labels, weights, minlength=len(candidates))
    return _plus_plus(candidates, num_clusters, rng, held.astype(X.dtype))


STARTS = {"farthest": _farthest, "k-means++": _plus_plus, "k-means||": _parallel}
