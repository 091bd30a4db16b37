"""E-process (test martingale) for the mean of numbers that are drawn without replacement.

The ``K`` numbers lie in [0, 1] and are drawn in random order. The null hypothesis is that the mean
of all ``K`` is at most ``m``. Under it, the expectation of the next draw is at most

    m_t = (K m - x_1 - ... - x_{t-1}) / (K - t + 1).

A bet of a share ``f`` of the current wealth multiplies it by ``1 - f + f x_t / m_t``. Under the
null hypothesis the wealth is therefore a supermartingale that starts at 1, hence an e-value at any
stopping time: ``P(it ever reaches c) <= 1 / c`` (Ville; Waudby-Smith and Ramdas 2024, section 5).
Several constant shares are bet in parallel; the best one soon dominates their mean.

If ``m_t < 0``, the mean exceeds ``m`` whatever the remaining draws are, and the wealth is infinite.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

__all__ = ["STAKES", "log_e_value"]

FloatArray = NDArray[np.float64]

STAKES = (0.2, 0.4, 0.6, 0.8, 1.0)
"""Shares of the wealth that are bet; each has an equal part of the initial wealth."""

_ROUNDING = 1e-12
_FACTORS_PER_LOG = 8


def log_e_value(
    draws: FloatArray, population_size: int, mean: FloatArray | float, num_known: int = 0
) -> FloatArray:
    """Return the log e-value against the hypothesis that the population mean is at most ``mean``.

    Parameters
    ----------
    draws : (k, ...)
        Numbers in [0, 1] in the order in which they were drawn.
    population_size
        Number ``K`` of numbers in the population.
    mean : (...)
        Largest mean under the null hypothesis.
    num_known
        Number of first draws that were known in advance. No bets are placed on them, and only the
        order of the others needs to be random.

    Returns
    -------
    ndarray
        ``log E``; P(E >= c at any time) is at most 1 / c under the null hypothesis.

    Examples
    --------
    If nine of sixteen numbers are one, the mean certainly exceeds one half; six make it likely.

    >>> float(np.exp(log_e_value(np.ones(9), 16, 0.5)))
    inf
    >>> round(float(np.exp(log_e_value(np.ones(6), 16, 0.5))), 1)
    99.4
    """
    draws = np.asarray(draws, np.float64)
    start = population_size * np.asarray(mean, np.float64)
    # Largest sum of the remaining numbers under the null hypothesis, before each draw.
    left = start - np.concatenate([np.zeros_like(draws[:1]), np.cumsum(draws, axis=0)])
    certain = (left < -_ROUNDING * population_size).any(axis=0)
    num_left = (population_size - np.arange(len(draws))).reshape(-1, *(1,) * (left.ndim - 1))
    expected = left[:-1] / num_left
    # With an expectation of zero no bet is possible: all remaining numbers must be zero.
    odds = np.where(expected > _ROUNDING, draws / np.maximum(expected, _ROUNDING), 1.0)
    odds = odds[num_known:]
    wealth = np.zeros((len(STAKES), *left.shape[1:]))
    with np.errstate(divide="ignore"):
        for s, stake in enumerate(STAKES):
            # The log of a product of a few factors is faster than the sum of their logs.
            for t in range(0, len(odds), _FACTORS_PER_LOG):
                part = 1.0 - stake + stake * odds[t : t + _FACTORS_PER_LOG]
                wealth[s] += np.log(np.prod(part, axis=0))
        total = logsumexp(wealth, axis=0) - np.log(len(STAKES))
    return np.where(certain, np.inf, total)
