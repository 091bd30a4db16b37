"""Clustering with a learner inside: what it equals, where it goes in circles, what it survives."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.metrics import adjusted_rand_score
from sklearn.neighbors import KNeighborsClassifier, NearestCentroid
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import estimator_checks_generator, parametrize_with_checks

import bayes_lcs as bl
from bayes_lcs import GeneralizedClusterer
from bayes_lcs.clustering.learners.naive_bayes import NaiveBayesLearner
from bayes_lcs.clustering.learners.prototype import PrototypeLearner

CHECKED = [
    GeneralizedClusterer("prototype", 2, random_state=0),
    GeneralizedClusterer("naive_bayes", 2, assignment="weighted", tol=0.01, random_state=0),
]


@parametrize_with_checks(CHECKED)
def test_the_contract_of_scikit_learn(estimator, check):
    check(estimator)


def test_the_checks_are_there():
    """None is expected to fail."""
    for estimator in CHECKED:
        assert len(list(estimator_checks_generator(estimator, legacy=True))) >= 42  # 46 in 1.9


def blobs(seed=0, num_rows=300, num_clusters=3):
    rng = np.random.default_rng(seed)
    kind = rng.integers(num_clusters, size=num_rows)
    centers = np.array([[0.0, 0.0], [9.0, 0.0], [0.0, 9.0]])[:num_clusters]
    return centers[kind] + rng.normal(size=(num_rows, 2)), kind


class _quiet:
    def __enter__(self):
        import warnings

        self.caught = warnings.catch_warnings()
        self.caught.__enter__()
        warnings.simplefilter("ignore")

    def __exit__(self, *args):
        self.caught.__exit__(*args)


# What it equals -----------------------------------------------------------------------------------


def test_prototypes_and_strict_assignment_are_k_means_step_by_step():
    X, _ = blobs(1)
    labels = np.argmin(((X[:, None] - X[:3]) ** 2).sum(axis=2), axis=1)
    clusterer = GeneralizedClusterer(PrototypeLearner(scale=False), 3, init=np.eye(3)[labels])
    for n in range(1, 6):
        with _quiet():
            clusterer.set_params(max_iter=n).fit(X)
            kmeans = bl.KMeans(3, init=X[:3], max_iter=n, tol=0).fit(X)
        np.testing.assert_allclose(
            clusterer.learner_.means, kmeans.cluster_centers_, rtol=0, atol=1e-10
        )
        np.testing.assert_array_equal(clusterer.labels_, kmeans.predict(X))


def test_naive_bayes_and_weighted_assignment_are_em_step_by_step():
    rng = np.random.default_rng(0)
    X = rng.integers(3, size=(200, 4))
    names = np.array(["a", "b", "c"], dtype=object)[X]
    shares = rng.dirichlet(np.ones(2), size=200)
    learner = NaiveBayesLearner(prior=1.0)
    clusterer = GeneralizedClusterer(learner, 2, assignment="weighted", init=shares, tol=0)
    # EM that begins with what the learner makes of the same shares.
    with _quiet():
        clusterer.set_params(max_iter=1).fit(names)
        first = clusterer.learner_.parameters
        probabilities = [first.cells[3 * f : 3 * f + 3].T for f in range(4)]
        for n in range(1, 8):
            em = bl.MixtureClusterer(
                2, init=(first.weights, probabilities), max_iter=n, tol=0, precision="double"
            ).fit(names)
            clusterer.set_params(max_iter=n + 1).fit(names)
            found = clusterer.learner_.parameters
            np.testing.assert_allclose(found.weights, em.weights_, rtol=0, atol=1e-10)
            for f in range(4):
                np.testing.assert_allclose(
                    found.cells[3 * f : 3 * f + 3].T, em.probabilities_[f], rtol=0, atol=1e-10
                )


# What it finds ------------------------------------------------------------------------------------


@pytest.mark.parametrize("assignment", ["strict", "weighted"])
@pytest.mark.parametrize("learner", ["prototype", "naive_bayes"])
def test_clear_clusters_are_found(learner, assignment):
    X, kind = blobs(3)
    with _quiet():
        found = [
            GeneralizedClusterer(learner, 3, assignment=assignment, random_state=seed).fit(X)
            for seed in range(5)
        ]
    best = max(adjusted_rand_score(kind, one.labels_) for one in found)
    assert best > 0.95
    for one in found:
        np.testing.assert_allclose(one.shares_.sum(axis=1), 1.0)
        np.testing.assert_allclose(one.predict_proba(X).sum(axis=1), 1.0)


@pytest.mark.parametrize(
    "classifier",
    [
        DecisionTreeClassifier(max_depth=3),
        LogisticRegression(),
        RidgeClassifier(),
        KNeighborsClassifier(15),
        NearestCentroid(),
    ],
    ids=lambda c: type(c).__name__,
)
@pytest.mark.parametrize("assignment", ["strict", "weighted"])
def test_any_classifier_runs(classifier, assignment):
    """With and without weights, with probabilities, with decisions, with neither."""
    X, _ = blobs(4, 120)
    with _quiet():
        clusterer = GeneralizedClusterer(
            classifier, 3, assignment=assignment, max_iter=15, random_state=0
        ).fit(X)
    assert clusterer.shares_.shape == (120, 3)
    np.testing.assert_allclose(clusterer.shares_.sum(axis=1), 1.0)
    assert len(np.unique(clusterer.labels_)) > 1
    assert clusterer.stop_reason_
    assert clusterer.predict(X[:7]).shape == (7,)
    with _quiet():
        again = GeneralizedClusterer(
            classifier, 3, assignment=assignment, max_iter=15, random_state=0
        ).fit(X)
    np.testing.assert_array_equal(again.labels_, clusterer.labels_)


@pytest.mark.parametrize("learner", ["perceptron_list", "stump", "naive_bayes", "prototype"])
def test_names_and_numbers_together(learner):
    rng = np.random.default_rng(0)
    kind = rng.integers(2, size=200)
    frame = pd.DataFrame(
        {
            "size": 5.0 * kind + rng.normal(size=200),
            "colour": np.where(rng.random(200) < 0.9, kind, 1 - kind).astype(str),
            "noise": rng.normal(size=200),
        }
    )
    with _quiet():
        found = [
            GeneralizedClusterer(learner, 2, max_iter=30, random_state=seed).fit(frame)
            for seed in range(6)
        ]
    best = max(found, key=lambda one: adjusted_rand_score(kind, one.labels_))
    assert adjusted_rand_score(kind, best.labels_) > 0.6
    unseen = frame.head(3).assign(colour="never seen")
    with pytest.warns(bl.DataWarning, match="column 'colour' in 3 of 3 rows"):
        assert best.predict(unseen).shape == (3,)


# What it survives ---------------------------------------------------------------------------------


class Contrary(ClassifierMixin, BaseEstimator):
    """Predicts the other cluster."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.seen_ = {tuple(x): v for x, v in zip(X, y, strict=True)}
        return self

    def predict(self, X):
        other = dict(zip(self.classes_, self.classes_[::-1], strict=True))
        return np.array([other[self.seen_[tuple(x)]] for x in X])


