"""Particles that sum over partitions, against the sum itself.

Few particles, many runs: the mean of the estimates must be right however bad each of them is.
Comparisons are within four standard errors, one false alarm in 16,000 at fixed seeds.
"""

from __future__ import annotations

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import logsumexp
from scipy.stats import chisquare

import bayes_lcs as bl
from bayes_lcs.inference.smc import smc
from bayes_lcs.inference.smc.partition import PartitionConfig, build_problem
from bayes_lcs.model_evidence.evidence import _best_method
from experiments.benchmarks.simulated import clustered_groups
from tests.oracles import all_partitions

RUNS = 4000
MODEL = bl.ClusteredNaiveBayes(concentration=2.5, feature_prior=0.4)


@cache
def table() -> bl.GroupedTable:
    """Five groups whose partition stays open; some rows lack a value."""
    data, _ = MODEL.simulate(bl.Schema(2, (3, 2)), [3, 5, 2, 4, 3], seed=4, missing=0.1)
    return data


@cache
def partitions() -> tuple[NDArray, NDArray]:
    """All partitions, and ``log P(X, z | Y)`` of each."""
    data = table()
    every = np.array(list(all_partitions(data.num_groups)))
    logs = np.array([MODEL.log_joint(data.counts(), z) for z in every])
    return every, logs - MODEL.log_label_marginal(data.counts())


def run(ends: NDArray | None = None, particles: int = 4) -> NDArray:
    problem = build_problem(MODEL, table())
    return smc.estimate(problem, runs=RUNS, num_particles=particles, seed=5, posterior_draws=ends)[
        1
    ]


def drawn_partitions(size: int) -> NDArray:
    every, logs = partitions()
    chance = np.exp(logs - logsumexp(logs))
    return every[np.random.default_rng(4).choice(len(every), size, p=chance)]


def assert_mean_is_one(ratios: NDArray) -> None:
    error = ratios.std(ddof=1) / np.sqrt(len(ratios))
    assert error < 0.05
    assert abs(ratios.mean() - 1.0) < 4.0 * error


def test_forwards_the_mean_is_the_sum_over_partitions():
    assert_mean_is_one(np.exp(run() - logsumexp(partitions()[1])))


def test_backwards_the_mean_of_the_inverse_is_the_inverse():
    ends = drawn_partitions(RUNS)
    assert_mean_is_one(np.exp(logsumexp(partitions()[1]) - run(ends)))


def test_room_for_clusters_changes_no_estimate():
    """Run by run: a particle that had no room may have been left out before the end."""
    data, _ = clustered_groups(
        10, num_clusters=2, rows_per_group=8, num_features=3, evenness=1.0, seed=1
    )
    problem = build_problem(bl.ClusteredNaiveBayes(), data)

    def estimates(slots: int) -> list[float]:
        roomy = problem._replace(config=PartitionConfig(slots, data.num_groups))
        found = [smc.estimate(roomy, runs=1, num_particles=6, seed=seed)[1] for seed in range(200)]
        return [float(values[0]) for values in found]

    assert np.allclose(estimates(4), estimates(11), rtol=0, atol=1e-9)


def test_drawing_blocks_again_leaves_their_posterior_as_it_is():
    """Particles at exact draws, every block drawn again, against the probabilities themselves."""
    every, logs = partitions()
    size = 40_000
    drawn = drawn_partitions(size)
    config, data, _, _, length = build_problem(MODEL, table())
    nowhere = np.zeros((config.num_choices, size))
    with jax.enable_x64(True):
        state = smc.init(config, data, length, size)
        particles = state.particles
        for group in range(length):
            new = (np.arange(config.num_choices)[:, None] == drawn[:, group]).astype(float)
            particles = config.reassign(data, particles, group, nowhere, new)
        state = state._replace(
            particles=particles, assignments=jnp.asarray(drawn.T, dtype=jnp.int16)
        )
        for group, key in enumerate(jax.random.split(jax.random.key(3), length)):
            state, _ = smc._assign(config, data, key, state, group, False, jnp.asarray(-1))
    found = np.asarray(state.assignments).T
    same = found[:, :, None] == found[:, None, :]
    known = every[:, :, None] == every[:, None, :]
    codes = {matrix.tobytes(): number for number, matrix in enumerate(known)}
    observed = np.bincount([codes[matrix.tobytes()] for matrix in same], minlength=len(every))
    expected = size * np.exp(logs - logsumexp(logs))
    common = expected >= 5
    pooled = [np.append(v[common], v[~common].sum()) for v in (observed, expected)]
    assert chisquare(*pooled).pvalue > 1e-4
    assert (found != drawn).any(axis=1).mean() > 0.2


def test_more_particles_spread_less():
    few, many = (run(particles=particles).var() for particles in (4, 64))
    assert many < few / 4


@pytest.mark.slow
def test_evidence_of_more_groups_than_can_be_summed_over():
    """Particles and annealing by temperature are two ways to one number."""
    data, _ = MODEL.simulate(bl.Schema(2, (3, 2, 2)), [6] * 40, seed=2)
    found = bl.evidence(MODEL, data, "particles")
    assert found.bracket is not None
    assert found.bracket.agrees
    other = bl.evidence(MODEL, data)
    assert other.method == "ais"
    assert abs(found.value - other.value) < 4.0 * np.hypot(
        found.standard_error, other.standard_error
    )


@pytest.mark.parametrize(("groups", "method"), [(24, "exact"), (25, "ais"), (101, "guided")])
def test_the_number_of_groups_decides_how(groups: int, method: str):
    data, _ = MODEL.simulate(bl.Schema(2, (2,)), [1] * groups, seed=0)
    assert _best_method(MODEL, data, "collapsed") == method


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (bl.ClusteredNaiveBayes(concentration=bl.Gamma(2.0, 1.0)), "concentration"),
        (bl.ClusteredNaiveBayes(feature_prior=bl.Gamma(2.0, 1.0)), "feature prior"),
        (bl.Prototype(), "Prototype"),
    ],
)
def test_what_particles_cannot_do_is_refused(model: object, reason: str):
    with pytest.raises(ValueError, match=reason):
        bl.evidence(model, table(), "particles")


def test_partitions_with_missing_labels_are_refused():
    with pytest.raises(ValueError, match="no label is missing"):
        bl.evidence(MODEL, table().mask_labels([0]), "particles")
