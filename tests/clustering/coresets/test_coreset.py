"""Coresets: unbiased, within their bounds, and never blind to what is small and far."""

from collections import Counter
from itertools import pairwise, permutations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import chisquare
from sklearn.mixture import GaussianMixture

import bayes_lcs as bl
from bayes_lcs.clustering.coresets import sampling_scores
from bayes_lcs.clustering.coresets.coreset import coreset
from bayes_lcs.clustering.coresets.sample_size import size_for
from bayes_lcs.clustering.coresets.sampling_scores import METHODS, importance
from bayes_lcs.clustering.kmeans.init import draw_centers, nearest


def blobs(seed=0, num_rows=2000, num_clusters=5, width=3):
    rng = np.random.default_rng(seed)
    centers = 6.0 * rng.normal(size=(num_clusters, width))
    return centers[rng.integers(num_clusters, size=num_rows)] + rng.normal(size=(num_rows, width))


def cost(X, weights, centers):
    return float(weights @ nearest(np.asarray(X), centers)[1])


@pytest.mark.parametrize("method", METHODS)
def test_the_cost_is_unbiased_also_of_a_coreset_of_a_coreset(method):
    X = blobs(num_rows=400)
    weights = np.random.default_rng(1).gamma(1.0, size=400)
    centers = X[:5] + 0.5
    exact = cost(X, weights, centers)
    found, again = [], []
    plain = {"method": method, "queries": 0}
    for seed in range(100):
        small = coreset(X, 5, 60, sample_weight=weights, random_state=seed, **plain)
        found.append(cost(small.points, small.weights, centers) / exact)
        less = coreset(
            small.points, 5, 30, sample_weight=small.weights, random_state=1000 + seed, **plain
        )
        again.append(cost(less.points, less.weights, centers) / exact)
    for ratios in (found, again):
        error = np.std(ratios) / np.sqrt(len(ratios))
        assert abs(np.mean(ratios) - 1.0) < 4.0 * error  # false alarm: 6e-5


def test_all_rows_are_their_own_coreset():
    X = blobs(num_rows=50)
    small = coreset(X, 3, 50, random_state=0)
    np.testing.assert_array_equal(small.points, X)
    np.testing.assert_array_equal(small.weights, np.ones(50))
    assert small.distortions == (0.0,) * 6


def test_rows_of_no_weight_are_never_drawn():
    X = blobs(num_rows=300)
    weights = np.ones(300)
    weights[::2] = 0.0
    small = coreset(X, 3, 100, sample_weight=weights, random_state=0)
    assert (small.indices % 2 == 1).all()
    np.testing.assert_array_equal(small.points, X[small.indices])
    assert small.total_weight == 150


FAR = {
    "one group": (np.array([[1000.0, 0.0]]), 20),
    "one group nearer": (np.array([[100.0, 0.0]]), 20),
    "three groups": (np.array([[1e3, 0.0], [0.0, 1e4], [-1e6, 0.0]]), 7),
    "single points": (np.array([[3e3, 0.0], [0.0, -3e3]]), 1),
}


@pytest.mark.parametrize("case", FAR)
@pytest.mark.parametrize("k", [4, 8])
def test_small_far_groups_are_kept(case, k):
    """Of 20,000 rows by 50 points, in at least 98 % of 200 seeds; uniform draws lose them."""
    places, each = FAR[case]
    rng = np.random.default_rng(0)
    far = [rng.normal(size=(each, 2)) + place for place in places]
    X = np.vstack([rng.normal(size=(20_000, 2)), *far])
    group = np.repeat(np.arange(len(places)), each)
    lost = dict.fromkeys(("sensitivity", "uniform"), 0)
    for method in lost:
        for seed in range(200 if method == "sensitivity" else 40):
            small = coreset(X, k, 50, method=method, queries=0, random_state=seed)
            kept = group[small.indices[small.indices >= 20_000] - 20_000]
            lost[method] += len(np.unique(kept)) < len(places)
    assert lost["sensitivity"] <= 4
    assert lost["uniform"] > 30


