"""What a learner inside a clustering is: it learns from shares, and gives shares.

Row ``n`` belongs to cluster ``k`` by ``shares[n, k]``; the shares of a row add up to one. Under
strict assignment they are zeros and ones.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from bayes_lcs.clustering.mixed_input import MixedRows

__all__ = ["FittedLearner", "Learner"]

FloatArray = NDArray[np.float64]


class FittedLearner(Protocol):
    """What was learned."""

    def assign(self, rows: MixedRows) -> NDArray[np.int64]:
        """The cluster of each row."""

    def shares(self, rows: MixedRows) -> FloatArray:
        """How far each row belongs to each cluster, ``(N, K)``."""


class Learner(Protocol):
    """Learns clusters from rows and their shares."""

    def fit(self, rows: MixedRows, shares: FloatArray, rng: np.random.RandomState) -> FittedLearner:
        """Learn; columns of ``shares`` that are all zero are clusters without rows."""
