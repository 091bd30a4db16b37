"""The commands on files, good and bad: what they print, what they leave, how they end."""

import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import bayes_lcs as bl
from bayes_lcs.cli import app

runner = CliRunner()


def run(*words):
    return runner.invoke(app, [str(word) for word in words])


@pytest.fixture(scope="module")
def meetings(tmp_path_factory):
    """Six people, some rows without a decision."""
    data, _ = bl.meeting_requests(seed=0, rows_per_person=40)
    frame = data.select_groups(list(range(6))).to_frame()
    label = data.label_name
    frame.loc[[3, 50], label] = None
    path = tmp_path_factory.mktemp("data") / "meetings.csv"
    frame.to_csv(path, index=False)
    return path, data.group_name, label


def test_compare_says_which_model_and_who_is_alike(meetings, tmp_path):
    path, group, label = meetings
    found = run("compare", path, "--group", group, "--label", label, "--out", tmp_path)
    assert found.exit_code == 0, found.output
    for word in ("Log evidence", "Clustered", "Clusters of similar groups (exact)", "person-01"):
        assert word in found.output
    written = {file.name for file in tmp_path.iterdir()}
    assert {"evidence.csv", "partition.csv", "predictions.csv", "posterior.nc"} <= written
    predicted = pd.read_csv(tmp_path / "predictions.csv")
    assert len(predicted) == 2
    chances = predicted[[name for name in predicted if name.startswith("P(")]]
    np.testing.assert_allclose(chances.sum(axis=1), 1.0)
    assert bl.load(tmp_path / "posterior.nc").group_names[0] == "person-01"


