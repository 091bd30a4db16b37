"""Losses of predictions, by hand and against scikit-learn."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.metrics import log_loss

import bayes_lcs as bl
from bayes_lcs.core.decisions import asymmetric_loss, decide

FALSE_ALARM = 1e-4
"""Chance that a test of a standard error fails for correct code, with other seeds."""


def predictions(num_rows: int = 60, num_labels: int = 2, seed: int = 0):
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.ones(num_labels), num_rows)
    return p, rng.integers(num_labels, size=num_rows)


def test_log_loss_is_scikit_learns_mean():
    p, y = predictions(num_labels=3)
    assert bl.mean_loss(p, y, "log").value == pytest.approx(log_loss(y, p, labels=[0, 1, 2]))


def test_a_label_held_impossible_loses_infinitely_much():
    found = bl.mean_loss([[1.0, 0.0], [1.0, 0.0]], [0, 1], "log")
    assert found.value == math.inf
    assert math.isnan(found.standard_error)
    assert bl.row_losses([[1.0, 0.0]], [0], "log").tolist() == [0.0]


def test_zero_one_loss_is_the_matrix_of_ones():
    p, y = predictions(num_labels=3)
    np.testing.assert_array_equal(bl.row_losses(p, y), bl.row_losses(p, y, 1 - np.eye(3)))
    assert bl.mean_loss(p, y).value == np.mean(p.argmax(axis=1) != y)


def test_decisions_pay_the_entry_of_the_true_label():
    loss = [[0.0, 5.0, 1.0], [2.0, 0.5, 1.0]]  # the third decision is to abstain
    p, y = predictions()
    chosen = decide(p, loss)
    expected = [loss[label][decision] for label, decision in zip(y, chosen, strict=True)]
    assert set(chosen.tolist()) == {0, 1, 2}
    assert bl.row_losses(p, y, loss).tolist() == expected


def test_the_standard_error_by_hand():
    found = bl.mean_loss([[0.9, 0.1]] * 4, [0, 0, 1, 1])
    # Losses 0 0 1 1: variance 1/3, of the mean 1/12.
    assert found == (0.5, pytest.approx(math.sqrt(1 / 12)), 4)
    assert math.isnan(bl.mean_loss([[0.9, 0.1]], [0]).standard_error)


@pytest.mark.parametrize(
    ("p", "y", "loss"),
    [
        ([[0.5, 0.5]], [2], "log"),
        ([[0.5, 0.5]], [-1], "log"),
        ([[0.5, 0.5]], [0, 1], "log"),
        ([[0.5, 0.5]], [0], "squared"),
        ([[0.5, 0.5]], [0], np.eye(3)),
    ],
)
def test_bad_input(p, y, loss):
    with pytest.raises(ValueError, match=r"label|loss"):
        bl.mean_loss(p, y, loss)


def test_the_curve_row_by_row():
    p, y = predictions()
    curve = bl.asymmetric_loss_curve({"one": p}, y)
    assert curve["exponent"].tolist() == list(range(-8, 9))
    for _, point in curve.iterrows():
        costs = 2.0 ** point["exponent"]
        decided = p[:, 1] > 1 / (1 + costs)
        lost = np.where(decided & (y == 0), 1.0, 0.0) + np.where(~decided & (y == 1), costs, 0.0)
        assert point["loss"] == pytest.approx(lost.mean())
        constant = min((y == 0).mean(), costs * (y == 1).mean())
        assert point["relative_loss"] == pytest.approx(lost.mean() / constant)


def test_a_model_relative_to_itself_is_one_without_error():
    p, y = predictions()
    curve = bl.asymmetric_loss_curve({"one": p, "two": p[::-1]}, y, relative_to="one")
    one = curve[curve["model"] == "one"]
    assert (one["relative_loss"] == 1.0).all()
    assert (one["relative_standard_error"] == 0.0).all()
    assert set(curve["relative_to"]) == {"one"}
    even = curve[(curve["model"] == "two") & (curve["exponent"] == 0)]
    assert even["relative_standard_error"].item() > 0


def test_a_reference_that_loses_nothing():
    curve = bl.asymmetric_loss_curve({"one": [[0.9, 0.1]]}, [0], exponents=[0])
    assert curve["loss"].item() == 0.0
    assert math.isnan(curve["relative_loss"].item())


def test_the_error_of_a_ratio_covers_its_spread():
    """Ratios over many samples of rows spread as their standard errors say."""
    rng = np.random.default_rng(0)
    size, trials = 400, 2000
    truth = rng.random((trials, size))
    y = (rng.random((trials, size)) < truth).astype(int)
    noisy = np.clip(truth + 0.3 * rng.standard_normal((trials, size)), 0.01, 0.99)
    ratios, errors = [], []
    for t in range(trials):
        named = {
            name: np.column_stack([1 - q[t], q[t]]) for name, q in (("a", truth), ("b", noisy))
        }
        curve = bl.asymmetric_loss_curve(named, y[t], exponents=[1], relative_to="a").iloc[1]
        ratios.append(curve["relative_loss"])
        errors.append(curve["relative_standard_error"])
    spread = np.std(ratios, ddof=1) / np.sqrt(np.mean(np.square(errors)))
    # The log of a standard deviation of 2000 values has standard error 1/sqrt(4000) = 0.016; 3.9
    # of those are exceeded with probability FALSE_ALARM, and 0.02 allow for the first order.
    assert abs(np.log(spread)) < 3.9 * 0.016 + 0.02


def test_bad_curves():
    p, y = predictions(num_labels=3)
    with pytest.raises(ValueError, match="two labels"):
        bl.asymmetric_loss_curve({"one": p}, y)
    with pytest.raises(ValueError, match="must be one of"):
        bl.asymmetric_loss_curve({"one": p[:, :2]}, y, relative_to="two")


def test_the_matrix_is_equation_4_16():
    assert asymmetric_loss(-2).tolist() == [[0.0, 1.0], [0.25, 0.0]]
