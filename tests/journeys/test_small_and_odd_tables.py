"""Tables at the edge of the ordinary: 3 rows, a constant column, an id, sorted files, one group."""

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import bayes_lcs as bl
from bayes_lcs.cli import app
from tests.journeys.inputs import assert_all_equal, named_forms, open_report


def run(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


def test_three_rows(tmp_path):
    rows = pd.DataFrame(
        {"x": ["a", "b", "a"], "n": [1, 2, 1], "y": [0, 1, 0], "g": ["u", "v", "u"]}
    )
    forms = named_forms(rows, tmp_path)
    mixtures = {
        name: bl.MixtureClusterer(2, random_state=0).fit(given).score(given)
        for name, given in forms.items()
    }
    assert_all_equal(mixtures)
    points = {
        name: bl.KMeans(2, random_state=0).fit(given).inertia_
        for name, given in named_forms(rows[["n", "y"]], tmp_path / "points").items()
    }
    assert set(points.values()) == {0.0}
    assert len(bl.coreset(rows[["n", "y"]], 1, 3, random_state=0).weights) <= 3

    data = bl.read_grouped(forms["CSV"], group="g", label="y")
    assert (data.num_rows, data.num_groups) == (3, 2)
    posterior = bl.exact(bl.ClusteredNaiveBayes(), data)
    np.testing.assert_allclose(posterior.predict_proba(rows).sum(axis=1), 1.0)
    shared = bl.SharedNaiveBayesClassifier("complete").fit(rows, "y", groups="g")
    assert shared.predict(rows).tolist() == [0, 1, 0]

    path = tmp_path / "rows.csv"
    found = run("compare", path, "--group", "g", "--label", "y", "--out", tmp_path / "compared")
    assert found.exit_code == 0, found.output
    open_report(tmp_path / "compared" / "report.html")
    for words in (
        ("cluster", path, "-k", 2, "--out", tmp_path / "clustered"),
        ("scan", path, "--label", "y", "--out", tmp_path / "scanned"),
        ("coreset", path, "-k", 1, "--size", 2, "--out", tmp_path / "small.csv"),
    ):
        found = run(*words)
        # Too few rows may be refused, with a reason; never a traceback.
        assert found.exit_code in (0, 2), found.output
        assert "Traceback" not in found.output
        if found.exit_code == 2:
            assert "row" in found.output, found.output


def test_a_constant_column_tells_nothing(visits):
    rows = visits[["town", "member", "children"]]
    wider = rows.assign(country="DE")
    plain = bl.MixtureClusterer(2, random_state=0).fit(rows)
    with_constant = bl.MixtureClusterer(2, random_state=0).fit(wider)
    assert with_constant.score(wider) == pytest.approx(plain.score(rows), abs=1e-3)
    assert with_constant.bic(wider) == pytest.approx(plain.bic(rows), abs=1.0)

    grouped = visits[["shop", "town", "member", "buys"]]
    models = [bl.NoSharing(), bl.CompleteSharing(), bl.ClusteredNaiveBayes()]
    without = bl.compare(models, bl.GroupedTable.from_frame(grouped, group="shop", label="buys"))
    one_more = grouped.assign(country="DE")
    with_it = bl.compare(models, bl.GroupedTable.from_frame(one_more, group="shop", label="buys"))
    for one, other in zip(without.evidences, with_it.evidences, strict=True):
        assert one.value == pytest.approx(other.value, abs=1e-9)

    shared = bl.SharedNaiveBayesClassifier("complete").fit(grouped, "buys", groups="shop")
    expected = shared.predict_proba(grouped)
    shared.fit(one_more, "buys", groups="shop")
    np.testing.assert_allclose(shared.predict_proba(one_more), expected, rtol=1e-9)

    points = pd.DataFrame({"x": [0.0, 0.1, 5.0, 5.1], "c": 1.0})
    np.testing.assert_array_equal(
        bl.KMeans(2, random_state=0).fit_predict(points),
        bl.KMeans(2, random_state=0).fit_predict(points[["x"]]),
    )


def test_a_unique_id_is_refused_or_named_not_modelled(visits, tmp_path):
    rows = visits[["shop", "town", "buys"]].assign(id=[f"visit-{i}" for i in range(len(visits))])
    rows.to_csv(tmp_path / "t.csv", index=False)
    rows.to_parquet(tmp_path / "t.parquet")
    for path in (tmp_path / "t.csv", tmp_path / "t.parquet"):
        with pytest.raises(bl.DataError, match="id"):
            bl.read_grouped(path, group="shop", label="buys")
        data = bl.read_grouped(path, group="shop", label="buys", ignore=["id"])
        assert data.feature_names == ("town",)
    with pytest.raises(bl.DataError, match="id"):
        bl.GroupedTable.from_frame(rows, group="shop", label="buys")
    found = run("compare", tmp_path / "t.csv", "--group", "shop", "--label", "buys",
                "--out", tmp_path / "out")  # fmt: skip
    assert found.exit_code == 2
    assert "'id'" in found.output
    assert "--ignore" in found.output or "ignore=" in found.output


def test_measurements_are_refused_as_categories_from_every_source(tmp_path):
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"height": rng.normal(170, 10, 500), "sex": rng.choice(["f", "m"], 500)})
    for name, given in named_forms(rows, tmp_path).items():
        with pytest.raises(bl.DataError, match=r"height.*measurement"):
            bl.MixtureClusterer(2).fit(given)
        declared = bl.MixtureClusterer(1, categorical=["height"]).fit(given)
        assert len(declared.categories_[0]) == 500, name
    with pytest.raises(bl.DataError, match=r"height.*measurement"):
        bl.MixtureClusterer(2).fit_file(tmp_path / "rows.csv")
    with pytest.raises(bl.DataError, match=r"height.*measurement"):
        bl.learning_curve_sample(bl.MixtureClusterer(2), tmp_path / "rows.csv")
    with pytest.raises(bl.DataError, match=r"height.*measurement"):
        bl.learning_curve_sample(bl.MixtureClusterer(2), rows)
    found = run("cluster", tmp_path / "rows.csv", "-k", 2, "--out", tmp_path / "out")
    assert found.exit_code == 2
    assert "height" in found.output
    assert not (tmp_path / "out" / "report.html").exists()

    whole = rows.assign(height=rows["height"].round())
    assert len(bl.MixtureClusterer(1).fit(whole).categories_[0]) > 12  # whole numbers are allowed


