"""Columns of anything to codes, and what is not among the values."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array

import bayes_lcs as bl
from bayes_lcs.core.errors import DataError, DataNote, DataWarning
from bayes_lcs.data.rows.ordinal_encoding import (
    encode_columns,
    encode_sparse,
    encode_sparse_by,
    learn_categories,
)
from bayes_lcs.io.category_encoder import check_measurements


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
        (pd.Series(["x", "y"], dtype=pd.CategoricalDtype(["y", "x", "z"])), ["x", "y"]),
        (
            pd.Series(["x", "y"], dtype=pd.CategoricalDtype(["y", "x", "z"], ordered=True)),
            ["y", "x"],
        ),
        (pd.Series([True, None], dtype=object), [True]),
        (np.array([0.1, 0.25], np.float32), [0.1, 0.25]),
        (pd.Series([1, pd.NA, 0], dtype="Int64"), [0, 1]),
        (pd.Series([True, pd.NA], dtype="boolean"), [True]),
        (pd.Series(["b", pd.NA], dtype="string"), ["b"]),
        (np.array([None, None], dtype=object), []),
    ],
    ids=range(15),
)
def test_values_are_learned_and_coded(column, values):
    found = learn_categories(column)
    assert found.tolist() == values
    codes = encode_columns([column], [found]).codes[:, 0]
    for code, cell in zip(codes, list(column), strict=True):
        assert (code == -1) == bool(pd.isna(cell))
        assert code < 0 or found[code] == pytest.approx(cell)


def test_values_outside_are_unknown():
    with pytest.warns(DataWarning, match="column 'x0' in 3 of 5 rows, for instance 0"):
        rows = encode_columns([np.array([0, 1, 2, 9, -4])], [np.array([1, 2])])
    assert rows.codes[:, 0].tolist() == [-1, 0, 1, -1, -1]
    with pytest.raises(DataError, match="row 0, column 'age': unknown value"):
        encode_columns([np.array([0])], [np.array([1])], unknown="error", names=["age"])
    encode_columns([np.array([-1])], [np.array([1])], [-1], unknown="error")


def test_missing_values_are_no_categories():
    assert learn_categories(np.array([3, -1, 3]), [-1]).tolist() == [3]
    assert learn_categories(np.array(["?", "a"], dtype=object), ["?"]).tolist() == ["a"]


def test_texts_that_mean_missing_are_no_categories_by_default():
    column = np.array(["?", "a", "na", "N/A", "nan", "NULL", "", "b"], dtype=object)
    assert learn_categories(column).tolist() == ["a", "b"]
    assert encode_columns([column], [learn_categories(column)]).codes[:, 0].tolist() == [
        *[-1, 0],
        *[-1] * 5,
        1,
    ]
    assert learn_categories(column, []).tolist() == sorted(column)


@pytest.mark.parametrize(
    ("fitted", "given"),
    [([1, 2], [2.0, 1.0]), ([0.0, 1.0], [1, 0]), ([False, True], [1, 0]), ([0, 1], [True, False])],
)
def test_numbers_match_by_value(fitted, given):
    known = learn_categories(np.array(fitted))
    codes = encode_columns([np.array(given)], [known]).codes[:, 0]
    assert known[codes].tolist() == given


def test_text_does_not_match_numbers():
    known = learn_categories(np.array([1, 2]))
    with pytest.warns(DataWarning, match="for instance '1'"):
        codes = encode_columns([np.array(["1", "2"], dtype=object)], [known]).codes
    assert (codes == -1).all()


def test_measurements_are_refused():
    rng = np.random.default_rng(0)
    with pytest.raises(DataError, match=r"column 'age': holds 13 distinct .*categorical=\['age'\]"):
        check_measurements({"age": learn_categories(rng.random(13))})
    with pytest.raises(DataError, match=r"column 'a': .*\(and so do 'c'\)"):
        check_measurements({"a": rng.random(20), "b": np.arange(20.0), "c": rng.random(20)})
    check_measurements({"age": learn_categories(rng.random(12))})
    check_measurements({"age": learn_categories(np.arange(100.0))})
    check_measurements({"age": learn_categories(np.arange(100))})


@pytest.mark.parametrize("values", [[0, 1, 2], [1], [0.0, 1.0], [0, 5]])
def test_sparse_rows_are_encoded_by_given_categories(values):
    rng = np.random.default_rng(0)
    dense = rng.choice(values, size=(20, 3))
    known = [learn_categories(np.array(values))] * 3
    expected = encode_columns(list(dense.T), known).codes
    found = encode_sparse_by(csr_array(dense), known)
    np.testing.assert_array_equal(np.stack([found.column(f) for f in range(3)], 1), expected)


def test_codes_are_as_small_as_they_can_be():
    assert encode_columns([np.arange(100)], [np.arange(100)]).codes.dtype == np.int8
    assert encode_columns([np.arange(200)], [np.arange(200)]).codes.dtype == np.int16


def test_cells_must_be_single_values():
    with pytest.raises(TypeError, match=r"column 'c'.*strings or numbers"):
        learn_categories(np.array([[1], {}], dtype=object), name="c")


def test_sparse_matrices_hold_zeros_and_ones():
    matrix = csr_array(np.array([[1, 0], [0, 1]]))
    matrix.data[0] = 0  # a zero that is written down is a zero
    rows = encode_sparse(matrix)
    assert rows.column(0).tolist() == [0, 0]
    assert rows.take(slice(1, 2)).column(1).tolist() == [1]
    with pytest.raises(DataError, match=r"contains .*7"):
        encode_sparse(csr_array(np.array([[7]])))


def test_markers_of_missing_cells_are_announced():
    rows = pd.DataFrame({"a": ["x", "?", "y", "NA", "?"], "b": [1, 2, 1, 2, 1]})
    with pytest.warns(DataNote, match=r"column 'a' 2 '\?', 1 'NA'; missing_values= changes this"):
        mixture = bl.MixtureClusterer(2, random_state=0).fit(rows)
    assert mixture.categories_[0].tolist() == ["x", "y"]
    mixture.predict(rows)  # nothing new is said of rows to predict
    assert len(bl.MixtureClusterer(2, missing_values=[]).fit(rows).categories_[0]) == 4
