"""Evidence of the Prototype model, against quadrature on the simplex."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.integrate import dblquad
from scipy.special import beta as beta_function
from scipy.stats import kstest

import bayes_lcs as bl
from bayes_lcs.core.counts import GroupCounts
from bayes_lcs.core.schema import Schema
from bayes_lcs.model_evidence.prototype import prototype_factors, prototype_log_evidence
from tests.model_evidence.prototype_quadrature import log_factor_integral
from tests.oracles import as_sequence, sequential_log_marginal

FALSE_ALARM = 1e-4
"""Chance that a test of calibration fails for a correct estimator, with other seeds."""

Z_LIMIT = 4.0  # a normal variate exceeds it with probability 6e-5

MIXED = [[3, 1], [0, 5], [7, 2], [4, 4]]
CORNERS = [[12, 0], [0, 9], [10, 0]]
ALIKE = [[6, 6]] * 4
ALONE = [[5, 2]]
ALL_ONE = [[7, 0]] * 4
THREE = [[3, 1, 0], [2, 5, 1], [0, 0, 6]]
UNSEEN = [[3, 1, 0], [2, 4, 0]]
FOUR = [[3, 1, 0, 1], [2, 2, 0, 1], [0, 1, 0, 3]]


def counts_of(*factors) -> GroupCounts:
    """One label; one feature for each array of counts ``(U, V)``."""
    arrays = [np.asarray(factor) for factor in factors]
    features = np.concatenate(arrays, axis=1)[:, None, :]
    schema = Schema(1, [array.shape[1] for array in arrays])
    return GroupCounts(schema, arrays[0].sum(axis=1)[:, None], features)


def factor_of(counts, prior, strength, seed=0, num_draws=4000):
    """The one integral of a table with one label and one feature."""
    model = bl.Prototype(feature_prior=[prior], strength_prior=bl.Gamma(*strength))
    (found,) = prototype_factors(model, counts_of(counts), num_draws, seed)
    return found


def test_the_quadrature_itself():
    """Against SciPy's adaptive rule with densities written by hand, for two binary groups."""
    counts, prior, shape, rate = [[2, 1], [0, 3]], [1.5, 0.8], 2.0, 0.5

    def integrand(p, k):
        a, b = k * p, k * (1 - p)
        first = a * (a + 1) * b / (k * (k + 1) * (k + 2))
        second = b * (b + 1) * (b + 2) / (k * (k + 1) * (k + 2))
        prototype = p**0.5 * (1 - p) ** -0.2 / beta_function(*prior)
        return first * second * prototype * rate**2 * k * math.exp(-rate * k)

    expected, _ = dblquad(integrand, 0, 80, 0, 1, epsabs=1e-11)
    found = log_factor_integral(counts, prior, shape, rate)
    assert found == pytest.approx(np.log(expected), rel=0, abs=1e-6)
    # Another step in log K, and the answer stays: the trapezoid has converged.
    for step in (0.1, 0.025):
        again = log_factor_integral(counts, prior, shape, rate, step)
        assert found == pytest.approx(again, rel=0, abs=1e-10)


@pytest.mark.parametrize(
    ("prior", "strength"),
    [([1.0, 1.0], (1.0, 0.1)), ([0.3, 0.3], (0.5, 0.02)), ([0.4, 3.0], (3.0, 0.5))],
    ids=str,
)
@pytest.mark.parametrize("counts", [MIXED, CORNERS, ALIKE, ALONE, ALL_ONE], ids=str)
def test_binary_features(counts, prior, strength):
    found = factor_of(counts, prior, strength, seed=5)
    expected = log_factor_integral(counts, prior, *strength, step=0.1)
    assert 0 < found.standard_error < 0.05
    assert abs(found.value - expected) < Z_LIMIT * found.standard_error


@pytest.mark.parametrize("prior", [1.0, 0.4], ids=str)
@pytest.mark.parametrize("counts", [THREE, UNSEEN, FOUR], ids=str)
def test_three_and_four_values(counts, prior):
    priors = np.linspace(prior, 2 * prior, len(counts[0]))
    found = factor_of(counts, priors, (1.0, 0.1), seed=2)
    expected = log_factor_integral(counts, priors, 1.0, 0.1, step=0.1)
    assert 0 < found.standard_error < 0.06
    assert abs(found.value - expected) < Z_LIMIT * found.standard_error


def test_one_row_a_group_is_blind_to_the_strength():
    """Then the rows are one sequence from the prototype: a closed form for any number of values."""
    counts = np.eye(3, dtype=int)[[0, 2, 2, 1, 2, 0]]
    prior = [0.5, 2.0, 1.0]
    found = factor_of(counts, prior, (1.0, 0.1), num_draws=40_000)
    expected = sequential_log_marginal(as_sequence(counts.sum(axis=0)), prior)
    assert abs(found.value - expected) < Z_LIMIT * found.standard_error
    assert found.standard_error < 0.01


