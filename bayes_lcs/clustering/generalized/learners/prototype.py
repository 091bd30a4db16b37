"""Prototypes: the class with the nearest mean (Kalton et al. 2001, section 3.1).

With strict assignment this is k-means. Numeric columns are scaled to between 0 and 1, nominal ones
are one-hot encoded. For weighted assignment the paper uses "the relative proximity" of a row to the
means without a formula; used here is ``d_k ** -p / sum_j d_j ** -p`` with ``p = 2``. With ``p = 1``
the means collapse even for well-separated clusters, because the weights are too even.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bayes_lcs.clustering.generalized.learners.protocol import weigh
from bayes_lcs.clustering.generalized.learners.unit_scaling import UnitSpace
from bayes_lcs.clustering.generalized.mixed_columns import MixedRows
from bayes_lcs.clustering.kmeans.init import nearest

__all__ = ["PrototypeLearner"]

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class PrototypeLearner:
    """Learner of class means.

    Parameters
    ----------
    scale
        Whether numeric columns are scaled to between 0 and 1.
    sharpness
        The power ``p`` of distances in relative proximities.
    """

    scale: bool = True
    sharpness: float = 2.0

    def fit(
        self,
        rows: MixedRows,
        shares: FloatArray,
        rng: np.random.RandomState,
        sample_weight: FloatArray | None = None,
    ) -> FittedPrototypes:
        """Compute weighted means; an empty class has none."""
        del rng
        space = UnitSpace.of(rows, self.scale)
        points = space.points(rows)
        shares = weigh(shares, sample_weight)
        totals = shares.sum(axis=0)
        known = np.flatnonzero(totals > 0.0)
        means = (shares[:, known].T @ points) / totals[known, None]
        return FittedPrototypes(space, means, known, shares.shape[1], self.sharpness)


@dataclass(frozen=True)
class FittedPrototypes:
    """Means of the non-empty classes."""

    space: UnitSpace
    means: FloatArray
    known: NDArray[np.int64]
    num_classes: int
    sharpness: float

    def assign(self, rows: MixedRows) -> NDArray[np.int64]:
        """Return the class with the nearest mean."""
        return self.known[nearest(self.space.points(rows), self.means)[0]]

    def row_scores(self, rows: MixedRows) -> FloatArray:
        """Return minus the squared distance to the nearest mean, in the scaled space."""
        points = self.space.points(rows)
        return -np.square(points - self.means[nearest(points, self.means)[0]]).sum(axis=1)

    def shares(self, rows: MixedRows) -> FloatArray:
        """Return relative proximities; a row at a mean belongs to it alone."""
        from scipy.spatial.distance import cdist

        distances = cdist(self.space.points(rows), self.means)
        at = distances <= 1e-12
        with np.errstate(divide="ignore"):
            proximity = np.where(at.any(axis=1, keepdims=True), at, distances**-self.sharpness)
        result = np.zeros((rows.num_rows, self.num_classes))
        result[:, self.known] = proximity / proximity.sum(axis=1, keepdims=True)
        return result
