"""Adapter of scikit-learn classifiers as learners.

Strict assignment: the classifier is fitted to the rows with their clusters. Weighted assignment: it
is fitted to one copy of each row for each of its clusters, with the share as weight, if ``fit``
takes ``sample_weight``; otherwise to the rows, each with a cluster drawn by its shares. Shares are
those of ``predict_proba``, or else the softmax of ``decision_function``, or else 1 for the
predicted class.

Numeric columns that are far from zero compared with their range are shifted to start at zero: trees
compute in float32, in which 1e8 and 1e8 + 1 are equal.
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
"""Distance of a column from zero, in units of its range, above which it is shifted."""


@dataclass(frozen=True)
class ClassifierLearner:
    """Learner that clones and fits a classifier; nominal columns are one-hot encoded.

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
        """Fit a clone, unless all rows belong to one cluster."""
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
            # Draw a cluster for each row by inversion of its cumulative shares.
            bounds = np.cumsum(shares, axis=1)
            drawn = rng.random_sample((len(shares), 1)) * bounds[:, -1:]
            fitted.fit(points, np.minimum((drawn >= bounds).sum(axis=1), shares.shape[1] - 1))
        known = np.asarray(fitted.classes_, np.int64)
        return FittedClassifier(fitted, known, shares.shape[1], offset)


def _offset(numbers: FloatArray) -> FloatArray:
    """Return the minimum of each column that is far from zero; 0 for the others."""
    low, high = numbers.min(axis=0), numbers.max(axis=0)
    is_far = (high > low) & (np.minimum(np.abs(low), np.abs(high)) > FAR * (high - low))
    return np.where(is_far, low, 0.0)


def _points(rows: MixedRows, offset: FloatArray) -> FloatArray:
    return replace(rows, numbers=rows.numbers - offset).one_hot()


@dataclass(frozen=True)
class FittedClassifier:
    """A fitted classifier, its clusters, and the offset of the numeric columns."""

    classifier: Any
    known: NDArray[np.int64]
    num_classes: int
    offset: FloatArray

    def assign(self, rows: MixedRows) -> NDArray[np.int64]:
        """Return the predictions of the classifier."""
        if self.classifier is None:
            return np.full(rows.num_rows, self.known[0])
        return np.asarray(self.classifier.predict(_points(rows, self.offset)), np.int64)

    def shares(self, rows: MixedRows) -> FloatArray:
        """Return predicted probabilities, or decisions converted to shares."""
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
