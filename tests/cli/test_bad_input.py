"""What users do wrong: exit code 2, one message with what to do, and nothing written."""

from __future__ import annotations

import gzip
import os
import zipfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import bayes_lcs as bl
from bayes_lcs.cli import app
from bayes_lcs.cli.errors import to_command_options

HEAD = "user,hour,size,decision\n"
ROWS = "".join(f"u{i % 2},{i % 3},{i % 7},{'yes' if i % 5 < 2 else 'no'}\n" for i in range(40))
COMPARE = ("--group", "user", "--label", "decision")
SCAN = ("--label", "decision", "--parts", "2")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("files")
    texts = {
        "good.csv": HEAD + ROWS,
        "empty.csv": "",
        "head.csv": HEAD,
        "one.csv": "decision\nyes\nno\n",
        "one_row.csv": HEAD + "u1,1,2,yes\n",
        "one_label.csv": HEAD + ROWS.replace("no", "yes"),
        "no_label.csv": HEAD + "u1,1,2,\nu2,2,3,\n",
        "ragged.csv": HEAD + "u1,1,2,yes\nu2,2,3\n",
        "words.csv": "x,y\n1,2\n3,four\n",
        "gap.csv": "x,y\n1,2\n3,\n",
        "infinite.csv": "x,y\n1,2\n3,1e400\n",
        "alike.csv": "x\nyes\nyes\n",
        "huge.csv": "x,y\n1,2\n1e200,3\n",
        "weight.csv": "x,weight\n1,2\n3,4\n",
        "many.csv": HEAD + "".join(f"u{i % 3},{i * 1.5},a,{'yn'[i % 2]}\n" for i in range(100)),
        "page.html": "<!DOCTYPE html>\n<html></html>\n",
    }
    for name, text in texts.items():
        (folder / name).write_text(text)
    (folder / "latin.csv").write_bytes((HEAD + "änn,1,2,yes\n").encode("latin-1"))
    (folder / "cut.csv.gz").write_bytes(gzip.compress((HEAD + ROWS).encode())[:-20])
    (folder / "false.csv.gz").write_bytes(b"\x1f\x8b and no more")
    (folder / "old.xls").write_bytes(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(100))
    (folder / "false.parquet").write_text("PAR1 and no more")
    with zipfile.ZipFile(folder / "book.xlsx", "w") as book:
        book.writestr("a", "b")
    nested = {"user": ["a", "b"], "x y": [[1], [2]], "decision": ["y", "n"]}
    pq.write_table(pa.table(nested), folder / "nested.parquet")
    (folder / "folder").mkdir()
    return folder


ANY = {
    "none.csv": "there is no such file",
    "empty.csv": "the file is empty",
    "head.csv": "there are no rows",
    "ragged.csv": "line 3, column 'decision': the row has 3 cells where 4 are expected",
    "latin.csv": "line 2, column 'user': byte 0xe4 at offset 24 is not utf-8 text",
    "cut.csv.gz": "the gzip file is incomplete",
    "false.csv.gz": "the gzip file is damaged",
    "book.xlsx": "is a zip or Excel file; unpack it or save the sheet as CSV",
    "old.xls": "is an old Excel file; save the sheet as CSV",
    "false.parquet": "is not a complete Parquet file",
    "nested.parquet": "column 'x y': has nested cells (list<",
    "page.html": "is a web page, not a table",
    "folder": "folder",
}
CASES = [
    *((("compare", name, *COMPARE), told) for name, told in ANY.items()),
    *((("scan", name, *SCAN), told) for name, told in ANY.items()),
    *((("cluster", name, "-k", "2"), told) for name, told in ANY.items()),
    *((("coreset", name, "-k", "2"), told) for name, told in ANY.items() if "nested" not in name),
    (("coreset", "nested.parquet", "-k", "2"), "nested.parquet: there is no numeric column"),
    (("compare", "one.csv", *COMPARE), "column 'user': there is no such column"),
    (("compare", "good.csv", "--group", "usr", "--label", "decision"), "did you mean 'user'?"),
    (("compare", "good.csv", "--group", "user", "--label", "user"), "both group and label"),
    (("compare", "one_label.csv", *COMPARE), "only one value, 'yes'"),
    (("compare", "no_label.csv", *COMPARE), "every label is missing"),
    (("compare", "good.csv", *COMPARE, "--bins", "hour"), "--bins must be COLUMN=NUMBER"),
    (("compare", "good.csv", *COMPARE, "--bins", "hour=1"), "integer of 2 or more"),
    (("compare", "good.csv", *COMPARE, "--bins", "hous=3"), "--bins names a column that is not"),
    (("compare", "good.csv", *COMPARE, "--bins", "hous=3"), "did you mean 'hour'?"),
    (("compare", "many.csv", *COMPARE), "--bins hour=4"),
    (("compare", "many.csv", *COMPARE), "--ignore hour"),
    (("compare", "good.csv", *COMPARE, "--ignore", "hours"), "did you mean 'hour'?"),
    (("compare", "nested.parquet", *COMPARE), "--ignore 'x y'"),
    (("scan", "one.csv", *SCAN), "no feature columns are left"),
    (("scan", "good.csv", "--label", "decision", "--parts", "64"), "ask for 40 parts or fewer"),
    (("scan", "good.csv", *SCAN, "--predict", "none.csv"), "none.csv: there is no such file"),
    (("scan", "good.csv", *SCAN, "--predict", "words.csv"), "words.csv, column 'user': the class"),
    (("scan", "huge.csv", "--label", "y", "--parts", "1"), "huge.csv: DecisionTreeClassifier can"),
    (("scan", "good.csv", *SCAN, "--confidence", "2"), "confidence"),
    (("scan", "good.csv", *SCAN, "--seed", "-1"), "--seed"),
    (("cluster", "one_row.csv", "-k", "1"), "there is only one row"),
    (("cluster", "alike.csv", "-k", "2"), "clusters do not describe these rows"),
    (("cluster", "good.csv", "-k", "41"), "only 40 rows, too few for 41 clusters"),
    (("cluster", "good.csv", "-k", "0"), "-k"),
    (("cluster", "good.csv", "-k", "2", "--holdout", "-5"), "--holdout"),
    (("coreset", "alike.csv", "-k", "1"), "alike.csv: there is no numeric column"),
    (("coreset", "gap.csv", "-k", "1"), "line 3, column 'y': there is no number"),
    (("coreset", "infinite.csv", "-k", "1"), "line 3, column 'y': the number is infinite"),
    (("coreset", "huge.csv", "-k", "1"), "column 'x': holds numbers as large as 1e+200"),
    (("coreset", "huge.csv", "-k", "1", "--stream"), "column 'x': holds numbers as large as"),
    (("coreset", "weight.csv", "-k", "1"), "column 'weight': the weights of the coreset need"),
    (("coreset", "gap.csv", "-k", "3", "--ignore", "y"), "only 2 rows, too few for 3 clusters"),
    (("coreset", "gap.csv", "-k", "1", "--size", "-3"), "--size"),
    (("coreset", "gap.csv", "-k", "1", "--method", "x", "--ignore", "y"), "method must be one of"),
]


