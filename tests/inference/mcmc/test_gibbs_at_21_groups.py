"""Gibbs sampling against the exact recursion at the thesis's own size, 21 groups."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from scipy.stats import t as student

import bayes_lcs as bl
from bayes_lcs.core.partitions import coclustering_matrix
from bayes_lcs.inference.chain_driver import run_chains
from bayes_lcs.inference.mcmc.collapsed_gibbs import build_problem

FALSE_ALARM = 1e-4
NUM_CHAINS = 64


@pytest.mark.slow
def test_coclustering_and_number_of_clusters_within_monte_carlo_error():
    """The mean of every chain is one observation; all pairs at once by Bonferroni."""
    model = bl.ClusteredNaiveBayes(concentration=2.0, feature_prior=0.5)
    data, _ = model.simulate(bl.Schema(2, (3, 2, 4)), [5, 8, 11] * 7, seed=2, missing=0.1)
    exact = bl.exact(model, data)
    together = exact.coclustering()
    open_question = (together > 0.02) & (together < 0.98)
    assert open_question.sum() > 100, "the posterior is too certain to test anything"
    with jax.enable_x64(True):
        problem = build_problem(model, data)
    drawn = run_chains(
        problem, draws=250, warmup=150, chains=NUM_CHAINS, thin=1, seed=0, progress=False
    ).info
    observed = [coclustering_matrix(z)[np.triu_indices(21, 1)] for z in drawn["z"]]
    counts = drawn["num_clusters"]
    for expected, by_chain in (
        (together[np.triu_indices(21, 1)], np.stack(observed)),
        (np.arange(22) @ exact.num_clusters(), counts.mean(axis=1)[:, None]),
    ):
        error = by_chain.std(axis=0, ddof=1) / np.sqrt(NUM_CHAINS)
        # A pair that was never together in any draw must be improbable, not impossible.
        scores = (by_chain.mean(axis=0) - expected) / np.maximum(error, 1e-3)
        limit = student(NUM_CHAINS - 1).isf(FALSE_ALARM / 2 / by_chain.shape[1])
        assert np.abs(scores).max() < limit
