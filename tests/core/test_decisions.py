"""Decisions of least expected loss."""

from __future__ import annotations

import numpy as np
import pytest

from bayes_lcs.core.decisions import (
    asymmetric_loss,
    binary_threshold,
    decide,
    expected_losses,
)


@pytest.mark.parametrize("exponent", range(-8, 9))
def test_binary_decisions_follow_the_threshold(exponent):
    loss = asymmetric_loss(exponent)
    threshold = binary_threshold(loss)
    assert threshold == pytest.approx(1 / (1 + 2.0**exponent))
    p = np.linspace(0.0005, 0.9995, 1000)
    np.testing.assert_array_equal(decide(np.column_stack([1 - p, p]), loss), p > threshold)


def test_a_loss_with_an_option_to_abstain():
    loss = [[0.0, 1.0, 0.3], [1.0, 0.0, 0.3]]
    assert decide([[0.9, 0.1], [0.5, 0.5], [0.1, 0.9]], loss).tolist() == [0, 2, 1]


def test_expected_losses_by_hand():
    loss = [[0.0, 2.0], [3.0, 1.0]]
    np.testing.assert_allclose(expected_losses([[0.25, 0.75]], loss), [[2.25, 1.25]])


@pytest.mark.parametrize("loss", [np.eye(3), [[np.nan, 1], [1, 0]], [1.0, 2.0]])
def test_bad_losses(loss):
    with pytest.raises(ValueError, match="loss"):
        decide([[0.5, 0.5]], loss)


def test_a_threshold_needs_wrong_decisions_to_cost():
    with pytest.raises(ValueError, match="must cost more"):
        binary_threshold([[1.0, 0.0], [1.0, 0.0]])
