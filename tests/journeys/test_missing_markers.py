"""Missing cells as people write them: nothing, ?, NA, NaN; and how to say otherwise."""

import warnings

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import bayes_lcs as bl
from bayes_lcs.cli import app
from tests.journeys.inputs import assert_all_equal, named_forms

MARKERS = ["", "?", "NA", "NaN", "n/a", "NULL", "nan"]


@pytest.fixture
def cells():
    """Three columns, a number, a flag and a text, each with one hole in ten."""
    rng = np.random.default_rng(5)
    kind = rng.integers(0, 2, 200)
    frame = pd.DataFrame(
        {
            "age": np.where(rng.random(200) < 0.9, kind, 2),
            "member": rng.random(200) < 0.2 + 0.6 * kind,
            "town": np.where(rng.random(200) < 0.9, "Ulm", "Bonn"),
            "who": rng.choice(["ann", "bob"], 200),
            "buys": kind,
        }
    ).astype(object)
    for i, name in enumerate(["age", "member", "town"]):
        frame.loc[frame.index % 10 == i, name] = None
    return frame


def write(frame, marker, path):
    frame.where(frame.notna(), marker).to_csv(path, index=False)
    return path


@pytest.mark.filterwarnings("ignore::bayes_lcs.DataNote")
def test_every_marker_gives_the_same_fit(cells, tmp_path):
    rows = cells[["age", "member", "town"]]
    paths = {m: write(rows, m, tmp_path / f"{i}.csv") for i, m in enumerate(MARKERS)}
    models = {m: bl.MixtureClusterer(2, random_state=0).fit(path) for m, path in paths.items()}
    models["frame"] = bl.MixtureClusterer(2, random_state=0).fit(rows)
    models["frame of file"] = bl.MixtureClusterer(2, random_state=0).fit(pd.read_csv(paths["NA"]))
    for model in models.values():
        assert [values.tolist() for values in model.categories_] == [
            [0, 1, 2],
            [False, True],
            ["Bonn", "Ulm"],
        ]
    assert_all_equal({name: model.score(rows) for name, model in models.items()})
    assert_all_equal({m: models["?"].predict_proba(path) for m, path in paths.items()})
    files = {m: bl.MixtureClusterer(2, random_state=0).fit_file(path) for m, path in paths.items()}
    assert_all_equal({m: model.score(rows) for m, model in files.items()})


@pytest.mark.filterwarnings("ignore::bayes_lcs.DataNote")
def test_every_marker_gives_the_same_groups_and_scan(cells, tmp_path):
    paths = {m: write(cells, m, tmp_path / f"{i}.csv") for i, m in enumerate(MARKERS)}
    tables = {m: bl.read_grouped(path, group="who", label="buys") for m, path in paths.items()}
    assert_all_equal({m: data.features for m, data in tables.items()})
    assert tables["?"].values == (("0", "1", "2"), ("False", "True"), ("Bonn", "Ulm"))
    assert (tables["NA"].features < 0).sum() == 60

    scans = {}
    for m, path in paths.items():
        scan = bl.PartialScanClassifier("tree", n_partitions=4, early_stop=False, random_state=0)
        scan.fit_file(path, label="buys")
        assert scan.classes_.tolist() == [0, 1]
        scans[m] = scan.predict(path)
    assert_all_equal(scans)

    shared = {
        m: bl.SharedNaiveBayesClassifier("complete")
        .fit(path, "buys", groups="who")
        .predict_proba(path, groups="who")
        for m, path in paths.items()
    }
    assert_all_equal(shared)


def test_a_note_counts_the_markers(cells, tmp_path):
    path = write(cells, "?", tmp_path / "t.csv")
    with pytest.warns(bl.DataNote, match=r"'age'.*20.*'\?'|20.*'\?'.*'age'"):
        bl.read_grouped(path, group="who", label="buys")


def test_markers_can_be_changed(tmp_path):
    path = tmp_path / "countries.csv"
    path.write_text("who,country,answer,buys\n" + "a,NA,-9,1\nb,DE,1,0\na,NA,0,1\nb,?,1,0\n" * 5)
    data = bl.read_grouped(
        path, group="who", label="buys", missing_values={"country": ["?"], "answer": ["-9"]}
    )
    assert data.values == (("DE", "NA"), ("0", "1"))
    assert (data.features < 0).sum(axis=0).tolist() == [5, 5]
    again = bl.GroupedTable.from_frame(
        pd.read_csv(path, keep_default_na=False), group="who", label="buys",
        missing_values={"country": ["?"], "answer": ["-9"]},
    )  # fmt: skip
    np.testing.assert_array_equal(again.features, data.features)

    model = bl.MixtureClusterer(1).fit_file(
        path, features=["country", "answer"], missing_values=["?", "-9"]
    )
    assert [values.tolist() for values in model.categories_] == [["DE", "NA"], [0, 1]]

    scan = bl.PartialScanClassifier("tree", n_partitions=2, early_stop=False)
    with pytest.warns(bl.DataWarning, match="5 rows without a label"):
        scan.fit_file(path, label="country", ignore=["who"], missing_values=["?"])
    assert scan.classes_.tolist() == ["DE", "NA"]

    found = CliRunner().invoke(
        app,
        ["compare", str(path), "--group", "who", "--label", "buys", "--missing", "?",
         "--missing", "-9", "--out", str(tmp_path / "out"), "--json"],
    )  # fmt: skip
    assert found.exit_code == 0, found.output


