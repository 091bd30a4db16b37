"""A table that grows: on a terminal, in lines, or not at all."""

import inspect
import json

import numpy as np
import pandas as pd

from bayes_lcs.runtime.live_table import live_table
from bayes_lcs.runtime.progress import plain_lines
from tests.terminal import on_a_terminal


def three_stages():
    with live_table("curve", 3, ("rows", "score", "gain", "after", "decision"), "begins") as add:
        add(("10", "-5", "1 s", "goes on: why not"), 1.0, status="more")
        add(("20", "-4", "2 s", "goes on: [b]why not"), 2.0)
        add(("40", "-3", "3 s", "stops"), 4.0)


def test_a_stage_is_a_line_only_where_lines_were_asked_for(capsys):
    three_stages()
    assert capsys.readouterr().err == ""
    with plain_lines(1000.0):
        three_stages()
    assert capsys.readouterr().err.splitlines() == [
        "curve: rows 10, score -5, after 1 s, decision goes on: why not",
        "curve: rows 20, score -4, after 2 s, decision goes on: [b]why not",
        "curve: rows 40, score -3, after 3 s, decision stops",
    ]


def test_a_terminal_shows_a_table_with_bars():
    imports = "from bayes_lcs.runtime.live_table import live_table"
    program = f"{imports}\n{inspect.getsource(three_stages)}\nthree_stages()"
    shown, printed = on_a_terminal(program)
    assert printed == ""
    last = shown[shown.rindex("decision") :]
    assert [last.count("█" * width) for width in (5, 10, 20)] == [1 + 2 + 4, 1 + 2, 1]
    assert "[b]why not" in last  # names are not markup


def test_the_learning_curve_is_live_and_json_is_alone_on_standard_output(tmp_path):
    rng = np.random.default_rng(0)
    kind = rng.integers(3, size=(2000, 1))
    codes = np.where(rng.random((2000, 6)) < 0.8, kind, rng.integers(3, size=(2000, 6)))
    pd.DataFrame(codes, columns=list("abcdef")).to_csv(tmp_path / "c.csv", index=False)
    words = ["cluster", tmp_path / "c.csv", "-k", 3, "--alpha", 0, "--initial", 200, "--json"]
    main = "from bayes_lcs.cli import main; main()"
    shown, printed = on_a_terminal(main, *words, "--out", tmp_path / "out")
    for word in ("gain (best = 1)", "██████", "continues: the next stage"):
        assert word in shown
    found = json.loads(printed)
    assert f"{found['sample_size']:,}  " in shown
