"""Betting against a mean, for numbers that are drawn without replacement.

Of ``K`` numbers in [0, 1] some have been drawn, in random order. Is the mean of all ``K`` above
``m``? Bet that it is. If it were at most ``m``, the next draw would be at most

    m_t = (K m - x_1 - ... - x_{t-1}) / (K - t + 1)

in the mean, so a gambler who stakes the share ``f`` of what he has, and has then ``1 - f + f x_t /
m_t`` times as much, could not expect to become richer, whenever he stops: what he has is an
e-value, and ``P(it is ever c or more) <= 1 / c`` (Ville; Waudby-Smith and Ramdas 2024, section 5).
The stakes here are several constant shares side by side, of which the best soon rules.

If ``m_t < 0``, the mean is above ``m`` whatever is still to come: the wealth is then infinite.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

__all__ = ["STAKES", "log_wealth"]

FloatArray = NDArray[np.float64]

STAKES = (0.2, 0.4, 0.6, 0.8, 1.0)
"""Shares of the wealth that are staked, each by a gambler of its own with an equal part of it."""

_ROUNDING = 1e-12
_TOGETHER = 8


def log_wealth(
    drawn: FloatArray, num_all: int, mean: FloatArray | float, num_known: int = 0
) -> FloatArray:
    """Logarithm of what betting on a mean above ``mean`` has brought, beginning with 1.

    Parameters
    ----------
    drawn : (k, ...)
        Numbers in [0, 1] in the order in which they were drawn.
    num_all
        ``K``, of all numbers.
    mean : (...)
        What the mean of all is held against.
    num_known
        So many of the first numbers were known beforehand and are not bet on: the order of the
        others only needs to be random.

    Returns
    -------
    ndarray
        ``log E``; P(E >= c at any time) is at most 1 / c if the mean of all is at most ``mean``.

    Examples
    --------
    Nine of sixteen that are one make sure that the mean is above one half; six make it likely.

    >>> float(np.exp(log_wealth(np.ones(9), 16, 0.5)))
    inf
    >>> round(float(np.exp(log_wealth(np.ones(6), 16, 0.5))), 1)
    99.4
    """
    drawn = np.asarray(drawn, np.float64)
    start = num_all * np.asarray(mean, np.float64)
    # What the rest must add up to for the mean to be what it is held against, before each draw.
    left = start - np.concatenate([np.zeros_like(drawn[:1]), np.cumsum(drawn, axis=0)])
    sure = (left < -_ROUNDING * num_all).any(axis=0)
    still = (num_all - np.arange(len(drawn))).reshape(-1, *(1,) * (left.ndim - 1))
    expected = left[:-1] / still
    # Nothing can be staked on a mean of zero: all that is to come must then be zero.
    odds = np.where(expected > _ROUNDING, drawn / np.maximum(expected, _ROUNDING), 1.0)
    odds = odds[num_known:]
    wealth = np.zeros((len(STAKES), *left.shape[1:]))
    with np.errstate(divide="ignore"):
        for s, stake in enumerate(STAKES):
            # A logarithm of a product of a few is faster than their logarithms.
            for t in range(0, len(odds), _TOGETHER):
                part = 1.0 - stake + stake * odds[t : t + _TOGETHER]
                wealth[s] += np.log(np.prod(part, axis=0))
        total = logsumexp(wealth, axis=0) - np.log(len(STAKES))
    return np.where(sure, np.inf, total)
