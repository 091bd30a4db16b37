"""Hostile names through every command and into every file that it leaves."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner, Result

import bayes_lcs as bl
from bayes_lcs.cli import app
from bayes_lcs.io.open_tables import open_file
from bayes_lcs.io.options import CsvOptions, MissingRule
from tests.hostile_names import NAMES, UNSEEN, chunks, grouped_table, write_table

CHUNKS = chunks()


def run(*words: object) -> Result:
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture
def box(tmp_path: Path) -> Any:
    """A folder for input and output; whatever is written elsewhere beside it is noticed."""
    inside = tmp_path / "a" / "b"
    inside.mkdir(parents=True)
    yield inside
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["b"]
    assert {path.name for path in inside.iterdir()} <= {"rows.csv", "rows.parquet", "out"}


def check_terminal(found: Result, code: int = 0) -> None:
    assert found.exit_code == code, found.output
    assert not UNSEEN & set(found.stdout + found.stderr), found.output
    assert "Traceback" not in found.output
    assert "Glyph" not in found.output


def read_back(path: Path) -> pd.DataFrame:
    """What our own reader makes of a CSV file, without the quotes in front of formulas."""
    raw = open_file(path, CsvOptions(delimiter=","))
    batches = [batch.to_pandas() for batch in raw.batches(raw.names)]
    frame = pd.concat(batches, ignore_index=True)
    frame.columns = [plain(name) for name in frame.columns]
    return frame.map(plain)


def plain(cell: str) -> str:
    return cell[1:] if re.match("'+[=+\\-@\t\r\n＝＋－＠]", cell) else cell


def check_no_formula(path: Path) -> None:
    for cells in pd.read_csv(path, dtype=str, keep_default_na=False, header=None).to_numpy():
        for cell in cells:
            number = re.fullmatch(r"[-+]?[\d.]+(e[-+]?\d+)?", cell)
            assert number or not cell.startswith(("=", "+", "-", "@", "\t", "\r")), cell


class Page(HTMLParser):
    """The tags and the text of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        self.text += data


def check_page(path: Path) -> Page:
    page = Page(path.read_bytes().decode())
    assert not {"img", "iframe", "link", "object", "embed", "base", "meta http-equiv"} & set(
        page.tags
    )
    assert not [name for name, _ in page.attributes if re.fullmatch("on[a-z]+", name)]
    assert not [value for name, value in page.attributes if name == "src"]
    return page


@pytest.fixture
def quick_models(monkeypatch: pytest.MonkeyPatch) -> None:
    """The evidence of the prototype model takes long; names do not come near it."""
    monkeypatch.setattr(
        "bayes_lcs.workflows.compare.Prototype", lambda: bl.NoSharing(label_prior=2.0)
    )


@pytest.mark.parametrize("names", CHUNKS, ids=range(len(CHUNKS)))
@pytest.mark.usefixtures("quick_models")
def test_compare(box: Path, names: tuple[str, ...]) -> None:
    columns = grouped_table(names)
    path, out = write_table(box / "rows.csv", columns), box / "out"
    words = ("compare", path, "--group", names[0], "--label", names[-1], "--out", out)
    found = run(*words)
    check_terminal(found)
    page = check_page(out / "report.html")
    for name in names:
        assert name[:50] in page.text
    assert read_back(out / "partition.csv")["group"].tolist() == list(names)
    told = read_back(out / "predictions.csv")
    assert list(told)[: len(columns) - 1] == [names[0], *names[1:-1]]
    first = [(name, cells[0]) for name, cells in columns.items() if name != names[-1]]
    assert told.iloc[0, : len(columns) - 1].tolist() == [
        "" if name != names[0] and is_marker(cell) else cell for name, cell in first
    ]
    for file in out.glob("*.csv"):
        check_no_formula(file)
    posterior = bl.load(out / "posterior.nc")
    assert posterior.group_names == names
    assert posterior.data.feature_names == names[1:-1]
    assert posterior.data.label_values == tuple(sorted(set(columns[names[-1]]) - {None}))  # type: ignore[type-var]
    assert set(posterior.data.values[0]) == {name for name in names if not is_marker(name)}
    assert posterior.datatree["posterior"]["z"]["group"].values.tolist() == list(names)


@pytest.mark.usefixtures("quick_models")
def test_compare_as_json(box: Path) -> None:
    names = CHUNKS[2]
    path = write_table(box / "rows.csv", grouped_table(names))
    words = ("compare", path, "--group", names[0], "--label", names[-1], "--out", box / "out")
    found = run(*words, "--json")
    check_terminal(found)
    assert tuple(json.loads(found.stdout)["partition"]) == names


def is_marker(text: str) -> bool:
    """Return whether a name such as NA means "missing"."""
    return MissingRule().matches(text)


