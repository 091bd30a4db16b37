from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayes_lcs.core.counts import GroupCounts, count_rows, merge_groups
from bayes_lcs.core.schema import Schema
from tests.strategies import SmallTable, small_tables


def counted_by_loop(table: SmallTable) -> GroupCounts:
    schema = table.schema
    labels = np.zeros((table.num_groups, schema.num_labels), dtype=np.int64)
    features = np.zeros((table.num_groups, schema.num_labels, schema.num_cells), dtype=np.int64)
    for group, label, row in zip(table.groups, table.labels, table.features, strict=True):
        if label >= 0:
            labels[group, label] += 1
            for feature, value in enumerate(row):
                if value >= 0:
                    features[group, label, schema.offsets[feature] + value] += 1
    return GroupCounts(schema, labels, features)


@given(small_tables())
def test_counts_equal_a_loop_over_rows(table: SmallTable) -> None:
    counts, expected = table.counts(), counted_by_loop(table)
    np.testing.assert_array_equal(counts.labels, expected.labels)
    np.testing.assert_array_equal(counts.features, expected.features)
    assert (counts.feature_totals <= counts.labels[:, :, None]).all()


@given(small_tables(), st.integers(0, 12))
def test_counts_of_two_parts_add_up(table: SmallTable, cut: int) -> None:
    first, second = (
        count_rows(
            table.schema,
            table.num_groups,
            table.groups[part],
            table.labels[part],
            table.features[part],
        )
        for part in (slice(None, cut), slice(cut, None))
    )
    both = first + second
    np.testing.assert_array_equal(both.labels, table.counts().labels)
    np.testing.assert_array_equal(both.features, table.counts().features)


@given(small_tables(), st.data())
def test_merging_groups_is_counting_with_the_groups_renamed(
    table: SmallTable, data: st.DataObject
) -> None:
    z = data.draw(st.lists(st.integers(0, 2), min_size=table.num_groups, max_size=table.num_groups))
    merged = merge_groups(table.counts(), z)
    renamed = table._replace(groups=np.array(z)[table.groups], num_groups=max(z) + 1).counts()
    np.testing.assert_array_equal(merged.labels, renamed.labels)
    np.testing.assert_array_equal(merged.features, renamed.features)


def test_rows_of_unknown_groups_are_left_out() -> None:
    counts = count_rows(Schema(1, (2,)), 1, [0, -1], [0, 0], [[1], [1]])
    assert counts.labels.tolist() == [[1]]


def test_shapes_that_do_not_fit_are_refused() -> None:
    schema = Schema(2, (2,))
    zeros = np.zeros((1, 2), dtype=np.int64)
    with pytest.raises(ValueError, match="do not fit 2 labels and 2 feature values"):
        GroupCounts(schema, zeros, np.zeros((1, 2, 3), dtype=np.int64))
    counts = GroupCounts(schema, zeros, np.zeros((1, 2, 2), dtype=np.int64))
    with pytest.raises(ValueError, match=r"shape \(2,\), not \(1,\)"):
        merge_groups(counts, [0, 0])
    with pytest.raises(ValueError, match="same schema and groups"):
        counts + GroupCounts(Schema(2, (1, 1)), zeros, np.zeros((1, 2, 2), dtype=np.int64))


def halves(dtype: type) -> GroupCounts:
    """Two groups, two labels, a feature of two values: no sum of a group exceeds 2^31, all do."""
    labels = np.full((2, 2), 2**30 - 1, dtype)
    return GroupCounts(Schema(2, (2, 1)), labels, np.full((2, 2, 3), 2**29, dtype))


@pytest.mark.parametrize("dtype", [np.int32, np.uint32, np.int64])
def test_every_sum_of_counts_fits_their_type(dtype: type) -> None:
    counts = halves(dtype)
    for array in (counts.labels, counts.features):
        assert array.dtype == np.int64
    assert counts.labels.sum() == 2**32 - 4
    assert counts.feature_totals.sum(axis=(0, 1)).tolist() == [2**32, 2**31]
    twice = counts + counts
    assert twice.labels.sum() == 2 * counts.labels.sum()
    assert counts.take([0, 0, 1, 1]).features.sum() == 2 * counts.features.sum()


def test_counts_stay_small_where_their_sums_are() -> None:
    few = GroupCounts(
        Schema(1, (2, 2)), np.full((1, 1), 2**30, np.int32), np.full((1, 1, 4), 2**29, np.int32)
    )
    # Values of different features are never added up: 2^30 of each do fit.
    assert few.labels.dtype == few.features.dtype == np.int32
    assert few.take([0, -1]).features.dtype == np.int32
    both = few + few
    assert both.labels.dtype == both.features.dtype == np.int64
    assert both.labels.tolist() == [[2**31]]
    assert few.take([0, 0]).labels.dtype == np.int64
