"""Simulation-based calibration of the model index.

A model is drawn with even odds and a small table from it, with the very priors that the inference
uses; then the four posterior probabilities ``p`` must be those with which each model is the true
one. Three tests, each of a sum whose mean is zero and whose variance is known given all ``p``:

- how often each model is true, less the sum of its probabilities (jointly, chi-square);
- the same among probabilities of one size, in five bins;
- the surprise ``-log p_true`` less its expectation, the entropy: confident beyond its due, or not
  enough.

A correct comparison fails each with probability 1e-4 at other seeds; the seed is fixed. The
estimated evidence of the prototype has errors of at most 0.04 nat, far below what 400 tables show.
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import xlogy
from scipy.stats import chi2, norm

import bayes_lcs as bl

FALSE_ALARM = 1e-4
NUM_TABLES = 400
SCHEMA = bl.Schema(2, (2, 3))
SIZES = [4, 6, 5, 3]
PRIORS = {"label_prior": [0.7, 1.3], "feature_prior": 0.6}
MODELS = (
    bl.NoSharing(**PRIORS),
    bl.CompleteSharing(**PRIORS),
    bl.Prototype(**PRIORS, strength_prior=bl.Gamma(2.0, 0.2)),
    bl.ClusteredNaiveBayes(**PRIORS, concentration=1.0),
)


class Simulated(NamedTuple):
    truth: NDArray[np.int64]  # (S,)
    probabilities: NDArray[np.float64]  # (S, M)


@pytest.fixture(scope="module")
def simulated() -> Simulated:
    rng = np.random.default_rng(0)
    truth = rng.integers(len(MODELS), size=NUM_TABLES)
    probabilities = []
    for number, model in enumerate(truth):
        data, _ = MODELS[model].simulate(SCHEMA, SIZES, seed=number, missing=0.05)
        found = bl.compare(MODELS, data, precision=0.1, seed=number, progress=False)
        probabilities.append(found.probabilities())
    return Simulated(truth, np.array(probabilities))


@pytest.mark.slow
def test_each_model_is_true_as_often_as_it_says(simulated: Simulated):
    p = simulated.probabilities
    excess = np.eye(len(MODELS))[simulated.truth] - p
    # The four add up to zero, so three of them say all.
    total = excess.sum(axis=0)[:-1]
    covariance = (np.einsum("sm,mn->smn", p, np.eye(len(MODELS))) - p[:, :, None] * p[:, None]).sum(
        axis=0
    )[:-1, :-1]
    statistic = float(total @ np.linalg.solve(covariance, total))
    assert chi2.sf(statistic, len(total)) > FALSE_ALARM, (total, covariance)


@pytest.mark.slow
def test_probabilities_of_every_size_mean_what_they_say(simulated: Simulated):
    p = simulated.probabilities
    is_true = np.eye(len(MODELS))[simulated.truth]
    edges = [0.0, 0.1, 0.25, 0.4, 0.6, 1.0]
    limit = norm.isf(FALSE_ALARM / (len(edges) - 1) / 2)
    for low, high in itertools.pairwise(edges):
        inside = (p > low) & (p <= high)
        expected = (p * inside).sum(axis=1)
        # Of several models in one bin at most one is true.
        variance = (expected * (1.0 - expected)).sum()
        assert variance > 5.0, "too few for a normal approximation"
        excess = (is_true * inside).sum() - expected.sum()
        assert abs(excess) < limit * np.sqrt(variance), (low, high, excess, variance)


@pytest.mark.slow
def test_surprise_is_entropy_on_average(simulated: Simulated):
    p = simulated.probabilities
    own = p[np.arange(NUM_TABLES), simulated.truth]
    entropy = -xlogy(p, p).sum(axis=1)
    variance = (xlogy(p, p) * np.log(np.maximum(p, 1e-300))).sum(axis=1) - entropy**2
    z = (-np.log(own) - entropy).sum() / np.sqrt(variance.sum())
    assert abs(z) < norm.isf(FALSE_ALARM / 2)
    # There is something to find: the models can be told apart, and not with certainty.
    assert 0.3 < entropy.mean() < 1.2
