"""Clustering with a learner inside: what it equals, where it goes in circles, what it survives."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.stats import entropy, norm
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import load_iris, load_wine
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.metrics import adjusted_rand_score
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier, NearestCentroid
from sklearn.preprocessing import scale
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import estimator_checks_generator, parametrize_with_checks

import bayes_lcs as bl
from bayes_lcs import GeneralizedClusterer
from bayes_lcs.clustering.generalized.learners.naive_bayes import NaiveBayesLearner
from bayes_lcs.clustering.generalized.learners.prototype import PrototypeLearner

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
        with _quiet():
            clusterer = GeneralizedClusterer(Choosy(max_depth=1), 2, random_state=seed).fit(X)
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


# Clusters without rows ----------------------------------------------------------------------------


class Lumping(ClassifierMixin, BaseEstimator):
    """Never predicts the last cluster that it is shown."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return self.classes_[(X[:, 0] > np.median(X[:, 0])) * min(1, len(self.classes_) - 2)]


@pytest.mark.parametrize("assignment", ["strict", "weighted"])
@pytest.mark.parametrize("seed", range(3))
def test_a_learner_that_leaves_clusters_empty_has_not_converged(seed, assignment):
    X, _ = blobs(seed, 80)
    clusterer = GeneralizedClusterer(Lumping(), 4, assignment=assignment, random_state=seed)
    with pytest.warns(ConvergenceWarning, match="of 4 clusters have no rows"):
        clusterer.fit(X)
    assert not clusterer.converged_
    assert clusterer.n_clusters_ == len(np.unique(clusterer.labels_)) < 4
    assert "clusters have no rows" in clusterer.stop_reason_


@pytest.mark.parametrize("learner", ["prototype", "naive_bayes", "perceptron_list", "stump"])
@pytest.mark.parametrize("assignment", ["strict", "weighted"])
def test_convergence_means_that_every_cluster_has_rows(learner, assignment):
    """Fewer distinct rows than clusters, rows in two clumps, and plain noise."""
    rng = np.random.default_rng(2)
    tables = [
        np.repeat([[0.0, 1.0], [5.0, 2.0]], 20, axis=0),
        np.repeat([[0.0], [9.0]], 30, axis=0) + rng.normal(size=(60, 1)) * 1e-3,
        rng.normal(size=(50, 3)),
    ]
    for X in tables:
        with _quiet():
            found = GeneralizedClusterer(
                learner, 5, assignment=assignment, random_state=0, max_iter=40
            ).fit(X)
        assert found.n_clusters_ == len(np.unique(found.labels_))
        if found.converged_:
            assert found.n_clusters_ == 5
    assert found.n_clusters_ > 1


# Learners that memorise ---------------------------------------------------------------------------


def separable(name):
    """Rows with clear clusters, and their number: points, iris, wine, names and numbers."""
    rng = np.random.default_rng(0)
    if name == "blobs":
        return blobs(9)[0], 3
    if name == "iris":
        return load_iris().data, 3
    if name == "wine":
        return scale(load_wine().data), 3
    kind = rng.integers(2, size=240)
    often = rng.random((3, 240)) < 0.9
    frame = pd.DataFrame(
        {f"colour {f}": np.where(often[f], kind, 1 - kind).astype(str) for f in range(3)}
    )
    return frame.assign(size=np.round(6.0 * kind + rng.normal(size=240), 1)), 2


SETS = ["blobs", "iris", "wine", "mixed"]


@pytest.mark.parametrize("assignment", ["strict", "weighted"])
@pytest.mark.parametrize("init", ["rows", "random"])
@pytest.mark.parametrize("data", SETS)
@pytest.mark.parametrize(
    "classifier",
    [
        DecisionTreeClassifier(),
        KNeighborsClassifier(1),
        RandomForestClassifier(20),
    ],
    ids=lambda c: type(c).__name__,
)
def test_learners_that_keep_any_start_are_warned_of(classifier, data, init, assignment):
    X, number = separable(data)
    clusterer = GeneralizedClusterer(
        classifier, number, init=init, assignment=assignment, max_iter=10, random_state=1
    )
    if isinstance(classifier, RandomForestClassifier) and (init, assignment) == (
        "random",
        "weighted",
    ):
        pytest.skip("shares of a forest drift away from a random start")
    with pytest.warns(ConvergenceWarning, match="reproduces any clusters"):
        clusterer.fit(X)
    assert clusterer.memorised_
    assert not clusterer.converged_
    assert "max_depth" in clusterer.stop_reason_


