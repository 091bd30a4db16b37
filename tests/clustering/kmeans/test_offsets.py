"""Numbers far from zero: clusters, costs and distances are those of the same numbers near zero."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.metrics import adjusted_rand_score

import bayes_lcs as bl
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


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("assignment", ["strict", "weighted"])
@pytest.mark.parametrize("learner", ["naive_bayes", "prototype", "stump"])
@pytest.mark.parametrize("offset", OFFSETS)
def test_learners(X, learner, assignment, offset):
    near, far = (
        bl.GeneralizedClusterer(learner, 3, assignment=assignment, random_state=0).fit(data)
        for data in (X, X + offset)
    )
    assert adjusted_rand_score(near.labels_, far.labels_) == 1.0
    assert adjusted_rand_score(near.labels_, far.predict(X + offset)) == 1.0
