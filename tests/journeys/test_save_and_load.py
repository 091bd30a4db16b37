"""Fit today, save, load tomorrow, predict the same, from whatever the new rows come in."""

import numpy as np
import pytest

import bayes_lcs as bl
from tests.journeys.inputs import assert_all_equal, named_forms

FEATURES = ["town", "member", "children", "rating"]


@pytest.mark.parametrize("trained_on", ["pandas", "CSV", "Parquet", "polars"])
def test_a_mixture_is_the_same_after_loading(visits, tmp_path, trained_on):
    forms = named_forms(visits[FEATURES], tmp_path)
    model = bl.MixtureClusterer(2, random_state=0).fit(forms[trained_on])
    model.save(tmp_path / "model.nc")
    loaded = bl.load(tmp_path / "model.nc")
    assert loaded.feature_names_in_.tolist() == FEATURES
    for one, other in zip(loaded.categories_, model.categories_, strict=True):
        assert one.tolist() == other.tolist()
        assert one.dtype == other.dtype
    expected = model.predict_proba(visits)
    assert_all_equal(
        {"before": expected, **{name: loaded.predict_proba(rows) for name, rows in forms.items()}}
    )
    with pytest.warns(UserWarning, match="feature names"):
        array = loaded.predict(visits[FEATURES].to_numpy(object))
    np.testing.assert_array_equal(array, model.predict(visits))


@pytest.mark.parametrize("label", ["buys", "member", "town"])
def test_an_ensemble_is_the_same_after_loading(visits, tmp_path, label):
    forms = named_forms(visits, tmp_path)
    scan = bl.PartialScanClassifier("tree", n_partitions=4, early_stop=False, random_state=0)
    scan.fit_file(forms["CSV"], label=label)
    scan.save(tmp_path / "model.skops")
    loaded = bl.load(tmp_path / "model.skops")
    assert loaded.classes_.tolist() == scan.classes_.tolist() == sorted(set(visits[label]))
    assert loaded.classes_.dtype == scan.classes_.dtype
    expected = scan.predict(visits)
    assert_all_equal(
        {"before": expected, **{name: loaded.predict(rows) for name, rows in forms.items()}}
    )
    scan.fit(visits.drop(columns=label), visits[label])
    scan.save(tmp_path / "again.skops")
    again = bl.load(tmp_path / "again.skops")
    X = visits.drop(columns=label)
    np.testing.assert_array_equal(again.predict(X), scan.predict(X))


@pytest.mark.filterwarnings("ignore::bayes_lcs.SamplingWarning")
def test_a_posterior_is_the_same_after_loading(visits, tmp_path):
    rows = visits[["shop", "town", "member", "children", "buys"]]
    forms = named_forms(rows, tmp_path)
    del forms["folder"]
    data = bl.read_grouped(forms["CSV"], group="shop", label="buys")
    post = bl.sample(bl.ClusteredNaiveBayes(), data, draws=200, chains=2, seed=0)
    post.save(tmp_path / "fit.nc")
    loaded = bl.load(tmp_path / "fit.nc")
    expected = post.predict_proba(rows)
    assert_all_equal(
        {"before": expected, **{name: loaded.predict_proba(given) for name, given in forms.items()}}
    )
    decided = loaded.decide(rows)
    np.testing.assert_array_equal(decided, post.decide(rows))
    assert set(decided.tolist()) == {0, 1}


def test_a_stream_goes_on_after_loading(points, tmp_path):
    first, second = points.iloc[:150], points.iloc[150:]
    second.to_csv(tmp_path / "second.csv", index=False)
    whole = bl.CoresetStream(3, 40, random_state=0)
    whole.push(first)
    whole.save(tmp_path / "stream.npz")
    whole.push(second)
    loaded = bl.CoresetStream.load(tmp_path / "stream.npz")
    loaded.push(tmp_path / "second.csv")
    np.testing.assert_array_equal(loaded.coreset().points, whole.coreset().points)
    np.testing.assert_allclose(loaded.coreset().weights, whole.coreset().weights, rtol=1e-12)
