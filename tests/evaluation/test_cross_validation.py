"""Folds, and rows predicted without their fold."""

from __future__ import annotations

import numpy as np
import pytest

import bayes_lcs as bl
from bayes_lcs.evaluation.cross_validation import folds_by_group
from tests.inference.cases import random_case

CASE = random_case(0, num_groups=5, rows=[12, 7, 1, 30, 0], missing=0.1)


def test_every_labelled_row_is_left_out_once_and_evenly():
    table = CASE.table.mask_labels([0, 20])
    folds = folds_by_group(table, 5, seed=1)
    np.testing.assert_array_equal(folds < 0, table.labels < 0)
    for group in range(5):
        sizes = np.bincount(folds[(table.groups == group) & (folds >= 0)], minlength=5)
        assert sizes.max() - sizes.min() <= 1
    assert (folds_by_group(table, 5, seed=1) == folds).all()
    assert (folds_by_group(table, 5, seed=2) != folds).any()


def test_small_groups_do_not_all_fall_into_the_first_fold():
    groups = np.arange(200)
    table = bl.GroupedTable.from_arrays(np.zeros((200, 1), int), groups % 2, groups, num_values=1)
    assert set(folds_by_group(table, 4).tolist()) == {0, 1, 2, 3}


@pytest.mark.parametrize(
    ("model", "method"),
    [
        (bl.NoSharing(), "closed form in 4 folds"),
        (bl.CompleteSharing(), "closed form in 4 folds"),
        (CASE.model, "sum over partitions in 4 folds"),
    ],
    ids=["no sharing", "complete sharing", "clustered"],
)
def test_each_fold_is_predicted_from_the_rest(model, method):
    found = bl.cross_validate(model, CASE.table, fraction=0.25, seed=3)
    assert found.method == method
    np.testing.assert_array_equal(found.rows, np.arange(50))
    folds = folds_by_group(CASE.table, 4, seed=3)
    for row in (0, 13, 19, 44):
        rest = bl.exact(model, CASE.table.take(folds != folds[row]))
        expected = rest.predict_proba(CASE.table.take([row]))[0]
        np.testing.assert_allclose(found.probabilities[row], expected, atol=1e-12)
    assert found.mean_loss().num_rows == 50


def test_as_many_folds_as_rows_is_leave_one_out():
    """One group of twenty rows in twenty folds."""
    table = CASE.table.take(CASE.groups == 3).take(np.arange(20))
    found = bl.cross_validate(CASE.model, table)
    single = bl.leave_one_out(bl.exact(CASE.model, table))
    np.testing.assert_allclose(found.probabilities, single.probabilities, atol=1e-9)


@pytest.mark.parametrize("fraction", [0.0, 0.7, -1])
def test_bad_fractions(fraction):
    with pytest.raises(ValueError, match="fraction"):
        bl.cross_validate(bl.NoSharing(), CASE.table, fraction=fraction)
