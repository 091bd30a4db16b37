"""Columns of anything to codes, and what is not among the values."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array

from bayes_lcs.data.categories import code_rows, code_sparse, learn_categories
from bayes_lcs.data.errors import DataError


@pytest.mark.parametrize(
    ("column", "values"),
    [
        (np.array([5, -3, 5], np.int8), [-3, 5]),
        (np.array([2**40, 1, 2**40]), [1, 2**40]),
        (np.array([True, False]), [False, True]),
        (np.array([0.5, np.nan, -1.0]), [-1.0, 0.5]),
        (np.array(["b", None, "a", np.nan], dtype=object), ["a", "b"]),
        (np.array(["b", "a"]), ["a", "b"]),
        (np.array([1, "1", 2.5], dtype=object), [2.5, 1, "1"]),
        (pd.Series(["x", "y"], dtype=pd.CategoricalDtype(["y", "x", "z"])), ["y", "x", "z"]),
        (pd.Series([1, pd.NA, 0], dtype="Int64"), [0, 1]),
        (pd.Series([True, pd.NA], dtype="boolean"), [True]),
        (pd.Series(["b", pd.NA], dtype="string"), ["b"]),
        (np.array([None, None], dtype=object), []),
    ],
    ids=range(12),
)
def test_values_are_learned_and_coded(column, values):
    found = learn_categories(column)
    assert found.tolist() == values
    codes = code_rows([column], [found]).codes[:, 0]
    for code, cell in zip(codes, list(column), strict=True):
        assert (code == -1) == bool(pd.isna(cell))
        assert code < 0 or found[code] == cell


def test_values_outside_are_unknown():
    rows = code_rows([np.array([0, 1, 2, 9, -4])], [np.array([1, 2])])
    assert rows.codes[:, 0].tolist() == [-1, 0, 1, -1, -1]
    with pytest.raises(DataError, match="row 0, column 'age': unknown value"):
        code_rows([np.array([0])], [np.array([1])], unknown="error", names=["age"])
    code_rows([np.array([-1])], [np.array([1])], [-1], unknown="error")


def test_missing_values_are_no_categories():
    assert learn_categories(np.array([3, -1, 3]), [-1]).tolist() == [3]
    assert learn_categories(np.array(["?", "a"], dtype=object), ["?"]).tolist() == ["a"]


def test_codes_are_as_small_as_they_can_be():
    assert code_rows([np.arange(100)], [np.arange(100)]).codes.dtype == np.int8
    assert code_rows([np.arange(200)], [np.arange(200)]).codes.dtype == np.int16


def test_cells_must_be_single_values():
    with pytest.raises(TypeError, match=r"column 'c'.*strings or numbers"):
        learn_categories(np.array([[1], {}], dtype=object), name="c")


def test_sparse_matrices_hold_zeros_and_ones():
    matrix = csr_array(np.array([[1, 0], [0, 1]]))
    matrix.data[0] = 0  # a zero that is written down is a zero
    rows = code_sparse(matrix)
    assert rows.column(0).tolist() == [0, 0]
    assert rows.take(slice(1, 2)).column(1).tolist() == [1]
    with pytest.raises(DataError, match=r"holds .*7"):
        code_sparse(csr_array(np.array([[7]])))
