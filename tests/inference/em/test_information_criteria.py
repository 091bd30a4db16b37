"""BIC, ICL, Cheeseman-Stutz and standard errors, against the plainest computations."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.special import gammaln

from bayes_lcs.core.model_protocols import MixtureParameters, MixtureStatistics
from bayes_lcs.core.schema import Schema
from bayes_lcs.data.rows.encoded_rows import DenseRows
from bayes_lcs.inference.em import information_criteria, standard_errors
from bayes_lcs.inference.em.em import GapRule
from bayes_lcs.inference.em.online import stepwise_init, stepwise_step
from bayes_lcs.inference.em.row_layout import lay_out_rows
from tests.inference.em.em_oracle import plain_em
from tests.inference.em.test_em import SIZES, fit, mixture, rows_of, squarem_steps, start_for


def compute_statistics(model, parameters, rows, weights=None):
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
    found = information_criteria.cheeseman_stutz(
        model, parameters, compute_statistics(model, parameters, rows)
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
    statistics = compute_statistics(model, parameters, rows, weights)
    completed = log_beta(statistics.components + 0.7) - log_beta(np.full(3, 0.7))
    at_parameters = float(statistics.components @ np.log(parameters.weights))
    first = np.concatenate([[0], np.cumsum(SIZES)])
    for k, f in itertools.product(range(3), range(len(SIZES))):
        counts = statistics.cells[first[f] : first[f + 1], k]
        completed += log_beta(counts + 0.7) - log_beta(np.full(SIZES[f], 0.7))
        at_parameters += counts @ np.log(parameters.cells[first[f] : first[f + 1], k])
    expected = completed + statistics.log_likelihood - at_parameters
    found = information_criteria.cheeseman_stutz(model, parameters, statistics)
    assert found == pytest.approx(expected, rel=1e-12)


def test_cheeseman_stutz_is_near_the_evidence_summed_over_all_assignments():
    """It is a lower bound of the evidence less ``log K!`` or more: within a nat or two here."""
    model = mixture(1.0, sizes=(2, 2, 2), num_components=2)
    rows = np.array([[0, 0, 0]] * 5 + [[1, 1, 1]] * 5)
    table = DenseRows(rows, (2, 2, 2))
    start = start_for(model, rows, seed=1)
    found = fit(model, lay_out_rows(table, merge_rows=False), start, 500, GapRule(1e-9))
    terms = []
    for labels in itertools.product(range(2), repeat=len(rows)):
        z = np.array(labels)
        components = np.bincount(z, minlength=2).astype(float)
        cells = [
            np.bincount(z[rows[:, f] == value], minlength=2) for f in range(3) for value in range(2)
        ]
        terms.append(model.log_marginal(MixtureStatistics(components, np.array(cells, float), 0.0)))
    exact = float(np.logaddexp.reduce(terms))
    statistics = compute_statistics(model, found.parameters, rows)
    score = information_criteria.cheeseman_stutz(model, found.parameters, statistics)
    assert exact - np.log(2) - 1.5 < score <= exact


def test_an_evidence_needs_a_prior():
    model = mixture(0.0)
    rows, _ = rows_of()
    parameters = start_for(model, rows)
    with pytest.raises(ValueError, match="proper prior"):
        information_criteria.cheeseman_stutz(
            model, parameters, compute_statistics(model, parameters, rows)
        )


# Standard errors ----------------------------------------------------------------------------------


def natural_objective(model, at, free, rows, weights):
    """The log posterior as a function of the free log odds, in the order of the information."""
    schema: Schema = model.schema
    with np.errstate(divide="ignore"):
        base = np.log(np.vstack([at.weights, at.cells]))
    base[0] -= base[0].max()
    for f in range(schema.num_features):
        cells = slice(schema.cells_of(f).start + 1, schema.cells_of(f).stop + 1)
        base[cells] -= base[cells].max(axis=0)
    base[0, free.fixed_weights & (at.weights < 0.5)] = -np.inf
    base[1:][free.fixed_cells & (at.cells < 0.5)] = -np.inf
    places = [(0, k) for k in free.weights]
    places += [(1 + cell, k) for k, cells in enumerate(free.cells) for cell in cells]

    def parameters(point):
        odds = np.exp(base)
        for place, value in zip(places, point, strict=True):
            odds[place] = np.exp(value)
        cells = odds[1:].copy()
        for f in range(schema.num_features):
            cells[schema.cells_of(f)] /= cells[schema.cells_of(f)].sum(axis=0)
        return MixtureParameters(odds[0] / odds[0].sum(), cells)

    def objective(point):
        at = parameters(point)
        joint = np.exp(model.log_joint(at, rows)).sum(axis=1)
        return float(weights @ np.log(joint)) + model.log_prior(at)

    return objective, np.array([base[place] for place in places]), parameters


def negative_hessian(objective, point, step=1e-4):
    """Second derivatives by central differences."""
    eye = np.eye(len(point)) * step
    result = np.empty((len(point), len(point)))
    for i, j in itertools.product(range(len(point)), repeat=2):
        result[i, j] = -(
            objective(point + eye[i] + eye[j])
            - objective(point + eye[i] - eye[j])
            - objective(point - eye[i] + eye[j])
            + objective(point - eye[i] - eye[j])
        ) / (4 * step**2)
    return result


@pytest.mark.parametrize("prior", [1.0, 0.4])
def test_the_information_is_the_second_derivative(prior):
    model = mixture(prior, sizes=(3, 2, 2), num_components=2)
    rows, _, _ = model.simulate(60, 4)
    rng = np.random.default_rng(0)
    rows[rng.random(rows.shape) < 0.1] = -1
    weights = rng.gamma(2.0, size=len(rows))
    # Anywhere, not only at a maximum: Louis's identity holds as long as the score's square is in.
    cells = np.exp(rng.normal(size=(7, 2)))
    at = model.update(MixtureStatistics(np.array([20.0, 30.0]), 9 * cells, 0.0))
    table = DenseRows(rows, (3, 2, 2))
    found, free = standard_errors.observed_information(model, at, table, weights)
    assert free.size == model.num_free_parameters
    objective, point, _ = natural_objective(model, at, free, rows, weights)
    expected = negative_hessian(objective, point)
    # Central differences: an error of step squared, and of rounding over step squared.
    np.testing.assert_allclose(found, expected, atol=1e-5 * np.abs(found).max())


def boundary_fit(seed):
    """Rows of three components with probabilities of 0, and their fit of maximum likelihood."""
    rng = np.random.default_rng(seed)
    truth = MixtureParameters(
        np.array([0.5, 0.3, 0.2]),
        np.array(
            [[0.8, 0.5, 0.0], [0.2, 0.5, 0.3], [0.0, 0.0, 0.7]]  # one feature of three values
            + [[0.95, 0.1, 0.5], [0.05, 0.9, 0.5]] * 2
            + [[1.0, 0.2, 0.6], [0.0, 0.8, 0.4]] * 2
        ),
    )
    sizes = (3, 2, 2, 2, 2)
    model = mixture(0.0, sizes=sizes)
    rows, _, _ = model.simulate(400, seed, truth)
    rows[rng.random(rows.shape) < 0.05] = -1
    table = DenseRows(rows, sizes)
    result = fit(model, lay_out_rows(table), truth, 5000, GapRule(1e-9), squarem_steps)
    assert result.converged
    return model, rows, table, result.parameters


@pytest.mark.parametrize("seed", range(4))
def test_errors_with_parameters_at_the_boundary(seed):
    """Those at the boundary are fixed; the others are as if they had never been parameters."""
    model, rows, table, at = boundary_fit(seed)
    weights, cells = standard_errors.information_errors(model, at, table)
    _, free = standard_errors.observed_information(model, at, table)
    assert 0 < free.size < model.num_free_parameters
    assert np.isfinite(weights).all()
    low = at.cells < 1e-6
    assert low.any()
    np.testing.assert_array_equal(np.isnan(cells), low | (at.cells > 1 - 1e-6))
    objective, point, parameters = natural_objective(model, at, free, rows, np.ones(len(rows)))
    covariance = np.linalg.inv(negative_hessian(objective, point, 1e-3))
    slope = np.empty((len(point), 3 + cells.size))
    for i, step in enumerate(np.eye(len(point)) * 1e-5):
        up, down = parameters(point + step), parameters(point - step)
        change = [up.weights - down.weights, (up.cells - down.cells).ravel()]
        slope[i] = np.concatenate(change) / 2e-5
    expected = np.sqrt(np.diag(slope.T @ covariance @ slope))
    np.testing.assert_allclose(weights, expected[:3], rtol=1e-3)
    known = ~np.isnan(cells)
    np.testing.assert_allclose(cells[known], expected[3:].reshape(cells.shape)[known], rtol=1e-3)


def test_an_empty_component_and_a_constant_column_have_no_errors_of_their_own():
    model, rows, _, at = boundary_fit(0)
    rows = np.column_stack([rows, np.zeros(len(rows), int)])
    table = DenseRows(rows, (3, 2, 2, 2, 2, 1))
    wide = mixture(0.0, sizes=(3, 2, 2, 2, 2, 1), num_components=4)
    cells = np.vstack([at.cells, np.ones((1, 3))])
    more = MixtureParameters(np.append(at.weights, 0.0), np.column_stack([cells, cells[:, 0]]))
    weights, errors = standard_errors.information_errors(wide, more, table)
    plain = standard_errors.information_errors(model, at, DenseRows(rows[:, :-1], (3, 2, 2, 2, 2)))
    np.testing.assert_allclose(weights, [*plain[0], np.nan], rtol=1e-9)
    np.testing.assert_allclose(errors[:-1, :3], plain[1], rtol=1e-9)
    assert np.isnan(errors[:-1, 3]).all()
    assert errors[-1, :3].tolist() == [0.0, 0.0, 0.0]


def test_errors_of_one_component_are_those_of_proportions():
    model = mixture(0.0, sizes=(3, 2), num_components=1)
    rows = np.array([[0, 0]] * 50 + [[1, 1]] * 30 + [[2, 1]] * 20)
    shares = np.array([0.5, 0.3, 0.2, 0.5, 0.5])
    parameters = MixtureParameters(np.ones(1), shares[:, None])
    weights, cells = standard_errors.information_errors(model, parameters, DenseRows(rows, (3, 2)))
    assert weights.tolist() == [0.0]
    np.testing.assert_allclose(cells[:, 0], np.sqrt(shares * (1 - shares) / 100), rtol=1e-10)


def test_no_maximum_no_errors():
    model = mixture(0.0, sizes=(2, 2), num_components=2)
    rows = np.array([[0, 0], [1, 1]] * 10)
    flat = MixtureParameters(np.full(2, 0.5), np.full((4, 2), 0.5))
    with pytest.warns(RuntimeWarning, match="not positive definite"):
        weights, _ = standard_errors.information_errors(model, flat, DenseRows(rows, (2, 2)))
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
    stop = GapRule(1e-6)
    found, claimed = [], []
    for seed in range(300):
        rows, _, _ = model.simulate(2000, seed, truth)
        table = DenseRows(rows, (2,) * 6)
        result = fit(model, lay_out_rows(table), truth, 2000, stop)
        found.append(result.parameters)
        if seed < 10:
            claimed.append(standard_errors.information_errors(model, result.parameters, table))
    weights = np.mean([errors[0] for errors in claimed], axis=0)
    tables = np.mean([errors[1] for errors in claimed], axis=0)
    np.testing.assert_allclose(weights, np.std([p.weights for p in found], axis=0), rtol=0.25)
    np.testing.assert_allclose(tables, np.std([p.cells for p in found], axis=0), rtol=0.25)
    layout = lay_out_rows(table)
    resampled = standard_errors.bootstrap_errors(
        model, result.parameters, layout, None, num_fits=200, max_iter=500, tol=1e-6, seed=0
    )
    np.testing.assert_allclose(resampled[0], weights, rtol=0.35)
    np.testing.assert_allclose(resampled[1], tables, rtol=0.35)


# Stepwise EM --------------------------------------------------------------------------------------


def test_a_stepwise_step_is_an_em_step_on_the_moving_average():
    rows, weights = rows_of()
    model = mixture(0.5)
    start = start_for(model, rows)
    first, second = rows[:200], rows[200:]
    one = compute_statistics(model, start, first, weights[:200])
    two = compute_statistics(model, start, second, weights[200:])
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
    state = stepwise_init(compute_statistics(model, start, rows, weights), weights.sum())
    parameters = start
    for _ in range(600):
        found = compute_statistics(model, parameters, rows, weights)
        state, parameters = stepwise_step(model, state, found, weights.sum(), 0.6)
    expected, _ = plain_em(rows, SIZES, parameters, 1, 0.0, weights)
    # A stationary point of EM.
    np.testing.assert_allclose(parameters.weights, expected.weights, atol=2e-3)
