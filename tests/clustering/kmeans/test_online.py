"""Online k-means against a plain loop, alone and several restarts together."""

import numpy as np
import pytest
from sklearn.utils.estimator_checks import estimator_checks_generator, parametrize_with_checks

import bayes_lcs as bl
from bayes_lcs import OnlineKMeans
from bayes_lcs.clustering.kmeans import online_kernel

CHECKED = OnlineKMeans(2, n_init=2, random_state=0)
EXPECTED_FAILURES = {
    "check_sample_weight_equivalence_on_dense_data": "a row of weight two moves a centre once, two "
    "rows move it twice: an online algorithm depends on the order of its rows",
}


@parametrize_with_checks([CHECKED], expected_failed_checks=lambda _: EXPECTED_FAILURES)
def test_the_contract_of_scikit_learn(estimator, check):
    check(estimator)


def test_the_checks_are_there():
    checks = list(estimator_checks_generator(CHECKED, legacy=True))
    assert len(checks) >= 49  # 53 in scikit-learn 1.9


def blobs(seed=0, num_rows=3000, num_clusters=3):
    rng = np.random.default_rng(seed)
    centers = 8.0 * rng.normal(size=(num_clusters, 2))
    return centers[rng.integers(num_clusters, size=num_rows)] + rng.normal(size=(num_rows, 2))


def plain(centers, rows, weights, decay):
    """The lecture's update, one row after the other."""
    centers, held = centers.copy(), np.zeros(len(centers))
    for x, w in zip(rows, weights, strict=True):
        c = np.argmin(((centers - x) ** 2).sum(axis=1))
        held[c] += w
        if w > 0:
            eta = w / held[c] if decay == 1.0 else min(w * (held[c] + 1.0) ** -decay, 1.0)
            centers[c] += eta * (x - centers[c])
    return centers, held


