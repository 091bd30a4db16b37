"""The experiments on partial scans run at their smallest, and answer every claim."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from experiments.benchmarks.__main__ import main as benchmark
from experiments.partial_scan.__main__ import PAPER, main
from experiments.partial_scan.data_sets import problem
from experiments.partial_scan.scans import fitted, said_by
from experiments.partial_scan.setting import Setting

EXPERIMENTS = ("figure_1", "figure_2", "orders", "table_1", "table_2", "table_3", "table_4")


def test_the_experiments_at_their_smallest(tmp_path, capsys):
    assert tuple(PAPER.experiments) == EXPERIMENTS
    assert main(["all", "--smoke", "--out", str(tmp_path)]) == 0
    assert "The paper and we" in capsys.readouterr().out
    for name in EXPERIMENTS:
        assert len(pd.read_csv(tmp_path / f"{name}.csv")) > 0
        assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    assert {claim.experiment for claim in PAPER.claims} == {*EXPERIMENTS} - {"orders"}


@pytest.mark.parametrize("learner", ["tree", "naive_bayes"])
def test_what_an_ensemble_says_is_a_mean_over_its_models(learner):
    setting = Setting(smoke=True)
    data = problem(setting, "kdd98")
    model = fitted(setting, data, learner, 16, tolerance=0.5).model
    assert 0 < len(model.parts_) < 16
    said = said_by(model, data).mean(axis=0)
    np.testing.assert_allclose(model.predict_proba(data.X_test), said, rtol=1e-12)


def test_accuracy_and_benefit_are_those_of_the_classifier():
    setting = Setting(smoke=True)
    data = problem(setting, "ucsd_fico2009")
    model = fitted(setting, data, "tree", 4).model
    right = 100.0 * model.score(data.X_test, data.y_test)
    assert data.value(model.predict_proba(data.X_test)) == pytest.approx(right)
    data = problem(setting, "ucsd_fico2009", benefits=True)
    model = fitted(setting, data, "tree", 4).model
    total = model.total_benefit(data.X_test, data.y_test)
    assert data.value(model.predict_proba(data.X_test)) == pytest.approx(total)


@pytest.mark.slow
def test_the_benchmark_at_its_smallest(tmp_path):
    assert benchmark(["--smoke", "--out", str(tmp_path), "partial_scans"]) == 0
    for table in json.loads((tmp_path / "benchmarks.json").read_text()):
        assert all(float(row[4]) > 75.0 for row in table["rows"])
