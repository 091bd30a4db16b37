"""Does the order of the parts matter? Neighbours that are more alike than others tell.

If parts come in an order that has nothing to do with what is in them, then every order of what
their models say is as likely as the one at hand. The sum of squared differences between neighbours
is compared with that of random orders: a test that is exact, whatever the models are.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["LEAST_PARTS", "neighbour_p_value"]

FloatArray = NDArray[np.float64]

LEAST_PARTS = 6
"""Fewer parts have too few orders for a test."""
ORDERS = 4999


def neighbour_p_value(points: FloatArray, rng: np.random.Generator) -> float:
    """How likely neighbours are so much alike if the order means nothing.

    Parameters
    ----------
    points : (k, ...)
        What each part's model says, in the order of the parts.
    rng
        Of the random orders.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> neighbour_p_value(np.arange(10.0)[:, None], rng) < 0.001
    True
    >>> neighbour_p_value(rng.normal(size=(10, 3)), rng) > 0.01
    True
    """
    flat = np.asarray(points, np.float64).reshape(len(points), -1)
    if len(flat) < LEAST_PARTS:
        return 1.0
    flat = flat - flat.mean(axis=0)
    products = flat @ flat.T
    squares = np.diag(products)
    apart = squares[:, None] + squares - 2.0 * products
    orders = rng.permuted(np.tile(np.arange(len(flat)), (ORDERS, 1)), axis=1)
    random = apart[orders[:, :-1], orders[:, 1:]].sum(axis=1)
    seen = np.diag(apart, 1).sum()
    rounding = 1e-12 * apart.sum()
    return float((1 + (random <= seen + rounding).sum()) / (ORDERS + 1))
