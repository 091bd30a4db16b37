"""Any classifier of scikit-learn as a learner.

Strict: fitted to the rows with their clusters. Weighted: fitted to every row once for each cluster
to which it belongs, with the share as its weight, if ``fit`` takes ``sample_weight``; else to as
many rows, each with a cluster drawn by its shares. Shares come from ``predict_proba``; a classifier
without one has decisions turned into shares: the soft maximum of ``decision_function``, or all to
the class that it predicts.

Columns of numbers that are far from zero, compared with their range, are moved to begin at zero:
trees compute in float32, in which 1e8 and 1e8 + 1 are the same number.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax
from sklearn.base import clone
from sklearn.utils.validation import has_fit_parameter

from bayes_lcs.clustering.generalized.learners.protocol import weigh
from bayes_lcs.clustering.generalized.mixed_columns import MixedRows

__all__ = ["ClassifierLearner"]

FloatArray = NDArray[np.float64]

FAR = 1000.0
"""Distance from zero, in ranges of a column, from which on the column is moved."""


@dataclass(frozen=True)
class ClassifierLearner:
    """A classifier, cloned for every fit; names become columns of zeros and ones.

    Parameters
    ----------
    classifier
        A scikit-learn classifier.
    """

    classifier: Any

    def fit(
        self,
        rows: MixedRows,
        shares: FloatArray,
        rng: np.random.RandomState,
        sample_weight: FloatArray | None = None,
    ) -> FittedClassifier:
        """Fit a clone; if all rows are of one cluster there is nothing to fit."""
        offset = _offset(rows.numbers)
        points = _points(rows, offset)
        known = np.flatnonzero(shares.sum(axis=0) > 0.0)
        if len(known) == 1:
            return FittedClassifier(None, known, shares.shape[1], offset)
        fitted = clone(self.classifier)
        if "random_state" in fitted.get_params(deep=False) and fitted.random_state is None:
            fitted.set_params(random_state=rng.randint(np.iinfo(np.int32).max))
        strict = bool(((shares == 0.0) | (shares == 1.0)).all())
        if strict and sample_weight is None:
            fitted.fit(points, shares.argmax(axis=1))
        elif strict:
            fitted.fit(points, shares.argmax(axis=1), sample_weight=sample_weight)
        elif has_fit_parameter(fitted, "sample_weight"):
            row, cluster = np.nonzero(shares)
            weight = weigh(shares, sample_weight)[row, cluster]
            fitted.fit(points[row], cluster, sample_weight=weight)
        else:
            bounds = np.cumsum(shares, axis=1)
            drawn = rng.random_sample((len(shares), 1)) * bounds[:, -1:]
            fitted.fit(points, np.minimum((drawn >= bounds).sum(axis=1), shares.shape[1] - 1))
        known = np.asarray(fitted.classes_, np.int64)
        return FittedClassifier(fitted, known, shares.shape[1], offset)


def _offset(numbers: FloatArray) -> FloatArray:
    """Least number of each column that is far from zero; 0 of the others."""
    low, high = numbers.min(axis=0), numbers.max(axis=0)
    is_far = (high > low) & (np.minimum(np.abs(low), np.abs(high)) > FAR * (high - low))
    return np.where(is_far, low, 0.0)


def _points(rows: MixedRows, offset: FloatArray) -> FloatArray:
    return replace(rows, numbers=rows.numbers - offset).one_hot()


@dataclass(frozen=True)
class FittedClassifier:
    """A fitted classifier, the clusters that it knows, and what is taken off its numbers."""

    classifier: Any
    known: NDArray[np.int64]
    num_classes: int
    offset: FloatArray

    def assign(self, rows: MixedRows) -> NDArray[np.int64]:
        """What the classifier predicts."""
        if self.classifier is None:
            return np.full(rows.num_rows, self.known[0])
        return np.asarray(self.classifier.predict(_points(rows, self.offset)), np.int64)

    def shares(self, rows: MixedRows) -> FloatArray:
        """Its probabilities, or decisions turned into shares."""
        result = np.zeros((rows.num_rows, self.num_classes))
        if self.classifier is None:
            result[:, self.known[0]] = 1.0
            return result
        points = _points(rows, self.offset)
        if hasattr(self.classifier, "predict_proba"):
            result[:, self.known] = self.classifier.predict_proba(points)
        elif hasattr(self.classifier, "decision_function"):
            decision = np.asarray(self.classifier.decision_function(points))
            if decision.ndim == 1:
                result[:, self.known] = np.column_stack([expit(-decision), expit(decision)])
            else:
                result[:, self.known] = softmax(decision, axis=1)
        else:
            result[np.arange(rows.num_rows), self.assign(rows)] = 1.0
        return result
