"""Protocol of the learners inside a clustering: they learn from shares, and return shares.

Row ``n`` belongs to cluster ``k`` by ``shares[n, k]``; the shares of a row add up to one. Under
strict assignment they are zeros and ones. A learner that takes weights of rows has a fourth
parameter, ``sample_weight=None``; a weight of two must equal two copies of the row.

A fitted learner may have a method ``row_scores(rows)``, ``(N,)``: how well it describes each row,
higher is better, such as a log density. `GeneralizedClusterer.score` is then its mean.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from bayes_lcs.clustering.generalized.mixed_columns import MixedRows

__all__ = ["FittedLearner", "Learner", "weigh"]

FloatArray = NDArray[np.float64]


class FittedLearner(Protocol):
    """A fitted learner."""

    def assign(self, rows: MixedRows) -> NDArray[np.int64]:
        """The cluster of each row."""

    def shares(self, rows: MixedRows) -> FloatArray:
        """How far each row belongs to each cluster, ``(N, K)``."""


class Learner(Protocol):
    """Learns clusters from rows and their shares."""

    def fit(self, rows: MixedRows, shares: FloatArray, rng: np.random.RandomState) -> FittedLearner:
        """Learn; columns of ``shares`` that are all zero are clusters without rows."""


def weigh(shares: FloatArray, sample_weight: FloatArray | None) -> FloatArray:
    """Multiply shares by the weights of their rows, if there are any."""
    return shares if sample_weight is None else shares * sample_weight[:, None]