@pytest.mark.parametrize("learner", ["tree", "naive_bayes"])
def test_scan(box: Path, learner: str) -> None:
    """Every name is a label and a value; columns have the names of one piece of the corpus."""
    rng = np.random.default_rng(0)
    rows = 8 * len(NAMES)
    labels = [NAMES[i] for i in rng.permutation(rows) % len(NAMES)]
    columns: dict[str, list[str | None]] = {}
    for feature in (*CHUNKS[1][:8], *CHUNKS[2][:8]):
        columns[feature] = list(rng.choice(np.array(NAMES, dtype=object), rows))
    columns[CHUNKS[0][0]] = list(labels)
    path, out = write_table(box / "rows.csv", columns), box / "out"
    words = ("scan", path, "--label", CHUNKS[0][0], "--learner", learner, "--parts", 2)
    found = run(*words, "--out", out, "--predict", path, "--json")
    check_terminal(found)
    known = sorted(name for name in NAMES if not is_marker(name))
    assert sorted(json.loads(found.stdout)["classes"]) == known
    ensemble = bl.load(out / "ensemble.skops")
    assert ensemble.classes_.tolist() == known
    assert list(ensemble.feature_names_in_) == list(columns)[:-1]
    told = read_back(out / "predictions.csv")
    assert set(told["decision"]) <= set(known)
    for name, cells in columns.items():
        assert [cell or "" for cell in told[name]] == [cell or "" for cell in cells]
    assert list(told)[18:] == [f"P({name})" for name in known]
    check_no_formula(out / "predictions.csv")


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_cluster(box: Path, suffix: str) -> None:
    rng = np.random.default_rng(0)
    columns: dict[str, list[Any]] = {
        name: [NAMES[(place + i) % len(NAMES)] for i in rng.integers(2, size=3 * len(NAMES))]
        for place, name in enumerate(NAMES)
    }
    columns[NAMES[0]] = list(NAMES) * 3
    path, out = box / f"rows.{suffix}", box / "out"
    if suffix == "csv":
        write_table(path, columns)
    else:
        pd.DataFrame(columns).to_parquet(path)
    found = run("cluster", path, "-k", 2, "--out", out)
    check_terminal(found)
    assert list(bl.load(out / "mixture.nc").feature_names_in_) == list(NAMES)
    known = {name for name in NAMES if not is_marker(name)}
    assert set(bl.load(out / "mixture.nc").categories_[0]) == known
    if suffix == "csv":
        rows = read_back(out / "assignments.csv")
        check_no_formula(out / "assignments.csv")
    else:
        rows = pd.read_parquet(out / "assignments.parquet")
    assert list(rows) == [*NAMES, "cluster", "cluster_probability"]
    for name in NAMES:
        assert rows[name].tolist() == columns[name]


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_coreset(box: Path, suffix: str) -> None:
    rng = np.random.default_rng(0)
    numbers = rng.integers(10, size=(len(NAMES), 40)).astype(str).tolist()
    path = write_table(box / "rows.csv", dict(zip(NAMES, numbers, strict=True)))
    out = box / "out" / f"small.{suffix}"
    found = run("coreset", path, "-k", 2, "--size", 10, "--out", out)
    check_terminal(found)
    small = read_back(out) if suffix == "csv" else pd.read_parquet(out)
    assert list(small) == [*NAMES, "weight"]


@pytest.mark.parametrize("name", NAMES, ids=range(len(NAMES)))
def test_errors_name_what_is_wrong_and_do_nothing_else(box: Path, name: str) -> None:
    """A cell, a column that is not there, and a file of that name."""
    path = write_table(box / "rows.csv", {"x": ["1", name], name + "y": ["a", "b"]})
    for found in (
        run("coreset", path, "-k", 1, "--ignore", name + "y", "--out", box / "out" / "c.csv"),
        run("scan", path, "--label", name, "--out", box / "out"),
        run(
            "scan", box / f"{name[:80]}none".replace("/", ""), "--label", "x", "--out", box / "out"
        ),
    ):
        if found.exit_code == 0:  # the name is a number
            assert name in ("007", "1e5", "-0")
            continue
        check_terminal(found, code=2)
        assert len(found.stderr) < 2000


def test_new_columns_take_no_name_that_is_there(box: Path) -> None:
    columns: dict[str, list[str | None]] = {
        "cluster": ["a", "b"] * 20,
        "cluster_probability": ["c", "d"] * 20,
        "P(a)": ["x", "y"] * 20,
        "decision": ["e", "f", "g", "h"] * 10,
    }
    path, out = write_table(box / "rows.csv", columns), box / "out"
    check_terminal(run("cluster", path, "-k", 2, "--out", out))
    rows = read_back(out / "assignments.csv")
    assert list(rows)[4:] == ["cluster_2", "cluster_probability_2"]
    assert rows["cluster"].tolist() == columns["cluster"]
    words = ("scan", path, "--label", "cluster", "--parts", 2, "--out", out, "--predict", path)
    check_terminal(run(*words, "--force"))
    told = read_back(out / "predictions.csv")
    assert list(told) == ["decision_2", *columns, "P(a)_2", "P(b)"]
    assert told["P(a)"].tolist() == columns["P(a)"]


@pytest.mark.usefixtures("quick_models")
def test_predictions_of_compare_overwrite_no_column(box: Path) -> None:
    columns: dict[str, list[str | None]] = {
        "who": ["u", "v"] * 20,
        "P(a)": ["x", "x", "y", "y"] * 10,
        "label": ["a", "a", "b", None] * 10,
    }
    path, out = write_table(box / "rows.csv", columns), box / "out"
    check_terminal(run("compare", path, "--group", "who", "--label", "label", "--out", out))
    told = read_back(out / "predictions.csv")
    assert list(told) == ["who", "P(a)_2", "label", "P(a)", "P(b)"]
    assert told["P(a)_2"].tolist() == ["y"] * 10