def test_a_group_called_na_is_a_group(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("who,x,buys\n" + "NA,1,1\nbob,0,0\n,1,1\n" * 4)
    with pytest.warns(bl.DataWarning, match="4 rows"):
        data = bl.read_grouped(path, group="who", label="buys")
    assert data.group_names == ("NA", "bob")
    assert data.num_rows == 8
    frame = pd.read_csv(path, keep_default_na=False)
    with pytest.warns(bl.DataWarning, match="4 rows"):
        again = bl.GroupedTable.from_frame(frame, group="who", label="buys")
    np.testing.assert_array_equal(again.groups, data.groups)
    found = CliRunner().invoke(
        app, ["compare", str(path), "--group", "who", "--label", "buys", "--json",
              "--out", str(tmp_path / "out")],
    )  # fmt: skip
    assert found.exit_code == 0, found.output
    assert "4 rows" in found.stderr


def test_what_pandas_reads_differently(tmp_path):
    """The table of exceptions in docs/input.md."""
    path = tmp_path / "t.csv"
    path.write_text("code,sign,mark\n007,+1,?\n7,1,a\n007,+1,b\n")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bl.DataNote)
        ours = bl.MixtureClusterer(1).fit(path)
    assert [values.tolist() for values in ours.categories_] == [
        ["007", "7"],
        ["+1", "1"],
        ["a", "b"],
    ]
    read = pd.read_csv(path)
    assert read["code"].tolist() == [7, 7, 7]
    assert read["sign"].tolist() == [1, 1, 1]
    assert read["mark"].tolist() == ["?", "a", "b"]
    agreed = pd.read_csv(path, dtype={"code": str, "sign": str}, na_values="?")
    theirs = bl.MixtureClusterer(1).fit(agreed)
    for one, other in zip(ours.categories_, theirs.categories_, strict=True):
        assert one.tolist() == other.tolist()


def test_missing_labels_are_unknown_not_a_class(cells, tmp_path):
    cells.loc[::4, "buys"] = None
    path = write(cells, "?", tmp_path / "t.csv")
    with pytest.warns(bl.DataNote):
        data = bl.read_grouped(path, group="who", label="buys")
    assert data.label_values == ("0", "1")
    assert (data.labels < 0).sum() == 50
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bl.DataNote)
        scan = bl.PartialScanClassifier("tree", n_partitions=4, early_stop=False, random_state=0)
        with pytest.warns(bl.DataWarning, match="50 rows without a label"):
            scan.fit_file(path, label="buys")
        assert scan.classes_.tolist() == [0, 1]
        with pytest.warns(bl.DataWarning, match="50 rows without a label"):
            scan.fit(cells.drop(columns="buys"), cells["buys"])
        assert scan.classes_.tolist() == [0, 1]


def test_unseen_values_are_counted_never_dropped_silently(cells, tmp_path):
    rows = cells[["age", "town"]].dropna().astype({"age": int})
    new = rows.head(6).assign(town=["Ulm", "Paris", "Rome", "Ulm", "Bonn", "Paris"])
    new.to_csv(tmp_path / "new.csv", index=False)
    known = new.assign(town=new["town"].where(new["town"].isin(["Ulm", "Bonn"])))

    model = bl.MixtureClusterer(2, random_state=0).fit(rows)
    expected = model.predict_proba(known)
    for given in (new, tmp_path / "new.csv"):
        with pytest.warns(bl.DataWarning, match=r"'town' in 3 of 6 rows"):
            np.testing.assert_array_equal(model.predict_proba(given), expected)

    data = bl.GroupedTable.from_frame(cells, group="who", label="buys")
    posterior = bl.exact(bl.ClusteredNaiveBayes(), data)
    new = cells.iloc[30:34].assign(town=["Paris", "Ulm", "Rome", "Ulm"])
    with pytest.warns(bl.DataWarning, match=r"'town' 2 cells"):
        found = posterior.predict_proba(new)
    hidden = new.assign(town=[None, "Ulm", None, "Ulm"])
    np.testing.assert_array_equal(found, posterior.predict_proba(hidden))

    shared = bl.SharedNaiveBayesClassifier("complete").fit(cells, "buys", groups="who")
    with pytest.warns(bl.DataWarning, match="town"):
        found = shared.predict_proba(new, groups="who")
    np.testing.assert_array_equal(found, shared.predict_proba(hidden, groups="who"))