@pytest.mark.parametrize("num_values", [20, 60])
def test_values_that_never_occur(num_values):
    """Many values, few of them seen: they must not break the proposal, nor the stated error.

    One row a group has a closed form. Before the unseen values were merged, the estimate at 60
    values lay ten standard errors off.
    """
    rng = np.random.default_rng(0)
    rows = rng.integers(5, size=30)
    counts = np.zeros((30, num_values), dtype=int)
    counts[np.arange(30), rows] = 1
    prior = np.full(num_values, 0.3)
    expected = sequential_log_marginal(rows.tolist(), prior.tolist())
    for seed in range(3):
        found = factor_of(counts, prior, (1.0, 0.1), seed=seed)
        assert found.standard_error < 0.1
        assert abs(found.value - expected) < Z_LIMIT * found.standard_error


def test_the_order_of_values_does_not_matter():
    prior = np.array([0.5, 1.0, 2.0, 0.7])
    order = [2, 0, 3, 1]
    one = factor_of(FOUR, prior, (2.0, 0.2), seed=1)
    other = factor_of(np.array(FOUR)[:, order], prior[order], (2.0, 0.2), seed=8)
    gap = Z_LIMIT * np.hypot(one.standard_error, other.standard_error)
    assert abs(one.value - other.value) < gap


def test_factors_that_are_certain():
    """A feature of one value, and one that was never observed, have probability one."""
    counts = counts_of([[4], [2]], [[0, 0], [0, 0]], [[1, 2], [3, 0]])
    single, empty, proper = prototype_factors(bl.Prototype(), counts)
    assert single.value == empty.value == 0.0
    assert single.standard_error == empty.standard_error == 0.0
    assert proper.value < 0 < proper.standard_error


def test_the_evidence_is_labels_and_factors():
    """Two labels, unequal features, missing values: labels by hand, factors added up."""
    schema = Schema(2, (2, 3))
    rng = np.random.default_rng(0)
    labels = np.array([[3, 2], [1, 4]])
    features = rng.integers(4, size=(2, 2, 5))
    counts = GroupCounts(schema, labels, features)
    model = bl.Prototype(label_prior=[0.5, 2.0])
    factors = prototype_factors(model, counts, seed=3)
    assert len(factors) == 4
    found = prototype_log_evidence(model, counts, seed=3)
    by_hand = sum(sequential_log_marginal(as_sequence(row), [0.5, 2.0]) for row in labels)
    assert found.value == pytest.approx(by_hand + sum(f.value for f in factors), abs=1e-9)
    squares = sum(f.standard_error**2 for f in factors)
    assert found.standard_error == pytest.approx(np.sqrt(squares))
    assert found.effective_draws == min(f.effective_draws for f in factors)
    expected = by_hand + sum(
        log_factor_integral(
            features[:, label, cells], np.ones(cells.stop - cells.start), 1.0, 0.1, step=0.1
        )
        for label in range(2)
        for cells in (slice(0, 2), slice(2, 5))
    )
    assert abs(found.value - expected) < Z_LIMIT * found.standard_error


def test_labels_outermost():
    """The order of the factors: first all features of label 0."""
    schema = Schema(2, (2, 2))
    features = np.zeros((1, 2, 4), dtype=int)
    features[0, 0] = [5, 0, 0, 0]
    features[0, 1] = [0, 0, 0, 9]
    counts = GroupCounts(schema, np.array([[5, 9]]), features)
    values = [factor.value for factor in prototype_factors(bl.Prototype(), counts)]
    assert [value == 0.0 for value in values] == [False, True, True, False]


def test_seeds():
    counts = counts_of(MIXED, MIXED)
    first, second = prototype_factors(bl.Prototype(), counts, seed=1)
    assert first != second, "each integral needs draws of its own"
    assert prototype_factors(bl.Prototype(), counts, seed=1) == [first, second]
    assert prototype_factors(bl.Prototype(), counts, seed=2) != [first, second]


@pytest.mark.parametrize(
    "counts",
    [pytest.param(MIXED, id="binary"), pytest.param(THREE, id="three", marks=pytest.mark.slow)],
)
def test_standard_errors_are_calibrated(counts):
    """150 seeds: the errors in units of the stated standard error are standard normal."""
    prior, strength = np.linspace(0.6, 1.5, len(counts[0])), (1.0, 0.1)
    truth = log_factor_integral(counts, prior, *strength)
    runs = [factor_of(counts, prior, strength, seed=seed, num_draws=2000) for seed in range(150)]
    z = np.array([(run.value - truth) / run.standard_error for run in runs])
    assert kstest(z, "norm").pvalue > FALSE_ALARM
    # The mean square of 150 standard normals is 1 with a standard error of 0.115; four of those.
    assert abs((z**2).mean() - 1.0) < 4 * np.sqrt(2 / 150)
