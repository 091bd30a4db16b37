"""Commands show on a terminal what they are at, and nothing of it on standard output."""

import json

import numpy as np
import pandas as pd
import pytest

from tests.terminal import on_a_terminal

AT_ONCE = """
from bayes_lcs.runtime import progress
from bayes_lcs.io.formats import csv
progress.SECONDS_BEFORE_BAR = 0.0
csv.BLOCK_BYTES = csv.HEAD_BYTES = 4096
from bayes_lcs.cli import main
main()
"""
"""Bars come without delay, and text in small pieces, so that a small file takes its time."""


@pytest.fixture
def numbers(tmp_path):
    rng = np.random.default_rng(0)
    path = tmp_path / "some [b]numbers.csv"
    pd.DataFrame(rng.normal(size=(4000, 3)), columns=list("abc")).to_csv(path, index=False)
    return path


@pytest.mark.parametrize("more", [(), ("--stream",)])
def test_a_coreset_shows_how_far_the_file_is_read(tmp_path, numbers, more):
    words = ["coreset", numbers, "-k", 2, "--size", 50, "--json", "--out", tmp_path / "o.csv"]
    shown, printed = on_a_terminal(AT_ONCE, *words, *more)
    assert "reading some [b]numbers.csv" in shown
    assert json.loads(printed)["rows"] == 4000


@pytest.mark.slow
def test_clustering_shows_em_under_the_curve(tmp_path):
    rng = np.random.default_rng(0)
    kind = rng.integers(3, size=(3000, 1))
    codes = np.where(rng.random((3000, 6)) < 0.8, kind, rng.integers(3, size=(3000, 6)))
    pd.DataFrame(codes, columns=list("abcdef")).to_csv(tmp_path / "c.csv", index=False)
    words = ["cluster", tmp_path / "c.csv", "-k", 3, "--alpha", 0, "--initial", 200, "--json"]
    shown, printed = on_a_terminal(AT_ONCE, *words, "--out", tmp_path / "out")
    assert "reading c.csv" in shown
    assert "log-likelihood" in shown
    assert "learning curve" in shown
    assert json.loads(printed)["num_rows"] == 3000


def test_a_bad_cell_far_into_a_file_leaves_no_bar_behind(tmp_path, numbers):
    with numbers.open("a") as file:
        file.write("1,2,three\n")
    words = ["coreset", numbers, "-k", 2, "--size", 50, "--out", tmp_path / "o.csv", "--stream"]
    shown, printed = on_a_terminal(AT_ONCE, *words)
    assert printed == ""
    _, _, after = shown.rpartition("reading some")
    assert "\x1b[?25h" in after  # the cursor is there again
    message = after[after.index("bayes-lcs: ") :]
    assert "line 4002, column 'c'" in message
