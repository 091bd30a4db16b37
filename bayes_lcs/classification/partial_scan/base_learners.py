"""Base learners of a partial scan: by name, or any classifier with `predict_proba`."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone, is_classifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.tree import DecisionTreeClassifier

from bayes_lcs.classification.partial_scan.one_hot import NameColumns
from bayes_lcs.classification.partial_scan.ripper import RuleClassifier
from bayes_lcs.classification.shared_naive_bayes import SharedNaiveBayesClassifier
from bayes_lcs.core.errors import DataNote, DataWarning

__all__ = ["LEARNERS", "fit_base_learner", "make_base_learner", "max_single_rows", "probabilities"]

FloatArray = NDArray[np.float64]

LEARNERS = ("tree", "naive_bayes", "rules")

SINGLE_ROWS, SLOW_SINGLE_ROWS = 10_000, 4_000
"""Maximum number of training rows of the single model: of a tree or naive Bayes, and of others."""

TAKES_NAMES = (Pipeline, SharedNaiveBayesClassifier, RuleClassifier)


class OneLabel(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Constant classifier for parts with a single class."""

    def fit(self, X: Any, y: Any) -> OneLabel:
        """Store the label."""
        del X
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X: Any) -> FloatArray:
        """Return probability 1 for the label."""
        return np.ones((len(X), 1))


def make_base_learner(base: Any, random_state: int) -> Any:
    """Return an unfitted classifier for a name, or a clone of an estimator.

    ``"tree"`` is an unpruned tree grown by entropy, ``"naive_bayes"`` the classifier of `bayes_lcs`
    with all parameters integrated out, ``"rules"`` RIPPER.
    """
    if isinstance(base, str):
        if base not in LEARNERS:
            raise ValueError(f"base must be one of {', '.join(LEARNERS)}, got {base!r}")
        if base == "tree":
            return DecisionTreeClassifier(criterion="entropy", random_state=random_state)
        if base == "naive_bayes":
            return SharedNaiveBayesClassifier("complete")
        return RuleClassifier(random_state=random_state)
    if isinstance(base, type):
        raise TypeError(f"base must be an instance, not the class {base.__name__}")
    if not hasattr(base, "fit") or not is_classifier(base):
        raise TypeError(f"base must be a name or a classifier, got {base!r:.100}")
    if not hasattr(base, "predict_proba"):
        raise TypeError(
            f"{type(base).__name__} has no predict_proba, but the ensemble averages probabilities; "
            "wrap it in sklearn.calibration.CalibratedClassifierCV"
        )
    return clone(base)


def fit_base_learner(base: Any, X: Any, y: NDArray[Any], seed: int) -> Any:
    """Fit a clone; categorical columns are one-hot encoded unless the learner accepts text."""
    if len(np.unique(y)) == 1:
        return OneLabel().fit(X, y)
    learner = clone(base)
    if "random_state" in learner.get_params(deep=False) and learner.random_state is None:
        learner.set_params(random_state=seed)
    if _has_text(X) and not isinstance(learner, TAKES_NAMES):
        learner = make_pipeline(NameColumns(), learner)
    with _ignore_data_warnings():
        return learner.fit(X, y)


def max_single_rows(base: Any) -> int:
    """Return the maximum number of training rows of the single model, the ensemble's baseline."""
    is_fast = isinstance(base, DecisionTreeClassifier | SharedNaiveBayesClassifier)
    return SINGLE_ROWS if is_fast else SLOW_SINGLE_ROWS


def probabilities(model: Any, X: Any, classes: list[Any]) -> FloatArray:
    """Return a model's probabilities ``(n, L)`` of all labels; those of unseen labels are 0."""
    proba = np.zeros((len(X), len(classes)))
    index = {label: i for i, label in enumerate(classes)}
    with _ignore_data_warnings():
        proba[:, [index[label] for label in model.classes_.tolist()]] = model.predict_proba(X)
    return proba


@contextmanager
def _ignore_data_warnings() -> Iterator[None]:
    """Silence notes and warnings about the data; the ensemble issues them once for all parts."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataNote)
        warnings.simplefilter("ignore", DataWarning)
        yield


def _has_text(X: Any) -> bool:
    return isinstance(X, pd.DataFrame) and any(dtype.kind not in "biuf" for dtype in X.dtypes)
