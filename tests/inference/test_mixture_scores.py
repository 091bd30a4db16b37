"""BIC, ICL, Cheeseman-Stutz and standard errors, against the plainest computations."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.special import gammaln

from bayes_lcs.core.mixture import MixtureParameters, MixtureStatistics
from bayes_lcs.core.schema import Schema
from bayes_lcs.data.encoded_rows import DenseRows
from bayes_lcs.inference import mixture_errors, mixture_scores
from bayes_lcs.inference.em import ConvergenceRule
from bayes_lcs.inference.em_stepwise import stepwise_init, stepwise_step
from bayes_lcs.inference.pattern_plan import plan_rows
from tests.inference.em_oracle import plain_em
from tests.inference.test_em import SIZES, fit, mixture, rows_of, start_for


def statistics_of(model, parameters, rows, weights=None):
    weights = np.ones(len(rows)) if weights is None else weights
    joint = np.exp(model.log_joint(parameters, rows))
    share = joint / joint.sum(axis=1, keepdims=True) * weights[:, None]
    cells = []
    for f, size in enumerate(model.schema.num_values):
        cells += [share[rows[:, f] == value].sum(axis=0) for value in range(size)]
    return MixtureStatistics(
        share.sum(axis=0), np.array(cells), float(weights @ np.log(joint.sum(axis=1)))
    )


def log_beta(parameters):
    return gammaln(parameters).sum() - gammaln(parameters.sum())


def test_cheeseman_stutz_of_one_component_is_the_evidence():
    """With nothing hidden the approximation is exact, whatever the parameters."""
    rows, _ = rows_of()
    model = mixture(0.7, num_components=1)
    parameters = start_for(model, rows)
    found = mixture_scores.cheeseman_stutz(
        model, parameters, statistics_of(model, parameters, rows)
    )
    expected = 0.0
    for f, size in enumerate(SIZES):
        counts = np.bincount(rows[rows[:, f] >= 0, f], minlength=size)
        expected += log_beta(counts + 0.7) - log_beta(np.full(size, 0.7))
    assert found == pytest.approx(expected, rel=1e-12)


def test_cheeseman_stutz_in_full():
    rows, weights = rows_of()
    model = mixture(0.7)
    parameters = start_for(model, rows)
    statistics = statistics_of(model, parameters, rows, weights)
    completed = log_beta(statistics.components + 0.7) - log_beta(np.full(3, 0.7))
    at_parameters = float(statistics.components @ np.log(parameters.weights))
    first = np.concatenate([[0], np.cumsum(SIZES)])
    for k, f in itertools.product(range(3), range(len(SIZES))):
        counts = statistics.cells[first[f] : first[f + 1], k]
        completed += log_beta(counts + 0.7) - log_beta(np.full(SIZES[f], 0.7))
        at_parameters += counts @ np.log(parameters.cells[first[f] : first[f + 1], k])
    expected = completed + statistics.log_likelihood - at_parameters
    found = mixture_scores.cheeseman_stutz(model, parameters, statistics)
    assert found == pytest.approx(expected, rel=1e-12)


def test_cheeseman_stutz_is_near_the_evidence_summed_over_all_assignments():
    """It is a lower bound of the evidence less ``log K!`` or more: within a nat or two here."""
    model = mixture(1.0, sizes=(2, 2, 2), num_components=2)
    rows = np.array([[0, 0, 0]] * 5 + [[1, 1, 1]] * 5)
    table = DenseRows(rows, (2, 2, 2))
    start = start_for(model, rows, seed=1)
    found = fit(
        model, plan_rows(table, merge_rows=False), start, 500, ConvergenceRule(1e-9, "double")
    )
    terms = []
    for labels in itertools.product(range(2), repeat=len(rows)):
        z = np.array(labels)
        components = np.bincount(z, minlength=2).astype(float)
        cells = [
            np.bincount(z[rows[:, f] == value], minlength=2) for f in range(3) for value in range(2)
        ]
        terms.append(model.log_marginal(MixtureStatistics(components, np.array(cells, float), 0.0)))
    exact = float(np.logaddexp.reduce(terms))
    statistics = statistics_of(model, found.parameters, rows)
    score = mixture_scores.cheeseman_stutz(model, found.parameters, statistics)
    assert exact - np.log(2) - 1.5 < score <= exact


def test_an_evidence_needs_a_prior():
    model = mixture(0.0)
    rows, _ = rows_of()
    parameters = start_for(model, rows)
    with pytest.raises(ValueError, match="proper prior"):
        mixture_scores.cheeseman_stutz(model, parameters, statistics_of(model, parameters, rows))


# Standard errors ----------------------------------------------------------------------------------


def natural_objective(model, rows, weights):
    """The log posterior as a function of log odds, in the order of the information."""
    schema: Schema = model.schema
    num_components = model.num_components

    def parameters(point):
        odds = np.append(point[: num_components - 1], 0.0)
        pi = np.exp(odds) / np.exp(odds).sum()
        cells = np.empty((schema.num_cells, num_components))
        first = num_components - 1
        for k in range(num_components):
            for f, size in enumerate(schema.num_values):
                odds = np.append(point[first : first + size - 1], 0.0)
                cells[schema.cells_of(f), k] = np.exp(odds) / np.exp(odds).sum()
                first += size - 1
        return MixtureParameters(pi, cells)

    def objective(point):
        at = parameters(point)
        joint = np.exp(model.log_joint(at, rows)).sum(axis=1)
        return float(weights @ np.log(joint)) + model.log_prior(at)

    def point_of(at):
        parts = [np.log(at.weights[:-1] / at.weights[-1])]
        for k in range(num_components):
            for f in range(schema.num_features):
                table = at.cells[schema.cells_of(f), k]
                parts.append(np.log(table[:-1] / table[-1]))
        return np.concatenate(parts)

    return objective, point_of, parameters


@pytest.mark.parametrize("prior", [1.0, 0.4])
def test_the_information_is_the_second_derivative(prior):
    model = mixture(prior, sizes=(3, 2, 2), num_components=2)
    rows, _, _ = model.simulate(60, 4)
    rng = np.random.default_rng(0)
    rows[rng.random(rows.shape) < 0.1] = -1
    weights = rng.gamma(2.0, size=len(rows))
    objective, point_of, parameters = natural_objective(model, rows, weights)
    # Anywhere, not only at a maximum: Louis's identity holds as long as the score's square is in.
    at = parameters(rng.normal(size=len(point_of(start_for(model, rows)))))
    point = point_of(at)
    found = mixture_errors.observed_information(model, at, DenseRows(rows, (3, 2, 2)), weights)
    step = 1e-4
    eye = np.eye(len(point)) * step
    expected = np.empty_like(found)
    for i, j in itertools.product(range(len(point)), repeat=2):
        expected[i, j] = -(
            objective(point + eye[i] + eye[j])
            - objective(point + eye[i] - eye[j])
            - objective(point - eye[i] + eye[j])
            + objective(point - eye[i] - eye[j])
        ) / (4 * step**2)
    # Central differences: an error of step squared, and of rounding over step squared.
    np.testing.assert_allclose(found, expected, atol=1e-5 * np.abs(found).max())


def test_errors_of_one_component_are_those_of_proportions():
    model = mixture(0.0, sizes=(3, 2), num_components=1)
    rows = np.array([[0, 0]] * 50 + [[1, 1]] * 30 + [[2, 1]] * 20)
    shares = np.array([0.5, 0.3, 0.2, 0.5, 0.5])
    parameters = MixtureParameters(np.ones(1), shares[:, None])
    weights, cells = mixture_errors.information_errors(model, parameters, DenseRows(rows, (3, 2)))
    assert weights.tolist() == [0.0]
    np.testing.assert_allclose(cells[:, 0], np.sqrt(shares * (1 - shares) / 100), rtol=1e-10)


def test_no_maximum_no_errors():
    model = mixture(0.0, sizes=(2, 2), num_components=2)
    rows = np.array([[0, 0], [1, 1]] * 10)
    flat = MixtureParameters(np.full(2, 0.5), np.full((4, 2), 0.5))
    with pytest.warns(RuntimeWarning, match="not positive definite"):
        weights, _ = mixture_errors.information_errors(model, flat, DenseRows(rows, (2, 2)))
    assert np.isnan(weights).all()


@pytest.mark.slow
def test_errors_are_the_spread_over_data_sets():
    """300 tables from one mixture; the spread of a fit is known to 4 per cent (one sigma).

    Of 4 * 8 + 3 figures none may be off by more than 25 per cent, six sigma, plus what the
    curvature of the likelihood differs from its expectation.
    """
    model = mixture(0.0, sizes=(2,) * 6, num_components=2)
    cells = np.tile([[0.8, 0.25], [0.2, 0.75]], (6, 1))
    truth = MixtureParameters(np.array([0.6, 0.4]), cells)
    stop = ConvergenceRule(1e-8, "double")
    found, claimed = [], []
    for seed in range(300):
        rows, _, _ = model.simulate(2000, seed, truth)
        table = DenseRows(rows, (2,) * 6)
        result = fit(model, plan_rows(table), truth, 2000, stop)
        found.append(result.parameters)
        if seed < 10:
            claimed.append(mixture_errors.information_errors(model, result.parameters, table))
    weights = np.mean([errors[0] for errors in claimed], axis=0)
    tables = np.mean([errors[1] for errors in claimed], axis=0)
    np.testing.assert_allclose(weights, np.std([p.weights for p in found], axis=0), rtol=0.25)
    np.testing.assert_allclose(tables, np.std([p.cells for p in found], axis=0), rtol=0.25)
    plan = plan_rows(table)
    resampled = mixture_errors.bootstrap_errors(
        model, result.parameters, plan, None, num_fits=200, max_iter=500, tol=1e-6, seed=0
    )
    np.testing.assert_allclose(resampled[0], weights, rtol=0.35)
    np.testing.assert_allclose(resampled[1], tables, rtol=0.35)


# Stepwise EM --------------------------------------------------------------------------------------


def test_a_stepwise_step_is_an_em_step_on_the_moving_average():
    rows, weights = rows_of()
    model = mixture(0.5)
    start = start_for(model, rows)
    first, second = rows[:200], rows[200:]
    one = statistics_of(model, start, first, weights[:200])
    two = statistics_of(model, start, second, weights[200:])
    sums = weights[:200].sum(), weights[200:].sum()
    state, parameters = stepwise_step(model, stepwise_init(one, sums[0]), two, sums[1], 0.7)
    gain = 3.0**-0.7
    mean = (1 - gain) * one.components / sums[0] + gain * two.components / sums[1]
    expected = mean * weights.sum() + 0.5
    np.testing.assert_allclose(parameters.weights, expected / expected.sum(), rtol=1e-12)
    assert state.num_batches == 2
    assert state.weight == pytest.approx(weights.sum())


def test_stepwise_on_one_and_the_same_batch_goes_where_em_goes():
    rows, weights = rows_of()
    model = mixture(0.0)
    start = start_for(model, rows)
    state = stepwise_init(statistics_of(model, start, rows, weights), weights.sum())
    parameters = start
    for _ in range(600):
        found = statistics_of(model, parameters, rows, weights)
        state, parameters = stepwise_step(model, state, found, weights.sum(), 0.6)
    expected, _ = plain_em(rows, SIZES, parameters, 1, 0.0, weights)
    # A stationary point of EM.
    np.testing.assert_allclose(parameters.weights, expected.weights, atol=2e-3)
