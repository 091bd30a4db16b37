"""Whether the order of the parts matters: neighbours that are more alike than others tell.

If parts come in an order that has nothing to do with what is in them, then every order of what
their models say is as likely as the one at hand. The sum of squared differences between neighbours
is compared with that of random orders: a test that is exact, whatever the models are.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

__all__ = ["LEAST_PARTS", "PartMeans", "neighbour_p_value", "smoothest_p_value"]

FloatArray = NDArray[np.float64]

LEAST_PARTS = 6
"""Fewer parts have too few orders for a test."""
ORDERS = 4999


def neighbour_p_value(points: FloatArray, rng: np.random.Generator) -> float:
    """Return how likely neighbours are so alike if the order means nothing, all columns together.

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
    if len(points) < LEAST_PARTS:
        return 1.0
    flat = np.asarray(points, np.float64).reshape(len(points), -1)
    flat = flat - flat.mean(axis=0)
    products = flat @ flat.T
    squares = np.diag(products)
    apart = squares[:, None] + squares - 2.0 * products
    orders = _orders(len(flat), rng)
    random = apart[orders[:, :-1], orders[:, 1:]].sum(axis=1)
    return _share_below(np.diag(apart, 1).sum(), random, apart.sum())


def smoothest_p_value(columns: FloatArray, rng: np.random.Generator) -> float:
    """The same for the column, ``(k, c)``, whose neighbours are most alike."""
    if len(columns) < LEAST_PARTS:
        return 1.0
    centred = columns - columns.mean(axis=0)
    spread = (centred**2).sum(axis=0)
    varied = centred[:, spread > 1e-20 * max(float(spread.max(initial=0.0)), 1e-300)]
    if not varied.shape[1]:
        return 1.0
    varied = varied / np.sqrt((varied**2).sum(axis=0))
    seen = (np.diff(varied, axis=0) ** 2).sum(axis=0).min()
    orders = _orders(len(varied), rng)
    random = np.full(len(orders), np.inf)
    for column in varied.T:
        random = np.minimum(random, (np.diff(column[orders], axis=1) ** 2).sum(axis=1))
    return _share_below(seen, random, 1.0)


def _orders(num_parts: int, rng: np.random.Generator) -> NDArray[np.int64]:
    return rng.permuted(np.tile(np.arange(num_parts), (ORDERS, 1)), axis=1)


def _share_below(seen: float, random: FloatArray, scale: float) -> float:
    return float((1 + (random <= seen + 1e-12 * scale).sum()) / (ORDERS + 1))


class PartMeans:
    """Means of the columns of each part; of names, the share of the commonest of the first part."""

    def __init__(self) -> None:
        self._commonest: dict[Any, Any] = {}
        self._means: list[list[float]] = []

    def add(self, X: Any) -> None:
        """Take the rows of another part."""
        frame = X if isinstance(X, pd.DataFrame) else pd.DataFrame(np.asarray(X))
        means = []
        for name in frame.columns:
            cells = frame[name]
            if cells.dtype.kind in "biuf":
                means.append(float(np.nan_to_num(cells.to_numpy(np.float64)).mean()))
                continue
            if name not in self._commonest:
                counts = cells.value_counts()
                self._commonest[name] = counts.index[0] if len(counts) else None
            means.append(float((cells == self._commonest[name]).mean()))
        self._means.append(means)

    def columns(self) -> FloatArray:
        """One row a part."""
        return np.array(self._means)