@pytest.mark.parametrize("data", SETS)
@pytest.mark.parametrize(
    "learner",
    [
        "prototype",
        "naive_bayes",
        "stump",
        LogisticRegression(),
        DecisionTreeClassifier(max_depth=1),
        DecisionTreeClassifier(max_depth=2),
        KNeighborsClassifier(15),
        NearestCentroid(),
    ],
    ids=str,
)
def test_learners_that_generalize_are_not_said_to_memorise(learner, data):
    X, number = separable(data)
    for seed in range(2):
        with _quiet():
            found = GeneralizedClusterer(learner, number, random_state=seed).fit(X)
        assert not found.memorised_
        assert "reproduces" not in found.stop_reason_


@pytest.mark.parametrize(
    ("classifier", "data", "n_init"),
    [
        (DecisionTreeClassifier(max_depth=5), "wine", 1),
        (DecisionTreeClassifier(max_depth=5), "wine", 4),
        (DecisionTreeClassifier(max_depth=3), "blobs", 1),
        (DecisionTreeClassifier(max_depth=3), "iris", 1),
        (DecisionTreeClassifier(max_depth=3), "iris", 4),
        (DecisionTreeClassifier(min_samples_leaf=5), "blobs", 1),
        (DecisionTreeClassifier(min_samples_leaf=5), "iris", 1),
    ],
    ids=str,
)
def test_small_trees_that_keep_their_start_are_warned_of(classifier, data, n_init):
    """They do not reproduce random clusters, but nearly every start is a fixed point of theirs."""
    X, number = separable(data)
    for seed in range(3):
        found = GeneralizedClusterer(
            clone(classifier).set_params(random_state=0),
            number,
            n_init=n_init,
            random_state=seed,
        )
        with pytest.warns(ConvergenceWarning, match="other starts end in other clusters"):
            found.fit(X)
        assert found.start_dependent_
        assert not found.memorised_
        assert not found.converged_


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("learner", [LinearDiscriminantAnalysis(), GaussianNB()], ids=str)
def test_learners_that_move_rows_do_not_depend_on_their_start(learner, seed):
    X = scale(separable("iris")[0])
    with _quiet():
        found = GeneralizedClusterer(learner, 3, random_state=seed).fit(X)
    assert not found.start_dependent_


def test_a_start_that_was_given_is_not_compared_with_others():
    X, number = separable("iris")
    tree = DecisionTreeClassifier(max_depth=3, random_state=0)
    with _quiet():
        first = GeneralizedClusterer(tree, number, random_state=0).fit(X)
    again = GeneralizedClusterer(tree, number, init=first.shares_).fit(X)
    assert again.converged_
    assert not again.start_dependent_


@pytest.mark.parametrize("learner", ["prototype", "naive_bayes", LogisticRegression()], ids=str)
def test_no_warning_where_clear_clusters_are_found(learner):
    X, kind = blobs(9)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        found = GeneralizedClusterer(learner, 3, n_init=5, random_state=0).fit(X)
    assert found.converged_
    assert adjusted_rand_score(kind, found.labels_) > 0.9


def test_prototypes_of_few_rows_with_many_columns_are_not_said_to_memorise():
    """They can separate any clusters there, but they lower squared distances in every step."""
    rng = np.random.default_rng(0)
    kind = np.repeat([0, 1], 20)
    X = rng.normal(size=(40, 200)) + 3.0 * kind[:, None]
    for learner in ("prototype", "naive_bayes"):
        found = GeneralizedClusterer(learner, 2, random_state=0).fit(X)
        assert found.converged_
        assert adjusted_rand_score(kind, found.labels_) == 1.0


# Several starts and scores ------------------------------------------------------------------------


@pytest.mark.parametrize("data", ["blobs", "wine", "mixed"])
@pytest.mark.parametrize(
    "learner", ["prototype", "naive_bayes", "stump", LogisticRegression()], ids=str
)
def test_more_starts_are_never_worse(learner, data):
    X, number = separable(data)
    for seed in range(2):
        with _quiet():
            runs = [
                GeneralizedClusterer(learner, number, n_init=n, random_state=seed, max_iter=20)
                for n in (1, 4)
            ]
            scores = [run.fit(X).score(X) for run in runs]
        assert scores == sorted(scores)
        assert [run.objective_ for run in runs] == pytest.approx(scores, rel=1e-12)


def test_more_starts_help():
    X, kind = blobs(3)
    found = {}
    for n_init in (1, 10):
        with _quiet():
            fits = [
                GeneralizedClusterer("prototype", 3, n_init=n_init, random_state=seed).fit(X)
                for seed in range(12)
            ]
        found[n_init] = min(adjusted_rand_score(kind, one.labels_) for one in fits)
    assert found[1] < 0.7
    assert found[10] > 0.95