def test_compare_gives_json(meetings, tmp_path):
    path, group, label = meetings
    words = ("compare", path, "--group", group, "--label", label, "--out", tmp_path, "--json")
    found = json.loads(run(*words).stdout)
    assert {model["model"] for model in found["models"]} >= {"No-Sharing", "Prototype"}
    assert len(found["partition"]) == 6
    assert found["files"][0] == str(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert f"group: {group}; label: {label}; draws: 1000; chains: 4" in page


def people(path, num_rows=3000):
    rng = np.random.default_rng(0)
    town = rng.choice(["Bonn", "Ulm", "=1+1"], num_rows)
    frame = pd.DataFrame({"town": town, "age": rng.integers(18, 90, num_rows)})
    frame["kind"] = np.where(town == "Ulm", "fraud", "honest")
    frame.to_csv(path, index=False)
    return frame


def test_scan_reads_and_predicts(tmp_path):
    frame = people(tmp_path / "p.csv")
    frame.drop(columns="kind").head(20).to_csv(tmp_path / "new.csv", index=False)
    out = tmp_path / "out"
    words = ("scan", tmp_path / "p.csv", "--label", "kind", "--parts", 16, "--out", out)
    found = run(*words, "--predict", tmp_path / "new.csv")
    assert found.exit_code == 0, found.output
    assert "Why it stopped" in found.output
    predicted = pd.read_csv(out / "predictions.csv")
    assert predicted["decision"].tolist() == frame["kind"].head(20).tolist()
    assert "'=1+1" in set(predicted["town"])  # no formula for a spreadsheet
    assert bl.load(out / "ensemble.skops").classes_.tolist() == ["fraud", "honest"]
    told = json.loads(run(*words, "--json", "--force").stdout)
    assert told["num_parts"] == 16
    assert told["files"][0] == str(out / "report.html")
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "learner: tree; parts: 16; confidence: 0.997" in page


def test_coreset_of_a_file(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(3000, 2)), columns=["x", "y"])
    frame.to_csv(tmp_path / "points.csv", index=False)
    for name, more in (("a.csv", ()), ("b.parquet", ("--stream",))):
        words = ("coreset", tmp_path / "points.csv", "-k", 3, "--size", 200)
        found = run(*words, "--out", tmp_path / name, *more)
        assert found.exit_code == 0, found.output
        read = pd.read_csv if name.endswith("csv") else pd.read_parquet
        small = read(tmp_path / name)
        assert list(small) == ["x", "y", "weight"]
        assert len(small) <= 200
        assert abs(small["weight"].sum() / 3000 - 1.0) < 0.3
        report = (tmp_path / f"{name[0]}-report.html").read_text(encoding="utf-8")
        assert "weighted points stand for 3,000 rows" in report
        assert f"Written:\n  {tmp_path / name[0]}-report.html" in found.output


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_cluster_writes_the_cluster_of_every_row(tmp_path, suffix):
    rng = np.random.default_rng(0)
    kind = rng.integers(2, size=2000)
    cells = {
        f"c{i}": np.where(rng.random(2000) < 0.9, kind, 1 - kind).astype(str) for i in range(6)
    }
    frame = pd.DataFrame(cells)
    path = tmp_path / f"visits.{suffix}"
    if suffix == "csv":
        frame.to_csv(path, index=False)
    else:
        frame.to_parquet(path)
    out = tmp_path / "out"
    found = run(
        "cluster", path, "-k", 2, "--initial", 400, "--holdout", 200, "--out", out, "--seed", 1
    )
    assert found.exit_code == 0, found.output
    read = pd.read_csv if suffix == "csv" else pd.read_parquet
    rows = read(out / f"assignments.{suffix}")
    assert len(rows) == 2000
    agree = (rows["cluster"] == kind).mean()
    assert max(agree, 1 - agree) > 0.95
    assert bl.load(out / "mixture.nc").n_components == 2
    assert f"Written:\n  {out / 'report.html'}" in found.output
    page = (out / "report.html").read_text(encoding="utf-8")
    for number in (0, 1):
        assert f"{(rows['cluster'] == number).sum():,} rows are assigned to it" in page


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("scan", "{0}/none.csv", "--label", "x"), "none.csv: there is no such file"),
        (("scan", "{0}/p.csv", "--label", "x"), "p.csv, column 'x': there is no such column"),
        (
            ("scan", "{0}/p.csv", "--label", "kind", "--learner", "oracle"),
            "--learner must be one of",
        ),
        (
            ("coreset", "{0}/p.csv", "-k", "2", "--ignore", "x"),
            "column 'x': there is no such column",
        ),
        (("compare", "{0}/p.csv", "--group", "town", "--label", "x"), "column 'x': there is no"),
        (("compare", "{0}/p.csv", "--group", "a", "--label", "b", "--bins", "9"), "COLUMN=NUMBER"),
        (("cluster", "{0}/p.csv", "-k", "2", "--alpha", "soon"), "alpha"),
    ],
)
def test_bad_input_is_one_message_and_exit_code_two(words, message, tmp_path):
    people(tmp_path / "p.csv", 50)
    text = (tmp_path / "p.csv").read_text().splitlines()
    text[1] = "Ulm,30,fraud"
    (tmp_path / "p.csv").write_text("\n".join(text))
    words = [word.format(tmp_path) for word in words]
    out = tmp_path / "out.csv" if words[0] == "coreset" else tmp_path / "out"
    found = run(*words, "--out", out)
    assert found.exit_code == 2, found.output
    assert message in found.output
    assert "Traceback" not in found.output


def test_a_folder_that_cannot_be_written_is_seen_before_the_work(tmp_path):
    (tmp_path / "file").write_text("")
    (tmp_path / "bad.csv").write_text("")  # nothing has been read when the folder is found out
    found = run("scan", tmp_path / "bad.csv", "--label", "x", "--out", tmp_path / "file" / "out")
    assert found.exit_code == 1
    assert "bad.csv" not in found.output


def test_help_does_not_import_the_heavy_libraries():
    code = (
        "import sys; from typer.testing import CliRunner; from bayes_lcs.cli import app; "
        "CliRunner().invoke(app, ['scan', '--help']); "
        "print([m for m in ('jax', 'pandas', 'sklearn', 'pyarrow') if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"