@pytest.mark.parametrize("by", ["buys", "shop", "time"])
@pytest.mark.filterwarnings("ignore::bayes_lcs.DriftWarning")
def test_files_sorted_by_label_group_or_time(visits, tmp_path, by):
    rows = visits.drop(columns="rating")
    rows["time"] = pd.date_range("2024-01-01", periods=len(rows), freq="h").astype(str)
    ordered = rows.sort_values(by, kind="stable").drop(columns="time").reset_index(drop=True)
    shuffled = ordered.sample(frac=1, random_state=0)
    forms = named_forms(ordered, tmp_path)

    evidence = []
    for frame in (ordered, shuffled):
        data = bl.GroupedTable.from_frame(frame, group="shop", label="buys")
        evidence.append(bl.exact(bl.ClusteredNaiveBayes(), data).log_evidence)
    data = bl.read_grouped(forms["CSV"], group="shop", label="buys")
    evidence.append(bl.exact(bl.ClusteredNaiveBayes(), data).log_evidence)
    np.testing.assert_allclose(evidence, evidence[0], rtol=1e-12)

    X = ordered.drop(columns=["buys", "shop"])
    scores = {
        name: bl.MixtureClusterer(2, n_init=3, random_state=0).fit(rows).score(X)
        for name, rows in (("sorted", X), ("shuffled", X.loc[shuffled.index]))
    }
    assert scores["sorted"] == pytest.approx(scores["shuffled"], abs=1e-3)

    # A sample of a sorted file is drawn from all of it.
    sample = bl.row_source(forms["Parquet"], seed=0).take(0, 200).X
    assert abs((sample["buys"].astype(int) == 1).mean() - ordered["buys"].mean()) < 0.12
    for name in ("CSV", "Parquet"):
        scan = bl.PartialScanClassifier("tree", n_partitions=4, random_state=0)
        scan.fit_file(forms[name], label="buys")
        assert scan.classes_.tolist() == [0, 1], name  # the classes of all rows
        assert len(scan.predict(ordered)) == len(ordered)


def test_one_group(visits, tmp_path):
    rows = visits[["town", "member", "buys"]].assign(shop="only")
    data = bl.GroupedTable.from_frame(rows, group="shop", label="buys")
    models = [bl.NoSharing(), bl.CompleteSharing(), bl.ClusteredNaiveBayes()]
    values = [one.value for one in bl.compare(models, data).evidences]
    np.testing.assert_allclose(values, values[0], rtol=1e-12)  # with one group all are the same
    posterior = bl.exact(bl.ClusteredNaiveBayes(), data)
    assert posterior.coclustering().shape == (1, 1)

    rows.to_csv(tmp_path / "t.csv", index=False)
    found = run("compare", tmp_path / "t.csv", "--group", "shop", "--label", "buys",
                "--out", tmp_path / "out")  # fmt: skip
    assert found.exit_code == 0, found.output
    open_report(tmp_path / "out" / "report.html")


