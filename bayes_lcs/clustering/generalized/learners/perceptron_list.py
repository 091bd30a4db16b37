"""An ordered list of perceptrons (Kalton et al. 2001, section 3.3).

The first tells the largest class from all others; its rows are then put aside, and the next tells
the largest class of the rest. The class that is left is the default. A row belongs to the first
class whose perceptron fires. Updates are those of scikit-learn's `Perceptron`.

Under weighted assignment an update is scaled by the row's share, an error counts as one only if the
share exceeds a half, and a perceptron fires by ``1 / (1 + exp(-5 (sum - threshold)))``, the sum
being that of a unit vector of weights. The shares of a row are those of walking down the list: what
one perceptron leaves goes to the next, and what is left at the end to the default.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.linear_model import Perceptron

from bayes_lcs.clustering.generalized.learners.unit_scaling import UnitSpace
from bayes_lcs.clustering.generalized.mixed_columns import MixedRows

__all__ = ["PerceptronListLearner"]

FloatArray = NDArray[np.float64]

STEEPNESS = 5.0


@dataclass(frozen=True)
class PerceptronListLearner:
    """Perceptrons, one against the rest.

    Parameters
    ----------
    epochs
        Most passes over the rows for each.
    """

    epochs: int = 100

    def fit(
        self,
        rows: MixedRows,
        shares: FloatArray,
        rng: np.random.RandomState,
        sample_weight: FloatArray | None = None,
    ) -> FittedPerceptronList:
        """Largest class first."""
        space = UnitSpace.of(rows)
        points = space.points(rows)
        left = np.ones(len(points), bool)
        order: list[int] = []
        planes: list[tuple[FloatArray, float]] = []
        weight = np.ones(len(points)) if sample_weight is None else sample_weight
        totals = weight @ shares
        classes = list(np.flatnonzero(totals > 0.0))
        while len(classes) > 1:
            largest = max(classes, key=lambda k: (weight[left] @ shares[left, k], -k))
            share = shares[left, largest]
            positive = share > 0.5
            order.append(int(largest))
            planes.append(self._fit_plane(points[left], positive, share, weight[left], rng))
            classes.remove(largest)
            rest = left.copy()
            rest[left] = ~positive
            left = rest if rest.any() else left
        return FittedPerceptronList(
            space, tuple(order), tuple(planes), int(classes[0]), shares.shape[1]
        )

    def _fit_plane(
        self,
        points: FloatArray,
        positive: NDArray[np.bool_],
        share: FloatArray,
        weight: FloatArray,
        rng: np.random.RandomState,
    ) -> tuple[FloatArray, float]:
        """Unit normal and threshold; where all rows are of one kind, a plane beyond them."""
        if positive.all() or not positive.any():
            sign = 1.0 if positive.all() else -1.0
            return np.zeros(points.shape[1]), -sign
        learner: Any = Perceptron(max_iter=self.epochs, tol=1e-3, random_state=rng)
        weight = weight * np.where(positive, share, 1.0 - share)
        learner.fit(points, positive, sample_weight=weight)
        size = float(np.linalg.norm(learner.coef_[0])) or 1.0
        return learner.coef_[0] / size, -float(learner.intercept_[0]) / size


@dataclass(frozen=True)
class FittedPerceptronList:
    """Planes in order, and the class of rows for which none fires."""

    space: UnitSpace
    order: tuple[int, ...]
    planes: tuple[tuple[FloatArray, float], ...]
    default: int
    num_classes: int

    def _activations(self, rows: MixedRows) -> list[FloatArray]:
        points = self.space.points(rows)
        return [points @ normal - threshold for normal, threshold in self.planes]

    def assign(self, rows: MixedRows) -> NDArray[np.int64]:
        """The class of the first perceptron that fires."""
        result = np.full(rows.num_rows, self.default, np.int64)
        for k, total in reversed(list(zip(self.order, self._activations(rows), strict=True))):
            result[total > 0.0] = k
        return result

    def shares(self, rows: MixedRows) -> FloatArray:
        """Down the list."""
        result = np.zeros((rows.num_rows, self.num_classes))
        left = np.ones(rows.num_rows)
        for k, total in zip(self.order, self._activations(rows), strict=True):
            fires = expit(STEEPNESS * total)
            result[:, k] = left * fires
            left = left * (1.0 - fires)
        result[:, self.default] = left
        return result
