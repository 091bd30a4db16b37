"""Importance of points for a coreset, by three methods.

A coreset draws points with probability ``q_i`` in proportion to ``w_i s_i`` and weights them by
``w_i / (m q_i)``. The cost of any centres is then unbiased, whatever ``s`` is; the variance depends
on ``s``.

``"uniform"``
    ``s = 1``. Small far groups are easily missed.
``"lightweight"``
    ``s = 1/2 + d(x, mean)^2 / (2 mean d^2)`` (Bachem, Lucic and Krause 2018). Two passes.
``"sensitivity"``
    Per-cluster sensitivities of a rough solution (Draganov, Saulpic and Schwiegelshohn 2024): ``k``
    points drawn by squared distance, then up to two points farthest from them whose clusters carry
    a noticeable share of the cost, with clusters ``j`` of weight ``W_j`` and cost ``C_j``::

        s = d(x, b_j)^2 / C_j + 1 / W_j

    Every cluster has the same share of the draws, however small it is: half of them by squared
    distance from its centre, half by weight.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayes_lcs.clustering.kmeans.init import nearest, squared_distances

__all__ = ["METHODS", "Importance", "check_method", "draw_rows", "importance", "reduce_points"]

FloatArray = NDArray[np.float64]

PROPOSALS = 4096
"""Points drawn by a distance that is out of date, of which some become centres."""
MAX_FAR = 2
"""Points farthest from all centres that may become centres too, to find small far groups."""
FAR_SHARE = 1 / 8
"""They must lower the cost by this fraction of the average cost of a cluster."""
RINGS = 8
"""Groups of a cluster by distance, each twice the squared distance of the one before."""


class Importance(NamedTuple):
    """Scores of points; of sensitivities also strata, and the cost of the rough solution.

    Rows are drawn in the order of their strata, one in each stretch of equal importance.
    """

    scores: FloatArray
    strata: NDArray[np.int64] | None = None
    cost: float | None = None


def check_method(method: str) -> None:
    """Refuse a method that does not exist."""
    if method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(METHODS)}, got {method!r}")


def importance(
    method: str, X: NDArray[Any], weights: FloatArray, k: int, rng: np.random.Generator
) -> Importance:
    """Score points ``(N, d)`` of positive weights for the costs of ``k`` centres.

    Examples
    --------
    >>> X = np.append(np.arange(100.0), 900.0)[:, None]
    >>> found = importance("sensitivity", X, np.ones(101), 2, np.random.default_rng(0))
    >>> int(found.scores.argmax()), float(found.scores.max())
    (100, 1.0)
    """
    check_method(method)
    return METHODS[method](X, weights, k, rng)


def draw_rows(
    found: Importance, weights: FloatArray, size: int, rng: np.random.Generator
) -> tuple[NDArray[np.int64], FloatArray]:
    """Draw rows by weight times score, with weights that make sums unbiased.

    One row is drawn in each of ``size`` stretches of equal importance. Draws are independent, and
    the variance is at most that of draws from all rows. A group of neighbours in the order of
    ``strata`` that expects two draws or more is never missed.
    """
    if size >= len(weights):
        return np.arange(len(weights)), weights.copy()
    order = None if found.strata is None else np.argsort(found.strata, kind="stable")
    mass = weights * found.scores
    bounds = np.cumsum(mass if order is None else mass[order])
    places = _locate(bounds, (np.arange(size) + rng.random(size)) / size)
    places, times = np.unique(places, return_counts=True)
    chosen = places if order is None else order[places]
    drawn = times * bounds[-1] / (size * found.scores[chosen])
    if order is None:
        return chosen, drawn
    by_row = np.argsort(chosen)
    return chosen[by_row], drawn[by_row]


def reduce_points(
    method: str, X: NDArray[Any], weights: FloatArray, k: int, size: int, rng: np.random.Generator
) -> tuple[NDArray[Any], FloatArray, Importance | None]:
    """Reduce points of positive weights to ``size`` of them, and return their importance too.

    So few points that all are kept have no importance.
    """
    if size >= len(weights):
        return X, weights, None
    found = importance(method, X, weights, min(k, len(weights)), rng)
    chosen, drawn = draw_rows(found, weights, size, rng)
    return X[chosen], drawn, found


def _score_uniform(
    X: NDArray[Any], weights: FloatArray, k: int, rng: np.random.Generator
) -> Importance:
    del weights, k, rng
    return Importance(np.ones(len(X)))


def _score_lightweight(
    X: NDArray[Any], weights: FloatArray, k: int, rng: np.random.Generator
) -> Importance:
    del k, rng
    squares = squared_distances(X, (weights @ X) / weights.sum())
    mean = float(weights @ squares) / float(weights.sum())
    shares = squares / mean if mean > 0.0 else np.ones(len(X))
    return Importance(0.5 + 0.5 * shares)


def _score_sensitivity(
    X: NDArray[Any], weights: FloatArray, k: int, rng: np.random.Generator
) -> Importance:
    labels, squares = _draw_by_distance(X, weights, k, rng)
    k += _add_far_centers(labels, squares, X, weights, k)
    held = np.bincount(labels, weights, minlength=k)
    costs = np.bincount(labels, weights * squares, minlength=k)
    by_weight = 1.0 / np.where(held > 0.0, held, 1.0)
    by_cost = 1.0 / np.where(costs > 0.0, costs, 1.0)
    scores = squares * by_cost[labels] + by_weight[labels]
    # The binary exponent of a squared distance over the mean of its cluster.
    _, exponents = np.frexp(squares * (held * by_cost)[labels])
    rings = np.clip(exponents + 1, 0, RINGS - 1)
    strata = labels * RINGS + rings
    # Sorting small integers takes a tenth of the time.
    strata = strata.astype(np.uint16) if RINGS * k <= np.iinfo(np.uint16).max else strata
    return Importance(scores, strata, float(costs.sum()))


def _add_far_centers(
    labels: NDArray[np.int64], squares: FloatArray, X: NDArray[Any], weights: FloatArray, k: int
) -> int:
    """Open clusters at the farthest rows while that lowers the cost noticeably; return how many.

    A far group of few rows may carry too little of the cost to be drawn as a centre, and too much
    to be left out.
    """
    cost = float(weights @ squares)
    for number in range(MAX_FAR):
        away = squared_distances(X, X[np.argmax(squares)])
        closer = np.flatnonzero(away < squares)
        gain = float(weights[closer] @ (squares[closer] - away[closer]))
        if gain <= FAR_SHARE * cost / k:
            return number
        labels[closer], squares[closer] = k + number, away[closer]
        cost -= gain
    return MAX_FAR


def _join(
    labels: NDArray[np.int64],
    squares: FloatArray,
    X: NDArray[Any],
    centers: NDArray[Any],
    number: int,
) -> None:
    """Assign rows that are nearer to one of some further centres to it."""
    own, away = nearest(X, centers)
    closer = away < squares
    np.copyto(labels, own + number, where=closer)
    np.copyto(squares, away, where=closer)


def _draw_by_distance(
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
    centers = X[_locate(bounds, rng.random(1))]
    num_known = 0
    while True:
        _join(labels, squares, X, centers[num_known:], num_known)
        num_known = len(centers)
        bounds = np.cumsum(weights * squares)
        if num_known == k or bounds[-1] <= 0.0:
            return labels, squares
        drawn = _locate(bounds, rng.random(PROPOSALS))
        now, limits = squares[drawn], rng.random(PROPOSALS) * squares[drawn]
        first = 0
        while len(centers) < k:
            taken = np.flatnonzero(limits[first:] < now[first:])
            if not len(taken):
                break
            chosen = X[drawn[first + taken[0]]]
            centers = np.vstack([centers, chosen])
            now = np.minimum(now, squared_distances(X[drawn], chosen))
            first += int(taken[0]) + 1


def _locate(bounds: FloatArray, shares: FloatArray) -> NDArray[np.int64]:
    """Rows at some shares of a cumulative sum."""
    places = np.searchsorted(bounds, shares * bounds[-1], side="right")
    return np.minimum(places, len(bounds) - 1)


METHODS = {
    "sensitivity": _score_sensitivity,
    "lightweight": _score_lightweight,
    "uniform": _score_uniform,
}
