"""Simulation-based calibration of the whole sweep (Talts et al. 2018).

Truths are drawn from the prior, data from the truths, and the sampler runs on the data: the rank
of the truth among thinned draws is uniform if everything is right. 512 simulations run at once.
The seeds are fixed; each chi-square test of uniformity has a false-alarm rate of 1e-4.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import chisquare

import bayes_lcs as bl
from bayes_lcs.inference.mcmc.collapsed_gibbs import build_kernel, build_problem, init

FALSE_ALARM = 1e-4
NUM_SIMULATIONS = 512
NUM_DRAWS, THIN, WARMUP = 63, 8, 200
SCHEMA = bl.Schema(2, (2, 3))
SIZES = [6, 3, 5, 4, 6, 2]
MODELS = {
    "all learned": bl.ClusteredNaiveBayes(
        concentration=bl.Gamma(2.0, 1.0), feature_prior=bl.Gamma(2.0, 1.0)
    ),
    "partition and labels": bl.ClusteredNaiveBayes(concentration=1.0, label_prior=[0.5, 2.0]),
    "complete sharing": bl.CompleteSharing(feature_prior=bl.Gamma(2.0, 1.0)),
}


def simulate(model: object) -> tuple[list, list, list]:
    """Tables with the first row of each group unlabelled, and the truth behind them."""
    tables, truths, hidden = [], [], []
    rows = np.concatenate([[0], np.cumsum(SIZES)[:-1]])
    for seed in range(NUM_SIMULATIONS):
        table, truth = model.simulate(SCHEMA, SIZES, seed=seed)
        tables.append(table.mask_labels(rows))
        truths.append(truth)
        hidden.append(table.labels[rows])
    return tables, truths, hidden


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_ranks_of_the_truth_are_uniform(name: str) -> None:
    model = MODELS[name]
    tables, truths, hidden = simulate(model)
    with jax.enable_x64(True):
        problems = [build_problem(model, table, 1) for table in tables]
        config = problems[0].config
        assert all(problem.config == config for problem in problems)
        data = jax.tree.map(lambda *leaves: jnp.stack(leaves), *[p.data for p in problems])
        start = jnp.arange(len(SIZES))
        if problems[0].partition is not None:
            start = jnp.asarray(problems[0].partition)

        def run(data, key):
            kernel = build_kernel(config, data)
            state = init(config, data, start, 1.0, len(SIZES) + 1, key)

            def sweep(state, i):
                return kernel(jax.random.fold_in(key, i), state)

            state, info = jax.lax.scan(sweep, state, jnp.arange(WARMUP + NUM_DRAWS * THIN))
            return jax.tree.map(lambda leaf: leaf[WARMUP + THIN - 1 :: THIN], info), state

        keys = jax.random.split(jax.random.key(0), NUM_SIMULATIONS)
        info, state = jax.jit(jax.vmap(run))(data, keys)
        assert not bool(state.partition.overflow.any())
    draws = {
        "num_clusters": np.asarray(info.num_clusters),
        "first pair together": np.asarray(info.z[:, :, 0] == info.z[:, :, 1]).astype(int),
        "labels that are 1": np.asarray(info.labels.sum(axis=2)),
        "concentration": np.asarray(info.concentration),
        "beta": np.asarray(info.beta),
    }
    truth = {
        "num_clusters": [t.partition.max() + 1 for t in truths],
        "first pair together": [t.partition[0] == t.partition[1] for t in truths],
        "labels that are 1": [y.sum() for y in hidden],
        "concentration": [1.0 if t.concentration is None else t.concentration for t in truths],
        "beta": [t.feature_prior[0, 0] for t in truths],
    }
    rng = np.random.default_rng(1)
    tested = 0
    for quantity, values in draws.items():
        true = np.asarray(truth[quantity], dtype=float)
        if np.ptp(values) == 0:
            continue
        below = (values < true[:, None]).sum(axis=1)
        ties = np.isclose(values, true[:, None]).sum(axis=1)
        ranks = below + np.floor(rng.random(NUM_SIMULATIONS) * (ties + 1)).astype(int)
        counts = np.bincount(ranks // 4, minlength=16)
        assert len(counts) == 16
        assert chisquare(counts).pvalue > FALSE_ALARM, (quantity, counts)
        tested += 1
    assert tested >= 2
