"""What is trained on each part: learners by name, and any classifier with probabilities."""

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

__all__ = ["LEARNERS", "base_learner", "fit_part", "probabilities", "single_rows"]

FloatArray = NDArray[np.float64]

LEARNERS = ("tree", "naive_bayes", "rules")

SINGLE_ROWS, SLOW_SINGLE_ROWS = 10_000, 4_000
"""Rows that a single model is trained on, at most: a tree or naive Bayes, and any other."""

TAKES_NAMES = (Pipeline, SharedNaiveBayesClassifier, RuleClassifier)


class OneLabel(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """What can be learned of a part in which all rows have the same label."""

    def fit(self, X: Any, y: Any) -> OneLabel:
        """Remember the label."""
        del X
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X: Any) -> FloatArray:
        """The label, for sure."""
        return np.ones((len(X), 1))


def base_learner(base: Any, random_state: int) -> Any:
    """The classifier that a name or an estimator stands for, not yet fitted.

    ``"tree"`` is an unpruned tree grown by entropy, ``"naive_bayes"`` that of `bayes_lcs` with all
    parameters integrated out, ``"rules"`` a RIPPER.
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
            f"{type(base).__name__} gives no probabilities, which are what is averaged; wrap it in "
            "sklearn.calibration.CalibratedClassifierCV"
        )
    return clone(base)


def fit_part(base: Any, X: Any, y: NDArray[Any], seed: int) -> Any:
    """A fitted clone; columns of names become columns of zeros and ones unless it takes names."""
    if len(np.unique(y)) == 1:
        return OneLabel().fit(X, y)
    learner = clone(base)
    if "random_state" in learner.get_params(deep=False) and learner.random_state is None:
        learner.set_params(random_state=seed)
    if _has_names(X) and not isinstance(learner, TAKES_NAMES):
        learner = make_pipeline(NameColumns(), learner)
    with _own_warnings():
        return learner.fit(X, y)


def single_rows(base: Any) -> int:
    """Return how many rows the single model that an ensemble is compared with is trained on."""
    is_fast = isinstance(base, DecisionTreeClassifier | SharedNaiveBayesClassifier)
    return SINGLE_ROWS if is_fast else SLOW_SINGLE_ROWS


def probabilities(model: Any, X: Any, classes: list[Any]) -> FloatArray:
    """A model's probabilities of all labels; those that it has not met get none."""
    found = np.zeros((len(X), len(classes)))
    places = {label: place for place, label in enumerate(classes)}
    with _own_warnings():
        found[:, [places[label] for label in model.classes_.tolist()]] = model.predict_proba(X)
    return found


@contextmanager
def _own_warnings() -> Iterator[None]:
    """Silence notes about data: the ensemble gives them once, for all of its parts."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataNote)
        warnings.simplefilter("ignore", DataWarning)
        yield


def _has_names(X: Any) -> bool:
    return isinstance(X, pd.DataFrame) and any(dtype.kind not in "biuf" for dtype in X.dtypes)