def test_heavy_rows_are_far_groups_too():
    """One row of weight 500, far away, among rows of weight one; and light rows are not drawn."""
    rng = np.random.default_rng(1)
    X = np.vstack([rng.normal(size=(5000, 3)), [[200.0, 0.0, 0.0]]])
    weights = np.append(np.ones(5000), 500.0)
    for seed in range(50):
        small = coreset(X, 3, 30, sample_weight=weights, queries=0, random_state=seed)
        assert 5000 in small.indices
    weights[-1] = 0.0
    assert 5000 not in coreset(X, 3, 30, sample_weight=weights, queries=0, random_state=0).indices


@pytest.mark.parametrize("k", [2, 5])
def test_scores_bound_the_cost_of_a_point(k):
    """``f(x) <= 4 s(x) (cost of B + cost of Q)``, for many drawn and optimised centres ``Q``."""
    # Three points in one place, far from all others: no distance tells that they matter.
    X = np.vstack([blobs(2, 297), np.full((3, 3), 80.0)])
    weights = np.random.default_rng(0).gamma(2.0, size=300)
    found = importance("sensitivity", X, weights, k, np.random.default_rng(1))
    assert weights @ found.scores <= 2 * (k + sampling_scores.MAX_FAR) + 1e-9
    rng = np.random.RandomState(2)
    for query in range(200):
        kind = ("k-means++", "farthest")[query % 2]
        near = X[:297] if query % 3 == 0 else X
        centers = draw_centers(near, k, kind, rng, weights[: len(near)]) + rng.normal(size=(k, 3))
        if query % 10 == 0:
            centers = bl.KMeans(k, init=centers).fit(X, sample_weight=weights).cluster_centers_
        squares = nearest(X, centers)[1]
        assert (squares <= 4.0 * found.scores * (weights @ squares + found.cost)).all()


def test_sensitivities_by_hand(monkeypatch):
    """Share of the cost of its cluster, and one over the weight of the cluster."""
    labels, squares = np.array([0, 0, 1, 1, 1]), np.array([1.0, 3.0, 0.0, 0.0, 0.0])
    weights = np.array([2.0, 1.0, 1.0, 1.0, 2.0])
    monkeypatch.setattr(sampling_scores, "_draw_by_distance", lambda *_: (labels, squares))
    monkeypatch.setattr(sampling_scores, "MAX_FAR", 0)
    found = importance("sensitivity", np.zeros((5, 1)), weights, 2, np.random.default_rng(0))
    expected = [1 / 5 + 1 / 3, 3 / 5 + 1 / 3, 1 / 4, 1 / 4, 1 / 4]
    np.testing.assert_allclose(found.scores, expected, rtol=1e-12)
    assert found.cost == 5.0


@pytest.mark.parametrize("distance", [1.0, 30.0])
def test_far_rows_open_a_cluster_if_they_carry_cost(monkeypatch, distance):
    """One cluster at zero: two far rows get a cluster of their own, and near ones do not."""
    X = np.append(np.linspace(-3.0, 3.0, 101), [distance, distance])[:, None]
    labels, squares = np.zeros(103, np.int64), X[:, 0] ** 2
    monkeypatch.setattr(sampling_scores, "_draw_by_distance", lambda *_: (labels, squares))
    monkeypatch.setattr(sampling_scores, "MAX_FAR", 1)
    found = importance("sensitivity", X, np.ones(103), 1, np.random.default_rng(0))
    share = found.scores[-2:].sum() / found.scores.sum()
    if distance > 3.0:
        assert found.scores[-2:].tolist() == [0.5, 0.5]  # one over the weight of their cluster
        assert found.cost == pytest.approx((X[:-2] ** 2).sum())
    else:
        assert share < 0.05