def test_a_label_with_one_value(visits, tmp_path):
    rows = visits[["shop", "town", "buys"]].assign(buys=1)
    rows.to_csv(tmp_path / "t.csv", index=False)
    with pytest.raises(bl.DataError, match="column 'buys': the label has only one value"):
        bl.read_grouped(tmp_path / "t.csv", group="shop", label="buys")
    with pytest.raises(bl.DataError, match="column 'buys': the label has only one value"):
        bl.GroupedTable.from_frame(rows, group="shop", label="buys")
    found = run("compare", tmp_path / "t.csv", "--group", "shop", "--label", "buys",
                "--out", tmp_path / "out")  # fmt: skip
    assert found.exit_code == 2
    assert "only one value" in found.output

    data = bl.read_grouped(tmp_path / "t.csv", group="shop", label="buys", label_values=[0, 1])
    posterior = bl.exact(bl.ClusteredNaiveBayes(), data)
    assert (posterior.predict_proba(rows)[:, 1] > 0.98).all()
    for options in ({"n_partitions": 4}, {}):
        scan = bl.PartialScanClassifier("tree", **options)
        with pytest.warns(bl.DataWarning, match=r"only one label, 1, was found in t\.csv"):
            scan.fit_file(tmp_path / "t.csv", label="buys")
        assert set(scan.predict(rows)) == {1}
        assert not scan.scan_.is_guaranteed
        assert scan.scan_.explain().startswith("Nothing is guaranteed: only one label, 1")


def test_a_label_with_a_thousand_values(tmp_path):
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"y": np.arange(4000) % 1000, "shop": rng.choice(["n", "s"], 4000)})
    rows["x"] = rows["y"] % 10
    rows.to_csv(tmp_path / "t.csv", index=False)
    rows.to_parquet(tmp_path / "t.parquet")
    found = {}
    for path in (tmp_path / "t.csv", tmp_path / "t.parquet"):
        scan = bl.PartialScanClassifier("tree", n_partitions=2, early_stop=False, random_state=0)
        scan.fit_file(path, label="y")
        assert scan.classes_.tolist() == list(range(1000))
        found[path.suffix] = scan.predict(rows)
    assert_all_equal(found)
    assert (found[".csv"] % 10 == rows["x"]).mean() > 0.95
    with pytest.raises(bl.DataError, match="column 'y': the label has 1000 different values"):
        bl.read_grouped(tmp_path / "t.csv", group="shop", label="y")
    data = bl.read_grouped(tmp_path / "t.csv", group="shop", label="y", label_values=range(1000))
    assert data.label_values == tuple(map(str, range(1000)))
    shared = bl.SharedNaiveBayesClassifier("complete").fit(rows, "y", groups="shop")
    assert (shared.predict(rows) % 10 == rows["x"]).mean() > 0.95


@pytest.mark.parametrize("num_rows", [150, 3000, 20_000])
def test_a_table_sorted_by_its_label(num_rows, tmp_path):
    """As users export it: every way in gives a classifier that is as good as of shuffled rows."""
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(rng.normal(size=(num_rows, 2)).round(4), columns=["u", "v"])
    rows["kind"] = np.array(["low", "middle", "high"])[np.digitize(rows["u"], [-0.4, 0.4])]
    ordered = rows.sort_values("kind", kind="stable", ignore_index=True)
    paths = [tmp_path / name for name in ("t.csv", "t.csv.gz", "t.parquet")]
    for path in paths:
        if path.suffix == ".parquet":
            ordered.to_parquet(path, index=False)
        else:
            ordered.to_csv(path, index=False)
    models = [
        bl.PartialScanClassifier(random_state=0).fit_file(path, label="kind") for path in paths
    ]
    frame = ordered.drop(columns="kind")
    models.append(bl.PartialScanClassifier(random_state=0).fit(frame, ordered["kind"]))
    for model in models:
        assert model.score(rows[["u", "v"]], rows["kind"]) > 0.97
        assert model.scan_.performance.accuracy > 0.85
        assert model.scan_.performance.majority_accuracy < 0.7
        assert (model.n_partitions_ == 1) == (num_rows < 16_000)
        assert model.scan_.is_guaranteed == (num_rows >= 16_000)
    found = run("scan", paths[0], "--label", "kind", "--out", tmp_path / "out")
    assert found.exit_code == 0, found.output
    open_report(tmp_path / "out" / "report.html")
    assert (
        "always predicting the most frequent label" in (tmp_path / "out" / "scan.txt").read_text()
    )


def test_answers_sorted_by_grade_and_person(tmp_path):
    """Grades that nobody can tell: no accuracy or comparison says otherwise, read whole or not."""
    rng = np.random.default_rng(1)
    rows = pd.DataFrame(
        {"person": rng.integers(1500, size=40_000), "grade": rng.integers(1, 5, 40_000)}
    )
    path = tmp_path / "answers.csv"
    rows.sort_values(["grade", "person"]).to_csv(path, index=False)
    for options in ((), ("--whole",), ("--whole", "--parts", "4")):
        words = ("scan", path, "--label", "grade", "--out", tmp_path / "out", "--force", "--json")
        told = json.loads(run(*words, *options).stdout)
        low, high = told["performance"]["interval"]
        assert low - 0.03 < 0.25 < high + 0.03
        assert 0.2 < told["performance"]["single_accuracy"] < 0.32
        assert not any("one model" in remark for remark in told["remarks"])
