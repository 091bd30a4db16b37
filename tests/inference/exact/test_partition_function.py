"""Sums over all partitions: two arithmetics against enumeration and against each other."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from bayes_lcs.core.counts import GroupCounts
from bayes_lcs.core.schema import Schema
from bayes_lcs.inference.exact import partition_function
from bayes_lcs.inference.exact.partition_function import (
    PartitionSums,
    good_partition,
    shapley_shares,
)
from bayes_lcs.inference.exact.subset_marginals import log_block_marginals
from bayes_lcs.inference.exact.subset_masks import popcounts
from tests.inference.cases import log_sum, partitions

ARITHMETICS = ["scaled", "logs"]


@pytest.fixture(params=ARITHMETICS)
def arithmetic(request, monkeypatch):
    """Run a test on the scaled path, and again with that path made to refuse."""
    if request.param == "logs":
        force_logs(monkeypatch)
    return request.param


def force_logs(monkeypatch):
    monkeypatch.setattr(partition_function, "HUGE", 0.0)


def masks_of(z) -> list[int]:
    blocks: dict[int, int] = {}
    for u, block in enumerate(z):
        blocks[block] = blocks.get(block, 0) | 1 << u
    return list(blocks.values())


class Enumerated:
    """Everything `PartitionSums` knows, by going through the partitions one by one."""

    def __init__(self, log_weights):
        num_groups = log_weights.size.bit_length() - 1
        self.partitions = partitions(num_groups)
        self.masks = [masks_of(z) for z in self.partitions]
        self.scores = [math.fsum(log_weights[m] for m in masks) for masks in self.masks]
        self.log_total = log_sum(self.scores)
        self.probabilities = np.exp(np.array(self.scores) - self.log_total)
        self.block_probabilities = np.zeros(log_weights.size)
        self.size_probabilities = np.zeros(num_groups + 1)
        for masks, probability in zip(self.masks, self.probabilities, strict=True):
            self.block_probabilities[masks] += probability
            self.size_probabilities[len(masks)] += probability


def tolerance(log_weights) -> float:
    """1e-9, or what the spacing of the scores themselves allows: 16 of them."""
    return max(1e-9, 16 * float(np.spacing(np.abs(log_weights[1:]).max())))


def assert_enumerated(sums: PartitionSums, log_weights) -> None:
    expected, error = Enumerated(log_weights), tolerance(log_weights)
    assert sums.log_total == pytest.approx(expected.log_total, rel=0, abs=error)
    for found, wanted in (
        (sums.block_probabilities, expected.block_probabilities),
        (sums.size_probabilities, expected.size_probabilities),
    ):
        np.testing.assert_allclose(found, wanted, rtol=0, atol=error)
    best = sums.best_partition()
    assert sum(best) == np.bitwise_or.reduce(best) == log_weights.size - 1
    assert math.fsum(log_weights[best]) == pytest.approx(max(expected.scores), rel=0, abs=error)


def weights_of(counts: GroupCounts, prior: float = 1.0, concentration: float = 1.0):
    """Block weights of clustered naive Bayes, written out with the math module."""
    shape = (counts.schema.num_labels, counts.schema.num_cells)
    log_weights = log_block_marginals(counts, np.full(shape, prior))
    sizes = popcounts(counts.num_groups)
    for mask in range(1, log_weights.size):
        log_weights[mask] += math.log(concentration) + math.lgamma(sizes[mask])
    return log_weights


def drawn_counts(sizes, clusters, num_features: int, num_values: int, seed: int) -> GroupCounts:
    """Groups of the given sizes from clusters whose parameters differ strongly."""
    rng = np.random.default_rng(seed)
    theta = rng.dirichlet(np.full(num_values, 0.5), size=(max(clusters) + 1, num_features))
    features = np.stack(
        [rng.multinomial(size, theta[k]).ravel() for size, k in zip(sizes, clusters, strict=True)]
    )
    schema = Schema(1, (num_values,) * num_features)
    return GroupCounts(schema, np.array(sizes)[:, None], features[:, None, :])


# Against enumeration ---------------------------------------------------------------------------


@pytest.mark.parametrize("num_groups", range(1, 10))
def test_random_weights(num_groups, arithmetic):
    log_weights = np.random.default_rng(num_groups).normal(scale=3.0, size=1 << num_groups)
    sums = PartitionSums(log_weights)
    assert sums.arithmetic == arithmetic
    assert_enumerated(sums, log_weights)


def test_equal_weights_count_partitions(arithmetic):
    """Bell and Stirling numbers, which everybody can look up."""
    sums = PartitionSums(np.zeros(1 << 10))
    assert sums.arithmetic == arithmetic
    assert np.exp(sums.log_total) == pytest.approx(115_975, rel=1e-12)
    stirling = [0, 1, 511, 9330, 34_105, 42_525, 22_827, 5880, 750, 45, 1]
    np.testing.assert_allclose(np.exp(sums.log_totals_by_size), stirling, rtol=1e-12)


@pytest.mark.parametrize("together", [1, 2, 3, 4])
def test_few_sizes_at_a_time(together, monkeypatch):
    monkeypatch.setattr(partition_function, "MAX_GROUPS_ALL_SIZES", 0)
    monkeypatch.setattr(partition_function, "SIZES_PER_BATCH", together)
    for num_groups in range(1, 9):
        log_weights = np.random.default_rng(num_groups).normal(size=1 << num_groups)
        assert_enumerated(PartitionSums(log_weights), log_weights)


def test_sizes_that_cannot_matter_are_not_computed(arithmetic, monkeypatch):
    """Blocks of one are worth next to nothing: of eight groups there are no more than four."""
    monkeypatch.setattr(partition_function, "MAX_GROUPS_ALL_SIZES", 0)
    log_weights = np.zeros(1 << 8)
    log_weights[1 << np.arange(8)] = -40.0
    found = PartitionSums(log_weights)
    expected = PartitionSums(np.zeros(1 << 8)).log_total
    assert found.log_total < expected
    assert np.isneginf(found.log_totals_by_size[6:]).all()
    with np.errstate(divide="ignore"):
        total = np.log(np.exp(found.log_totals_by_size).sum())
    assert total == pytest.approx(found.log_total, abs=1e-9)
    # Partitions of eight into four pairs, and into two blocks of two or more.
    assert np.exp(found.log_totals_by_size[4]) == pytest.approx(105.0, rel=1e-9)
    assert np.exp(found.log_totals_by_size[2]) == pytest.approx(2**7 - 1 - 8, rel=1e-9)


def test_sums_of_every_subset(arithmetic):
    log_weights = np.random.default_rng(0).normal(size=64)
    sums = PartitionSums(log_weights)
    for subset in range(1, 64):
        inside = [u for u in range(6) if subset >> u & 1]
        scores = [
            sum(
                log_weights[sum(1 << inside[i] for i in range(len(z)) if mask >> i & 1)]
                for mask in masks_of(z)
            )
            for z in partitions(len(inside))
        ]
        assert sums.log_sums[subset] == pytest.approx(log_sum(scores), rel=0, abs=1e-12)


def test_the_empty_block_has_no_weight(arithmetic):
    """Entry 0 is not used, whatever it holds."""
    log_weights = np.random.default_rng(3).normal(size=32)
    log_weights[0] = 0.0
    expected = PartitionSums(log_weights)
    log_weights = log_weights.copy()
    log_weights[0] = 50.0
    found = PartitionSums(log_weights)
    assert found.log_total == pytest.approx(expected.log_total, rel=0, abs=1e-12)
    assert found.block_probabilities[0] == 0.0
    np.testing.assert_allclose(found.size_probabilities, expected.size_probabilities, atol=1e-12)


@given(seed=st.integers(0, 2**32 - 1), num_groups=st.integers(1, 6), scale=st.floats(0, 6))
@settings(max_examples=30, deadline=None)
def test_any_range_of_weights(seed, num_groups, scale):
    """Scores from 1 to 10^6 nats: whichever arithmetic is chosen, the answer is right."""
    rng = np.random.default_rng(seed)
    log_weights = rng.normal(scale=10.0**scale, size=1 << num_groups)
    assert_enumerated(PartitionSums(log_weights), log_weights)


@given(seed=st.integers(0, 2**32 - 1), num_groups=st.integers(2, 6))
@settings(max_examples=30, deadline=None)
def test_weights_at_the_edges_of_the_scaled_range(seed, num_groups):
    """Weights near the points where values are flushed, or the scaled path gives up."""
    rng = np.random.default_rng(seed)
    edges = [np.log(partition_function.TINY), np.log(partition_function.HUGE), -46.0, 0.0, 0.0, 0.0]
    log_weights = rng.choice(edges, size=1 << num_groups)
    log_weights += rng.normal(scale=3.0, size=1 << num_groups)
    assert_enumerated(PartitionSums(log_weights), log_weights)


# The two arithmetics against each other --------------------------------------------------------

EXTREMES = {
    "3 and 100,000 rows": drawn_counts([3, 100_000] * 5 + [3], [0, 0, 1, 1, 2] * 2 + [0], 6, 3, 1),
    "identical groups": GroupCounts(
        Schema(1, (3, 2)), np.full((12, 1), 50), np.tile([[[20, 20, 10, 49, 1]]], (12, 1, 1))
    ),
    "nothing in common": drawn_counts([2000] * 11, range(11), 8, 4, 2),
    "hundreds of features": drawn_counts([5, 40, 300] * 3 + [2], [0, 1, 2, 3, 0] * 2, 300, 3, 3),
    "one row each": drawn_counts([1] * 13, [0, 1] * 6 + [0], 10, 5, 4),
    "no rows at all": drawn_counts([0] * 10, [0] * 10, 2, 2, 5),
}


@pytest.mark.parametrize("name", EXTREMES)
def test_scaled_and_logs_agree(name, monkeypatch):
    log_weights = weights_of(EXTREMES[name])
    scaled = PartitionSums(log_weights)
    assert scaled.arithmetic == "scaled"
    force_logs(monkeypatch)
    logs = PartitionSums(log_weights)
    assert logs.arithmetic == "logs"
    error = tolerance(log_weights)
    assert scaled.log_total == pytest.approx(logs.log_total, rel=0, abs=error)
    for what in ("block_probabilities", "size_probabilities"):
        np.testing.assert_allclose(
            getattr(scaled, what), getattr(logs, what), rtol=0, atol=error, err_msg=what
        )
    # Wherever the scaled sum was kept it is the sum, not a rounded-off part of it.
    matters = logs.block_probabilities[::-1] > 1e-12
    np.testing.assert_allclose(
        scaled.log_sums[matters], logs.log_sums[matters], rtol=0, atol=max(error, 1e-8)
    )


def test_every_refusal_of_the_scaled_path(monkeypatch):
    """Each of the three conditions alone sends the work to the logs, with the same answer."""
    log_weights = np.random.default_rng(1).normal(size=1 << 6)
    expected = PartitionSums(log_weights)
    assert expected.arithmetic == "scaled"
    largest = np.exp(log_weights - expected._offsets)[1:].max()
    total = np.exp(expected.log_total - expected._offsets[-1])
    sums = np.exp(expected.log_sums - expected._offsets)
    assert sums.max() > largest * 1.01, "the sums must exceed the weights for the second case"
    for name, value in (
        ("HUGE", largest / 2),  # a weight is too large
        ("HUGE", (largest + sums.max()) / 2),  # the weights pass, a sum does not
        ("MIN_TOTAL", total * 2),  # what was flushed might matter
    ):
        with monkeypatch.context() as patch:
            patch.setattr(partition_function, name, value)
            found = PartitionSums(log_weights)
            assert found.arithmetic == "logs"
            assert found.log_total == pytest.approx(expected.log_total, rel=0, abs=1e-12)


def wide_counts(seed: int) -> GroupCounts:
    """Large groups between few clusters on 300 features: single moves get stuck here."""
    rng = np.random.default_rng(seed)
    theta = rng.dirichlet(np.full(3, 5.0), size=(2, 300))
    features = []
    for _ in range(7):
        share = rng.dirichlet([0.5, 0.5])
        mixed = np.einsum("k,kfv->fv", share, theta)
        features.append(rng.multinomial(int(10 ** rng.uniform(1, 4.5)), mixed).ravel())
    counts = np.stack(features)[:, None, :]
    return GroupCounts(Schema(1, (3,) * 300), np.zeros((7, 1), dtype=np.int64), counts)


def test_data_that_the_scaled_path_refuses():
    """Real-shaped data outside the scaled range: the fall-back answers, and rightly."""
    refused = 0
    for seed in range(6):
        log_weights = weights_of(wide_counts(seed), prior=0.01)
        sums = PartitionSums(log_weights)
        refused += sums.arithmetic == "logs"
        assert_enumerated(sums, log_weights)
    assert refused >= 1, "none of these tables needs the fall-back any more: find others"


def test_nothing_that_matters_is_flushed(monkeypatch):
    """Flushed weights may not return through large partners; see the module's docstring.

    The block {0, 1} weighs 1e-160 and everything else at most 1e+90 in scaled units: had the
    flushed block a partner that makes up for it, the largest sum would exceed HUGE.
    """
    log_weights = np.full(16, -60.0)
    log_weights[[1, 2, 4, 8]] = 0.0
    log_weights[3] = np.log(1e-160)
    log_weights[12] = np.log(1e90)
    sums = PartitionSums(log_weights)
    assert_enumerated(sums, log_weights)


# Helpers of the scaling ------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(10))
def test_good_partition_is_a_partition_and_locally_best(seed):
    log_weights = np.random.default_rng(seed).normal(scale=3.0, size=1 << 7)
    log_weights[0] = 0.0
    blocks = good_partition(log_weights)
    assert all(blocks)
    assert sum(blocks) == np.bitwise_or.reduce(blocks) == 127  # disjoint, and everybody is in
    score = log_weights[blocks].sum()
    for home in blocks:
        for u in range(7):
            if not home >> u & 1:
                continue
            rest = [block for block in blocks if block != home]
            for goal in [*rest, 0]:
                moved = [block for block in rest if block != goal]
                moved += [goal | 1 << u, home ^ 1 << u]
                assert log_weights[moved].sum() <= score + 1e-6


def test_shares_of_a_block_add_up_to_its_score():
    log_weights = np.random.default_rng(2).normal(scale=100.0, size=1 << 6)
    log_weights[0] = 0.0
    blocks = [0b000111, 0b011000, 0b100000]
    shares = shapley_shares(log_weights, blocks)
    for block in blocks:
        inside = [u for u in range(6) if block >> u & 1]
        assert shares[inside].sum() == pytest.approx(log_weights[block], rel=1e-12)
    assert shares[5] == pytest.approx(log_weights[32], rel=1e-12)


def test_shares_of_equal_groups_are_nearly_equal():
    """A share follows what a group adds, not its place in the block."""
    sizes = popcounts(4)
    shares = shapley_shares(-(sizes.astype(float) ** 1.5), [0b1111], num_orders=4096)
    # The spread over orders is below 2, so 4096 of them leave 0.03; six of those.
    np.testing.assert_allclose(shares, -2.0, atol=0.2)


# Samples ---------------------------------------------------------------------------------------

FALSE_ALARM = 1e-4
"""Chance that a correct sampler fails one of the tests below, with another seed."""


@pytest.mark.parametrize("spread", [0.5, 2.0])
def test_samples_follow_the_posterior(arithmetic, spread):
    """Chi-square over the 52 partitions of 5 groups, cells below 5 expected draws pooled."""
    log_weights = np.random.default_rng(11).normal(scale=spread, size=32)
    expected = Enumerated(log_weights)
    draws = 20_000
    z = PartitionSums(log_weights).sample(draws, np.random.default_rng(1))
    order = {tuple(sorted(masks)): i for i, masks in enumerate(expected.masks)}
    found = np.zeros(len(order))
    for row in z:
        found[order[tuple(sorted(masks_of(row)))]] += 1
    mean = draws * expected.probabilities
    pooled = mean < 5
    observed = np.append(found[~pooled], found[pooled].sum())
    wanted = np.append(mean[~pooled], mean[pooled].sum())
    if not pooled.any():
        observed, wanted = observed[:-1], wanted[:-1]
    assert wanted.size > 20
    assert chisquare(observed, wanted * observed.sum() / wanted.sum()).pvalue > FALSE_ALARM


def test_samples_of_certain_partitions(arithmetic):
    log_weights = np.full(8, -1e5)
    log_weights[[0b101, 0b010]] = 0.0
    z = PartitionSums(log_weights).sample(100, np.random.default_rng(0))
    assert (z[:, 0] == z[:, 2]).all()
    assert (z[:, 0] != z[:, 1]).all()


def test_no_draws():
    assert PartitionSums(np.zeros(8)).sample(0, np.random.default_rng(0)).shape == (0, 3)


# The best partition -----------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(6))
def test_search_and_recursion_find_the_same_best(seed, arithmetic, monkeypatch):
    """Weights of clustered data at 9 groups: the guided search answers, and so do the maxima."""
    monkeypatch.setattr(partition_function, "PUSH_COST", 1)  # patience for a table as small as this
    clusters = [0, 1, 0, 2, 1, 0, 0, 2, 3]
    log_weights = weights_of(drawn_counts([6] * 9, clusters, 4, 3, seed))
    sums = PartitionSums(log_weights)
    searched, traced = sums._search_best(), sums._trace_best()
    assert searched is not None
    for found in (searched, traced):
        assert sum(found) == np.bitwise_or.reduce(found) == 511
    assert log_weights[searched].sum() == pytest.approx(log_weights[traced].sum(), abs=1e-9)
    assert log_weights[traced].sum() == pytest.approx(max(Enumerated(log_weights).scores))


def test_a_flat_posterior_gives_up_the_search():
    """Nothing to guide it: the search ends early and the recursion with maxima answers."""
    log_weights = np.random.default_rng(0).normal(scale=0.3, size=1 << 9)
    sums = PartitionSums(log_weights)
    assert sums._search_best() is None
    best = log_weights[sums.best_partition()].sum()
    assert best == pytest.approx(max(Enumerated(log_weights).scores), abs=1e-9)