def test_light_scores_bound_the_share_of_a_point():
    X = blobs(3, 300)
    found = importance("lightweight", X, np.ones(300), 4, np.random.default_rng(1))
    assert found.scores.mean() == pytest.approx(1.0)
    variance = nearest(X, X.mean(axis=0)[None])[1].mean()
    rng = np.random.RandomState(0)
    for _ in range(200):
        squares = nearest(X, draw_centers(X, 4, "k-means++", rng, np.ones(300)))[1]
        assert (squares <= 16.0 * found.scores * 0.5 * (squares.mean() + variance)).all()


def test_first_points_have_the_distribution_of_one_by_one(monkeypatch):
    """Pairs after the first, enumerated; with proposals so few that most distances are old."""
    monkeypatch.setattr(sampling_scores, "PROPOSALS", 3)
    X = np.array([[0.0], [1.0], [3.0], [7.0]])
    weights = np.array([1.0, 2.0, 1.0, 0.5])
    exact: dict[tuple[int, ...], float] = {}
    for order in permutations(range(4), 3):
        chance, squares = weights[order[0]] / weights.sum(), np.full(4, np.inf)
        for past, chosen in pairwise(order):
            squares = np.minimum(squares, (X - X[past]).ravel() ** 2)
            chance *= weights[chosen] * squares[chosen] / (weights @ squares)
        cells = nearest(X, X[list(order)])[0]
        exact[tuple(cells)] = exact.get(tuple(cells), 0.0) + chance
    rng = np.random.default_rng(0)
    draws = 20_000
    seen = Counter(
        tuple(sampling_scores._draw_by_distance(X, weights, 3, rng)[0]) for _ in range(draws)
    )
    assert set(seen) == set(exact)
    expected = [draws * exact[cells] for cells in exact]
    assert chisquare([seen[cells] for cells in exact], expected).pvalue > 1e-4


@pytest.mark.slow
@pytest.mark.parametrize(("method", "epsilon"), [("sensitivity", 0.5), ("lightweight", 0.25)])
def test_errors_stay_within_epsilon_at_the_promised_rate(method, epsilon):
    """200 drawn and 20 optimised sets of centres, chosen before the coresets are drawn."""
    X, delta = blobs(4, 60_000, 3), 0.1
    spread = cost(X, np.ones(len(X)), X.mean(axis=0)[None])
    rng = np.random.RandomState(0)
    queries = [X[rng.choice(len(X), 3)] + rng.normal(size=(3, 3)) for _ in range(200)]
    queries += [bl.KMeans(3, random_state=s).fit(X[s::20]).cluster_centers_ for s in range(20)]
    costs = [cost(X, np.ones(len(X)), q) for q in queries]
    failures = np.zeros(len(queries))
    for seed in range(20):
        small = coreset(
            X, 3, method=method, epsilon=epsilon, delta=delta, queries=0, random_state=seed
        )
        assert small.bound.size < len(X)
        reference = small.bound.reference_cost if method == "sensitivity" else spread
        for i, (query, exact) in enumerate(zip(queries, costs, strict=True)):
            scale = 0.5 * (exact + reference)
            failures[i] += abs(cost(small.points, small.weights, query) - exact) > epsilon * scale
    assert failures.mean() / 20 <= delta
    assert failures.sum() == 0  # Bernstein is generous


def test_bounds_say_what_they_promise_and_what_they_cannot():
    assert "squared diameter" in size_for("uniform", 0.1, 0.1).statement
    assert "variance" in size_for("lightweight", 0.1, 0.1).statement
    sharp, rough = (size_for("sensitivity", eps, 0.1, 50.0).size for eps in (0.1, 0.2))
    assert 3.5 < sharp / rough < 4.1
    assert "rough centres" in size_for("sensitivity", 0.1, 0.1, 6.0).statement
    with pytest.raises(ValueError, match="no bound is known"):
        size_for("adaptive", 0.1, 0.1)
    with pytest.raises(ValueError, match=r"must lie in \(0, 1\)"):
        size_for("uniform", 0.0, 0.1)


