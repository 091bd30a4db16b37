"""Clusters judged by classes that they never saw."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClusterMixin

import bayes_lcs as bl
from bayes_lcs.evaluation.cluster_accuracy import (
    accuracy_correlation,
    clustering_accuracy,
    clustering_learning_curve,
    majority_accuracy,
)


def test_majorities_by_hand():
    known = [0, 0, 0, 1, 1]
    classes = ["a", "a", "b", "b", "c"]
    # Cluster 0 is "a"; 1 ties and takes the first of its classes; 7 has no row: "a" or "b".
    assert majority_accuracy(known, classes, [0, 0, 1, 1], ["a", "b", "b", "c"]) == 0.5
    assert majority_accuracy(known, classes, [7], ["a"]) == 1.0
    assert majority_accuracy(known, classes, [7], ["c"]) == 0.0


class Oracle(ClusterMixin, BaseEstimator):
    """Clusters by the sign of the first column; remembers what it saw."""

    seen: list = []  # noqa: RUF012 - shared on purpose

    def fit(self, X, y=None):
        assert y is None
        Oracle.seen.append(np.asarray(X)[:, 1])
        return self

    def predict(self, X):
        return (np.asarray(X)[:, 0] > 0).astype(int)


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    y = np.arange(100) % 2
    X = pd.DataFrame({"x": np.where(y, 1.0, -1.0), "row": np.arange(100.0)})
    flipped = rng.choice(100, 20, replace=False)
    y[flipped] = 1 - y[flipped]
    return X, y


def test_folds_are_left_out(rows):
    X, y = rows
    Oracle.seen = []
    found = clustering_accuracy(Oracle(), X, y, folds=5)
    assert found.mean == pytest.approx(0.8)
    assert found.folds.shape == (5,)
    assert found.standard_error == pytest.approx(found.folds.std(ddof=1) / np.sqrt(5))
    assert [len(part) for part in Oracle.seen] == [80] * 5


def test_learning_curves_nest(rows):
    X, y = rows
    Oracle.seen = []
    curve = clustering_learning_curve(Oracle(), X, y, step=30, folds=4)
    assert curve["rows"].tolist() == [30, 60, 75]
    assert curve["accuracy"].iloc[-1] == pytest.approx(0.8)
    for first, second in zip(Oracle.seen[::3], Oracle.seen[1::3], strict=True):
        assert set(first) < set(second)


def test_correlation():
    rng = np.random.default_rng(0)
    a = rng.normal(size=200)
    b = a + rng.normal(size=200)
    found = accuracy_correlation(a, b)
    assert found.r == pytest.approx(np.corrcoef(a, b)[0, 1])
    assert found.explained == pytest.approx(found.r**2)
    assert found.p_value < 1e-10
    assert accuracy_correlation(a, rng.normal(size=200)).p_value > 1e-3


def test_it_takes_our_clusterers():
    X = np.concatenate([np.zeros(30), np.full(30, 9.0)])[:, None] + np.linspace(0, 1, 60)[:, None]
    y = np.repeat(["left", "right"], 30)
    for clusterer in (bl.KMeans(2, random_state=0), bl.GeneralizedClusterer("prototype", 2)):
        assert clustering_accuracy(clusterer, X, y, folds=3).mean == 1.0
