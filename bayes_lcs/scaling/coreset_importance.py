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
    of the points which is nearest to all drawn so far, until few are left; ``B`` is all that was
    drawn, and what was left. Then ``s = 5 W / (|B| W_j) + d(x, B)^2 / c``: sparse cells, and far
    from their centres. A point belongs to the nearest of those that were drawn before it was taken
    away: the argument needs no more, and few distances are computed.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayes_lcs.clustering.kmeans_starts import nearest, squares_from

__all__ = ["METHODS", "Importance", "draw_places", "importance"]

FloatArray = NDArray[np.float64]

DRAWN_A_ROUND = 2
"""``"adaptive"`` draws this many times ``k`` points a round."""
PROPOSALS = 4096
"""Points drawn by a distance that is out of date, of which some become centres."""


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
    size = DRAWN_A_ROUND * k
    labels, squares = np.zeros(len(X), np.int64), np.full(len(X), np.inf)
    left, num_drawn = np.arange(len(X)), 0
    while len(left) > size:
        share = weights[left] / weights[left].sum()
        chosen = np.unique(rng.choice(len(left), size, p=share))
        rows = X[left]
        _join(labels, squares, left, rows, rows[chosen], num_drawn)
        num_drawn += len(chosen)
        half = (len(left) + 1) // 2
        left = left[np.argpartition(squares[left], half - 1)[half:]]
    # What was left belongs to B, too.
    labels[left], squares[left] = np.arange(len(left)) + num_drawn, 0.0
    num_drawn += len(left)
    total = float(weights.sum())
    held = np.bincount(labels, weights, minlength=num_drawn)
    scores = 5.0 * total / (num_drawn * held[labels])
    mean = float(weights @ squares) / total
    return Importance(scores + (squares / mean if mean > 0.0 else 0.0), None)


def _join(
    labels: NDArray[np.int64],
    squares: FloatArray,
    rows: NDArray[np.int64] | slice,
    X: NDArray[Any],
    centers: NDArray[Any],
    number: int,
) -> None:
    """Rows that are nearer to one of some further centres join it."""
    own, away = nearest(X, centers)
    closer = away < squares[rows]
    labels[rows] = np.where(closer, own + number, labels[rows])
    squares[rows] = np.where(closer, away, squares[rows])


def _drawn_by_distance(
    X: NDArray[Any], weights: FloatArray, k: int, rng: np.random.Generator
) -> tuple[NDArray[np.int64], FloatArray]:
    """Nearest of ``k`` points drawn as by k-means++, and the squared distances.

    The next point is drawn by its distance from all points so far. That takes no pass over the
    data: one drawn by its distance from the first few of them, which is known, is taken with the
    ratio of the two, and such draws are judged many at a time. Where most are refused, the
    distances are brought up to date. The points drawn have exactly the distribution of k-means++.
    """
    labels, squares = np.zeros(len(X), np.int64), np.full(len(X), np.inf)
    bounds = np.cumsum(weights)
    centers = X[[draw_places(bounds, 1, rng)[0]]]
    num_known = 0
    while True:
        _join(labels, squares, slice(None), X, centers[num_known:], num_known)
        num_known = len(centers)
        bounds = np.cumsum(weights * squares)
        if num_known == k or bounds[-1] <= 0.0:
            return labels, squares
        drawn = draw_places(bounds, PROPOSALS, rng)
        now, limits = squares[drawn], rng.random(PROPOSALS) * squares[drawn]
        first = 0
        while len(centers) < k:
            taken = np.flatnonzero(limits[first:] < now[first:])
            if not len(taken):
                break
            chosen = X[drawn[first + taken[0]]]
            centers = np.vstack([centers, chosen])
            now = np.minimum(now, squares_from(X[drawn], chosen))
            first += int(taken[0]) + 1


def draw_places(bounds: FloatArray, number: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Rows drawn in proportion to the steps of a sum that goes up to ``bounds``."""
    places = np.searchsorted(bounds, rng.random(number) * bounds[-1], side="right")
    return np.minimum(places, len(bounds) - 1)


METHODS = {
    "uniform": _uniform,
    "lightweight": _lightweight,
    "sensitivity": _sensitivity,
    "adaptive": _adaptive,
}
