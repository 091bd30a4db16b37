"""Accuracy of the four learners with labels, and of clusters made with them without."""

from __future__ import annotations

import warnings
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedKFold, cross_val_score

from bayes_lcs import GeneralizedClusterer
from bayes_lcs.clustering.generalized.estimator import LEARNERS
from bayes_lcs.clustering.generalized.mixed_columns import encode_mixed, learn_kinds
from bayes_lcs.evaluation.cluster_accuracy import clustering_accuracy
from experiments.generalized_clustering.data_sets import DOMAINS, Labelled, made, natural
from experiments.generalized_clustering.setting import Setting

ASSIGNMENTS = ("strict", "weighted")


class LearnerClassifier(ClassifierMixin, BaseEstimator):
    """A learner with labels: fitted to classes in place of clusters."""

    def __init__(self, learner: Any = "naive_bayes", seed: int = 0) -> None:
        self.learner = learner
        self.seed = seed

    def fit(self, X: Any, y: Any) -> LearnerClassifier:
        self.classes_, codes = np.unique(y, return_inverse=True)
        self._kinds, rows = learn_kinds(self, X)
        shares = np.eye(len(self.classes_))[codes]
        self.fitted_ = LEARNERS[self.learner].fit(rows, shares, np.random.RandomState(self.seed))
        return self

    def predict(self, X: Any) -> Any:
        return self.classes_[self.fitted_.assign(encode_mixed(self, X, self._kinds))]


def with_labels(classifier: Any, data: Labelled, setting: Setting) -> float:
    """Mean accuracy on rows left out, in per cent."""
    folds = StratifiedKFold(setting.folds, shuffle=True, random_state=setting.seed)
    return 100.0 * float(cross_val_score(classifier, data.X, data.y, cv=folds).mean())


def without_labels(
    learner: Any, assignment: str, data: Labelled, setting: Setting, max_iter: int = 100
) -> float:
    """Mean accuracy of clusters on rows left out, over random starts, in per cent."""
    num_classes = len(np.unique(data.y))
    found = []
    with warnings.catch_warnings():
        # Runs that go in circles count as they are.
        warnings.simplefilter("ignore", ConvergenceWarning)
        for start in range(setting.starts):
            clusterer = GeneralizedClusterer(
                learner,
                num_classes,
                assignment=assignment,
                max_iter=10 if setting.smoke else max_iter,
                random_state=setting.seed + start,
            )
            found.append(
                clustering_accuracy(
                    clusterer, data.X, data.y, folds=setting.folds, random_state=setting.seed
                ).mean
            )
    return 100.0 * float(np.mean(found))


@cache
def natural_accuracies(setting: Setting, names: tuple[str, ...]) -> pd.DataFrame:
    """One row a data set and learner: with labels, strict and weighted."""
    return _accuracies(setting, {name: load(name, setting) for name in names})


def load(name: str, setting: Setting) -> Labelled:
    """A natural data set; in a smoke run a made one in its place."""
    if setting.smoke:
        return made(DOMAINS[len(name) % len(DOMAINS)], 0.1, setting.seed, 20)
    return natural(name)


@cache
def made_accuracies(setting: Setting, separation: float) -> pd.DataFrame:
    """The same on the four made domains."""
    size = 20 if setting.smoke else 125
    return _accuracies(
        setting, {name: made(name, separation, setting.seed, size) for name in LEARNERS}
    )


def _accuracies(setting: Setting, sets: dict[str, Labelled]) -> pd.DataFrame:
    rows = []
    for name, data in sets.items():
        for learner in LEARNERS:
            row = {"data": name, "learner": learner}
            row["supervised"] = with_labels(LearnerClassifier(learner), data, setting)
            for assignment in ASSIGNMENTS:
                row[assignment] = without_labels(learner, assignment, data, setting)
            rows.append(row)
    return pd.DataFrame(rows)
