"""A CSV of a few thousand rows and a price of time: the best model, and measured claims."""

from __future__ import annotations

import json
import math

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import bayes_lcs as bl
from bayes_lcs.cli import app
from bayes_lcs.core.errors import DatasetNotFound
from bayes_lcs.data.datasets import dataset_path

CSV = {
    "visits": None,
    "nltcs": ("nltcs", {}),
    "nursery": ("nursery", {"header": None}),
}


@pytest.fixture(params=CSV)
def path(request, tmp_path):
    """The rows of a data set as a CSV of 5,000 rows."""
    if CSV[request.param] is None:
        rng = np.random.default_rng(0)
        kind = rng.choice(4, 5000, p=[0.4, 0.3, 0.2, 0.1])
        habits = rng.dirichlet(np.full(5, 0.5), size=(4, 8))
        cells = np.stack([[rng.choice(5, p=habits[k, f]) for k in kind] for f in range(8)], axis=1)
        frame = pd.DataFrame(cells, columns=[f"page {f}" for f in range(8)]).map("v{}".format)
    else:
        name, options = CSV[request.param]
        try:
            frame = pd.read_csv(dataset_path(name), **options)
        except DatasetNotFound as absent:
            pytest.skip(str(absent))
        frame = frame.sample(5000, random_state=0).rename(columns=str)
    frame.to_csv(tmp_path / "rows.csv", index=False)
    return tmp_path / "rows.csv"


@pytest.mark.parametrize("abbreviated", [None, "fixed-1"])
def test_the_best_model_of_a_file(path, abbreviated):
    mixture = bl.MixtureClusterer(4, random_state=0)
    for alpha in (0, 0.2):
        found = bl.learning_curve_sample(
            mixture, path, alpha=alpha, abbreviated=abbreviated, progress=False
        )
        # All rows at no price; at 0.2 an hour these seconds cost less than the noise.
        assert found.curve["size"].tolist() == [500, 1000, 2000, 4000]
        trained = [fit for fit in found.run.fits if fit.mode != "abbreviated"]
        assert found.score == max(fit.score for fit in trained)
        assert found.model.score(pd.read_csv(path)) > found.baseline_score
        assert found.model.max_iter == mixture.max_iter
        low, high = found.gain_interval
        assert 0 < low < found.score - found.baseline_score < high
        if abbreviated is None:
            assert found.benefit >= 1.0
            assert found.utility == pytest.approx(
                found.benefit - alpha * found.runtime_seconds / 3600
            )
        else:
            assert math.isnan(found.benefit)  # full training on all rows has not been done


@pytest.mark.parametrize("path", ["visits"], indirect=True)
def test_the_command_reports_what_it_measured(path, tmp_path):
    out = tmp_path / "found"
    done = CliRunner().invoke(
        app, ["cluster", str(path), "-k", "4", "--alpha", "0.2", "--out", str(out), "--json"]
    )
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert not {"benefit", "speedup", "utility"} & set(told)
    low, high = told["gain_interval"]
    assert low < told["score"] - told["baseline_score"] < high
    assert told["score_standard_error"] > 0
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "nats above that of a single cluster (95 % interval" in page
    assert "reckoned" not in page
    model = bl.load(out / "mixture.nc")
    assert model.score(pd.read_csv(path)) > told["baseline_score"]
    curve = pd.read_csv(out / "curve.csv")
    assert told["score"] == pytest.approx(curve["score"].max(), rel=1e-9)


@pytest.mark.filterwarnings("ignore::bayes_lcs.DataNote")
def test_numbers_and_names_side_by_side_are_the_same_from_memory_and_files(tmp_path):
    rng = np.random.default_rng(0)
    kind = rng.integers(0, 2, 300)
    frame = pd.DataFrame(
        {
            "weight": (rng.normal(size=300) + 4 * kind).round(3),
            "wheels": 2 + 2 * kind,
            "colour": rng.choice(["red", "blue"], 300),
        }
    )
    frame.to_csv(tmp_path / "rows.csv")
    frame.to_parquet(tmp_path / "rows.parquet")
    clusterer = bl.GeneralizedClusterer("naive_bayes", 2, random_state=0)
    expected, *others = [
        bl.learning_curve_sample(clusterer, given, alpha=0).model.predict(frame)
        for given in (frame, tmp_path / "rows.csv", tmp_path / "rows.parquet")
    ]
    for found in others:
        np.testing.assert_array_equal(found, expected)