@pytest.mark.parametrize(("words", "told"), CASES, ids=[" ".join(words) for words, _ in CASES])
def test_one_message_and_nothing_written(
    files: Path, tmp_path: Path, words: tuple[str, ...], told: str
) -> None:
    before = sorted(files.rglob("*"))
    places = [str(files / word) if "." in word or word == "folder" else word for word in words]
    out = tmp_path / "deep" / "out"
    out = out / "c.csv" if words[0] == "coreset" else out
    found = CliRunner().invoke(app, [*places, "--out", str(out)])
    assert found.exit_code == 2, found.output
    assert told in found.stderr
    assert found.stdout == ""
    if "Usage:" not in found.stderr:
        (line,) = (line for line in found.stderr.splitlines() if line.startswith("bayes-lcs: "))
        assert line.startswith("bayes-lcs: ")
    assert list(tmp_path.iterdir()) == []
    assert sorted(files.rglob("*")) == before


def test_a_folder_that_was_there_stays(files: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    words = ["scan", str(files / "none.csv"), "--label", "x", "--out", str(tmp_path)]
    assert CliRunner().invoke(app, words).exit_code == 2
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_options_that_only_python_has_are_called_so() -> None:
    assert "Python functions" in to_command_options("pass the right encoding=")
    assert to_command_options("p.csv, column 'bins=': bad") == "p.csv, column 'bins=': bad"
    assert to_command_options("log joint=3") == "log joint=3"


def test_what_nobody_thought_of_is_a_message_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stumble(*_: object, **__: object) -> None:
        raise ZeroDivisionError("float division")

    monkeypatch.setattr("bayes_lcs.workflows.cluster.cluster_file", stumble)
    (tmp_path / "x.csv").write_text("a\n1\n")
    words = ["cluster", str(tmp_path / "x.csv"), "-k", "2", "--out", str(tmp_path / "out")]
    found = CliRunner().invoke(app, words)
    assert found.exit_code == 1
    assert "unexpected error (ZeroDivisionError: float division)" in found.stderr
    monkeypatch.setenv("BAYES_LCS_TRACEBACK", "1")
    assert isinstance(CliRunner().invoke(app, words).exception, ZeroDivisionError)


@pytest.mark.skipif(os.name == "nt", reason="names of files are text there")
def test_a_file_name_that_is_no_text(tmp_path: Path) -> None:
    path = tmp_path / os.fsdecode(b"caf\xe9\x1b[31m.csv")
    words = ["cluster", str(path), "-k", "2", "--out", str(tmp_path / "out")]
    found = CliRunner().invoke(app, words)
    assert found.exit_code == 2, found.output
    assert r"caf\udce9\x1b[31m.csv: there is no such file" in found.stderr
    path.write_text(HEAD + ROWS)
    found = CliRunner().invoke(app, words)
    assert found.exit_code == 0, found.output
    assert bl.load(tmp_path / "out" / "mixture.nc").n_components == 2
