"""``log m(T)`` of every subset, against merged counts and against row-by-row prediction."""

from __future__ import annotations

import numpy as np
import pytest

from bayes_lcs.core.counts import GroupCounts, count_rows, merge_groups
from bayes_lcs.core.naive_bayes import log_feature_marginal
from bayes_lcs.core.schema import Schema
from bayes_lcs.inference.exact import subset_marginals
from bayes_lcs.inference.exact.subset_marginals import log_block_marginals
from tests.inference.cases import Case, random_case


def merged(counts: GroupCounts, prior) -> np.ndarray:
    """Every subset of the groups merged, one at a time."""
    result = np.zeros(1 << counts.num_groups)
    for mask in range(1, result.size):
        inside = [u for u in range(counts.num_groups) if mask >> u & 1]
        block = merge_groups(counts.take(inside), np.zeros(len(inside), dtype=int))
        result[mask] = log_feature_marginal(counts.schema, block.features, prior)[0]
    return result


def random_counts(num_groups: int, schema: Schema, scale: float, seed: int) -> GroupCounts:
    rng = np.random.default_rng(seed)
    shape = (num_groups, schema.num_labels, schema.num_cells)
    features = rng.poisson(scale * rng.exponential(size=shape))
    return GroupCounts(schema, np.zeros(shape[:2], dtype=np.int64), features)


def random_prior(schema: Schema, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.uniform(0.05, 4.0, (schema.num_labels, schema.num_cells))


@pytest.mark.parametrize("num_groups", range(1, 10))
def test_every_subset(num_groups):
    schema = Schema(3, (2, 5, 1, 3))
    counts = random_counts(num_groups, schema, 20.0, num_groups)
    prior = random_prior(schema, num_groups)
    found = log_block_marginals(counts, prior)
    assert found[0] == 0.0
    # Values of some thousand nats are sums of a few hundred terms: 1e-16 * 1e4 * a few.
    np.testing.assert_allclose(found, merged(counts, prior), rtol=0, atol=1e-10)


@pytest.mark.parametrize("chunk_bits", [0, 1, 3, 7])
def test_split_into_chunks(monkeypatch, chunk_bits):
    """The index is split in high and low bits; small chunks exercise it on few groups."""
    schema = Schema(2, (4, 2))
    counts, prior = random_counts(7, schema, 10.0, 1), random_prior(schema, 1)
    monkeypatch.setattr(subset_marginals, "CHUNK_BITS", chunk_bits)
    np.testing.assert_allclose(
        log_block_marginals(counts, prior), merged(counts, prior), rtol=0, atol=1e-10
    )


def test_more_groups_than_one_chunk():
    schema = Schema(2, (3, 2))
    num_groups = subset_marginals.CHUNK_BITS + 2
    counts, prior = random_counts(num_groups, schema, 5.0, 2), random_prior(schema, 2)
    found = log_block_marginals(counts, prior)
    for mask in np.random.default_rng(0).integers(1, 1 << num_groups, size=100):
        inside = np.flatnonzero(mask >> np.arange(num_groups) & 1)
        block = counts.features[inside].sum(axis=0)
        expected = log_feature_marginal(schema, block, prior)
        assert found[mask] == pytest.approx(expected, rel=0, abs=1e-10)


@pytest.mark.parametrize("longest", [1, 64])
def test_counts_beyond_the_table_use_the_function(monkeypatch, longest):
    schema = Schema(2, (3, 2))
    counts, prior = random_counts(6, schema, 30.0, 3), random_prior(schema, 3)
    by_table = log_block_marginals(counts, prior)
    built = []
    table = subset_marginals.log_rising_table
    monkeypatch.setattr(subset_marginals, "MAX_TABLE_ENTRIES", longest)
    monkeypatch.setattr(
        subset_marginals,
        "log_rising_table",
        lambda start, largest: built.append(largest) or table(start, largest),
    )
    np.testing.assert_allclose(log_block_marginals(counts, prior), by_table, rtol=0, atol=1e-10)
    assert all(largest < longest for largest in built)


def test_counts_that_are_really_beyond_the_table():
    """Ten million rows in one cell: more than a table holds, and no table is tried."""
    schema = Schema(1, (2,))
    features = np.array([[[10_000_000, 3]], [[5, 7]], [[0, 9_000_000]]])
    counts = GroupCounts(schema, np.zeros((3, 1), dtype=np.int64), features)
    prior = np.array([[0.5, 2.0]])
    found, expected = log_block_marginals(counts, prior), merged(counts, prior)
    # Terms of 1.5e8 nats: a few spacings of 3e-8.
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("seed", range(4))
def test_against_rows_predicted_one_after_another(seed):
    case: Case = random_case(seed, num_groups=5, num_labels=2, num_values=(2, 3, 4), missing=0.3)
    counts = count_rows(case.schema, 5, case.groups, case.labels, case.features)
    found = log_block_marginals(counts, case.feature_prior)
    for mask in range(1, 32):
        inside = {u for u in range(5) if mask >> u & 1}
        assert found[mask] == pytest.approx(case.log_block(inside), rel=0, abs=1e-10)


def test_no_rows_and_no_features():
    empty = GroupCounts(Schema(2, (3,)), np.zeros((4, 2), int), np.zeros((4, 2, 3), int))
    np.testing.assert_array_equal(log_block_marginals(empty, np.ones((2, 3))), np.zeros(16))
    bare = GroupCounts(Schema(2, ()), np.ones((3, 2), int), np.zeros((3, 2, 0), int))
    np.testing.assert_array_equal(log_block_marginals(bare, np.ones((2, 0))), np.zeros(8))
