"""Arguments that cannot be meant: refused with a message that says what to do."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

import bayes_lcs as bl
from bayes_lcs.inference import chain_driver
from bayes_lcs.inference.condition import condition


@pytest.fixture(scope="module")
def data() -> bl.GroupedTable:
    return bl.ClusteredNaiveBayes().simulate(bl.Schema(2, (3, 2)), [6, 5, 7], seed=0).table


@pytest.fixture(scope="module")
def posterior(data: bl.GroupedTable) -> bl.Posterior:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bl.SamplingWarning)
        return bl.sample(bl.ClusteredNaiveBayes(), data, draws=60, chains=2, seed=1)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"draws": 2.5}, TypeError, "draws must be a whole number, got 2.5"),
        ({"seed": None}, TypeError, "seed must be a whole number, got None"),
        ({"seed": -1}, ValueError, "seed must be at least 0, got -1"),
        ({"warmup": -1}, ValueError, "warmup must be at least 0, got -1"),
    ],
)
def test_numbers(data, options, error, message):
    with pytest.raises(error, match=message):
        bl.sample(bl.ClusteredNaiveBayes(), data, **options)


def test_what_is_not_a_model_or_a_table(data):
    with pytest.raises(TypeError, match=r"not a class; use ClusteredNaiveBayes\(\)"):
        bl.sample(bl.ClusteredNaiveBayes, data)
    with pytest.raises(TypeError, match=r"GroupedTable.from_frame"):
        bl.sample(bl.ClusteredNaiveBayes(), pd.DataFrame())


def test_rows_of_groups_that_are_not_of_the_table(data):
    rows = data.to_frame()
    rows.loc[rows.index[:2], data.group_name] = "never seen"
    with pytest.raises(ValueError, match="2 rows belong to groups that are not in this table"):
        bl.sample(bl.NoSharing(), data.encode(rows))


@pytest.mark.parametrize("loss", [[[0, 1, 2], [1, 0, -5]], [[0], [1]], [0, 1]])
def test_losses_of_the_wrong_shape(posterior, data, loss):
    with pytest.raises(ValueError, match=r"loss must have shape \(2, 2\)"):
        posterior.decide(data, loss=loss)


@pytest.mark.parametrize("max_draws", [0, -1])
def test_no_draws_at_all(posterior, data, max_draws):
    with pytest.raises(ValueError, match="max_draws must be at least 1"):
        posterior.predict_proba(data, max_draws=max_draws)
    with pytest.raises(ValueError, match="max_draws must be at least 1"):
        bl.leave_one_out(posterior, max_draws=max_draws)


@pytest.mark.parametrize("level", [0.0, 1.5])
def test_levels_that_are_no_probability(posterior, level):
    with pytest.raises(ValueError, match="level must be above 0 and at most 1"):
        posterior.partition_estimate(level=level)


def test_too_few_draws_are_not_called_constant(data):
    with pytest.warns(bl.SamplingWarning, match="too few draws for R-hat"):
        bl.sample(bl.ClusteredNaiveBayes(), data, draws=3, chains=2, seed=4)


def test_leave_one_out_says_why_it_warns(posterior, data):
    with pytest.warns(bl.LeaveOutWarning, match="only 60 draws were used"):
        bl.leave_one_out(posterior, max_draws=60)
    assert bl.leave_one_out(bl.sample(bl.NoSharing(), data, draws=2)).method == "closed form"
    with pytest.raises(TypeError, match=r"classifier\.posterior_"):
        bl.leave_one_out(bl.SharedNaiveBayesClassifier())


def test_losses_of_what_are_no_probabilities_or_codes():
    with pytest.raises(ValueError, match="finite"):
        bl.row_losses([[np.nan, np.nan]], [1])
    with pytest.raises(TypeError, match="integer codes"):
        bl.row_losses([[0.5, 0.5]], [0.9])


def test_exponents_may_be_an_iterator():
    p = [[0.9, 0.1], [0.2, 0.8]]
    curve = bl.asymmetric_loss_curve({"a": p, "b": p}, [0, 1], exponents=iter((-1, 0, 1)))
    assert list(curve["model"]) == ["a"] * 3 + ["b"] * 3


def test_a_sparse_matrix_is_not_drawn():
    import scipy.sparse

    with pytest.raises(TypeError, match="too large to plot"):
        bl.plot_coclustering(scipy.sparse.eye_array(3).tocsr(), [0, 1, 2], ["a", "b", "c"])


def test_ctrl_c_stops_whoever_loops_over_tables(data, monkeypatch):
    run, calls = chain_driver._run_chunk, []

    def interrupted(*arguments):
        calls.append(1)
        if len(calls) > 30:  # there are 20 sweeps of warm-up, so some draws are kept
            raise KeyboardInterrupt
        return run(*arguments)

    monkeypatch.setattr(chain_driver, "_run_chunk", interrupted)
    monkeypatch.setattr(chain_driver, "CHUNK_SECONDS", 1e-9)  # one sweep per chunk
    with pytest.raises(KeyboardInterrupt):
        condition(bl.ClusteredNaiveBayes(), data, method="sample", draws=40, chains=1)
