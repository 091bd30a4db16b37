from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayes_lcs.core.partitions import (
    block_sizes,
    blocks,
    coclustering_matrix,
    first_occurrence,
    log_crp,
)
from tests.oracles import BELL_NUMBERS, all_partitions, sequential_log_crp

PARTITIONS = st.lists(st.integers(0, 5), min_size=1, max_size=9)


@pytest.mark.parametrize("num_groups", range(9))
def test_the_oracle_lists_every_partition_once(num_groups: int) -> None:
    listed = list(all_partitions(num_groups))
    assert len(listed) == len(set(listed)) == BELL_NUMBERS[num_groups]


@pytest.mark.parametrize("concentration", [0.1, 1.0, 7.0])
@pytest.mark.parametrize("num_groups", range(1, 9))
def test_the_crp_sums_to_one(num_groups: int, concentration: float) -> None:
    total = math.fsum(math.exp(log_crp(z, concentration)) for z in all_partitions(num_groups))
    assert total == pytest.approx(1.0, abs=1e-12)


@given(PARTITIONS, st.floats(0.01, 100.0), st.randoms(use_true_random=False))
def test_the_crp_is_exchangeable_and_sequential(labels, concentration, random) -> None:
    expected = sequential_log_crp(labels, concentration)
    assert log_crp(labels, concentration) == pytest.approx(expected, rel=1e-11, abs=1e-11)
    random.shuffle(labels)
    assert log_crp(labels, concentration) == pytest.approx(expected, rel=1e-11, abs=1e-11)


def test_the_thesis_bound_put_right() -> None:
    """(4.8)-(4.10): 21 singletons at concentration 1 have probability 1/21!."""
    assert log_crp(range(21), 1.0) == pytest.approx(-math.log(math.factorial(21)), abs=1e-11)


@given(PARTITIONS, st.permutations(range(6)))
def test_canonical_form_forgets_the_labels_only(labels, renaming) -> None:
    z = first_occurrence(labels)
    np.testing.assert_array_equal(z, first_occurrence([renaming[k] for k in labels]))
    np.testing.assert_array_equal(z, first_occurrence(z))
    same = np.equal.outer(labels, labels)
    np.testing.assert_array_equal(np.equal.outer(z, z), same)
    assert tuple(z.tolist()) in set(all_partitions(len(labels)))


def test_canonical_form_works_on_stacks_of_partitions() -> None:
    stack = np.random.default_rng(0).integers(0, 4, (3, 2, 6))
    result = first_occurrence(stack)
    for index in np.ndindex(3, 2):
        np.testing.assert_array_equal(result[index], first_occurrence(stack[index]))
    with pytest.raises(ValueError, match="one label per group"):
        first_occurrence(3)


@given(PARTITIONS)
def test_blocks_and_sizes_agree(labels) -> None:
    listed = blocks(labels)
    assert sorted(u for block in listed for u in block) == list(range(len(labels)))
    assert [len(block) for block in listed] == block_sizes(labels).tolist()
    assert [block[0] for block in listed] == sorted(block[0] for block in listed)


def test_coclustering_of_many_draws() -> None:
    """More distinct draws than a byte counts, some of them repeated, labels of any kind."""
    draws = np.random.default_rng(0).integers(-1, 3, (700, 9))
    draws = np.concatenate([draws, draws[:40], draws[:5]])
    expected = (draws[:, :, None] == draws[:, None, :]).mean(axis=0)
    np.testing.assert_allclose(coclustering_matrix(draws), expected, rtol=1e-14)
    unique, counts = np.unique(draws, axis=0, return_counts=True)
    np.testing.assert_allclose(coclustering_matrix(unique + 1, counts), expected, rtol=1e-14)


def test_coclustering_is_the_share_of_partitions() -> None:
    matrix = coclustering_matrix([[0, 0, 1], [0, 1, 1], [0, 0, 0], [2, 1, 0]])
    np.testing.assert_allclose(matrix, [[1, 0.5, 0.25], [0.5, 1, 0.5], [0.25, 0.5, 1]])
