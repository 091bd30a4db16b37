"""The thesis's experiments run at their smallest, answer every claim, and refuse what is absent."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pandas as pd
import pytest
from rich.console import Console

import bayes_lcs as bl
from experiments.clustered_naive_bayes import figure_4_1
from experiments.clustered_naive_bayes.__main__ import PAPER, main
from experiments.clustered_naive_bayes.figure_4_6 import bell_numbers, recursion_products
from experiments.clustered_naive_bayes.setting import DATASETS, setting_for
from experiments.papers.claims import (
    UNEXPLAINED,
    Claim,
    compare,
    show_comparison,
)
from experiments.papers.outcome import Finding

EXPERIMENTS = (
    *(f"figure_4_{number}" for number in range(1, 9)),
    "four_models",
    "table_4_1",
)
BEYOND = ("conditional_models", "prototype_map")  # of which the thesis says nothing


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_an_experiment_at_its_smallest(name, tmp_path, capsys):
    assert main([name, "--smoke", "--out", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert "The thesis and we" in printed
    assert len(pd.read_csv(tmp_path / f"{name}.csv")) > 0
    assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    comparison = pd.read_csv(tmp_path / f"{name}_comparison.csv", keep_default_na=False)
    assert comparison["claim"].tolist() == [c.name for c in PAPER.claims if c.experiment == name]
    assert set(comparison["agrees"]) <= {"yes", "NO", "cannot be compared"}
    unexplained = comparison.query("agrees != 'yes' and reason == ''")
    assert unexplained.empty


@pytest.mark.parametrize("name", [pytest.param(BEYOND[0], marks=pytest.mark.slow), *BEYOND[1:]])
def test_an_experiment_beyond_the_thesis_at_its_smallest(name, tmp_path, capsys):
    assert main([name, "--smoke", "--out", str(tmp_path)]) == 0
    assert "The thesis and we" not in capsys.readouterr().out
    assert len(pd.read_csv(tmp_path / f"{name}.csv")) > 0
    assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")


def test_every_claim_has_one_experiment():
    assert set(PAPER.experiments) == {*EXPERIMENTS, *BEYOND}
    asked = Counter(claim.experiment for claim in PAPER.claims)
    assert set(asked) == set(EXPERIMENTS)
    assert len({claim.name for claim in PAPER.claims}) == len(PAPER.claims)
    for claim in PAPER.claims:
        assert claim.says
        assert claim.published
        assert claim.reference
        assert set(claim.reasons) <= {"other", "meeting", *DATASETS}
        assert all(reason.endswith(".") for reason in claim.reasons.values())


def test_a_claim_without_an_answer_is_refused():
    setting = setting_for("meeting", smoke=True)
    with pytest.raises(ValueError, match="asks it"):
        compare("figure_4_3", {}, setting, PAPER.claims)
    with pytest.raises(ValueError, match="no_such_claim"):
        compare("figure_4_3", {"no_such_claim": Finding("", True)}, setting, PAPER.claims)


def test_reasons_are_those_of_the_data_set():
    claim = Claim("a", "x", "p. 1", "says", "1", {"meeting": "Ours.", "verbagg": "Theirs."})
    setting = setting_for("meeting", smoke=True)
    for agrees, reason in ((True, ""), (None, "Ours."), (False, "A smoke run")):
        found = compare("x", {"a": Finding("2", agrees)}, setting, [claim])
        assert found["reason"][0].startswith(reason)
        assert bool(found["reason"][0]) == bool(reason)
    other = Claim("a", "x", "p. 1", "says", "1", {"verbagg": "Theirs."})
    assert compare("x", {"a": Finding("2", None)}, setting, [other])["reason"][0] == UNEXPLAINED


@pytest.mark.parametrize("name", ["verbagg", "insteval"])
def test_an_absent_data_set(name, monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("BAYES_LCS_DATA", str(tmp_path))
    assert main(["table_4_1", "--data", name, "--out", str(tmp_path / "out")]) == 2
    assert f"there is no file {name}/" in capsys.readouterr().err
    monkeypatch.delenv("BAYES_LCS_DATA")
    assert main(["table_4_1", "--data", name, "--out", str(tmp_path / "out")]) == 2
    assert "BAYES_LCS_DATA" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_listing_and_unknown_names(capsys):
    assert main([]) == 0
    assert main(["--list"]) == 0
    printed = capsys.readouterr().out
    assert all(printed.count(name) == 2 for name in EXPERIMENTS)
    with pytest.raises(SystemExit):
        main(["no_such_experiment"])
    assert "four_models" in capsys.readouterr().err


def test_two_labels_are_needed_for_asymmetric_losses(monkeypatch, tmp_path, capsys):
    setting = setting_for("meeting", smoke=True)
    three = replace(setting.data, label_values=("reject", "accept", "later"))
    monkeypatch.setattr(
        "experiments.clustered_naive_bayes.__main__.setting_for",
        lambda *_, **__: replace(setting, data=three),
    )
    assert main(["figure_4_8", "--out", str(tmp_path)]) == 2
    assert "two labels" in capsys.readouterr().err


def test_learning_curves_of_groups_of_unequal_size():
    rows = [1, 8, 30, 30, 30, 30] + [0] * 15
    data, _ = bl.meeting_requests(seed=0, rows_per_person=rows)
    setting = replace(setting_for("meeting", smoke=True), data=data.select_groups(range(6)))
    outcome = figure_4_1.run(setting)
    last = outcome.numbers.query("held_out == 'all but one' and model == 'No-Sharing'")
    assert last["size"].tolist() == [count - 1 for count in rows[:6]]
    assert outcome.findings["no_sharing_learns"].ours.split(" at ")[1].startswith("10 rows")


def test_counts_of_partitions():
    assert bell_numbers(6) == [1, 1, 2, 5, 15, 52, 203]
    # Pairs (S, T) with min S in T and T inside S; S is everything or lacks the first object.
    objects = 5
    needed = [s for s in range(1, 1 << objects) if not s & 1] + [(1 << objects) - 1]
    pairs = sum((t & s) == t and bool(t & s & -s) for s in needed for t in range(1 << objects))
    assert recursion_products(objects) == pairs


def test_hostile_names_are_shown_as_they_are():
    claim = {"says": "[red]$x$", "reference": "", "published": "", "ours": "", "agrees": "NO"}
    console = Console(width=120, record=True, file=None)
    with console.capture() as shown:
        show_comparison(pd.DataFrame([{**claim, "reason": ""}]), console, "The thesis and we")
    assert "[red]$x$" in shown.get()
