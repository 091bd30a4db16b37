"""Ordered list of perceptrons (Kalton et al. 2001, section 3.3).

The first perceptron separates the largest class from all others. Its rows are removed, and the next
one separates the largest class of the rest. The last class is the default. A row belongs to the
first class whose perceptron fires. Updates are those of scikit-learn's `Perceptron`.

Under weighted assignment an update is scaled by the row's share, the target class of a row is
positive only if its share exceeds a half, and a perceptron fires to the degree ``1 / (1 + exp(-5
(sum - threshold)))``, with weights of unit length in the sum. Each perceptron of the list takes
this fraction of the share that its predecessors left; the default class takes the rest.
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
    """Learner of an ordered list of perceptrons, each one against the rest.

    Parameters
    ----------
    epochs
        Maximum number of passes over the rows for each perceptron.
    """

    epochs: int = 100

    def fit(
        self,
        rows: MixedRows,
        shares: FloatArray,
        rng: np.random.RandomState,
        sample_weight: FloatArray | None = None,
    ) -> FittedPerceptronList:
        """Fit one perceptron per class but the last, the largest class first."""
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
        """Fit unit normal and threshold; if all rows are of one kind, a plane beyond them."""
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
    """Planes in order, and the default class of rows for which none fires."""

    space: UnitSpace
    order: tuple[int, ...]
    planes: tuple[tuple[FloatArray, float], ...]
    default: int
    num_classes: int

    def _activations(self, rows: MixedRows) -> list[FloatArray]:
        points = self.space.points(rows)
        return [points @ normal - threshold for normal, threshold in self.planes]

    def assign(self, rows: MixedRows) -> NDArray[np.int64]:
        """Return the class of the first perceptron that fires."""
        result = np.full(rows.num_rows, self.default, np.int64)
        for k, total in reversed(list(zip(self.order, self._activations(rows), strict=True))):
            result[total > 0.0] = k
        return result

    def shares(self, rows: MixedRows) -> FloatArray:
        """Return the shares of the classes, computed down the list."""
        result = np.zeros((rows.num_rows, self.num_classes))
        left = np.ones(rows.num_rows)
        for k, total in zip(self.order, self._activations(rows), strict=True):
            fires = expit(STEEPNESS * total)
            result[:, k] = left * fires
            left = left * (1.0 - fires)
        result[:, self.default] = left
        return result
