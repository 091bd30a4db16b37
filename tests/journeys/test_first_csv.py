"""The first hour: a frame, its CSV and Parquet files, every estimator, the same numbers."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeClassifier

import bayes_lcs as bl
from tests.journeys.inputs import assert_all_equal, in_all_forms, named_forms

FEATURES = ["town", "member", "children", "rating"]


def no_time():
    """A clock that stands still: what is sampled does not depend on the machine."""
    return 0.0


def test_a_mixture_fitted_to_a_file_predicts_a_frame(visits, tmp_path):
    rows = visits[FEATURES]
    forms = named_forms(rows, tmp_path)

    models = {
        name: bl.MixtureClusterer(2, random_state=0).fit(given) for name, given in forms.items()
    }
    assert_all_equal({name: model.score(rows) for name, model in models.items()})
    assert_all_equal({name: model.bic(rows) for name, model in models.items()})
    for model in models.values():
        assert [values.tolist() for values in model.categories_] == [
            ["Bonn", "Ulm"],
            [False, True],
            [0, 1, 2, 3],
            [0.5, 1.5, 2.5],
        ]

    read = bl.MixtureClusterer(2, random_state=0).fit_file(tmp_path / "rows.csv")
    assert read.score(pd.read_csv(tmp_path / "rows.csv")) == pytest.approx(
        models["pandas"].score(rows), abs=1e-9
    )
    predictions = {name: read.predict(given) for name, given in forms.items()}
    with pytest.warns(UserWarning, match="feature names"):  # as scikit-learn's estimators warn
        predictions["array"] = read.predict(rows.to_numpy(object))
    assert_all_equal(predictions)
    assert np.bincount(predictions["CSV"]).min() > 120  # two clusters of nearly 200 rows each


def test_a_learning_curve_on_a_file_gives_a_model_for_frames(visits, tmp_path):
    rows = visits[FEATURES]
    found = {
        name: bl.learning_curve_sample(
            bl.MixtureClusterer(2, random_state=0), given, clock=no_time, progress=False
        )
        for name, given in named_forms(rows, tmp_path).items()
    }
    assert_all_equal({name: result.sample_size for name, result in found.items()})
    assert_all_equal({name: result.model.score(rows) for name, result in found.items()})
    assert_all_equal({name: result.model.predict(rows) for name, result in found.items()})
    predicted = found["CSV"].model.predict(pd.read_csv(tmp_path / "rows.csv"))
    assert np.bincount(predicted).min() > 100


def test_a_learning_curve_of_a_classifier_names_the_target_column(visits, tmp_path):
    visits[["children", "rating", "buys"]].to_csv(tmp_path / "t.csv", index=False)
    tree = DecisionTreeClassifier(max_depth=3, random_state=0)

    X, y = visits[["children", "rating"]].to_numpy(), visits["buys"].to_numpy()
    found = {
        "arrays": bl.learning_curve_sample(tree, X, y, clock=no_time, progress=False),
        "frame": bl.learning_curve_sample(
            tree, pd.read_csv(tmp_path / "t.csv"), "buys", clock=no_time, progress=False
        ),
        "file": bl.learning_curve_sample(
            tree, tmp_path / "t.csv", "buys", clock=no_time, progress=False
        ),
        "source": bl.learning_curve_sample(
            tree,
            bl.row_source(tmp_path / "t.csv", target="buys", kind="numbers"),
            clock=no_time,
            progress=False,
        ),
    }
    for result in found.values():
        assert result.model.classes_.tolist() == [0, 1]
    frame = visits[["children", "rating"]]
    assert_all_equal(
        {
            name: result.model.predict(frame if name == "frame" else X)
            for name, result in found.items()
        }
    )


@pytest.mark.filterwarnings("ignore::bayes_lcs.SamplingWarning")  # three groups hardly ever move
def test_groups_are_compared_from_any_form(visits, tmp_path):
    rows = visits[["shop", "town", "member", "children", "buys"]]
    forms = named_forms(rows, tmp_path)
    del forms["folder"]  # read_grouped takes one file
    tables = {
        name: bl.read_grouped(given, group="shop", label="buys")
        if name in ("CSV", "Parquet")
        else bl.GroupedTable.from_frame(given, group="shop", label="buys")
        for name, given in forms.items()
    }
    models = [bl.NoSharing(), bl.CompleteSharing(), bl.ClusteredNaiveBayes()]
    evidence = {
        name: [one.value for one in bl.compare(models, data).evidences]
        for name, data in tables.items()
    }
    assert_all_equal(evidence)

    posterior = bl.exact(bl.ClusteredNaiveBayes(), tables["CSV"])
    assert_all_equal({name: posterior.predict_proba(given) for name, given in forms.items()})
    assert list(tables["CSV"].typed_label_values) == [0, 1]

    post = bl.sample(bl.ClusteredNaiveBayes(), tables["Parquet"], draws=500, chains=2, seed=0)
    decided = {name: post.decide(given) for name, given in forms.items()}
    assert_all_equal(decided)
    assert set(decided["CSV"]) == {0, 1}
    np.testing.assert_allclose(post.predict_proba(rows), posterior.predict_proba(rows), atol=0.02)


def test_the_classifier_of_groups_predicts_labels_of_their_type(visits, tmp_path):
    rows = visits[["shop", *FEATURES, "buys"]]
    new = rows.drop(columns="buys")
    found = {}
    for name, given in named_forms(rows, tmp_path).items():
        model = bl.SharedNaiveBayesClassifier("complete").fit(given, "buys", groups="shop")
        assert model.classes_.tolist() == [0, 1]
        found[name] = model.predict(new, groups="shop")
    assert_all_equal(found)
    assert (found["CSV"] == rows["buys"]).mean() > 0.8


def test_partial_scans_of_arrays_and_files_predict_numbers(visits, tmp_path):
    rows, y = visits[FEATURES], visits["buys"]
    visits[[*FEATURES, "buys"]].to_csv(tmp_path / "t.csv", index=False)
    visits[[*FEATURES, "buys"]].to_parquet(tmp_path / "t.parquet")

    def trees():
        return bl.PartialScanClassifier("tree", n_partitions=8, random_state=0, early_stop=False)

    found = {
        "frame": trees().fit(rows, y),
        "CSV": trees().fit_file(tmp_path / "t.csv", label="buys"),
        "Parquet": trees().fit_file(tmp_path / "t.parquet", label="buys"),
    }
    for model in found.values():
        assert model.classes_.tolist() == [0, 1]
        assert (model.predict(rows) == y).mean() > 0.8
    assert_all_equal({name: model.predict_proba(rows) for name, model in found.items()})
    forms = named_forms(rows, tmp_path / "new")
    assert_all_equal({name: found["CSV"].predict(given) for name, given in forms.items()})


def test_points_from_any_form_have_the_same_centers(points, tmp_path):
    forms = in_all_forms(points, tmp_path)
    del forms["sparse"]  # points are dense
    kmeans = {name: bl.KMeans(3, random_state=0).fit(rows) for name, rows in forms.items()}
    assert_all_equal({name: model.cluster_centers_ for name, model in kmeans.items()})
    array = forms.pop("NumPy")
    predictions = {name: kmeans["CSV"].predict(rows) for name, rows in forms.items()}
    predictions["NumPy"] = kmeans["NumPy"].predict(array)
    assert_all_equal(predictions)

    online = {name: bl.OnlineKMeans(3, random_state=0).fit(rows) for name, rows in forms.items()}
    assert_all_equal({name: model.cluster_centers_ for name, model in online.items()})

    files = {
        name: bl.KMeans(3, random_state=0).fit_file(forms[name]).cluster_centers_
        for name in ("CSV", "Parquet", "folder")
    }
    assert_all_equal(files)
    true_centers = [[0.0, 0.0], [0.0, 8.0], [8.0, 0.0]]
    for centers in (kmeans["CSV"].cluster_centers_, online["CSV"].cluster_centers_, files["CSV"]):
        ordered = centers[np.lexsort((centers[:, 1].round(), centers[:, 0].round()))]
        np.testing.assert_allclose(ordered, true_centers, atol=0.5)


def test_coresets_from_any_form_are_the_same_rows(points, tmp_path):
    forms = in_all_forms(points, tmp_path)
    del forms["sparse"]
    cost = bl.KMeans(3, random_state=0).fit(points).inertia_
    small = {name: bl.coreset(rows, 3, 60, random_state=0) for name, rows in forms.items()}
    assert_all_equal({name: one.points for name, one in small.items()})
    same = partial(np.testing.assert_allclose, rtol=1e-12)  # sums in another order
    assert_all_equal({name: one.weights for name, one in small.items()}, same)
    centers = small["CSV"].kmeans(3).cluster_centers_
    on_all = ((points.to_numpy()[:, None] - centers) ** 2).sum(-1).min(1).sum()
    assert cost <= on_all < 1.25 * cost

    streams = {}
    for name, rows in forms.items():
        stream = bl.CoresetStream(3, 60, random_state=0)
        stream.push(rows)
        streams[name] = stream.coreset().points
    assert_all_equal(streams)
    trees = {name: bl.coreset_tree(rows, 3, 60).points for name, rows in forms.items()}
    assert_all_equal(trees)


def test_any_learner_clusters_any_form(visits, tmp_path):
    rows = visits[FEATURES]
    forms = named_forms(rows, tmp_path)
    models = {
        name: bl.GeneralizedClusterer("naive_bayes", 2, random_state=0).fit(given)
        for name, given in forms.items()
    }
    assert_all_equal({name: model.labels_ for name, model in models.items()})
    assert_all_equal({name: models["CSV"].predict(given) for name, given in forms.items()})


def test_flags_are_numbers_for_points_from_every_source(points, tmp_path):
    rows = points.assign(flag=np.arange(len(points)) % 2 == 0)
    forms = named_forms(rows, tmp_path)
    fitted = {name: bl.KMeans(3, random_state=0).fit(given) for name, given in forms.items()}
    assert_all_equal({name: model.cluster_centers_ for name, model in fitted.items()})
    assert fitted["CSV"].n_features_in_ == 3
    del forms["pandas"]  # fit_file takes what is read in batches
    read = {name: bl.KMeans(3, random_state=0).fit_file(given) for name, given in forms.items()}
    assert_all_equal({name: model.cluster_centers_ for name, model in read.items()})
    trees = {name: bl.coreset_tree(given, 3, 50).points for name, given in forms.items()}
    assert_all_equal(trees)