@pytest.mark.filterwarnings("ignore::bayes_lcs.DataNote")
def test_markers_in_a_frame_are_those_of_its_file(tmp_path):
    """Frames from read_csv keep "?" as text; every estimator reads it as the file is read."""
    rng = np.random.default_rng(0)
    kind = rng.integers(0, 2, 300)
    noisy = np.where(rng.random((300, 2)) < 0.9, kind[:, None], 1 - kind[:, None])
    frame = pd.DataFrame(
        {"a": np.array(["x", "y"])[noisy[:, 0]], "b": np.array(["u", "v"])[noisy[:, 1]]}
    )
    frame["c"] = rng.choice(["s", "t"], 300)
    frame.loc[::7, "a"] = "?"
    frame.loc[::5, "b"] = "N/A"
    path = tmp_path / "t.csv"
    frame.to_csv(path, index=False)

    def curve(rows, **options):
        model = bl.MixtureClusterer(2, random_state=0, **options)
        return bl.learning_curve_sample(model, rows, clock=lambda: 0.0, progress=False).model

    def fit(rows, **options):
        return bl.MixtureClusterer(2, random_state=0, **options).fit(rows)

    def fit_file(rows, **options):
        model = bl.MixtureClusterer(2, random_state=0, **options)
        return model.fit_file(path) if rows is path else model.fit(rows)

    for make in (fit, fit_file, curve):
        for options, values in (
            ({}, [["x", "y"], ["u", "v"], ["s", "t"]]),
            ({"missing_values": ["x", "?"]}, [["y"], ["N/A", "u", "v"], ["s", "t"]]),
        ):
            models = {"frame": make(frame, **options), "file": make(path, **options)}
            for name, model in models.items():
                assert [own.tolist() for own in model.categories_] == values, (make, name)
            assert_all_equal({name: model.predict_proba(frame) for name, model in models.items()})
            assert_all_equal({name: model.predict_proba(path) for name, model in models.items()})

    learner = bl.GeneralizedClusterer("naive_bayes", 2, random_state=0)
    np.testing.assert_array_equal(learner.fit(frame).labels_, learner.fit(path).labels_)
    np.testing.assert_array_equal(learner.predict(frame), learner.predict(path))

    small = {
        name: bl.coreset(rows, 2, 40, objective="categorical", random_state=0)
        for name, rows in (("frame", frame), ("file", path))
    }
    assert_all_equal({name: one.indices for name, one in small.items()})
    assert_all_equal({name: one.weights for name, one in small.items()})


@pytest.mark.parametrize("listed", [-9, ["-9"], [-9.0, "none"]])
@pytest.mark.filterwarnings("ignore::bayes_lcs.DataNote")
@pytest.mark.filterwarnings("ignore:.*the classifier is no better:bayes_lcs.DataWarning")
def test_listed_numbers_are_missing_in_columns_of_every_type(tmp_path, listed):
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(
        {
            "whole": rng.choice([-9, 1, 2], 300),
            "half": rng.choice([-9.0, 0.5, 1.5], 300),
            "text": rng.choice(["-9", "a", "b", ""], 300),
        }
    )
    kind = pd.Series(rng.choice(["x", "y"], 300), name="kind")
    forms = named_forms(rows, tmp_path / "rows")
    known = [[1, 2], [0.5, 1.5], ["a", "b"]]
    for name, given in forms.items():
        mixture = bl.MixtureClusterer(2, missing_values=listed, random_state=0)
        assert [v.tolist() for v in mixture.fit(given).categories_] == known, name
        if name != "pandas":
            assert [v.tolist() for v in mixture.fit_file(given).categories_] == known, name
        found = bl.learning_curve_sample(mixture, given, alpha=0).model
        assert [v.tolist() for v in found.categories_] == known, name

    numbers = rows[["whole", "half"]].assign(one=1)
    for name, given in named_forms(numbers, tmp_path / "numbers").items():
        if name != "pandas":
            options = {"kind": "numbers", "missing_values": listed}
            found = bl.row_source(given, **options).take(0, 300).X
            lacking = (numbers == -9).sum().tolist()
            assert np.isnan(found).sum(axis=0).tolist() == lacking, name

    scores = {}
    for name, path in named_forms(rows.assign(kind=kind), tmp_path / "labelled").items():
        if name in ("CSV", "Parquet"):
            scan = bl.PartialScanClassifier("naive_bayes", random_state=0)
            scan.fit_file(path, label="kind", missing_values=listed)
            for other, given in forms.items():
                scores[f"{name}, {other}"] = scan.predict_proba(given)
    assert_all_equal(scores)
