"""The paper's experiments run at their smallest, answer every claim, and refuse what is absent."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pandas as pd
import pytest

from experiments.learning_curve import generators
from experiments.learning_curve.__main__ import PAPER, main
from experiments.learning_curve.setting import LOADERS, SHAPES, load, setting_for

EXPERIMENTS = (
    *(f"figure_{number}" for number in (2, 3, 4)),
    "held_back",
    "real_sets",
    "regret",
    "sensitivity",
    *(f"table_{number}" for number in (1, 2, 3, 4)),
)


def check_files(name, folder):
    assert len(pd.read_csv(folder / f"{name}.csv")) > 0
    assert (folder / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    comparison = pd.read_csv(folder / f"{name}_comparison.csv", keep_default_na=False)
    assert comparison["claim"].tolist() == [c.name for c in PAPER.claims if c.experiment == name]
    assert set(comparison["agrees"]) <= {"yes", "NO", "cannot be compared"}
    assert comparison.query("agrees != 'yes' and reason == ''").empty


def test_the_experiments_at_their_smallest(tmp_path, capsys):
    """One data set serves all: its runs are made once."""
    names = ["table_3", "table_4", "figure_2", "figure_3", "figure_4", "regret"]
    options = ["--smoke", "--data", "USCensus1990", "--out", str(tmp_path)]
    assert main([*names, *options]) == 0
    assert capsys.readouterr().out.count("The paper and we") == len(names)
    for name in names:
        check_files(name, tmp_path)


@pytest.mark.slow
def test_claims_on_rows_held_back(tmp_path):
    options = ["--smoke", "--data", "USCensus1990", "--out", str(tmp_path)]
    assert main(["held_back", *options]) == 0
    check_files("held_back", tmp_path)


@pytest.mark.slow
def test_all_shapes_at_their_smallest(tmp_path):
    """Several data sets in one table, which one alone does not try."""
    names = ["table_1", "table_2", "table_4", "figure_4", "regret", "sensitivity"]
    assert main([*names, "--smoke", "--out", str(tmp_path)]) == 0
    for name in names:
        check_files(name, tmp_path)


def test_every_claim_has_one_experiment():
    assert tuple(PAPER.experiments) == EXPERIMENTS
    assert set(Counter(claim.experiment for claim in PAPER.claims)) == set(EXPERIMENTS)
    assert len({claim.name for claim in PAPER.claims}) == len(PAPER.claims)
    for claim in PAPER.claims:
        assert claim.says
        assert claim.published
        assert claim.reference
        assert set(claim.reasons) <= {"other", "paper", "real", *SHAPES, *LOADERS}
        assert all(reason.endswith(".") for reason in claim.reasons.values())


def test_generated_data_has_the_paper_s_shape():
    log = generators.web_log(2000, 303, 3.0, seed=1)
    assert log.shape == (2000, 303)
    assert set(np.unique(log.data)) == {1}
    assert 1.5 < log.sum() / 2000 < 3.0  # items seen twice count once
    rows = generators.census(2000, 68, seed=1)
    assert rows.shape == (2000, 68)
    assert rows.min() == 0
    assert rows.max() <= 9
    assert np.array_equal(rows, generators.census(2000, 68, seed=1))
    assert not np.array_equal(rows, generators.census(2000, 68, seed=2))


def test_an_absent_data_set(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("BAYES_LCS_DATA", str(tmp_path))
    assert main(["real_sets", "--data", "msweb", "--out", str(tmp_path / "out")]) == 2
    assert "there is no file msweb/" in capsys.readouterr().err
    assert main(["real_sets", "--out", str(tmp_path / "out")]) == 2
    assert "it is for real data" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_listing_and_unknown_names(capsys):
    assert main([]) == 0
    printed = capsys.readouterr().out
    assert all(name in printed for name in EXPERIMENTS)
    with pytest.raises(SystemExit):
        main(["no_such_experiment"])
    with pytest.raises(SystemExit):
        main(["table_1", "--scale", "2"])


def test_shares_of_a_data_set():
    assert load("USCensus1990", 0.001, 0).shape == (2458, 68)
    assert setting_for("paper", scale=0.1).initial_size("MSNBC", 60_000) == 4000
    assert setting_for("real").initial_size("msweb", 37_711) == 754
