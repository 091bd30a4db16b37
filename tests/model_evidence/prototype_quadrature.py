"""One factor of the Prototype's evidence by quadrature, on the simplex itself.

Given the strength ``K``, the likelihood is a polynomial in the prototype: ``(K p)_n`` is a product
of ``n`` factors ``K p + i``. So Gauss-Jacobi rules, one for each broken stick of the prototype,
integrate it exactly with half as many nodes as there are rows. What is left is smooth in
``log K`` and falls off on both sides, where the trapezoidal rule converges geometrically. There
are no importance weights, no change of variables on the simplex and no Gamma function of counts.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp, roots_jacobi
from scipy.stats import gamma

FloatArray = NDArray[np.float64]


def _log_rising(start: FloatArray, count: int) -> FloatArray:
    total = np.zeros_like(start)
    for i in range(count):
        total += np.log(start + i)
    return total


def _prototype_rule(prior: FloatArray, order: int) -> tuple[FloatArray, FloatArray]:
    """Points ``(Q, V)`` of the simplex and log weights ``(Q,)`` of a Dirichlet prior."""
    if len(prior) == 1:
        return np.ones((1, 1)), np.zeros(1)
    first, rest = prior[0], prior[1:].sum()
    x, weight = roots_jacobi(order, rest - 1.0, first - 1.0)
    p, log_weight = (1.0 + x) / 2.0, np.log(weight / weight.sum())
    points, log_weights = _prototype_rule(prior[1:], order)
    joined = np.concatenate(
        [
            np.repeat(p[:, None, None], len(points), axis=1),
            (1.0 - p)[:, None, None] * points[None],
        ],
        axis=2,
    )
    return joined.reshape(-1, len(prior)), np.add.outer(log_weight, log_weights).ravel()


def log_factor_integral(
    counts: ArrayLike, prior: ArrayLike, shape: float, rate: float, step: float = 0.05
) -> float:
    """``log`` of the integral of one (label, feature) pair with counts ``(U, V)``."""
    n, beta = np.asarray(counts), np.asarray(prior, dtype=np.float64)
    points, log_weights = _prototype_rule(beta, order=int(n.sum()) // 2 + 1)
    strength_prior = gamma(shape, scale=1.0 / rate)
    # Both tails beyond hold less than 1e-16 of the prior; likelihoods are bounded by one.
    low, high = np.log(strength_prior.ppf(1e-18)), np.log(strength_prior.isf(1e-18))
    log_k = np.arange(low, high, step)
    by_strength = []
    for strength in np.exp(log_k):
        scatter = np.maximum(strength * points, 1e-300)
        terms = log_weights.copy()
        for row in n:
            terms -= _log_rising(np.array([strength]), int(row.sum()))
            for value, count in enumerate(row):
                if count:
                    terms += _log_rising(scatter[:, value], int(count))
        by_strength.append(logsumexp(terms))
    log_density = strength_prior.logpdf(np.exp(log_k)) + log_k + np.log(step)
    return float(logsumexp(np.array(by_strength) + log_density))
