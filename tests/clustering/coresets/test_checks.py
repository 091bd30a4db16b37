"""Errors that coresets report: they hold for centres found on the coreset, also in streams."""

import json
import re
import warnings

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris, load_wine

import bayes_lcs as bl
from bayes_lcs.clustering.coresets import tree as tree_module
from bayes_lcs.clustering.coresets.checks import SAMPLE_FORMAT, CheckSample, compare_costs
from bayes_lcs.clustering.kmeans.init import nearest
from bayes_lcs.runtime.atomic_files import load_datatree, save_datatree

WAYS = ("coreset", "stream", "tree")
K = 4


def far_points(seed=0, num_rows=6000):
    X = np.random.default_rng(seed).normal(size=(num_rows, 3))
    X[:20] += 500.0
    return X


def small_clouds(seed=1):
    rng = np.random.default_rng(seed)
    centers = np.array([[0, 0], [4, 0], [0, 5], [80, 0], [0, -90]])
    return centers[rng.choice(5, 5000, p=[0.4, 0.3, 0.29, 0.005, 0.005])] + rng.normal(
        size=(5000, 2)
    )


DATA = {
    "iris": lambda: load_iris().data,
    "wine": lambda: load_wine().data,
    "breast_cancer": lambda: load_breast_cancer().data,
    "diabetes": lambda: load_diabetes().data,
    "digits": lambda: load_digits().data,
    "far_points": far_points,
    "small_clouds": small_clouds,
    "heavy_tails": lambda: np.random.default_rng(2).standard_t(1.5, size=(5000, 4)),
}


def make(way, X, size, seed, method="sensitivity"):
    if way == "tree":
        return bl.coreset_tree(X, K, size, method=method, block_rows=500, random_state=seed)
    if way == "stream":
        stream = bl.CoresetStream(K, size, method=method, random_state=seed)
        stream.push(X)
        return stream.coreset(reduced=True)
    return bl.coreset(X, K, size, method=method, random_state=seed)


def true_error(small, X, seed):
    centers = small.kmeans(K, n_init=10, random_state=seed).cluster_centers_
    on_coreset = float(small.weights @ nearest(np.asarray(small.points), centers)[1])
    return abs(compare_costs(on_coreset, float(nearest(X, centers)[1].sum())))


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_true_errors_exceed_reported_ones_in_one_case_of_ten(way):
    """Eight data sets, seven seeds, and centres found from starts that the check did not have."""
    cases, exceeded = 0, 0
    for load in DATA.values():
        X = np.asarray(load(), np.float64)
        for seed in range(7):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)
                small = make(way, X, 80, seed)
            cases += 1
            exceeded += true_error(small, X, 1000 + seed) > small.largest_error
    assert cases == 56
    assert exceeded / cases <= 0.1


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("data", [far_points, small_clouds])
def test_missed_far_groups_are_reported_and_warned_of(way, data):
    """Uniform draws miss the groups, and centres found on them cost far more on the data."""
    X = data()
    noticed = 0
    for seed in range(3):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            small = make(way, X, 50, seed, "uniform")
        true = true_error(small, X, seed)
        if true > 2.0:
            noticed += 1
            assert small.largest_error > 0.5 * true
            assert any("do not stand for the data" in str(one.message) for one in told)
            assert "method='sensitivity'" in str(told[-1].message)
    assert noticed
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert make(way, X, 200, 0).largest_error < 0.5


def test_found_centres_are_among_the_checks():
    X = far_points()
    with pytest.warns(UserWarning, match=r"cost [\d,.e+]+ times as much on the data as on the cor"):
        small = bl.coreset(X, 3, 60, method="uniform", random_state=1)
    assert len(small.distortions) == 6
    assert small.checked_on == "all rows"
    assert min(small.distortions[2:]) < -100
    assert small.largest_error == max(map(abs, small.distortions))
    assert "in 6 checks on all rows" in str(small)
    unchecked = bl.coreset(X, 3, 60, method="uniform", queries=0, random_state=1)
    assert (unchecked.distortions, unchecked.checked_on) == ((), "")
    assert np.isnan(unchecked.largest_error)
    assert "checks" not in str(unchecked)


