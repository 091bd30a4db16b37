"""Permutation test of whether the order of the parts matters.

If the parts are exchangeable, all orders of the predictions of their models are equally likely. The
statistic is the sum of squared differences between neighbours, compared with that of random
permutations. The test is exact, whatever the models are.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

__all__ = ["MIN_PARTS_TESTED", "PartMeans", "neighbour_p_value", "smoothest_p_value"]

FloatArray = NDArray[np.float64]

MIN_PARTS_TESTED = 6
"""Minimum number of parts; fewer have too few permutations for a test."""
NUM_PERMUTATIONS = 4999


def neighbour_p_value(points: FloatArray, rng: np.random.Generator) -> float:
    """Return the p-value of the similarity of neighbours over all columns together.

    Parameters
    ----------
    points : (k, ...)
        Predictions of the model of each part, in the order of the parts.
    rng
        Generator of the random permutations.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> neighbour_p_value(np.arange(10.0)[:, None], rng) < 0.001
    True
    >>> neighbour_p_value(rng.normal(size=(10, 3)), rng) > 0.01
    True
    """
    if len(points) < MIN_PARTS_TESTED:
        return 1.0
    flat = np.asarray(points, np.float64).reshape(len(points), -1)
    flat = flat - flat.mean(axis=0)
    products = flat @ flat.T
    squares = np.diag(products)
    # Squared distances between all pairs of parts: |a|^2 + |b|^2 - 2 a.b
    distances = squares[:, None] + squares - 2.0 * products
    orders = _orders(len(flat), rng)
    random = distances[orders[:, :-1], orders[:, 1:]].sum(axis=1)
    return _share_below(np.diag(distances, 1).sum(), random, distances.sum())


def smoothest_p_value(columns: FloatArray, rng: np.random.Generator) -> float:
    """Return the p-value of the column of ``(k, c)`` whose neighbours are most similar."""
    if len(columns) < MIN_PARTS_TESTED:
        return 1.0
    centred = columns - columns.mean(axis=0)
    spread = (centred**2).sum(axis=0)
    varied = centred[:, spread > 1e-20 * max(float(spread.max(initial=0.0)), 1e-300)]
    if not varied.shape[1]:
        return 1.0
    varied = varied / np.sqrt((varied**2).sum(axis=0))
    seen = (np.diff(varied, axis=0) ** 2).sum(axis=0).min()
    orders = _orders(len(varied), rng)
    # The minimum over columns is taken in each permutation, too, which corrects for choosing one.
    random = np.full(len(orders), np.inf)
    for column in varied.T:
        random = np.minimum(random, (np.diff(column[orders], axis=1) ** 2).sum(axis=1))
    return _share_below(seen, random, 1.0)


def _orders(num_parts: int, rng: np.random.Generator) -> NDArray[np.int64]:
    return rng.permuted(np.tile(np.arange(num_parts), (NUM_PERMUTATIONS, 1)), axis=1)


def _share_below(observed: float, random: FloatArray, scale: float) -> float:
    return float((1 + (random <= observed + 1e-12 * scale).sum()) / (NUM_PERMUTATIONS + 1))


class PartMeans:
    """Column means of each part.

    Of a text column, the mean is the share of the text that is most frequent in the first part.
    """

    def __init__(self) -> None:
        self._commonest: dict[Any, Any] = {}
        self._means: list[list[float]] = []

    def add(self, X: Any) -> None:
        """Add the rows of another part."""
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
        """Return the means, one row per part."""
        return np.array(self._means)
