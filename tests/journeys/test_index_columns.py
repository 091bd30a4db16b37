"""Files that pandas and R write with row numbers in a first column without a name."""

import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from typer.testing import CliRunner

import bayes_lcs as bl
from bayes_lcs.cli import app


def run(*words):
    found = CliRunner().invoke(app, [str(word) for word in words])
    assert found.exit_code == 0, found.output
    return found


def test_to_csv_and_back_without_thinking_of_the_index(visits, tmp_path):
    path = tmp_path / "visits.csv"
    rows = visits.drop(columns="rating")
    rows.to_csv(path)  # row numbers included

    with pytest.warns(bl.DataNote, match="index"):
        data = bl.read_grouped(path, group="shop", label="buys")
    assert data.feature_names == ("town", "member", "children")
    with pytest.warns(bl.DataNote, match="index"):
        again = bl.GroupedTable.from_frame(pd.read_csv(path), group="shop", label="buys")
    assert again.feature_names == data.feature_names
    np.testing.assert_array_equal(again.features, data.features)
    without = bl.GroupedTable.from_frame(rows, group="shop", label="buys")
    np.testing.assert_array_equal(without.features, data.features)


@pytest.mark.filterwarnings("ignore::bayes_lcs.DataNote")
def test_every_estimator_sets_the_index_aside(visits, points, tmp_path):
    rows = visits[["town", "member", "children"]]
    rows.to_csv(tmp_path / "rows.csv")
    points.to_csv(tmp_path / "points.csv")
    read_rows = pd.read_csv(tmp_path / "rows.csv")
    # The default of pandas loses the last digit of some numbers.
    read_points = pd.read_csv(tmp_path / "points.csv", float_precision="round_trip")

    mixture = bl.MixtureClusterer(2, random_state=0)
    expected = mixture.fit(rows).predict(rows)
    for given in (tmp_path / "rows.csv", read_rows):
        np.testing.assert_array_equal(mixture.fit(given).predict(rows), expected)
        np.testing.assert_array_equal(mixture.predict(given), expected)
    np.testing.assert_array_equal(mixture.fit_file(tmp_path / "rows.csv").predict(rows), expected)

    for model in (bl.KMeans(3, random_state=0), bl.OnlineKMeans(3, random_state=0)):
        expected = model.fit(points).predict(points)
        for given in (tmp_path / "points.csv", read_points):
            np.testing.assert_array_equal(model.fit(given).predict(given), expected)

    clusterer = bl.GeneralizedClusterer("naive_bayes", 2, random_state=0)
    expected = clusterer.fit(rows).labels_
    for given in (tmp_path / "rows.csv", read_rows):
        np.testing.assert_array_equal(clusterer.fit(given).predict(given), expected)

    expected = bl.coreset(points, 3, 50, random_state=0).points
    for given in (tmp_path / "points.csv", read_points):
        np.testing.assert_array_equal(bl.coreset(given, 3, 50, random_state=0).points, expected)

    visits.to_csv(tmp_path / "visits.csv")
    scan = bl.PartialScanClassifier("tree", n_partitions=4, early_stop=False, random_state=0)
    scan.fit(visits.drop(columns="buys"), visits["buys"])
    expected = scan.predict(visits.drop(columns="buys"))
    scan.fit_file(tmp_path / "visits.csv", label="buys")
    np.testing.assert_array_equal(scan.predict(visits), expected)
    np.testing.assert_array_equal(scan.predict(tmp_path / "visits.csv"), expected)
    read = pd.read_csv(tmp_path / "visits.csv")
    scan.fit(read.drop(columns="buys"), read["buys"])
    np.testing.assert_array_equal(scan.predict(read.drop(columns="buys")), expected)

    whole = bl.SharedNaiveBayesClassifier("complete").fit(visits, "buys", groups="shop")
    expected = whole.predict(visits, groups="shop")
    for given in (tmp_path / "visits.csv", read):
        whole.fit(given, "buys", groups="shop")
        np.testing.assert_array_equal(whole.predict(given, groups="shop"), expected)