def together(seed, num_rows=12_000):
    """Rows far from all others, one after another in the middle of the data."""
    X = np.random.default_rng(1000 + seed).normal(size=(num_rows, 3))
    X[num_rows // 2 : num_rows // 2 + 15] += 2000.0
    return X


@pytest.mark.slow
@pytest.mark.parametrize("way", ["stream", "tree"])
def test_far_rows_that_come_together_do_not_upset_the_check(way):
    """Forty seeds: the coreset holds these rows, and so must the sample."""
    exceeded = 0
    for seed in range(40):
        X = together(seed, 40_000)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            small = make(way, X, 60, seed)
        assert small.largest_error < 10.0
        exceeded += true_error(small, X, 1000 + seed) > small.largest_error
    assert exceeded <= 4


def test_samples_keep_far_rows_that_come_together():
    """In one leaf, in one of two samples that are merged, and beside rows that are farther yet."""
    for seed in range(40):
        X = together(seed)
        X[100:105] -= 1e6
        rng = np.random.default_rng(seed)
        samples = [CheckSample(K, 300), CheckSample(K, 300)]
        for leaf in range(60):
            own = X[200 * leaf : 200 * leaf + 200]
            samples[leaf // 30].add_leaf(own, np.ones(200), rng)
        samples[0].merge(samples[1])
        rows, weights, kept = samples[0].with_rows(X[:0], np.ones(0))
        far = np.abs(rows).max(axis=1) > 1000.0
        assert far.sum() == 20
        assert (weights[far] == 1.0).all()
        assert (kept[far] == 1.0).all()
        # Probabilities are those of all reductions together.
        np.testing.assert_allclose(weights * kept, 1.0)


def test_costs_on_a_sample_are_unbiased_with_their_standard_error():
    """Merged samples of leaves with weights, reduced many times, against the costs on all rows."""
    X = np.vstack([small_clouds(3), small_clouds(4)])
    weights = np.random.default_rng(0).gamma(2.0, size=len(X))
    centers = X[[0, 900, 2500]] + 1.0
    exact = float(weights @ nearest(X, centers)[1])
    found = []
    for seed in range(100):
        rng = np.random.default_rng(seed)
        samples = [CheckSample(3, 100), CheckSample(3, 100)]
        for leaf, start in enumerate(range(0, len(X), 200)):
            own = slice(start, start + 200)
            samples[leaf % 2].add_leaf(X[own], weights[own], rng)
        samples[0].merge(samples[1])
        assert 100 <= len(samples[0].rows) <= 400
        found.append(samples[0].with_rows(X[:0], weights[:0]).cost(centers))
    values, errors = np.array(found).T / exact
    assert abs(np.mean(values) - 1.0) < 4.0 * np.std(values) / 10.0
    assert 0.75 < np.sqrt(np.mean(errors**2)) / np.std(values) < 1.33


def test_a_sample_of_all_rows_is_exact():
    X = small_clouds()[:400]
    sample = CheckSample(2, 500)
    sample.add_leaf(X[:300], np.ones(300), np.random.default_rng(0))
    cost, error = sample.with_rows(X[300:], np.ones(100)).cost(X[:2])
    assert error == 0.0
    assert cost == pytest.approx(nearest(X, X[:2])[1].sum())
    small = bl.coreset_tree(X, 2, 100, block_rows=200)
    assert small.checked_on == "all rows"


def test_streams_keep_their_checks_when_saved_and_merged(tmp_path):
    X = far_points(num_rows=12_000)
    whole = bl.CoresetStream(K, 100, random_state=1)
    whole.push(X)
    stream = bl.CoresetStream(K, 100, random_state=1)
    stream.push(X[:6666])
    stream.save(tmp_path / "stream.nc")
    again = bl.CoresetStream.load(tmp_path / "stream.nc")
    assert again.coreset().distortions == stream.coreset().distortions
    again.push(X[6666:])
    assert again.coreset().distortions == whole.coreset().distortions
    assert re.fullmatch(r"a sample of [1-3],\d{3} of 12,000 rows", whole.coreset().checked_on)
    assert whole.coreset(checked=False).distortions == ()
    left, right = (bl.CoresetStream(K, 100, random_state=s) for s in (1, 2))
    left.push(X[:6000])
    right.push(X[6000:])
    left.merge(right)
    small = left.coreset(reduced=True)
    assert "of 12,000 rows" in small.checked_on
    assert true_error(small, X, 0) < small.largest_error


def test_samples_of_other_versions(tmp_path):
    """Earlier ones could miss far rows and are not used; later ones are not understood."""
    path = tmp_path / "stream.nc"
    stream = bl.CoresetStream(K, 100, random_state=1)
    stream.push(far_points())
    for version, found in ((None, 0), (SAMPLE_FORMAT, 6), (SAMPLE_FORMAT + 1, None)):
        stream.save(path)
        tree = load_datatree(path)
        described = json.loads(tree.attrs["coreset_stream"])
        assert described.pop("sample_format") == SAMPLE_FORMAT
        if version is not None:
            described["sample_format"] = version
        tree.attrs["coreset_stream"] = json.dumps(described)
        save_datatree(tree, path)
        if found is None:
            with pytest.raises(bl.DataError, match="later version of bayes_lcs"):
                bl.CoresetStream.load(path)
            continue
        again = bl.CoresetStream.load(path)
        assert len(again.coreset().distortions) == found
        np.testing.assert_array_equal(again.coreset().points, stream.coreset().points)


def test_checks_of_trees_do_not_depend_on_the_executor(monkeypatch):
    X = together(0)
    one = bl.coreset_tree(X, K, 300, block_rows=500)
    monkeypatch.setattr(tree_module, "BLOCKS_AT_ONCE", 7)
    two = bl.coreset_tree(X, K, 300, block_rows=500)
    with bl.executor("processes", workers=2) as runner:
        three = bl.coreset_tree(X, K, 300, block_rows=500, executor=runner)
    assert "a sample of" in one.checked_on
    for other in (two, three):
        assert (other.distortions, other.checked_on) == (one.distortions, one.checked_on)


def test_reports_say_when_a_coreset_is_poor():
    from bayes_lcs.report.coreset import coreset_page

    X = far_points()
    with pytest.warns(UserWarning, match="do not stand for the data"):
        poor = bl.coreset(X, 3, 60, method="uniform", random_state=1)
    assert "Do not rely on them" in coreset_page(poor, ["a", "b", "c"])
    good = coreset_page(bl.coreset(X, 3, 300, random_state=1), ["a", "b", "c"])
    assert "Do not rely on them" not in good
    assert "fitted to the points by k-means" in good


def test_fewer_points_than_clusters():
    """One point for three clusters: its own cost is zero, that of the data is not."""
    X = small_clouds()[:200]
    with pytest.warns(UserWarning, match="infinitely many times"):
        small = bl.coreset(X, 3, 2, random_state=0)
    assert small.largest_error == np.inf
    same = bl.coreset(np.ones((50, 2)), 3, 2, random_state=0)
    assert same.largest_error == 0.0
