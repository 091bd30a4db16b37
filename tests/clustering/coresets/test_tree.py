"""A tree of coresets: its cost is about that of the rows, and nothing but the rows decides it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import bayes_lcs as bl
from bayes_lcs.clustering.coresets import tree as module
from bayes_lcs.clustering.coresets.merge_reduce import build_leaves


@pytest.fixture(scope="module")
def X():
    rng = np.random.default_rng(0)
    return rng.normal(size=(5000, 2)) + 10 * rng.integers(0, 3, (5000, 1))


def test_costs_are_about_those_of_all_rows(X):
    errors = []
    for seed in range(20):
        small = bl.coreset_tree(X, 3, 300, block_rows=400, random_state=seed)
        assert len(small) <= 300
        assert small.num_rows == small.total_weight == len(X)
        errors.append(small.distortion(X, [[0.5, 0.5], [10, 10], [19, 20]]))
    # One draw of 300 points is off by some percent; the mean of twenty, if unbiased, by less.
    assert np.abs(np.mean(errors)) < 4 * np.std(errors) / np.sqrt(20)
    assert np.std(errors) < 0.15


def test_a_file_gives_what_its_array_gives(X, tmp_path):
    frame = pd.DataFrame(X, columns=["a", "b"])
    for number, start in enumerate((0, 1700, 3400)):
        piece = frame.iloc[start : start + 1700]
        piece.to_parquet(tmp_path / f"{number}.parquet", index=False)
    one, two = (bl.coreset_tree(data, 3, 50, block_rows=400) for data in (X, tmp_path))
    np.testing.assert_array_equal(one.points, two.points)
    np.testing.assert_array_equal(one.weights, two.weights)


def test_text_columns_of_a_frame_are_set_aside_as_those_of_a_file(X, tmp_path):
    frame = pd.DataFrame(X, columns=["x", "y"]).assign(town="Ulm")
    frame.to_parquet(tmp_path / "rows.parquet")
    found = []
    for given in (frame, tmp_path / "rows.parquet"):
        with pytest.warns(bl.DataNote, match="without numbers are ignored: 'town'"):
            found.append(bl.coreset_tree(given, 4, 50).points)
    np.testing.assert_array_equal(*found)


def test_how_many_blocks_are_handed_out_changes_nothing(X, monkeypatch):
    one = bl.coreset_tree(X, 3, 50, block_rows=300)
    monkeypatch.setattr(module, "BLOCKS_AT_ONCE", 7)
    two = bl.coreset_tree(X, 3, 50, block_rows=300)
    np.testing.assert_array_equal(one.points, two.points)


def test_nodes_have_seeds_of_their_own(X):
    """Equal blocks are not reduced to equal points."""
    twice = np.concatenate([X[:400], X[:400]])
    small = bl.coreset_tree(twice, 3, 400, block_rows=400)
    leaves = [
        module._reduce_leaf(3, 50, "uniform", 0, leaf)[0]
        for leaf in build_leaves(twice, None, 400, False)
    ]
    assert small.num_rows == 800
    assert not np.array_equal(leaves[0].points, leaves[1].points)


def test_few_rows_and_wrong_ones(X):
    few = bl.coreset_tree(X[:10], 3, 50)
    np.testing.assert_array_equal(few.points, X[:10])
    with pytest.raises(ValueError, match="size must be at least 1"):
        bl.coreset_tree(X, 3, 0)
    with pytest.raises(ValueError, match="is for arrays"):
        bl.coreset_tree("a.csv", 3, 10, sample_weight=[1.0])
