"""Every command on CSV and Parquet: the same numbers as in Python, and a report that opens."""

import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import bayes_lcs as bl
from bayes_lcs.cli import app
from tests.journeys.inputs import open_report


def run(*words):
    found = CliRunner().invoke(app, [str(word) for word in words])
    assert found.exit_code == 0, found.output
    return found


@pytest.fixture
def files(visits, tmp_path):
    rows = visits.drop(columns="rating")
    rows.loc[::50, "town"] = None
    rows.to_csv(tmp_path / "visits.csv", index=False)
    rows.to_parquet(tmp_path / "visits.parquet", index=False)
    return rows, [tmp_path / "visits.csv", tmp_path / "visits.parquet"]


def test_compare(files, tmp_path):
    rows, paths = files
    data = bl.GroupedTable.from_frame(rows, group="shop", label="buys")
    models = [bl.NoSharing(), bl.CompleteSharing(), bl.Prototype(), bl.ClusteredNaiveBayes()]
    expected = {one.model: one.value for one in bl.compare(models, data).evidences}
    printed = []
    for path in paths:
        out = tmp_path / f"compared-{path.suffix[1:]}"
        found = json.loads(
            run(
                "compare", path, "--group", "shop", "--label", "buys", "--out", out, "--json"
            ).stdout
        )
        printed.append({one["model"]: one for one in found["models"]})
        assert {name: one["log_evidence"] for name, one in printed[-1].items()} == expected
        page = open_report(out / "report.html")
        assert path.name in page.text
        assert "shop" in page.text
        saved = pd.read_csv(out / "evidence.csv")
        assert saved.notna().any(axis=1).all()
    assert printed[0] == printed[1]


def test_cluster(files, tmp_path):
    rows, paths = files
    assigned = []
    for path in paths:
        out = tmp_path / f"clustered-{path.suffix[1:]}"
        run("cluster", path, "-k", 2, "--ignore", "shop", "--ignore", "buys", "--out", out,
            "--json")  # fmt: skip
        open_report(out / "report.html")
        read = pd.read_csv if path.suffix == ".csv" else pd.read_parquet
        written = read(out / f"assignments{path.suffix}")
        assert written.columns.tolist() == [*rows.columns, "cluster", "cluster_probability"]
        assert len(written) == len(rows)
        model = bl.load(out / "mixture.nc")
        np.testing.assert_array_equal(model.predict(rows), written["cluster"])
        np.testing.assert_array_equal(model.predict(path), written["cluster"])
        np.testing.assert_allclose(
            model.predict_proba(rows).max(axis=1), written["cluster_probability"], rtol=1e-9
        )
        assert np.bincount(written["cluster"]).min() > 100
        assigned.append(written["cluster"].to_numpy())
    # The learning curve depends on the clock; on 400 rows both files end with all of them.
    agree = (assigned[0] == assigned[1]).mean()
    assert max(agree, 1 - agree) == 1.0


def test_scan(files, tmp_path):
    rows, paths = files
    rows.drop(columns="buys").to_csv(tmp_path / "new.csv", index=False)
    decisions = []
    for path in paths:
        out = tmp_path / f"scanned-{path.suffix[1:]}"
        run("scan", path, "--label", "buys", "--parts", 4, "--whole", "--out", out,
            "--predict", tmp_path / "new.csv", "--json")  # fmt: skip
        open_report(out / "report.html")
        written = pd.read_csv(out / "predictions.csv")
        model = bl.load(out / "ensemble.skops")
        assert model.classes_.tolist() == [0, 1]
        np.testing.assert_array_equal(model.predict(rows), written["decision"])
        assert (written["decision"] == rows["buys"]).mean() > 0.75
        decisions.append(written["decision"].tolist())
    assert decisions[0] == decisions[1]


def test_predictions_keep_all_columns_as_they_are(files, tmp_path):
    rows, _ = files
    first = 9_007_199_254_740_993  # no float holds it
    rows = rows.assign(number=np.arange(len(rows)) + first, is_new=rows["buys"] == 1)
    rows.to_csv(tmp_path / "all.csv", index=False)
    rows.to_parquet(tmp_path / "all.parquet", index=False)
    for name in ("all.csv", "all.parquet"):
        out = tmp_path / name.replace(".", "-")
        run("scan", tmp_path / name, "--label", "buys", "--ignore", "number", "--ignore", "is_new",
            "--predict", tmp_path / name, "--out", out)  # fmt: skip
        written = pd.read_csv(out / "predictions.csv")
        assert written["number"].tolist() == rows["number"].tolist()
        assert written["is_new"].tolist() == rows["is_new"].tolist()
        assert written["buys"].tolist() == rows["buys"].tolist()
        assert (written["decision"] == written["buys"]).mean() > 0.75


def test_coreset(points, tmp_path):
    rows = points.assign(name="p")  # a text column is named, not used
    rows.to_csv(tmp_path / "points.csv", index=False)
    rows.to_parquet(tmp_path / "points.parquet", index=False)
    small = bl.coreset(points, 3, 60, random_state=0)
    for source in ("points.csv", "points.parquet"):
        for target in ("small.csv", "small.parquet"):
            out = tmp_path / f"{source}-{target}".replace(".", "-") / target
            found = run("coreset", tmp_path / source, "-k", 3, "--size", 60, "--out", out)
            assert "name" in found.output
            written = pd.read_csv(out) if out.suffix == ".csv" else pd.read_parquet(out)
            assert written.columns.tolist() == ["width", "height", "weight"]
            np.testing.assert_allclose(written[["width", "height"]], small.points, rtol=1e-12)
            np.testing.assert_allclose(written["weight"], small.weights, rtol=1e-9)
            pages = list(out.parent.glob("*.html"))
            assert pages
            for page in pages:
                open_report(page)
    again = bl.KMeans(3, random_state=0).fit(
        written[["width", "height"]], sample_weight=written["weight"]
    )
    assert np.isfinite(again.inertia_)


@pytest.mark.slow  # half a minute: all partitions of 21 people
def test_demo(tmp_path):
    found = run("demo", "--rows", 12, "--out", tmp_path / "demo")
    assert "nan" not in found.output.lower().split()
    open_report(tmp_path / "demo" / "report.html")


def test_the_installed_command_reads_a_file(files, tmp_path):
    """In a process of its own, as from a shell."""
    _, paths = files
    words = ["coreset", str(paths[0]), "-k", "2", "--out", str(tmp_path / "s.csv"), "--json"]
    code = "from bayes_lcs.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, *words], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["rows"] == 400
    assert "town" in done.stderr  # the columns that are not numbers are named


def test_what_is_wrong_is_said_in_a_line(files, tmp_path):
    _, paths = files
    for words in (
        ("compare", paths[0], "--group", "shop", "--label", "bys"),
        ("scan", paths[1], "--label", "bys"),
        ("cluster", paths[0], "-k", 2, "--ignore", "twn"),
        ("coreset", tmp_path / "missing.csv", "-k", 2),
    ):
        out = tmp_path / "nothing" / "x.csv"
        found = CliRunner().invoke(app, [*map(str, words), "--out", str(out)])
        assert found.exit_code == 2, found.output
        assert "Traceback" not in found.output
        assert any(hint in found.output for hint in ("did you mean", "no such file")), found.output
        assert not out.exists()
