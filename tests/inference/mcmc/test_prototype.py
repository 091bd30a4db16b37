"""The sampler of the prototype model against sums on a grid, and against NUTS."""

from __future__ import annotations

import itertools

import jax
import numpy as np
import pytest
from numpyro.diagnostics import effective_sample_size
from numpyro.infer import MCMC, NUTS
from scipy.stats import norm

import bayes_lcs as bl
from bayes_lcs.inference.chain_driver import ChainDraws, run_chains
from bayes_lcs.inference.draw_posterior import draw_posterior
from bayes_lcs.inference.mcmc.prototype import build_problem
from tests.models.prototype_grid import grid_log_evidence, log_factor_grid, prior_grid

FALSE_ALARM = 1e-4
MODEL = bl.Prototype(strength_prior=bl.Gamma(2.0, 0.2))
BINARY = bl.Schema(2, (2, 2))


def independent_draws(table: bl.GroupedTable, num_chains: int = 2000) -> ChainDraws:
    with jax.enable_x64(True):
        problem = build_problem(MODEL, table, num_adapt=60)
    return run_chains(
        problem, draws=1, warmup=120, chains=num_chains, thin=1, seed=3, progress=False
    )


def test_moments_of_prototype_and_strength_equal_those_of_the_grid():
    table, _ = MODEL.simulate(BINARY, [9, 6, 12, 5], seed=2, missing=0.1)
    found = independent_draws(table).info
    grid, counts = prior_grid(MODEL), table.counts()
    z_scores = []
    for label, feature in itertools.product(range(2), range(2)):
        cells = counts.features[:, label, BINARY.cells_of(feature)]
        log_density = log_factor_grid(grid, cells)
        weights = np.exp(log_density - log_density.max())
        weights /= weights.sum()
        bar = found["prototype"][:, -1, label, 2 * feature]
        strength = found["strength"][:, -1, label, feature]
        for moment in (
            lambda p, k: p + 0 * k,
            lambda p, k: np.log(k) + 0 * p,
            lambda p, k: k + 0 * p,
            lambda p, k: p * np.log(k),
            lambda p, k: (p - 0.5) ** 2 + 0 * k,
        ):
            drawn = moment(bar, strength)
            expected = (weights * moment(grid.prototype, grid.strength)).sum()
            z_scores.append((drawn.mean() - expected) / (drawn.std() / np.sqrt(len(drawn))))
    assert np.abs(z_scores).max() < norm.isf(FALSE_ALARM / 2 / len(z_scores))


def test_missing_labels_have_the_probabilities_of_the_enumeration():
    table, _ = MODEL.simulate(BINARY, [6, 4, 5], seed=5)
    missing = [0, 3, 7]
    masked = table.mask_labels(missing)
    logs = {}
    for labeling in itertools.product(range(2), repeat=len(missing)):
        labels = masked.labels.copy()
        labels[missing] = labeling
        logs[labeling] = grid_log_evidence(MODEL, masked.with_labels(labels).counts())
    top = max(logs.values())
    total = sum(np.exp(value - top) for value in logs.values())
    exact = {labeling: np.exp(value - top) / total for labeling, value in logs.items()}
    found = independent_draws(masked)
    drawn = [tuple(row) for row in found.info["labels"][:, -1].tolist()]
    z_scores = []
    for labeling, probability in exact.items():
        share = np.mean([row == labeling for row in drawn])
        error = np.sqrt(probability * (1 - probability) / len(drawn))
        z_scores.append((share - probability) / error)
    assert np.abs(z_scores).max() < norm.isf(FALSE_ALARM / 2 / len(z_scores))


@pytest.mark.parametrize("feature_prior", [0.6, bl.Gamma(2.0, 2.0)])
def test_the_log_joint_of_every_draw_is_that_of_the_model(feature_prior):
    model = bl.Prototype(feature_prior=feature_prior, label_prior=[0.5, 2.0])
    table, _ = model.simulate(bl.Schema(2, (3, 1, 4)), [9, 6, 12], seed=1, missing=0.1)
    masked = table.mask_labels([1, 8])
    found = draw_posterior(model, masked, draws=5, chains=2, warmup=3, progress=False)
    for chain, draw in itertools.product(range(2), range(5)):
        labels = masked.labels.copy()
        labels[masked.labels < 0] = found.unknown["latent_label"][chain, draw]
        bar, strength = (found.unknown[n][chain, draw] for n in ("prototype", "strength"))
        settled, extra = model, 0.0
        if isinstance(feature_prior, bl.Gamma):
            beta = float(found.unknown["beta"][chain, draw])
            settled = bl.Prototype(feature_prior=beta, label_prior=[0.5, 2.0])
            extra = float(feature_prior.log_density(beta))
        counts = masked.with_labels(labels).counts()
        expected = settled.log_joint(counts, bar, strength) + extra
        assert found.stats["log_joint"][chain, draw] == pytest.approx(expected, abs=1e-8)


@pytest.mark.slow
def test_agrees_with_nuts_on_the_generative_function():
    schema = bl.Schema(2, (3, 2))
    table, _ = MODEL.simulate(schema, [12, 8, 15, 10, 9], seed=8)
    table = table.mask_labels([0, 13, 22, 40])
    with jax.enable_x64(True):
        mcmc = MCMC(
            NUTS(MODEL.numpyro_model, target_accept_prob=0.95),
            num_warmup=1000,
            num_samples=2000,
            num_chains=2,
            chain_method="vectorized",
            progress_bar=False,
        )
        mcmc.run(jax.random.key(0), schema, table.groups, table.features, table.labels)
        peer = {k: np.asarray(v) for k, v in mcmc.get_samples(group_by_chain=True).items()}
    own = draw_posterior(MODEL, table, draws=4000, chains=4, seed=1, progress=False).unknown

    def moments(draws: np.ndarray) -> tuple[float, float]:
        return draws.mean(), draws.std() / np.sqrt(float(effective_sample_size(draws)))

    z_scores = []
    for feature, label in itertools.product(range(2), range(2)):
        pairs = [(own["strength"][:, :, label, feature], peer[f"strength_{feature}"][:, :, label])]
        cells = schema.cells_of(feature)
        for value, cell in enumerate(range(cells.start, cells.stop)):
            mine = own["prototype"][:, :, label, cell]
            pairs.append((mine, peer[f"prototype_{feature}"][:, :, label, value]))
        for mine, theirs in pairs:
            (a, error_a), (b, error_b) = moments(mine), moments(theirs)
            z_scores.append((a - b) / np.hypot(error_a, error_b))
    assert len(z_scores) == 14
    assert np.abs(z_scores).max() < norm.isf(FALSE_ALARM / 2 / len(z_scores))
