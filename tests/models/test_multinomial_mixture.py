"""The mixture as a model: its density, its mode, its draws."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from bayes_lcs.core.model_protocols import MixtureParameters, MixtureStatistics
from bayes_lcs.core.schema import Schema
from bayes_lcs.models.multinomial_mixture import MultinomialMixture

SCHEMA = Schema(1, (3, 2))


def test_rows_and_prior_are_those_of_numpyro():
    """An independent density: NumPyro's, whose prior is the usual Dirichlet, without Jacobian."""
    import jax
    from numpyro.infer.util import log_density

    model = MultinomialMixture(schema=SCHEMA, num_components=2, weight_prior=1.5, cell_prior=0.7)
    rows, _, at = model.simulate(20, 0)
    rows[::3, 0] = -1
    theta = {f"theta_{f}": at.cells[SCHEMA.cells_of(f)].T for f in range(2)}
    with jax.enable_x64(True):
        found, _ = log_density(model.numpyro_model, (), {"rows": rows}, {"pi": at.weights, **theta})
    natural = np.log(at.weights).sum() + np.log(at.cells).sum()
    rows_log = np.log(np.exp(model.log_joint(at, rows)).sum(axis=1)).sum()
    assert float(found) == pytest.approx(rows_log + model.log_prior(at) - natural, rel=1e-10)


def test_the_mode_maximises_the_complete_log_posterior():
    model = MultinomialMixture(schema=SCHEMA, num_components=2, weight_prior=2.0, cell_prior=0.5)
    rng = np.random.default_rng(0)
    statistics = MixtureStatistics(rng.gamma(2, size=2), rng.gamma(2, size=(5, 2)), 0.0)
    mode = model.update(statistics)

    def value(at):
        complete = statistics.components @ np.log(at.weights)
        return complete + (statistics.cells * np.log(at.cells)).sum() + model.log_prior(at)

    best = value(mode)
    for _ in range(200):
        weights = mode.weights * np.exp(0.05 * rng.normal(size=2))
        cells = mode.cells * np.exp(0.05 * rng.normal(size=(5, 2)))
        totals = np.add.reduceat(cells, SCHEMA.offsets[:-1], axis=0)[SCHEMA.cell_feature]
        assert value(MixtureParameters(weights / weights.sum(), cells / totals)) < best
    first = statistics.cells[:3, 0] + 0.5
    np.testing.assert_allclose(mode.cells[:3, 0], first / first.sum(), rtol=1e-14)


def test_without_counts_and_prior_nothing_is_known():
    model = MultinomialMixture(schema=SCHEMA, num_components=2, weight_prior=0.0, cell_prior=0.0)
    mode = model.update(MixtureStatistics(np.zeros(2), np.zeros((5, 2)), 0.0))
    assert mode.weights.tolist() == [0.5, 0.5]
    np.testing.assert_allclose(mode.cells[:, 0], [1 / 3, 1 / 3, 1 / 3, 0.5, 0.5])
    assert model.log_prior(mode) == 0.0


def test_draws_have_the_probabilities():
    """A chi-squared test a feature and component: 4, together wrong once in 10,000."""
    model = MultinomialMixture(schema=SCHEMA, num_components=2)
    rows, z, truth = model.simulate(20_000, 5)
    for k in range(2):
        for f in range(2):
            expected = truth.cells[SCHEMA.cells_of(f), k] * (z == k).sum()
            counts = np.bincount(rows[z == k, f], minlength=len(expected))
            assert stats.chisquare(counts, expected).pvalue > 1e-4 / 5
    assert stats.binomtest(int((z == 0).sum()), 20_000, truth.weights[0]).pvalue > 1e-4 / 5


def test_numpyro_draws_rows():
    import jax
    import numpyro

    model = MultinomialMixture(schema=SCHEMA, num_components=2)
    seeded = numpyro.handlers.seed(model.numpyro_model, jax.random.key(0))
    trace = numpyro.handlers.trace(seeded).get_trace(num_rows=7)
    assert trace["x_0"]["value"].shape == (7,)


@pytest.mark.parametrize(
    "settings",
    [
        {"num_components": 0},
        {"weight_prior": -1.0},
        {"cell_prior": np.nan},
        {"cell_prior": np.ones(4)},
    ],
)
def test_settings_that_cannot_be_meant(settings):
    with pytest.raises(ValueError, match=next(iter(settings))):
        MultinomialMixture(**{"schema": SCHEMA, "num_components": 2, **settings})