class Tired(DecisionTreeClassifier):
    """Fails at its third fit."""

    fits = 0

    def fit(self, X, y, sample_weight=None):
        Tired.fits += 1
        if Tired.fits >= 3:
            raise RuntimeError("too tired")
        return super().fit(X, 1 - y if len(np.unique(y)) == 2 else y, sample_weight)


def test_a_circle_is_seen():
    X, _ = blobs(5, 20)
    with pytest.warns(ConvergenceWarning, match="circle of 2 iterations"):
        clusterer = GeneralizedClusterer(Contrary(), 2, random_state=0).fit(X)
    assert not clusterer.converged_
    assert clusterer.n_iter_ <= 4


def test_a_learner_that_fails_later_leaves_what_there_was():
    X, _ = blobs(6, 30)
    Tired.fits = 0
    with pytest.warns(ConvergenceWarning, match="failed in iteration 3: too tired"):
        clusterer = GeneralizedClusterer(Tired(), 2, random_state=0).fit(X)
    assert clusterer.n_iter_ == 2
    assert clusterer.predict(X).shape == (30,)


def test_a_learner_that_fails_at_once_is_an_error():
    Tired.fits = 5
    with pytest.raises(RuntimeError, match="too tired"):
        GeneralizedClusterer(Tired(), 2, random_state=0).fit(blobs(7, 30)[0])


class Choosy(DecisionTreeClassifier):
    """Refuses classes of fewer than nine rows."""

    refused = 0

    def fit(self, X, y, sample_weight=None):
        if np.bincount(y).min() < 9:
            Choosy.refused += 1
            raise ValueError("too few rows")
        return super().fit(X, y, sample_weight)


def test_a_start_that_the_learner_refuses_is_followed_by_another():
    X = np.concatenate([np.zeros(10), np.arange(1, 21) / 10.0 + 5.0])[:, None]
    refused = []
    for seed in range(8):
        Choosy.refused = 0
        clusterer = GeneralizedClusterer(Choosy(), 2, random_state=seed).fit(X)
        assert clusterer.n_iter_ >= 1
        refused.append(Choosy.refused)
    assert max(refused) > 0


def test_a_cluster_without_rows_is_filled_again():
    X = np.concatenate([np.zeros(50), np.ones(50)])[:, None] + np.linspace(0, 0.1, 100)[:, None]
    start = np.zeros((100, 3))
    start[:, 0] = 1.0
    clusterer = GeneralizedClusterer("prototype", 3, init=start).fit(X)
    assert clusterer.trace_[0].refilled == 2
    assert clusterer.trace_[-1].num_clusters == 3
    assert clusterer.converged_


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"learner": "forest"}, ValueError, "learner must be one of"),
        ({"learner": 3}, TypeError, "a name, a learner or a classifier"),
        ({"learner": DecisionTreeClassifier}, TypeError, "must be an instance"),
        ({"learner": bl.KMeans()}, TypeError, "not a classifier"),
        ({"init": np.ones((3, 3))}, ValueError, "init must have the shape"),
        ({"n_clusters": 500}, ValueError, "n_clusters=500"),
        ({"nominal": ["no such"]}, ValueError, "nominal names a column"),
    ],
)
def test_what_is_refused(options, error, message):
    with pytest.raises(error, match=message):
        GeneralizedClusterer(**options).fit(blobs()[0])


def test_numbers_that_are_names():
    X = pd.DataFrame({"code": [1, 1, 2, 2, 3, 3] * 10})
    clusterer = GeneralizedClusterer("stump", 3, nominal=["code"], random_state=1).fit(X)
    held = pd.crosstab(X["code"], clusterer.labels_)
    assert (held > 0).sum(axis=1).max() == 1  # a branch a value: no value is split


def test_circles_and_steps_have_names():
    X, _ = blobs(8)
    clusterer = GeneralizedClusterer("prototype", 3, random_state=0).fit(X)
    assert clusterer.stop_reason_ == "nothing changed"
    assert clusterer.trace_[-1].changed == 0.0
    assert clusterer.n_iter_ == len(clusterer.trace_)