def test_scores_are_those_of_the_definitions():
    X, _ = blobs(5, 90)
    plain = PrototypeLearner(scale=False)
    means = GeneralizedClusterer(plain, 3, random_state=0, n_init=5).fit(X)
    kmeans = bl.KMeans(3, random_state=0, n_init=5).fit(X)
    assert means.score(X) == pytest.approx(-kmeans.inertia_ / len(X))
    bayes = GeneralizedClusterer("naive_bayes", 3, random_state=0, n_init=5).fit(X)
    weights = bayes.learner_.parameters.weights
    density = sum(
        weight * np.prod(norm.pdf(X, mean, variance**0.5), axis=1)
        for weight, mean, variance in zip(
            weights, bayes.learner_.means, bayes.learner_.variances, strict=True
        )
    )
    assert bayes.score(X) == pytest.approx(np.log(density).mean())
    tree = GeneralizedClusterer(DecisionTreeClassifier(max_depth=2), 3, random_state=0).fit(X)
    shares = tree.predict_proba(X)
    expected = entropy(shares.mean(axis=0)) - entropy(shares, axis=1).mean()
    assert tree.score(X) == pytest.approx(expected)
    assert 0.0 <= tree.score(X) <= np.log(3)


# Weights ------------------------------------------------------------------------------------------

WEIGHTED = [
    "prototype",
    "naive_bayes",
    "stump",
    DecisionTreeClassifier(max_depth=2, random_state=0),
    LogisticRegression(tol=1e-10, max_iter=5000),
]


@pytest.mark.parametrize("assignment", ["strict", "weighted"])
@pytest.mark.parametrize("data", ["blobs", "iris", "mixed"])
@pytest.mark.parametrize("learner", WEIGHTED, ids=lambda c: str(c).split("(")[0])
def test_a_weight_of_two_is_two_rows(learner, data, assignment):
    X, number = separable(data)
    X = X.iloc[:120] if hasattr(X, "iloc") else X[:120]
    weights = np.random.default_rng(3).integers(0, 4, len(X))
    rows = np.repeat(np.arange(len(X)), weights)
    repeated = X.iloc[rows] if hasattr(X, "iloc") else X[rows]
    clusterer = GeneralizedClusterer(
        learner, number, assignment=assignment, n_init=2, max_iter=6, random_state=0
    )
    with _quiet():
        weighted = clone(clusterer).fit(X, sample_weight=weights)
        twice = clone(clusterer).fit(repeated)
    np.testing.assert_array_equal(weighted.labels_[rows], twice.labels_)
    np.testing.assert_allclose(weighted.predict_proba(X), twice.predict_proba(X), atol=1e-5)
    assert weighted.objective_ == pytest.approx(twice.objective_, rel=1e-6)
    assert weighted.score(X, sample_weight=weights) == pytest.approx(
        twice.score(repeated), rel=1e-6
    )


def test_weights_reach_perceptrons():
    X, _ = blobs(2, 60)
    with _quiet():
        heavy = GeneralizedClusterer("perceptron_list", 2, random_state=0)
        heavy.fit(X, sample_weight=np.r_[np.ones(30), np.zeros(30)])
        alone = GeneralizedClusterer("perceptron_list", 2, random_state=0).fit(X[:30])
    np.testing.assert_array_equal(heavy.predict(X), alone.predict(X))


@pytest.mark.parametrize(
    ("learner", "weights", "message"),
    [
        (KNeighborsClassifier(15), np.ones(300), "KNeighborsClassifier.fit takes no sample_weight"),
        (Contrary(), np.ones(300), "Contrary.fit takes no sample_weight"),
        ("prototype", np.ones(7), "sample_weight.shape"),
        ("prototype", -np.ones(300), "Negative values in data passed to `sample_weight`"),
        ("prototype", np.zeros(300), "zero"),
        ("prototype", np.r_[1.0, np.zeros(299)], "n_samples=1 should be"),
    ],
)
def test_weights_that_are_refused(learner, weights, message):
    with pytest.raises(ValueError, match=message):
        GeneralizedClusterer(learner, 3).fit(blobs()[0], sample_weight=weights)


# Bad arguments ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"learner": "forest"}, ValueError, "learner must be one of"),
        ({"learner": 3}, TypeError, "a name, a learner or a classifier"),
        ({"learner": DecisionTreeClassifier}, TypeError, "must be an instance"),
        ({"learner": bl.KMeans()}, TypeError, "not a classifier"),
        ({"init": np.ones((3, 3))}, ValueError, "init must have the shape"),
        ({"n_clusters": 500}, ValueError, "n_clusters=500"),
        ({"nominal": ["no such"]}, ValueError, "nominal contains the column"),
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