def test_an_index_in_parquet_is_not_a_column_of_the_data(visits, tmp_path):
    rows = visits[["town", "member", "children"]].sample(frac=1, random_state=0)
    rows.to_parquet(tmp_path / "shuffled.parquet")  # pandas keeps this index in the file
    model = bl.MixtureClusterer(2, random_state=0).fit(rows)
    read = bl.MixtureClusterer(2, random_state=0).fit(tmp_path / "shuffled.parquet")
    assert read.feature_names_in_.tolist() == ["town", "member", "children"]
    np.testing.assert_array_equal(read.predict(rows), model.predict(rows))


def test_an_index_in_arrow_and_polars_is_not_a_column_of_the_data(visits, tmp_path):
    rows = visits[visits["children"] > 0]  # pandas stores the index of selected rows
    path = tmp_path / "rows.parquet"
    rows.to_parquet(path)
    expected = ["town", "member", "children", "rating", "shop", "buys"]
    for given in (pa.Table.from_pandas(rows), pl.read_parquet(path), ds.dataset(path)):
        model = bl.MixtureClusterer(2, random_state=0).fit(given)
        assert model.feature_names_in_.tolist() == expected
        means = bl.KMeans(2, random_state=0).fit(given)
        assert means.feature_names_in_.tolist() == ["member", "children", "rating", "buys"]
        data = bl.GroupedTable.from_frame(given, group="shop", label="buys")
        assert data.feature_names == ("town", "member", "children", "rating")


def test_commands_take_files_with_an_index(visits, points, tmp_path):
    visits.drop(columns="rating").to_csv(tmp_path / "visits.csv")
    points.to_csv(tmp_path / "points.csv")
    (tmp_path / "r.csv").write_text('"","width","height"\n"1",0,1\n"2",3,4\n"3",5,6\n')

    run("compare", tmp_path / "visits.csv", "--group", "shop", "--label", "buys",
        "--out", tmp_path / "compared", "--json")  # fmt: skip
    run("cluster", tmp_path / "visits.csv", "-k", 2, "--out", tmp_path / "clustered", "--json")
    run("scan", tmp_path / "visits.csv", "--label", "buys", "--parts", 4,
        "--out", tmp_path / "scanned", "--json")  # fmt: skip
    run("coreset", tmp_path / "points.csv", "-k", 3, "--size", 50,
        "--out", tmp_path / "small.csv", "--json")  # fmt: skip
    run("coreset", tmp_path / "r.csv", "-k", 1, "--size", 2, "--ignore", "",
        "--out", tmp_path / "tiny.csv", "--json")  # fmt: skip

    assert pd.read_csv(tmp_path / "small.csv").columns.tolist() == ["width", "height", "weight"]
    assert pd.read_csv(tmp_path / "tiny.csv").columns.tolist() == ["width", "height", "weight"]
    mixture = bl.load(tmp_path / "clustered" / "mixture.nc")
    assert mixture.feature_names_in_.tolist() == ["town", "member", "children", "shop", "buys"]
    ensemble = bl.load(tmp_path / "scanned" / "ensemble.skops")
    assert "Unnamed: 0" not in ensemble.feature_names_in_.tolist()
    assert ensemble.classes_.tolist() == [0, 1]


def test_an_index_that_is_named_is_used(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(",x\n0,a\n1,b\n1,a\n0,b\n")
    model = bl.MixtureClusterer(1).fit_file(path, features=["Unnamed: 0", "x"])
    assert [values.tolist() for values in model.categories_] == [[0, 1], ["a", "b"]]


def test_columns_of_arrays_are_never_set_aside():
    rows = np.arange(6).reshape(3, 2)
    assert bl.MixtureClusterer(1).fit(rows).n_features_in_ == 2
    assert bl.MixtureClusterer(1).fit(pd.DataFrame(rows)).n_features_in_ == 2  # columns 0 and 1


def test_json_of_a_command_is_not_disturbed_by_notes(points, tmp_path):
    points.to_csv(tmp_path / "points.csv")
    found = run("coreset", tmp_path / "points.csv", "-k", 3, "--out", tmp_path / "s.csv", "--json")
    assert json.loads(found.stdout)["rows"] == len(points)
