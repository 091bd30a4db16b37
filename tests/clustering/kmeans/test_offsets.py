"""Numbers far from zero: clusters, costs and distances are those of the same numbers near zero."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.metrics import adjusted_rand_score
from sklearn.tree import DecisionTreeClassifier

import bayes_lcs as bl
from bayes_lcs.clustering.generalized.learners.prototype import PrototypeLearner
from bayes_lcs.clustering.kmeans.init import STARTS, draw_centers, nearest


def blobs():
    rng = np.random.default_rng(0)
    centers = 8.0 * rng.normal(size=(3, 4))
    return centers[rng.integers(3, size=900)] + rng.normal(size=(900, 4))


DATA = {
    "blobs": blobs,
    "iris": lambda: load_iris().data,
    "wine": lambda: load_wine().data[:, :5],
    "breast_cancer": lambda: load_breast_cancer().data[:, :8],
}
OFFSETS = [1e7, 1e8]


@pytest.fixture(params=DATA)
def X(request):
    """Binary fractions of few digits, so that sums with offsets are exact."""
    return np.round(np.asarray(DATA[request.param](), np.float64) * 16.0) / 16.0


@pytest.mark.parametrize("offset", OFFSETS)
def test_distances_are_exact(X, offset):
    centers = X[[3, 77, 120]]
    expected = ((X[:, None] - centers) ** 2).sum(axis=2)
    labels, squares = nearest(X + offset, centers + offset)
    np.testing.assert_array_equal(labels, expected.argmin(axis=1))
    np.testing.assert_allclose(squares, expected.min(axis=1), rtol=1e-12)


@pytest.mark.parametrize("method", STARTS)
@pytest.mark.parametrize("offset", OFFSETS)
def test_starts_are_the_same_rows(method, offset):
    """Of rows without ties, which rounding would decide."""
    X = np.round(blobs() * 16.0) / 16.0
    near, far = (
        draw_centers(data, 4, method, np.random.RandomState(1), np.ones(len(X)))
        for data in (X, X + offset)
    )
    np.testing.assert_array_equal(far - offset, near)


@pytest.mark.parametrize("offset", OFFSETS)
def test_kmeans_and_its_scores(X, offset, tmp_path):
    weights = np.random.default_rng(0).integers(1, 4, size=len(X)).astype(float)
    near = bl.KMeans(3, n_init=5, random_state=0).fit(X, sample_weight=weights)
    far = bl.KMeans(3, n_init=5, random_state=0).fit(X + offset, sample_weight=weights)
    np.testing.assert_array_equal(far.labels_, near.labels_)
    np.testing.assert_array_equal(far.predict(X + offset), near.labels_)
    assert far.inertia_ == pytest.approx(near.inertia_, rel=1e-6)
    assert -far.score(X + offset, sample_weight=weights) == pytest.approx(near.inertia_, rel=1e-6)
    assert far.score(X + offset) == pytest.approx(near.score(X), rel=1e-6)
    np.testing.assert_allclose(far.transform(X + offset), near.transform(X), atol=1e-5)
    np.testing.assert_allclose(far.anomaly_score(X + offset), near.anomaly_score(X), atol=1e-5)
    path = tmp_path / "far.parquet"
    pd.DataFrame(X + offset).add_prefix("x").to_parquet(path, index=False)
    found = bl.KMeans(3, init=near.cluster_centers_ + offset)
    plain = bl.KMeans(3, init=near.cluster_centers_).fit(X)
    for memory in (1 << 28, 1):
        of_file = found.fit_file(path, memory=memory, folder=tmp_path)
        assert of_file.inertia_ == pytest.approx(plain.inertia_, rel=1e-6)
        assert adjusted_rand_score(of_file.labels_, plain.labels_) == 1.0


@pytest.mark.parametrize("offset", OFFSETS)
def test_online_kmeans(X, offset):
    near, far = (bl.OnlineKMeans(3, n_init=4, random_state=0).fit(data) for data in (X, X + offset))
    np.testing.assert_array_equal(far.labels_, near.labels_)
    assert far.score(X + offset) == pytest.approx(near.score(X), rel=1e-6)


@pytest.mark.parametrize("offset", OFFSETS)
def test_coresets(X, offset):
    near, far = (bl.coreset(data, 3, 60, random_state=2) for data in (X, X + offset))
    np.testing.assert_array_equal(far.indices, near.indices)
    np.testing.assert_allclose(far.distortions, near.distortions, rtol=1e-4, atol=1e-7)
    centers = X[[3, 77, 120]]
    expected = near.distortion(X, centers)
    assert far.distortion(X + offset, centers + offset) == pytest.approx(expected, rel=1e-9)


LEARNERS = {
    "naive_bayes": "naive_bayes",
    "prototype": "prototype",
    "means": PrototypeLearner(scale=False),
    "stump": "stump",
    "tree": DecisionTreeClassifier(max_depth=3, random_state=0),
    "discriminants": LinearDiscriminantAnalysis(),
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("assignment", ["strict", "weighted"])
@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("offset", OFFSETS)
def test_learners(X, learner, assignment, offset):
    learner = LEARNERS[learner]
    near, far = (
        bl.GeneralizedClusterer(learner, 3, assignment=assignment, random_state=0).fit(data)
        for data in (X, X + offset)
    )
    assert adjusted_rand_score(near.labels_, far.labels_) == 1.0
    assert adjusted_rand_score(near.labels_, far.predict(X + offset)) == 1.0


@pytest.mark.parametrize("far", [1e6, 1e8, 1e10])
def test_one_far_centre_leaves_distances_from_the_others(far):
    X = np.append(blobs(), np.full((9, 4), far), axis=0)
    kmeans = bl.KMeans(4, n_init=10, random_state=0).fit(X)
    expected = np.sqrt(((X[:, None] - kmeans.cluster_centers_) ** 2).sum(axis=2))
    np.testing.assert_allclose(kmeans.transform(X), expected, rtol=1e-9)
    np.testing.assert_array_equal(kmeans.transform(X).argmin(axis=1), kmeans.labels_)
    own = np.append(bl.KMeans(3, n_init=10, random_state=0).fit(blobs()).labels_, np.full(9, 3))
    online = bl.OnlineKMeans(4, random_state=0).fit(X)
    assert adjusted_rand_score(own, online.labels_) > 0.99


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("assignment", ["strict", "weighted"])
@pytest.mark.parametrize("learner", ["naive_bayes", "prototype", "perceptron_list", "stump"])
def test_units_of_columns_do_not_decide(X, learner, assignment):
    """Powers of two, so that nothing is rounded."""
    X = X[:, :4]
    units = np.array([2.0**30, 2.0**-10, 1.0, 2.0**5])
    start = np.eye(3)[np.random.default_rng(0).integers(3, size=len(X))]
    one, other = (
        bl.GeneralizedClusterer(
            learner, 3, assignment=assignment, init=start, random_state=0, max_iter=20
        ).fit(data)
        for data in (X, X * units)
    )
    assert adjusted_rand_score(one.labels_, other.labels_) == 1.0


@pytest.mark.parametrize("value", [0.0, 5.0, 1e9 + 0.1])
def test_a_constant_column_does_not_decide(value):
    X = blobs()
    constant = np.column_stack([X, np.full(len(X), value)])
    plain, more = (
        bl.GeneralizedClusterer("naive_bayes", 3, n_init=3, random_state=0).fit(data)
        for data in (X, constant)
    )
    np.testing.assert_array_equal(plain.labels_, more.labels_)
