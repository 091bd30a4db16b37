"""The experiments on coresets run at their smallest, and answer every claim."""

from __future__ import annotations

import pandas as pd

from experiments.coresets.__main__ import PAPER, main

EXPERIMENTS = ("cost_by_size", "error_by_height", "found_centers", "slides")


def test_the_experiments_at_their_smallest(tmp_path, capsys):
    assert tuple(PAPER.experiments) == EXPERIMENTS
    assert main(["all", "--smoke", "--out", str(tmp_path)]) == 0
    assert "The lecture and we" in capsys.readouterr().out
    for name in EXPERIMENTS:
        assert len(pd.read_csv(tmp_path / f"{name}.csv")) > 0
        assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    assert {claim.experiment for claim in PAPER.claims} == {"cost_by_size", "error_by_height"}
