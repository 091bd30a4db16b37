"""``bayes-lcs cluster`` of few rows: samples and hold-out follow their number."""

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from bayes_lcs.cli import app


def run(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


def write_visits(path, num_rows):
    rng = np.random.default_rng(1)
    kind = rng.integers(2, size=(num_rows, 1))
    cells = np.where(rng.random((num_rows, 6)) < np.where(kind, 0.9, 0.1), "yes", "no")
    frame = pd.DataFrame(cells, columns=list("abcdef"))
    frame.iloc[0], frame.iloc[1] = "yes", "no"  # no column has one value only
    if path.suffix == ".csv":
        frame.to_csv(path, index=False)
    else:
        frame.to_parquet(path, index=False)


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
@pytest.mark.parametrize(
    ("num_rows", "holdout", "initial"),
    [(3, 1, 2), (10, 2, 8), (50, 10, 40), (200, 40, 160), (699, 139, 200), (5000, 1000, 500)],
)
def test_any_number_of_rows(tmp_path, suffix, num_rows, holdout, initial):
    path = tmp_path / f"visits{suffix}"
    write_visits(path, num_rows)
    found = run("cluster", path, "-k", 2, "--json", "--out", tmp_path / "out")
    assert found.exit_code == 0, found.output
    told = json.loads(found.stdout)
    assert told["num_rows"] == num_rows
    assert (told["holdout_size"], told["initial_size"]) == (holdout, initial)
    assert initial <= told["sample_size"] <= num_rows - holdout


def test_given_sizes_are_taken_as_they_are(tmp_path):
    path = tmp_path / "visits.csv"
    write_visits(path, 500)
    words = ("cluster", path, "-k", 2, "--json", "--out")
    told = json.loads(run(*words, tmp_path / "out", "--holdout", 300, "--initial", 50).stdout)
    assert (told["holdout_size"], told["initial_size"]) == (300, 50)
    refused = run(*words, tmp_path / "other", "--holdout", 500)
    assert refused.exit_code == 2
    assert "a hold-out of 500 rows leaves nothing of 500 rows to train on" in refused.output
    assert "--holdout" in refused.output
