"""Sizes that nobody gave follow the number of rows, wherever the rows lie."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.mixture import GaussianMixture
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeClassifier

import bayes_lcs as bl
from bayes_lcs.learning_curve_sampling.default_sizes import (
    default_holdout_size,
    default_initial_size,
    num_components_of,
)
from experiments.learning_curve.convergence import convergence_curves

# Rows, rows held out, sizes that may be visited.
SIZES = {
    3: (1, [2]),
    10: (2, [8]),
    50: (10, [40]),
    200: (40, [160]),
    699: (139, [200, 400, 560]),
    5000: (1000, [500, 1000, 2000, 4000]),
}
QUIET = {"progress": False, "alpha": 0.0}


def visits(num_rows: int) -> pd.DataFrame:
    """Rows of categories in two clusters."""
    rng = np.random.default_rng(num_rows)
    kind = rng.integers(2, size=(num_rows, 1))
    cells = np.where(rng.random((num_rows, 5)) < np.where(kind, 0.85, 0.1), "yes", "no")
    return pd.DataFrame(cells, columns=list("abcde"))


def points(num_rows: int) -> pd.DataFrame:
    """Numbers, and a label that they tell."""
    X = np.random.default_rng(num_rows).normal(size=(num_rows, 3)).round(3)
    frame = pd.DataFrame(X, columns=["p", "q", "r"])
    return frame.assign(kind=np.where(X[:, 0] + X[:, 1] > 0, "high", "low"))


def as_sources(frame: pd.DataFrame, folder) -> list:
    """The rows in memory, and as files."""
    frame.to_csv(folder / "rows.csv", index=False)
    frame.to_parquet(folder / "rows.parquet", index=False)
    return [frame, folder / "rows.csv", str(folder / "rows.parquet")]


@pytest.mark.parametrize("num_rows", SIZES)
def test_mixtures_of_any_number_of_rows(num_rows, tmp_path):
    holdout, sizes = SIZES[num_rows]
    frame = visits(num_rows)
    clusterer = bl.MixtureClusterer(2, random_state=0, precision="double")
    found = [
        bl.learning_curve_sample(clusterer, source, **QUIET)
        for source in (frame.to_numpy(), *as_sources(frame, tmp_path))
    ]
    for result in found:
        assert (result.holdout_size, result.total_rows) == (holdout, num_rows - holdout)
        assert result.initial_size == sizes[0]
        assert result.curve["size"].tolist() == sizes[: len(result.stages)]
        assert result.score == pytest.approx(found[0].score, rel=1e-9)
        told = result.summary()
        assert (told["holdout_size"], told["initial_size"]) == (holdout, sizes[0])


@pytest.mark.parametrize("num_rows", SIZES)
def test_classifiers_take_the_name_of_their_target(num_rows, tmp_path):
    holdout, sizes = SIZES[num_rows]
    frame = points(num_rows)
    tree = DecisionTreeClassifier(max_depth=3, random_state=0)
    X, y = frame[["p", "q", "r"]].to_numpy(), frame["kind"].to_numpy()
    plain = bl.learning_curve_sample(tree, X, y, **QUIET)
    assert plain.holdout_size == holdout
    assert plain.curve["size"].tolist() == sizes[: len(plain.stages)]
    for source in as_sources(frame, tmp_path):
        found = bl.learning_curve_sample(tree, source, "kind", **QUIET)
        assert found.curve["score"].tolist() == plain.curve["score"].tolist()
        assert found.model.n_features_in_ == 3
        assert sorted(found.model.classes_) == sorted(plain.model.classes_)
        assert len(found.explain()) > 0
        assert found.summary()["holdout_size"] == holdout


def test_a_row_is_too_few(tmp_path):
    for source in (np.zeros((1, 2)), *as_sources(visits(1), tmp_path)):
        with pytest.raises(bl.DataError, match=r"there is 1 row; .* needs at least 2"):
            bl.learning_curve_sample(bl.MixtureClusterer(2), source, **QUIET)
    with pytest.raises(bl.DataError, match=r"there are no rows; .* at least 2"):
        bl.learning_curve_sample(GaussianMixture(1), np.zeros((0, 2)), **QUIET)


def test_given_sizes_keep_their_meaning_and_their_error():
    X = points(699)[["p", "q", "r"]].to_numpy()
    found = bl.learning_curve_sample(
        GaussianMixture(2, random_state=0), X, holdout_size=600, initial_size=50, **QUIET
    )
    assert (found.holdout_size, found.initial_size) == (600, 50)
    for wrong in (699, 10_000, 0, -1):
        with pytest.raises(ValueError, match=f"a hold-out of {wrong} rows leaves nothing of 699"):
            bl.learning_curve_sample(GaussianMixture(2), X, holdout_size=wrong, **QUIET)
    with pytest.raises(ValueError, match="initial_size must be at least 1, got 0"):
        bl.learning_curve_sample(GaussianMixture(2), X, initial_size=0, **QUIET)


def test_every_size_is_possible():
    for num_rows in [*range(2, 3000), 10**5, 10**6, 10**9]:
        holdout = default_holdout_size(num_rows)
        left = num_rows - holdout
        assert 1 <= holdout <= min(10_000, max(num_rows // 5, 1))
        assert 1 <= default_initial_size(left) <= min(left, 40_000)
        assert default_initial_size(left, num_components=500) >= min(left, 500)
    assert default_initial_size(10**9, most=10_000) == 10_000


def test_the_first_sample_has_as_many_rows_as_components():
    """Inputs of which scikit-learn refuses fewer."""
    X = points(699)[["p", "q", "r"]].to_numpy()
    found = bl.learning_curve_sample(
        GaussianMixture(250, covariance_type="spherical", max_iter=2, tol=10.0, random_state=0),
        X,
        **QUIET,
    )
    assert found.initial_size == 250
    assert num_components_of(bl.MixtureClusterer([2, 7, 3])) == 7
    assert num_components_of(bl.KMeans(4)) == 4
    assert num_components_of(GaussianMixture(3), [2, 5]) == 5
    assert num_components_of(LogisticRegression()) == 1


def test_convergence_curves_of_few_rows(tmp_path):
    frame = points(699).drop(columns="kind")
    frame.to_csv(tmp_path / "rows.csv", index=False)
    for source in (frame.to_numpy(), tmp_path / "rows.csv"):
        found = convergence_curves(
            GaussianMixture(2, random_state=0), source, thresholds=[0.1], progress=False
        )
        assert found["size"].tolist() == [200, 400, 560]


def test_benefit_without_a_scale_is_not_a_number(tmp_path):
    """Two rows to score with: a tree is often as good as the shares of the labels."""
    rows = np.arange(10.0).reshape(-1, 1)
    found = bl.learning_curve_sample(
        DecisionTreeClassifier(), rows, np.zeros(10, int), baseline=1.0, **QUIET
    )
    assert found.score == found.baseline_score
    assert np.isnan(found.benefit)
    assert np.isnan(found.utility)
    assert "no gain over the base" in repr(found)
    found.save(tmp_path / "curve.json")


def test_files_are_read_as_the_estimator_takes_them(tmp_path):
    """Categories for what encodes them, also within a pipeline; numbers for all others."""
    frame = visits(300).assign(kind=points(300)["kind"])
    frame.to_csv(tmp_path / "rows.csv", index=False)
    found = bl.learning_curve_sample(
        make_pipeline(OneHotEncoder(handle_unknown="ignore"), LogisticRegression()),
        tmp_path / "rows.csv",
        "kind",
        **QUIET,
    )
    assert found.model[0].categories_[0].tolist() == ["no", "yes"]


def test_advice_about_the_target_can_be_followed(tmp_path):
    frame = points(60)
    X, y = frame[["p", "q", "r"]].to_numpy(), frame["kind"].to_numpy()
    path = tmp_path / "rows.csv"
    frame.to_csv(path, index=False)
    tree = DecisionTreeClassifier()
    for source in (path, str(path), [path, path]):
        with pytest.raises(bl.DataError, match="give y the name of the column"):
            bl.learning_curve_sample(tree, source, y, **QUIET)
    with pytest.raises(bl.DataError, match=r"y='kind' is a column name.*give y as an array"):
        bl.learning_curve_sample(tree, X, "kind", **QUIET)
    with pytest.raises(bl.DataError, match=r"bl\.row_source\(data, target=\.\.\.\)"):
        bl.learning_curve_sample(tree, bl.row_source(path, target="kind"), y, **QUIET)
    for source in (path, frame):
        with pytest.raises(bl.DataError, match="absent"):
            bl.learning_curve_sample(tree, source, "absent", **QUIET)
