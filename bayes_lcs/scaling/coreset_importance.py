"""How important each point is to a coreset: four ways to say it.

A coreset draws points with probability ``q_i`` in proportion to ``w_i s_i`` and weighs them by
``w_i / (m q_i)``, whatever ``s`` is; the cost of any centres is then unbiased. ``s_i`` should be an
upper bound of the largest share that the point can have in the mean cost of any ``k`` centres:
its sensitivity. The bound's weighted mean ``S`` says how many points are needed.

``"uniform"``
    ``s = 1``. Far points that are few are easily missed.
``"lightweight"``
    ``s = 1/2 + d(x, mean)^2 / (2 mean d^2)`` (Bachem, Lucic and Krause 2018). Two passes.
``"sensitivity"``
    From ``k`` points drawn by squared distance (Bachem, Lucic and Krause 2017, Algorithm 2): ``B``,
    with cells ``B_j`` of weight ``W_j`` and mean squared distance ``c_j``, ``c`` that of all
    points::

        s = 2 a d(x, B)^2 / c + 4 a c_j / c + 4 W / W_j,        a = 16 (ln k + 2)

``"adaptive"``
    The lecture's, after Feldman, Faulkner and Krause (2011): draw a few points, take away that half
    of the points which is nearest to them, until few are left; ``B`` is all that was drawn, and
    what was left. Then ``s = 5 W / (|B| W_j) + d(x, B)^2 / c``: sparse cells, and far from their
    centres.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayes_lcs.clustering.kmeans_starts import nearest, squares_from

__all__ = ["METHODS", "Importance", "importance"]

FloatArray = NDArray[np.float64]

DRAWN_A_ROUND = 2
"""``"adaptive"`` draws this many times ``k`` points a round."""


class Importance(NamedTuple):
    """``s`` of each point up to a factor, and its weighted mean where it bounds sensitivities."""

    scores: FloatArray
    total_sensitivity: float | None


def importance(
    method: str, X: NDArray[Any], weights: FloatArray, k: int, rng: np.random.Generator
) -> Importance:
    """Importance of points ``(N, d)`` of positive weights for the costs of ``k`` centres."""
    return METHODS[method](X, weights, k, rng)


def _uniform(X: NDArray[Any], weights: FloatArray, k: int, rng: np.random.Generator) -> Importance:
    del weights, k, rng
    return Importance(np.ones(len(X)), None)


def _lightweight(
    X: NDArray[Any], weights: FloatArray, k: int, rng: np.random.Generator
) -> Importance:
    del k, rng
    squares = squares_from(X, (weights @ X) / weights.sum())
    mean = float(weights @ squares) / float(weights.sum())
    shares = squares / mean if mean > 0.0 else np.ones(len(X))
    return Importance(0.5 + 0.5 * shares, None)


def _sensitivity(
    X: NDArray[Any], weights: FloatArray, k: int, rng: np.random.Generator
) -> Importance:
    labels, squares = _drawn_by_distance(X, weights, k, rng)
    total = float(weights.sum())
    held = np.bincount(labels, weights, minlength=k)
    spread = np.bincount(labels, weights * squares, minlength=k)
    factor = 16.0 * (np.log(k) + 2.0)
    mean = float(weights @ squares) / total
    # A cell is as heavy as the point that it was drawn with, at least.
    cells = 4.0 * total / held[labels]
    if mean > 0.0:
        cells = cells + factor * (2.0 * squares + 4.0 * (spread / held)[labels]) / mean
    return Importance(cells, float(weights @ cells) / total)


def _adaptive(X: NDArray[Any], weights: FloatArray, k: int, rng: np.random.Generator) -> Importance:
    drawn: list[NDArray[np.int64]] = []
    left = np.arange(len(X))
    size = DRAWN_A_ROUND * k
    while len(left) > size:
        share = weights[left] / weights[left].sum()
        chosen = left[rng.choice(len(left), size, p=share)]
        drawn.append(chosen)
        squares = nearest(X[left], X[chosen])[1]
        left = left[np.argsort(squares, kind="stable")[(len(left) + 1) // 2 :]]
    centers = np.unique(np.concatenate([*drawn, left]))
    labels, squares = nearest(X, X[centers])
    total = float(weights.sum())
    held = np.bincount(labels, weights, minlength=len(centers))
    scores = 5.0 * total / (len(centers) * held[labels])
    mean = float(weights @ squares) / total
    return Importance(scores + (squares / mean if mean > 0.0 else 0.0), None)


def _drawn_by_distance(
    X: NDArray[Any], weights: FloatArray, k: int, rng: np.random.Generator
) -> tuple[NDArray[np.int64], FloatArray]:
    """Nearest of ``k`` points drawn as by k-means++, and the squared distances."""
    labels = np.zeros(len(X), np.int64)
    squares = np.full(len(X), np.inf)
    mass = weights
    for j in range(k):
        bounds = np.cumsum(mass)
        if bounds[-1] <= 0.0:
            break
        chosen = int(np.searchsorted(bounds, rng.random() * bounds[-1], side="right"))
        own = squares_from(X, X[min(chosen, len(X) - 1)])
        closer = own < squares
        labels[closer] = j
        np.minimum(squares, own, out=squares)
        mass = weights * squares
    return labels, squares


METHODS = {
    "uniform": _uniform,
    "lightweight": _lightweight,
    "sensitivity": _sensitivity,
    "adaptive": _adaptive,
}
