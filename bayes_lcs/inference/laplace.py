"""Estimate integrals of smooth densities in a few dimensions by importance sampling at the mode.

The estimator is the mean of ``exp(log_density) / q`` over independent draws from

    q = (1 - d) * Student-t(mode, inverse curvature) + d * wide,

where ``wide`` is given by the caller, for example the prior. It is unbiased for the integral for
any result of the mode search, and the second component bounds the weights, so that a second mode or
a heavy tail is not missed (Hesterberg 1995, defensive mixtures). Its standard error is that of the
mean weight.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import logsumexp
from scipy.stats import multivariate_t

__all__ = ["LogIntegral", "WideProposal", "log_integral"]

FloatArray = NDArray[np.float64]
LogDensity = Callable[[FloatArray], FloatArray]

WIDE_SHARE = 0.2
DEGREES_OF_FREEDOM = 5


class WideProposal(NamedTuple):
    """Proposal that covers the support of the density, with its draws and its log density."""

    draw: Callable[[int, np.random.Generator], FloatArray]
    log_density: LogDensity


class LogIntegral(NamedTuple):
    """Log of an estimated integral.

    Attributes
    ----------
    value
        Log of the mean weight.
    standard_error
        Standard error of ``value``, by the delta method.
    effective_draws
        ``(sum w)^2 / sum w^2``.
    """

    value: float
    standard_error: float
    effective_draws: float


def _curvature(log_density: LogDensity, mode: FloatArray, step: float = 1e-3) -> FloatArray:
    """Return minus the Hessian at the mode, by central differences, made positive definite."""
    dims = len(mode)
    moves = step * np.eye(dims)
    hessian = np.empty((dims, dims))
    for i in range(dims):
        for j in range(i + 1):
            corners = np.stack(
                [mode + s * moves[i] + t * moves[j] for s in (1, -1) for t in (1, -1)]
            )
            values = log_density(corners)
            hessian[i, j] = hessian[j, i] = (values[0] - values[1] - values[2] + values[3]) / (
                4 * step**2
            )
    eigenvalues, vectors = np.linalg.eigh(-hessian)
    # Bound eigenvalues of flat or saddle directions, so that the proposal has a finite width.
    result: FloatArray = (vectors * np.maximum(eigenvalues, 0.05)) @ vectors.T
    return result


def log_integral(
    log_density: LogDensity,
    start: FloatArray,
    wide: WideProposal,
    num_draws: int,
    rng: np.random.Generator,
) -> LogIntegral:
    """Estimate ``log`` of the integral of ``exp(log_density)`` over the whole space.

    Parameters
    ----------
    log_density
        Vectorised over rows: ``(n, d)`` to ``(n,)``.
    start : (d,)
        Initial point of the search for the mode.
    wide
        Second component of the proposal.

    Examples
    --------
    The integral of ``exp(-x^2 / 2)`` is ``sqrt(2 pi)``:

    >>> from scipy.stats import norm
    >>> proposal = WideProposal(lambda n, rng: rng.normal(0, 3, (n, 1)),
    ...              lambda x: norm(0, 3).logpdf(x[:, 0]))
    >>> result = log_integral(lambda x: -x[:, 0]**2 / 2, np.ones(1), proposal, 4000,
    ...                       np.random.default_rng(0))
    >>> bool(abs(result.value - np.log(2 * np.pi) / 2) < 4 * result.standard_error)
    True
    """

    def minus_log(point: FloatArray) -> float:
        return -float(log_density(point[None])[0])

    found: Any = minimize(minus_log, start, method="BFGS")
    mode = np.asarray(found.x, dtype=np.float64)
    shape = np.linalg.inv(_curvature(log_density, mode))
    peak = multivariate_t(mode, shape, df=DEGREES_OF_FREEDOM, seed=rng)
    num_wide = int(rng.binomial(num_draws, WIDE_SHARE))
    draws = np.concatenate(
        [
            wide.draw(num_wide, rng),
            np.asarray(peak.rvs(num_draws - num_wide)).reshape(-1, len(mode)),
        ]
    )
    log_proposal = np.logaddexp(
        np.log1p(-WIDE_SHARE) + np.atleast_1d(peak.logpdf(draws)),
        np.log(WIDE_SHARE) + wide.log_density(draws),
    )
    log_weights = log_density(draws) - log_proposal
    log_weights = np.where(np.isnan(log_weights), -np.inf, log_weights)
    value = float(logsumexp(log_weights) - np.log(num_draws))
    relative = np.exp(log_weights - value)
    return LogIntegral(
        value,
        float(relative.std(ddof=1) / np.sqrt(num_draws)),
        float(relative.sum() ** 2 / (relative**2).sum()),
    )
