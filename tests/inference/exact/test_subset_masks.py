from __future__ import annotations

from itertools import combinations

import numpy as np

from bayes_lcs.inference.exact.subset_masks import members, popcounts, subset_sums, subsets_of


def test_subsets_are_listed_in_increasing_order() -> None:
    mask = 0b11010
    expected = sorted(
        sum(1 << bit for bit in chosen)
        for size in range(4)
        for chosen in combinations(members(mask), size)
    )
    assert subsets_of(mask).tolist() == expected
    assert subsets_of(0).tolist() == [0]


def test_subset_sums_equal_sums_over_members() -> None:
    values = np.array([3, 1, 4, 1, 5])
    sums = subset_sums(values)
    assert sums.tolist() == [values[members(mask)].sum() for mask in range(32)]
    assert popcounts(5).tolist() == [len(members(mask)) for mask in range(32)]


def test_subset_sums_may_exceed_the_type_of_the_values() -> None:
    sums = subset_sums(np.array([2**30, 2**30, 2**31 - 1], dtype=np.int32))
    assert sums[-1] == 2**32 - 1
    assert subset_sums(np.array([0.5, 0.25])).tolist() == [0.0, 0.5, 0.25, 0.75]