def test_categories_are_clustered_from_their_coreset():
    rng = np.random.default_rng(0)
    kind = rng.integers(2, size=3000)
    words = np.array([["ab", "cd"], ["xy", "zw"]], dtype=object)
    rows = np.column_stack(
        [np.where(rng.random(3000) < 0.9, words[kind, 0], words[1 - kind, 0]) for _ in range(6)]
    )
    frame = pd.DataFrame(rows).add_prefix("c")
    small = coreset(frame, 2, 200, objective="categorical", random_state=0)
    assert isinstance(small.points, pd.DataFrame)
    assert max(map(abs, small.distortions)) < 0.2
    clusterer = bl.MixtureClusterer(2, random_state=0, init="random", n_init=3)
    clusterer.fit(small.points, sample_weight=small.weights)
    labels = clusterer.predict(frame)
    agree = (labels == kind).mean()
    assert max(agree, 1 - agree) > 0.97


def test_gaussian_mixtures_are_fitted_from_a_coreset():
    X = blobs(5, 8000, 3)
    small = coreset(X, 3, 1000, objective="gaussian", random_state=0)
    assert abs(small.weights.sum() / 8000 - 1.0) < 0.2
    repeats = np.random.RandomState(0).choice(
        len(small), 5000, p=small.weights / small.weights.sum()
    )
    fitted = GaussianMixture(3, n_init=3, random_state=0).fit(small.points[repeats])
    best = GaussianMixture(3, n_init=3, random_state=0).fit(X)
    assert fitted.score(X) > best.score(X) - 0.1


def test_the_same_seed_gives_the_same_points_and_says_so():
    X = blobs()
    one, two = (coreset(X, 5, 100, random_state=3) for _ in range(2))
    np.testing.assert_array_equal(one.indices, two.indices)
    assert f"{len(one)} weighted points for 2,000 rows (sensitivity)" in str(one)
    assert one.distortion(X, X[:5]) == pytest.approx(
        cost(one.points, one.weights, X[:5]) / cost(X, np.ones(len(X)), X[:5]) - 1.0
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"size": 10, "method": "best"}, "method must be one of"),
        ({"size": 10, "method": "adaptive"}, "one of sensitivity, lightweight, uniform, got"),
        ({"size": 10, "objective": "median"}, "objective must be one of"),
        ({}, "either a size or an epsilon"),
        ({"size": 10, "epsilon": 0.1}, "either a size or an epsilon"),
        ({"size": 0}, "at least 1"),
        ({"size": 5, "sample_weight": -np.ones(2000)}, "[Nn]egative"),
    ],
)
def test_what_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        coreset(blobs(), 3, **options)


def test_bad_numbers_are_refused():
    with pytest.raises(ValueError, match="NaN"):
        coreset(np.array([[np.nan], [1.0]]), 1, 1)
    with pytest.raises(ValueError, match="minimum of 1"):
        coreset(np.empty((0, 2)), 1, 1)


def test_kmeans_of_a_coreset_knows_the_columns():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(300, 2)), columns=["x", "y"]).assign(town="Ulm")
    with pytest.warns(bl.DataNote, match="'town'"):
        small = bl.coreset(frame, 3, 50, random_state=0)
    found = small.kmeans(3, random_state=0)
    expected = found.predict(frame[["x", "y"]])
    np.testing.assert_array_equal(found.predict(frame[["town", "x", "y"]]), expected)
    with pytest.raises(ValueError, match="feature names should match"):
        found.predict(frame[["y", "x"]])
    with pytest.raises(bl.DataError, match="row 7, column 'x': there is no number in 1 of"):
        bl.coreset(frame.assign(x=frame["x"].where(frame.index != 7)), 3, 50)
    with pytest.raises(bl.DataError, match="there is no numeric column"):
        bl.coreset(frame[["town"]], 3, 50)
