"""Plans: what is laid out is the table, and what is chosen is what pays."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from bayes_lcs.data.rows.encoded_rows import DenseRows
from bayes_lcs.data.rows.ordinal_encoding import encode_sparse
from bayes_lcs.inference.em.column_merging import group_columns
from bayes_lcs.inference.em.row_layout import lay_out_rows


def rebuilt(layout):
    """Counts of cells ``(rows, C)``, and weights, of the distinct rows, from the slots alone."""
    num_cells = layout.schema.num_cells
    pattern = np.zeros((layout.num_slots, num_cells + 1))
    np.add.at(pattern, (layout.entry_pattern, layout.entry_cell), layout.entry_sign)
    common = np.zeros(num_cells + 1)
    common[layout.common_cells] = 1.0
    places, weights = [], []
    for chunk in layout.chunks:
        for b in range(chunk.num_blocks):
            slots = chunk.slots[chunk.starts[b] : chunk.starts[b + 1]].astype(int)
            places.append(common + pattern[slots].sum(axis=0))
            weights.append(chunk.weights[b])
    places = np.concatenate(places)[: layout.num_distinct, :num_cells]
    held = np.concatenate(weights)
    assert (held[layout.num_distinct :] == 0).all()
    rows = np.empty_like(places)
    rows[layout.order] = places
    weight = np.empty(layout.num_distinct)
    weight[layout.order] = held[: layout.num_distinct]
    return rows, weight


def one_hot(codes, sizes):
    first = np.concatenate([[0], np.cumsum(sizes)])
    result = np.zeros((len(codes), first[-1]))
    for f in range(len(sizes)):
        rows = np.flatnonzero(codes[:, f] >= 0)
        result[rows, first[f] + codes[rows, f]] = 1.0
    return result


@given(
    st.integers(0, 10_000),
    st.integers(1, 60),
    st.lists(st.integers(1, 5), min_size=1, max_size=8),
    st.booleans(),
    st.sampled_from(["auto", True, False]),
    st.sampled_from(["auto", True, False]),
    st.booleans(),
)
def test_a_plan_is_its_table(seed, num_rows, sizes, columns, merge, common, missing):
    rng = np.random.default_rng(seed)
    codes = rng.integers(-1 if missing else 0, sizes, (num_rows, len(sizes)))
    codes[rng.random(codes.shape) < 0.5] = 0
    weights = rng.random(num_rows) + 0.1
    layout = lay_out_rows(
        DenseRows(codes, tuple(sizes)),
        weights,
        merge_columns=columns,
        merge_rows=merge,
        leave_out_common=common,
    )
    rows, held = rebuilt(layout)
    distinct = np.arange(num_rows) if layout.distinct is None else layout.distinct
    np.testing.assert_array_equal(rows[distinct], one_hot(codes, sizes))
    np.testing.assert_allclose(np.bincount(distinct, weights), held)
    if merge is True:
        assert layout.num_distinct == len(np.unique(codes, axis=0))
    assert layout.total_weight == pytest.approx(weights.sum())
    other = rng.random(num_rows)
    again, held = rebuilt(layout.with_weights(other))
    np.testing.assert_array_equal(again, rows)
    np.testing.assert_allclose(np.bincount(distinct, other), held)


@given(st.integers(0, 10_000), st.integers(1, 80), st.integers(1, 40))
def test_a_sparse_plan_is_its_table(seed, num_rows, width):
    rng = np.random.default_rng(seed)
    codes = (rng.random((num_rows, width)) < rng.random(width) * 0.4).astype(int)
    layout = lay_out_rows(encode_sparse(csr_array(codes)))
    rows, _ = rebuilt(layout)
    distinct = np.arange(num_rows) if layout.distinct is None else layout.distinct
    np.testing.assert_array_equal(rows[distinct], one_hot(codes, (2,) * width))


@pytest.mark.parametrize("distinct", [1780, 1820, 1850])
def test_rows_are_merged_if_a_tenth_is_saved(distinct):
    """Kinds of rows that are counted by some bits of their keys look fewer than they are."""
    rng = np.random.default_rng(distinct)
    kinds = np.unique(rng.integers(0, 7, (4000, 12)), axis=0)[:distinct]
    codes = np.concatenate([kinds, kinds[: 2000 - distinct]])
    layout = lay_out_rows(DenseRows(rng.permutation(codes), (7,) * 12))
    assert (layout.distinct is not None) == (distinct <= 1800)


def test_columns_that_go_together_share_a_group():
    rng = np.random.default_rng(0)
    source = rng.integers(0, 4, (2000, 3))
    codes = np.column_stack([source, source, source])  # three times the same
    groups = group_columns(DenseRows(codes, (4,) * 9), limit=16)
    assert sum(len(group.columns) for group in groups) == 9
    for group in groups:
        assert len(group.patterns) <= 16
        of_source = [column % 3 for column in group.columns]
        assert all(of_source.count(number) == 3 for number in set(of_source))


def test_a_column_of_many_values_is_alone():
    codes = np.column_stack([np.arange(1000), np.arange(1000) % 2])
    groups = group_columns(DenseRows(codes, (1000, 2)), limit=512)
    assert sorted(group.columns for group in groups) == [(0,), (1,)]


def test_what_pays_is_chosen_and_said():
    rng = np.random.default_rng(0)
    flat = DenseRows(rng.integers(0, 4, (5000, 20)), (4,) * 20)
    peaked = DenseRows((rng.random((5000, 60)) < 0.03).astype(int), (2,) * 60)
    few = DenseRows(rng.integers(0, 2, (5000, 4)), (2,) * 4)
    layouts = [lay_out_rows(table) for table in (flat, peaked, few)]
    assert [layout.distinct is not None for layout in layouts[::2]] == [False, True]
    assert [len(layout.common_cells) > 0 for layout in layouts] == [False, True, False]
    assert layouts[2].num_distinct == 16
    assert "16 distinct" in repr(layouts[2])
    assert "common patterns left out" in repr(layouts[1])
    assert "all patterns" in repr(layouts[0])
    assert layouts[0].slots_per_row == len(layouts[0].groups) < 20


def test_many_patterns_need_wide_numbers():
    codes = np.arange(70_000)[:, None]
    layout = lay_out_rows(DenseRows(codes, (70_000,)))
    assert layout.chunks[0].slots.dtype == np.int32
    assert layout.num_patterns == (70_000,)
