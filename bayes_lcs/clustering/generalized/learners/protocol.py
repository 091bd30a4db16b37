"""Protocol of learners for generalized clustering: they learn from shares and return shares.

``shares[n, k]`` is the share of cluster ``k`` in row ``n``; the shares of a row sum to one. Under
strict assignment they are zeros and ones. A learner that supports weights of rows has a fourth
parameter, ``sample_weight=None``; a weight of two must equal two copies of the row.

A fitted learner may have a method ``row_scores(rows)``, ``(N,)``, such as a log density (higher is
better). `GeneralizedClusterer.score` is then its mean.
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
        """Return the cluster of each row."""

    def shares(self, rows: MixedRows) -> FloatArray:
        """Return the share of each cluster in each row, ``(N, K)``."""


class Learner(Protocol):
    """A learner of clusters from rows and their shares."""

    def fit(self, rows: MixedRows, shares: FloatArray, rng: np.random.RandomState) -> FittedLearner:
        """Fit to rows; columns of ``shares`` that are all zero are empty clusters."""


def weigh(shares: FloatArray, sample_weight: FloatArray | None) -> FloatArray:
    """Multiply shares by the weights of their rows, if there are any."""
    return shares if sample_weight is None else shares * sample_weight[:, None]
