"""Decision stump on the most informative column (Kalton et al. 2001, section 3.4).

The column with the highest information gain is used. A nominal column has a branch for each value;
a numeric one is split recursively while a split gains at least ``least_gain`` bits (scikit-learn's
tree on that column). A branch predicts the shares of the classes of its rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy
from sklearn.tree import DecisionTreeClassifier

from bayes_lcs.clustering.generalized.learners.protocol import weigh
from bayes_lcs.clustering.generalized.mixed_columns import MixedRows

__all__ = ["StumpLearner"]

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class StumpLearner:
    """Learner of a decision stump.

    Parameters
    ----------
    least_gain
        Minimum information gain of a numeric split, in bits, over all rows.
    """

    least_gain: float = 0.02

    def fit(
        self,
        rows: MixedRows,
        shares: FloatArray,
        rng: np.random.RandomState,
        sample_weight: FloatArray | None = None,
    ) -> FittedStump:
        """Fit every column, and return the stump with the highest information gain."""
        shares = weigh(shares, sample_weight)
        best: FittedStump | None = None
        top = -np.inf
        for column in range(rows.numbers.shape[1] + len(rows.num_values)):
            stump = self._fit_column(column, rows, shares, rng)
            gain = _information_gain(stump.held)
            if best is None or gain > top + 1e-12:
                best, top = stump, gain
        assert best is not None
        return best

    def _fit_column(
        self, column: int, rows: MixedRows, shares: FloatArray, rng: np.random.RandomState
    ) -> FittedStump:
        tree: Any = None
        middle = 0.0
        if column < rows.numbers.shape[1]:
            num_classes = shares.shape[1]
            tree = DecisionTreeClassifier(
                criterion="entropy", min_impurity_decrease=self.least_gain, random_state=rng
            )
            # Centred, because trees compute in float32, in which 1e8 and 1e8 + 1 are equal.
            middle = float(rows.numbers[:, column].mean())
            numbers = np.repeat(rows.numbers[:, [column]] - middle, num_classes, axis=0)
            classes = np.tile(np.arange(num_classes), rows.num_rows)
            weights = shares.ravel()
            used = weights > 0.0
            tree.fit(numbers[used], classes[used], sample_weight=weights[used])
            size = tree.tree_.node_count
        else:
            # Unknown values have a branch of their own, which predicts the shares of all rows.
            size = rows.num_values[column - rows.numbers.shape[1]] + 1
        stump = FittedStump(column, tree, np.zeros((size, shares.shape[1])), middle)
        np.add.at(stump.held, stump.branches(rows), shares)
        return stump


def _information_gain(held: FloatArray) -> float:
    """Return the mutual information of branches and classes in bits, from ``(branches, K)``."""
    total = held.sum()
    joint = held / total
    product = np.outer(joint.sum(axis=1), joint.sum(axis=0))
    bits = xlogy(joint, joint) - xlogy(joint, np.where(product > 0.0, product, 1.0))
    return float(bits.sum() / np.log(2.0))


@dataclass(frozen=True)
class FittedStump:
    """A column, its tree if numeric, and the shares of the classes in each branch."""

    column: int
    tree: Any
    held: FloatArray
    middle: float = 0.0

    def branches(self, rows: MixedRows) -> NDArray[np.int64]:
        """Return the branch of each row."""
        if self.tree is not None:
            numbers = rows.numbers[:, [self.column]] - self.middle
            return np.asarray(self.tree.apply(numbers.astype(np.float32)), np.int64)
        codes = rows.codes[:, self.column - rows.numbers.shape[1]]
        return np.where(codes >= 0, codes, len(self.held) - 1)

    def assign(self, rows: MixedRows) -> NDArray[np.int64]:
        """Return the largest class of each row's branch."""
        return self.shares(rows).argmax(axis=1)

    def shares(self, rows: MixedRows) -> FloatArray:
        """Return the shares of the classes in each row's branch; of all rows if it is empty."""
        totals = self.held.sum(axis=1, keepdims=True)
        overall = self.held.sum(axis=0) / self.held.sum()
        shares = np.where(totals > 0.0, self.held / np.where(totals > 0.0, totals, 1.0), overall)
        return np.asarray(shares[self.branches(rows)])
