"""The controller with the package's own clusterer: the same from every source, on all values."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import bayes_lcs as bl
from bayes_lcs.learning_curve_sampling.trainer import with_all_categories


@pytest.fixture(scope="module")
def rows():
    """Two clusters in three columns of four values; the last value is in one row of 1,500 only."""
    rng = np.random.default_rng(12)
    cluster = rng.integers(2, size=(1500, 1))
    values = np.where(rng.random((1500, 3)) < 0.8, cluster, rng.integers(3, size=(1500, 3)))
    values[777, 0] = 3
    return values


OPTIONS = {
    "initial_size": 200,
    "holdout_size": 300,
    "baseline_size": 200,
    "alpha": 1e-4,
    "progress": False,
}


def sampled(source, **options):
    estimator = bl.MixtureClusterer(2, random_state=0)
    return bl.learning_curve_sample(estimator, source, **{**OPTIONS, **options})


def test_every_source_gives_the_same_curve(rows, tmp_path):
    frame = pd.DataFrame(rows, columns=["a", "b", "c"])
    frame.to_csv(tmp_path / "rows.csv", index=False)
    frame.to_parquet(tmp_path / "rows.parquet", index=False)
    expected = sampled(rows)
    assert expected.score > expected.baseline_score
    for source in (frame, frame.astype(str), tmp_path / "rows.csv", tmp_path / "rows.parquet"):
        found = sampled(source)
        assert found.baseline_score == pytest.approx(expected.baseline_score, rel=1e-12)
        first = expected.curve["score"].iloc[0]
        assert found.curve["score"].iloc[0] == pytest.approx(first, rel=1e-12)


def test_a_value_that_the_sample_has_not_met_is_no_free_cell(rows):
    """Scored as unknown, the one odd row would be more probable in a model that never saw it."""
    source = bl.row_source(rows)
    told = with_all_categories(bl.MixtureClusterer(2, random_state=0), source)
    assert told.categories[0].tolist() == [0, 1, 2, 3]
    usual = rows[rows[:, 0] < 3][:300]
    model = told.fit(usual)
    other = bl.MixtureClusterer(2, random_state=0).fit(usual)
    odd = rows[777:778]
    assert model.score(odd) < np.log(0.1)
    with pytest.warns(bl.DataWarning, match="for instance 3"):
        unknown = other.score(odd)
    assert model.score(odd) < unknown


def test_estimators_that_know_or_do_not_ask_are_left_alone(rows):
    source = bl.row_source(rows)
    given = bl.MixtureClusterer(2, categories=[[0, 1, 2, 3]] * 3)
    assert with_all_categories(given, source) is given
    log = sparse.csr_array((rows == 1).astype(np.int8))
    asked = bl.MixtureClusterer(2)
    assert with_all_categories(asked, bl.row_source(log)) is asked
    missing = bl.MixtureClusterer(2, missing_values=3)
    assert with_all_categories(missing, source).categories[0].tolist() == [0, 1, 2]


def test_sparse_equals_dense(rows):
    log = (rows == 1).astype(np.int8)
    dense, thin = sampled(log), sampled(sparse.csr_array(log))
    assert thin.curve["score"].iloc[0] == pytest.approx(dense.curve["score"].iloc[0], rel=1e-9)


@pytest.mark.parametrize("abbreviated", ["fixed-1", "thresh-0.1"])
def test_abbreviated_stages_end_in_full_training(rows, abbreviated):
    result = sampled(rows, abbreviated=abbreviated, alpha=1.0)
    assert result.model.converged_
    assert result.model.max_iter == 1000
    assert (result.model.stopping, result.model.tol) == ("absolute", 1e-3)
    first, second = result.run.fits[:2]
    assert first.mode == "full"
    assert second.mode == "abbreviated"
    assert second.iterations < first.iterations


def test_the_number_of_clusters_is_found(rows):
    result = sampled(rows, components=[1, 2, 4], alpha=1e-6)
    assert result.components >= 2
    assert result.model.n_components == result.components
