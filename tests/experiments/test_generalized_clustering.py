"""The paper's experiments run at their smallest, and answer every claim."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from experiments.generalized_clustering.__main__ import PAPER, main
from experiments.generalized_clustering.data_sets import DOMAINS, made

EXPERIMENTS = ("any_classifier", "figure_2", "figure_3", "table_1", "table_2")


def test_the_experiments_at_their_smallest(tmp_path, capsys):
    assert tuple(PAPER.experiments) == EXPERIMENTS
    assert main(["all", "--smoke", "--out", str(tmp_path)]) == 0
    assert "The paper and we" in capsys.readouterr().out
    for name in EXPERIMENTS:
        assert len(pd.read_csv(tmp_path / f"{name}.csv")) > 0
        assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")


def test_every_claim_is_answered():
    assert {claim.experiment for claim in PAPER.claims} == set(EXPERIMENTS) - {"any_classifier"}
    assert all(reason.endswith(".") for claim in PAPER.claims for reason in claim.reasons.values())


@pytest.mark.parametrize("domain", DOMAINS)
def test_made_domains_have_their_shape(domain):
    data = made(domain, 0.1, seed=1)
    assert data.X.shape == (375, 2)
    assert np.bincount(data.y).tolist() == [125] * 3
    pd.testing.assert_frame_equal(data.X, made(domain, 0.1, seed=1).X)


def test_slices_are_apart_by_the_separation():
    data = made("stump", 0.2)
    ends = [(data.X["x"][data.y == k].min(), data.X["x"][data.y == k].max()) for k in range(3)]
    assert ends[1][0] - ends[0][1] > 0.2
    assert ends[2][0] - ends[1][1] > 0.2
    assert ends[2][1] <= 1.0


def test_an_absent_data_set(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("BAYES_LCS_DATA", str(tmp_path))
    from experiments.generalized_clustering import data_sets

    data_sets.natural.cache_clear()
    assert main(["table_1", "--seed", "99", "--out", str(tmp_path / "out")]) == 2
    assert "there is no file promoters/" in capsys.readouterr().err


def test_listing_and_unknown_names(capsys):
    assert main([]) == 0
    printed = capsys.readouterr().out
    assert all(name in printed for name in EXPERIMENTS)
    with pytest.raises(SystemExit):
        main(["no_such_experiment"])
