"""Odd and damaged files through the commands: a result, or exit code 2 and one message."""

from __future__ import annotations

import gzip
import random
import shutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import bayes_lcs as bl
from bayes_lcs.cli import app
from bayes_lcs.io.open_tables import open_file
from tests.fuzzing import damaged, good_csv, good_parquet, odd_csv

MAKERS = {
    "odd.csv": odd_csv,
    "rows.csv": lambda rng: damaged(good_csv(rng), rng),
    "rows.csv.gz": lambda rng: damaged(gzip.compress(good_csv(rng), mtime=0), rng),
    "rows.parquet": lambda rng: damaged(good_parquet(rng), rng),
}


def check_command(words: list[str], path: Path, out: Path) -> None:
    found = CliRunner().invoke(app, [words[0], str(path), *words[1:], "--out", str(out)])
    error = found.exception
    assert error is None or isinstance(error, SystemExit), repr(error)
    assert found.exit_code in (0, 2), found.output
    if found.exit_code:
        lines = found.stderr.splitlines()
        (line,) = (line for line in lines if not line.startswith(("warning: ", "note: ")))
        assert line.startswith("bayes-lcs: ")
        assert path.name in line
        assert line.isprintable()
        assert not out.exists()


def check_file(path: Path, out: Path, *, all_commands: bool) -> None:
    try:
        names = open_file(path).names
    except bl.DataError:
        names = ("who", "buys")
    label = names[-1]
    commands = [
        ["scan", "--label", label, "--parts", "2", "--predict", str(path)],
        ["coreset", "-k", "2", "--size", "5"],
        ["coreset", "-k", "2", "--size", "5", "--stream"],
    ]
    if all_commands:
        commands += [["cluster", "-k", "2"], ["compare", "--group", names[0], "--label", label]]
    for words in commands:
        check_command(words, path, out / "c.csv" if words[0] == "coreset" else out)
        shutil.rmtree(out, ignore_errors=True)


@pytest.fixture
def _quick_models(monkeypatch: pytest.MonkeyPatch) -> None:
    """The evidence of the prototype model takes long, whatever the file."""
    monkeypatch.setattr(
        "bayes_lcs.workflows.compare.Prototype", lambda: bl.NoSharing(label_prior=2.0)
    )


@pytest.mark.parametrize("name", MAKERS)
@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32 - 1))
def test_commands_on_damaged_files(tmp_path: Path, name: str, seed: int) -> None:
    path = tmp_path / name
    path.write_bytes(MAKERS[name](random.Random(seed)))
    check_file(path, tmp_path / "out", all_commands=False)


@pytest.mark.slow
@pytest.mark.usefixtures("_quick_models")
@pytest.mark.parametrize("name", MAKERS)
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32 - 1))
def test_all_commands_on_many_damaged_files(tmp_path: Path, name: str, seed: int) -> None:
    path = tmp_path / name
    path.write_bytes(MAKERS[name](random.Random(seed)))
    check_file(path, tmp_path / "out", all_commands=True)