@pytest.mark.parametrize("decay", [1.0, 0.7])
def test_it_is_the_plain_loop_for_every_restart(decay):
    """Restarts in one pass are as each in a pass of its own."""
    rows = blobs(num_rows=5000)
    weights = np.random.default_rng(1).gamma(1.0, size=5000)
    weights[::7] = 0.0
    starts = np.stack([rows[i : i + 3] for i in (0, 10, 20, 30)])
    together = online_kernel.online_pass(online_kernel.init(starts), rows, weights, decay)
    for r, start in enumerate(starts):
        centers, held = plain(start, rows, weights, decay)
        np.testing.assert_allclose(together.centers[r], centers, rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(together.held[r], held, rtol=1e-10)
        alone = online_kernel.online_pass(online_kernel.init(start[None]), rows, weights, decay)
        np.testing.assert_allclose(alone.centers[0], together.centers[r], rtol=0, atol=1e-12)


def test_points_far_from_the_origin():
    """Distances from products would lose all their digits there."""
    rows = blobs(num_rows=500) + 1e7
    found = online_kernel.online_pass(online_kernel.init(rows[None, :3].copy()), rows, np.ones(500))
    centers, held = plain(rows[:3], rows, np.ones(500), 1.0)
    np.testing.assert_array_equal(found.held[0], held)
    np.testing.assert_allclose(found.centers[0] - 1e7, centers - 1e7, atol=1e-6)


def test_two_pieces_are_as_one():
    rows, weights = blobs(num_rows=900), np.ones(900)
    start = online_kernel.init(rows[None, :3].copy())
    whole = online_kernel.online_pass(start, rows, weights)
    half = online_kernel.online_pass(start, rows[:500], weights[:500])
    np.testing.assert_allclose(
        online_kernel.online_pass(half, rows[500:], weights[500:]).centers,
        whole.centers,
        rtol=1e-12,
    )


@pytest.mark.parametrize("decay", [1.0, 0.75])
def test_a_long_stream_ends_at_a_local_optimum(decay):
    """Lloyd's iterations from where it ended hardly move the centres."""
    X = blobs(3, 60_000)
    online = OnlineKMeans(3, n_init=4, decay=decay, random_state=0).fit(X)
    polished = bl.KMeans(3, init=online.cluster_centers_, tol=0).fit(X)
    moved = np.abs(polished.cluster_centers_ - online.cluster_centers_).max()
    assert moved < 0.15
    assert -online.score(X) < 1.01 * polished.inertia_


def test_the_restart_that_is_best_on_rows_held_back_is_taken():
    X = blobs(4, 4000, 6)
    online = OnlineKMeans(6, n_init=8, random_state=1).fit(X)
    assert online.holdout_costs_.shape == (8,)
    chosen = online.holdout_costs_.argmin()
    np.testing.assert_array_equal(online.cluster_centers_, online.all_centers_[chosen])
    costs = [bl.KMeans(6, init=c, max_iter=1).fit(X).inertia_ for c in online.all_centers_]
    assert costs[chosen] <= np.median(costs)
    assert len(online._kept_rows) == 400


def test_rows_held_back_are_a_random_sample_of_all():
    """Every row is equally likely to be held back, whichever batch it came in."""
    counts = np.zeros(10)
    for seed in range(60):
        online = OnlineKMeans(1, n_init=1, holdout_size=20, random_state=seed)
        for batch in range(10):
            online.partial_fit(np.full((40, 1), float(batch)))
        counts += np.bincount(online._kept_rows.ravel().astype(int), minlength=10)
    assert counts.sum() == 60 * 20
    expected = counts.sum() / 10
    chi2 = ((counts - expected) ** 2 / expected).sum()
    assert chi2 < 27.9  # 99.9 % of chi-squared with 9 degrees of freedom


def test_a_stream_of_batches(tmp_path):
    import pandas as pd
    import pyarrow.parquet as pq

    X = blobs(5, 4000)
    path = tmp_path / "rows.parquet"
    pd.DataFrame(X, columns=["a", "b"]).to_parquet(path)
    online = OnlineKMeans(3, random_state=0)
    online.fit_stream(pq.ParquetFile(path).iter_batches(batch_size=500))
    assert online.n_samples_seen_ == 4000
    assert online.feature_names_in_.tolist() == ["a", "b"]
    best = bl.KMeans(3, n_init=10, random_state=0).fit(X).inertia_
    assert -online.score(pd.DataFrame(X, columns=["a", "b"])) < 1.1 * best


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_stream_from_a_file(tmp_path, kind):
    import pandas as pd

    frame = pd.DataFrame(blobs(6, 3000), columns=["a", "b"])
    path = tmp_path / f"rows.{kind}"
    frame.to_csv(path, index=False) if kind == "csv" else frame.to_parquet(path)
    online = OnlineKMeans(3, random_state=0).fit_stream(path)
    assert online.n_samples_seen_ == 3000
    best = bl.KMeans(3, n_init=10, random_state=0).fit(frame).inertia_
    assert -online.score(frame) < 1.1 * best
    total = sum(block.to_numpy().sum() for block in bl.number_blocks(path))
    assert total == pytest.approx(frame.to_numpy().sum())


def test_a_cell_that_is_no_number_is_named(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("a,b\n1,2\n3,\n")
    with pytest.raises(bl.DataError, match=r"rows\.csv.*line 3.*column 'b'"):
        OnlineKMeans(1).fit_stream(path)
    # The columns are found in the first rows; a text cell much later is an error.
    path.write_text("a,b\n" + "1,2\n" * 3_000_000 + "3,x\n")
    with pytest.raises(bl.DataError, match=r"rows\.csv.*line 3000002.*column 'b'"):
        OnlineKMeans(1).fit_stream(path)
    path.write_text("a,b\n1,2\n3,x\n")
    with pytest.warns(bl.DataNote, match="columns without numbers are ignored: 'b'"):
        assert OnlineKMeans(1).fit_stream(path).feature_names_in_.tolist() == ["a"]


def test_the_first_batch_must_have_a_row_for_each_cluster():
    with pytest.raises(ValueError, match="n_clusters=5"):
        OnlineKMeans(5).partial_fit(np.zeros((3, 1)))
