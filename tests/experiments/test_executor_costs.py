"""The cost model of executors finds what measurements were made of."""

from __future__ import annotations

import numpy as np
import pytest

from experiments.executors.cost_model import (
    CostModel,
    Elsewhere,
    Pass,
    fit_cost_model,
    left_out_errors,
    predict_elsewhere,
)

TRUE = np.array([2e-9, 1e-3, 3e-9, 0.01])


def passes():
    """Rows, sizes of blocks and workers as in the study."""
    found = []
    for rows in (1e5, 4e5, 1.6e6):
        for block_rows, cells in ((6.5e4, 64), (8e3, 64), (6.5e4, 2000)):
            for workers in (1, 2):
                blocks = rows / block_rows
                found.append(Pass(rows * 64, blocks, blocks * cells * 128.0, workers))
    return found


def times(noise, seed):
    rng = np.random.default_rng(seed)
    exact = np.array([np.array(job.terms) @ TRUE for job in passes()])
    return exact * (1.0 + noise * rng.normal(size=len(exact)))


def test_terms_by_hand():
    job = Pass(units=8e6, blocks=10.0, bytes=1e6, workers=2)
    model = CostModel(TRUE, np.zeros((4, 4)), 0.0)
    assert model.seconds(job) == pytest.approx(8e6 * 2e-9 / 2 + 1e-3 * 10 / 2 + 3e-3 + 0.01)


def test_exact_measurements_give_exact_coefficients():
    model = fit_cost_model(passes(), times(0.0, 0))
    np.testing.assert_allclose(model.coefficients, TRUE, rtol=1e-9)
    assert model.scatter < 1e-9
    assert np.abs(left_out_errors(passes(), times(0.0, 0))).max() < 1e-9


def test_coefficients_lie_within_their_errors():
    """Squared distances over errors follow a F distribution; a thousandth may be beyond.

    Coefficients are far from zero here, so that their signs bind nothing.
    """
    from scipy.stats import chi2

    found, scatter = [], []
    for seed in range(400):
        model = fit_cost_model(passes(), times(0.02, seed))
        found.append((model.coefficients - TRUE) / model.errors)
        scatter.append(model.scatter)
    shares = np.mean(np.square(found) < chi2.ppf(0.9, 1), axis=0)
    # With 14 degrees of freedom, t lies within normal limits in 87.7 of 100 cases; 400 of them
    # have a standard error of 1.7.
    np.testing.assert_allclose(shares, 0.877, atol=3.5 * 0.017)
    assert np.mean(scatter) == pytest.approx(0.02, rel=0.03)


def test_no_coefficient_is_negative():
    job = passes()
    exact = np.array([np.array(one.terms) @ [2e-9, 0.0, 0.0, 0.0] for one in job])
    model = fit_cost_model(job, exact * (1 + 0.05 * np.random.default_rng(1).normal(size=len(job))))
    assert (model.coefficients >= 0.0).all()
    assert (model.errors[model.coefficients == 0.0] == 0.0).all()


def test_too_few_measurements_are_refused():
    with pytest.raises(ValueError, match="too few"):
        fit_cost_model(passes()[:4], times(0.0, 0)[:4])


def test_rows_are_drawn_from_their_clusters():
    """Values of each cluster are as often as they should be, but for one case in a million."""
    from scipy.stats import chi2

    from experiments.executors.jobs import COMPONENTS, made_codes

    size, values = 40_000, 5
    codes = made_codes(size, values, seed=3)
    rng = np.random.default_rng(3)
    kind = rng.integers(0, COMPONENTS, size, dtype=np.int8)
    for column in range(3):
        truth = rng.dirichlet(np.full(values, 0.5), COMPONENTS)
        rng.random(size)
        expected = np.bincount(kind, minlength=COMPONENTS)[:, None] * truth
        found = np.zeros((COMPONENTS, values))
        np.add.at(found, (kind, codes[:, column]), 1)
        kept = expected > 5
        distance = ((found - expected)[kept] ** 2 / expected[kept]).sum()
        assert distance < chi2.ppf(1 - 1e-6, COMPONENTS * (values - 1))


SURE = Elsewhere((8.0, 8.0), spread=(0.0, 0.0), slowness=(1.0, 1.0), per_worker=(0.0, 0.0))


def test_a_sure_prediction_is_arithmetic():
    model = CostModel(TRUE, np.zeros((4, 4)), 0.0)
    job = Pass(6.4e10, 15_259.0, 1e8, 100)
    expected = 2e-9 * 6.4e8 + 1e-3 * 152.59 + 3e-9 * 1e8 + 0.01 + 1e8 / 1e9
    assert predict_elsewhere(model, job, SURE) == pytest.approx([expected] * 3)
    dearer = SURE._replace(per_worker=(0.002, 0.002), slowness=(3.0, 3.0))
    expected = 3 * (expected - 0.1 + 0.2) + 0.1  # the network is not slower for slow cores
    assert predict_elsewhere(model, job, dearer) == pytest.approx([expected] * 3)


def test_a_pass_waits_for_the_slowest_of_a_hundred():
    """The median of the largest of 100 normals is the 0.5 ** 0.01 quantile, 2.46."""
    model = CostModel(np.array([1e-9, 0.0, 0.0, 0.0]), np.zeros((4, 4)), 0.0)
    found = predict_elsewhere(model, Pass(1e11, 1.0, 0.0, 100), SURE._replace(spread=(0.1, 0.1)))
    assert found.median == pytest.approx(np.exp(0.1 * 2.4623), rel=0.003)
    assert found.lower < found.median < found.upper


def test_what_is_not_known_widens_the_interval():
    job = Pass(6.4e10, 15_259.0, 1e8, 100)
    rough = fit_cost_model(passes(), times(0.1, 3))
    fine = fit_cost_model(passes(), times(0.01, 3))
    wide, narrow = predict_elsewhere(rough, job, SURE), predict_elsewhere(fine, job, SURE)
    assert wide.upper - wide.lower > 3 * (narrow.upper - narrow.lower)
    truth = predict_elsewhere(CostModel(TRUE, np.zeros((4, 4)), 0.0), job, SURE).median
    assert narrow.lower < truth < narrow.upper
