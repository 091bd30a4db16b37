"""Partitions annealed from a guide, against the sum over partitions itself.

Few temperatures, many chains, guides that are far off: the mean of the weights must be right
however bad each of them is. Comparisons are within four standard errors, one false alarm in 16,000
at fixed seeds.
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
from bayes_lcs.core.partitions import first_occurrence
from bayes_lcs.inference.ais.ais import Schedule, anneal
from bayes_lcs.inference.ais.fit_mean_field import (
    AnchoredLabelling,
    _log_base,
    choose_anchors,
    fit_mean_field,
)
from bayes_lcs.inference.ais.partition_mean_field import (
    MeanFieldConfig,
    MeanFieldData,
    MeanFieldProblem,
)
from bayes_lcs.inference.mcmc import collapsed_gibbs
from tests.oracles import all_partitions

CHAINS = 4000
MODEL = bl.ClusteredNaiveBayes(concentration=2.5, feature_prior=0.4)
FEW = Schedule(np.array([0.0, 0.1, 0.3, 0.6, 1.0]), 0.0)
ORDER = np.array([3, 0, 1, 2, 4])
"""Groups in another order: an anchor need not be the first of the table."""


@cache
def table() -> bl.GroupedTable:
    """Five groups whose partition stays open; some rows lack a value."""
    data, _ = MODEL.simulate(bl.Schema(2, (3, 2)), [3, 5, 2, 4, 3], seed=4, missing=0.1)
    return data


@cache
def partitions() -> tuple[NDArray, NDArray]:
    """All partitions, and ``log P(X, z | Y)`` of each."""
    every = np.array(list(all_partitions(table().num_groups)))
    logs = np.array([MODEL.log_joint(table().counts(), z) for z in every])
    return every, logs - MODEL.log_label_marginal(table().counts())


def found(num_anchors: int, num_slots: int) -> AnchoredLabelling:
    return AnchoredLabelling(ORDER, num_anchors, num_slots, np.zeros(0, dtype=np.int32))


@cache
def problem(num_anchors: int, num_slots: int) -> MeanFieldProblem:
    """With a guide of random numbers, the same for all spare slots or not."""
    rng = np.random.default_rng(num_slots)
    log_base = np.log(rng.dirichlet(np.full(num_slots, 20.0), len(ORDER)))
    with jax.enable_x64(True):
        target = collapsed_gibbs.build_problem(MODEL, table())
        data = MeanFieldData(
            target.data.layout,
            target.data.vectors[ORDER],
            jnp.asarray(2.5),
            jnp.asarray(log_base),
        )
    return MeanFieldProblem(MeanFieldConfig(num_anchors, num_slots), data)


def has_place(z: NDArray, num_anchors: int, num_slots: int) -> bool:
    anchors = z[ORDER[:num_anchors]]
    return len(set(anchors)) == num_anchors and len(set(z)) <= num_slots


def assert_mean_is_one(ratios: NDArray) -> None:
    error = ratios.std(ddof=1) / np.sqrt(len(ratios))
    assert error < 0.1
    assert abs(ratios.mean() - 1.0) < 4.0 * error


CASES = [(0, 5), (2, 5), (2, 4)]


@pytest.mark.parametrize(("num_anchors", "num_slots"), CASES)
def test_forwards_the_mean_is_the_sum_over_partitions_that_have_a_place(
    num_anchors: int, num_slots: int
):
    every, logs = partitions()
    kept = [has_place(z, num_anchors, num_slots) for z in every]
    _, done = anneal(problem(num_anchors, num_slots), FEW, chains=CHAINS, seed=1, progress=False)
    assert_mean_is_one(np.exp(done[:, 0] - logsumexp(logs[kept])))


@pytest.mark.parametrize(("num_anchors", "num_slots"), CASES)
def test_backwards_the_mean_of_the_inverse_is_the_inverse(num_anchors: int, num_slots: int):
    """Of the whole sum: draws that have no place count with weight zero."""
    every, logs = partitions()
    rng = np.random.default_rng(7)
    drawn = every[rng.choice(len(every), CHAINS, p=np.exp(logs - logsumexp(logs)))]
    slots = [found(num_anchors, num_slots).slots(z, rng) for z in drawn]
    starts = np.array([one for one in slots if one is not None])
    starts = starts[: len(starts) // 8 * 8]  # chains are run eight at a time
    target = problem(num_anchors, num_slots)
    _, done = anneal(target, FEW, chains=len(starts), seed=2, starts={"z": starts}, progress=False)
    missing = sum(one is None for one in slots)
    ratios = np.exp(logsumexp(logs) - done[:, 0])
    assert_mean_is_one(np.concatenate([ratios, np.zeros(missing)]))


def test_a_sweep_leaves_the_posterior_as_it_is():
    """From exact draws, all slots drawn again, against the probabilities of slots themselves."""
    num_anchors, num_slots, size = 2, 5, 40_000
    every, logs = partitions()
    kept = np.array([has_place(z, num_anchors, num_slots) for z in every])
    chance = np.exp(logs[kept] - logsumexp(logs[kept]))
    rng = np.random.default_rng(3)
    drawn = every[kept][rng.choice(kept.sum(), size, p=chance)]
    starts = np.array([found(num_anchors, num_slots).slots(z, rng) for z in drawn])
    target = problem(num_anchors, num_slots)
    with jax.enable_x64(True):
        states, keys = target.states({"z": starts}), jax.random.split(jax.random.key(1), size)
        sweep = jax.vmap(lambda key, state: target.config.sweep(target.data, key, state, 1.0)[0])
        after = jax.jit(sweep)(keys, states)
        blocks = jax.vmap(lambda z: target.config.state(target.data, z))(after.z)
        assert np.array_equal(after.cluster_counts, blocks.cluster_counts)
        assert np.allclose(after.log_marginals, blocks.log_marginals, rtol=0, atol=1e-9)
    codes = {tuple(first_occurrence(z[ORDER])): number for number, z in enumerate(every[kept])}
    ended = np.array([codes[tuple(first_occurrence(z))] for z in np.asarray(after.z)])
    observed, expected = np.bincount(ended, minlength=kept.sum()), size * chance
    common = expected >= 5
    pooled = [np.append(v[common], v[~common].sum()) for v in (observed, expected)]
    assert chisquare(*pooled).pvalue > 1e-4
    assert (np.asarray(after.z) != starts).any(axis=1).mean() > 0.2
    # Slots that are spare are taken equally often.
    spare = np.bincount(np.asarray(after.z)[:, num_anchors:].ravel(), minlength=num_slots)[2:]
    assert spare.std() < 0.05 * spare.mean()


@pytest.mark.parametrize(("num_anchors", "num_slots"), CASES)
def test_slots_are_those_of_partitions_that_have_a_place(num_anchors: int, num_slots: int):
    rng = np.random.default_rng(0)
    for z in partitions()[0]:
        slots = found(num_anchors, num_slots).slots(z, rng)
        assert (slots is not None) == has_place(z, num_anchors, num_slots)
        if slots is not None:
            assert np.array_equal(slots[:num_anchors], np.arange(num_anchors))
            assert slots.max() < num_slots
            assert np.array_equal(first_occurrence(slots), first_occurrence(z[ORDER]))


def test_what_is_tempered_is_joint_over_guide():
    num_anchors, num_slots = 2, 5
    target = problem(num_anchors, num_slots)
    log_base = np.asarray(target.data.log_base)
    z = np.array([0, 1, 3, 3, 1])  # block of slot 3 has no anchor: one of three arrangements
    back = np.empty(5, dtype=int)
    back[ORDER] = z
    joint = MODEL.log_joint(table().counts(), back) - MODEL.log_label_marginal(table().counts())
    expected = joint - np.log(3.0) - log_base[np.arange(2, 5), z[2:]].sum()
    with jax.enable_x64(True):
        state = target.config.state(target.data, jnp.asarray(z, dtype=jnp.int32))
        assert float(target.config.log_likelihood(target.data, state)[0]) == pytest.approx(
            expected, abs=1e-10
        )


def test_anchors_are_groups_that_draws_keep_apart():
    rng = np.random.default_rng(0)
    truth = np.repeat([0, 1, 2], [10, 8, 6])
    draws = np.tile(truth, (50, 1))
    draws[:25, 18:] = 0  # half of the draws know nothing of the third block
    draws[np.arange(50), rng.integers(0, 18, 50)] = 5
    result = choose_anchors(draws, best=49)
    blocks_of_anchors = truth[result.order[: result.num_anchors]]
    assert sorted(blocks_of_anchors) == [0, 1]
    assert np.array_equal(np.sort(result.order), np.arange(24))
    assert result.num_slots == 4 + 4
    own = result.slots(draws[49], rng)
    assert own is not None
    assert np.array_equal(first_occurrence(own), first_occurrence(result.start))


def test_a_guide_adds_up_to_one_and_has_no_zeros():
    chances = np.array([[1.0, 0.0, 0.0, 0.0], [0.5, 0.1, 0.3, 0.1]])
    guide = np.exp(_log_base(chances, num_anchors=2))
    assert np.allclose(guide.sum(axis=1), 1.0, rtol=0, atol=1e-12)
    assert np.allclose(guide[1], [0.5, 0.1, 0.2, 0.2])
    assert (guide > 0).all()


def test_a_fitted_guide_has_the_posterior_probabilities_of_slots():
    """Mean of conditional probabilities over sweeps, against all partitions that have a place.

    Sweeps hang together: the error is that of the means of twenty runs.
    """
    every, logs = partitions()
    arranged = found(2, 5)
    start = arranged.slots(np.array([0, 1, 2, 3, 4]), np.random.default_rng(0))
    arranged = arranged._replace(start=start)
    kept = np.array([has_place(z, 2, 5) for z in every])
    chance = np.exp(logs[kept] - logsumexp(logs[kept]))
    with_first = (every[kept] == every[kept][:, ORDER[:1]]).T @ chance
    guides = [
        fit_mean_field(MODEL, table(), arranged, sweeps=200, seed=seed).data.log_base
        for seed in range(20)
    ]
    runs = np.exp(np.array(guides))[:, 2:, 0]
    error = runs.std(axis=0, ddof=1) / np.sqrt(20)
    assert (np.abs(runs.mean(axis=0) - with_first[ORDER[2:]]) < 5.0 * error + 1e-3).all()
    assert error.max() < 0.02
