"""k-means: starts, weights, several starts, and the contract of scikit-learn."""

from itertools import pairwise

import numpy as np
import pytest
from sklearn.cluster import KMeans as SklearnKMeans
from sklearn.utils.estimator_checks import estimator_checks_generator, parametrize_with_checks

from bayes_lcs import KMeans
from bayes_lcs.clustering.kmeans.init import STARTS, draw_centers, nearest

CHECKED = KMeans(2, random_state=0)
EXPECTED_FAILURES = {
    "check_sample_weight_equivalence_on_dense_data": "starts are drawn by row: a row of weight "
    "two and two rows meet other random numbers, as in scikit-learn's own k-means",
}


@parametrize_with_checks([CHECKED], expected_failed_checks=lambda _: EXPECTED_FAILURES)
def test_the_contract_of_scikit_learn(estimator, check):
    check(estimator)


def test_the_checks_are_there():
    checks = list(estimator_checks_generator(CHECKED, legacy=True))
    assert len(checks) >= 54  # 58 in scikit-learn 1.9


def blobs(seed=0, num_rows=600, num_clusters=4, width=2):
    rng = np.random.default_rng(seed)
    centers = 10.0 * rng.normal(size=(num_clusters, width))
    return centers[rng.integers(num_clusters, size=num_rows)] + rng.normal(size=(num_rows, width))


def test_farthest_points_by_hand():
    X = np.array([[0.0], [1.0], [4.0], [10.0]])
    for seed in range(8):
        found = draw_centers(X, 3, "farthest", np.random.RandomState(seed), np.ones(4)).ravel()
        rest = {0.0: [10.0, 4.0], 1.0: [10.0, 4.0], 4.0: [10.0, 0.0], 10.0: [0.0, 4.0]}
        assert found[1:].tolist() == rest[found[0]]


@pytest.mark.parametrize("method", STARTS)
def test_points_of_no_weight_are_never_drawn(method):
    X = np.vstack([blobs(), [[1e3, 1e3]]])
    weights = np.ones(len(X))
    weights[-1] = 0.0
    for seed in range(5):
        found = draw_centers(X, 6, method, np.random.RandomState(seed), weights)
        assert found.shape == (6, 2)
        assert np.abs(found).max() < 500


def test_parallel_starts_are_as_good_as_one_by_one():
    X = blobs(3, 3000, 20, 4)
    costs = {
        method: np.mean(
            [
                nearest(X, draw_centers(X, 20, method, np.random.RandomState(s), np.ones(3000)))[
                    1
                ].sum()
                for s in range(10)
            ]
        )
        for method in ("k-means++", "k-means||")
    }
    assert costs["k-means||"] < 1.3 * costs["k-means++"]


def test_fewer_different_points_than_centres():
    X = np.repeat([[0.0], [1.0]], 5, axis=0)
    for method in STARTS:
        assert draw_centers(X, 4, method, np.random.RandomState(0), np.ones(10)).shape == (4, 1)


def test_the_cost_never_rises():
    X = blobs(1)
    start = X[:4]
    costs = [KMeans(4, init=start, max_iter=n, tol=0).fit(X).inertia_ for n in range(1, 12)]
    assert all(b <= a * (1 + 1e-12) for a, b in pairwise(costs))
    assert costs[-1] < costs[0]


def test_weights_are_repeated_rows():
    X = blobs(2, 60)
    weights = np.random.default_rng(0).integers(0, 4, size=60)
    weighted = KMeans(4, init=X[:4]).fit(X, sample_weight=weights)
    repeated = KMeans(4, init=X[:4]).fit(np.repeat(X, weights, axis=0))
    np.testing.assert_allclose(weighted.cluster_centers_, repeated.cluster_centers_, rtol=1e-10)
    assert weighted.inertia_ == pytest.approx(repeated.inertia_)
    assert weighted.score(X, sample_weight=weights) == pytest.approx(-weighted.inertia_)


def test_all_starts_are_kept_and_the_cheapest_taken():
    X = blobs(4, num_clusters=8)
    clusterer = KMeans(8, n_init=6, init="farthest", random_state=0).fit(X)
    costs = [result.inertia for result in clusterer.results_]
    assert len(costs) == 6
    assert clusterer.inertia_ == min(costs)
    np.testing.assert_array_equal(clusterer.labels_, clusterer.predict(X))
    same = SklearnKMeans(8, init=clusterer.cluster_centers_, n_init=1).fit(X)
    assert same.inertia_ == pytest.approx(clusterer.inertia_, rel=1e-3)


def test_what_is_refused():
    X = blobs()
    with pytest.raises(ValueError, match="n_clusters=700"):
        KMeans(700).fit(X)
    with pytest.raises(ValueError, match="shape"):
        KMeans(3, init=X[:2]).fit(X)
    with pytest.raises(ValueError, match="at least one non-zero"):
        KMeans(3).fit(X, sample_weight=np.zeros(len(X)))
    with pytest.raises(ValueError, match="'init' parameter"):
        KMeans(3, init="nearest").fit(X)


def test_strange_points_score_high():
    X = blobs(5)
    clusterer = KMeans(4, n_init=5, random_state=0).fit(X)
    scores = clusterer.anomaly_score(np.vstack([X, [[99.0, 99.0]]]))
    assert scores.argmax() == len(X)
    np.testing.assert_allclose(scores[:-1], clusterer.transform(X).min(axis=1), atol=1e-6)


@pytest.mark.parametrize("init", STARTS)
def test_starts_side_by_side_end_where_they_end_one_by_one(init):
    X = blobs(6, 800, 6)
    one, more = (KMeans(6, init=init, n_init=5, random_state=3, n_jobs=n).fit(X) for n in (1, 3))
    np.testing.assert_array_equal(one.cluster_centers_, more.cluster_centers_)
    assert [r.inertia for r in one.results_] == pytest.approx([r.inertia for r in more.results_])
    assert len({round(r.inertia, 6) for r in more.results_}) > 1  # each from a start of its own


@pytest.mark.parametrize(
    "places",
    [[0, 1, 2, 3, 1e9], [0, 1, 1e9, 1e9 + 1], [1e8, 1e8 + 1], [0, 1, 1e9, 1e9 + 3, -1e9, -1e9 + 2]],
)
def test_centres_on_two_scales_are_told_apart(places):
    rng = np.random.default_rng(0)
    centers = np.array(places, np.float64)[:, None] * np.ones(3)
    own = rng.integers(0, len(centers), 500)
    X = centers[own] + 0.1 * rng.normal(size=(500, 3))
    labels, squares = nearest(X, centers)
    np.testing.assert_array_equal(labels, own)
    np.testing.assert_allclose(squares, ((X - centers[own]) ** 2).sum(axis=1), rtol=1e-12)
