"""The rule for column types and the texts that mean "missing"."""

from __future__ import annotations

import datetime as dt
import decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayes_lcs.io.column_types import (
    convert_cells,
    convert_texts,
    infer_cell_type,
    infer_text_type,
    sort_values,
    typed_array,
    value_name,
)
from bayes_lcs.io.decode import null_missing
from bayes_lcs.io.options import MissingRule

COLUMNS = {
    "integer": (["0", "-1", "20"], [" 7", "8 "], ["9223372036854775807"]),
    "float": (["1", "2.5"], ["1e5", ".5", "5.", "-0.25"], ["inf", "1.0"], ["1E-3"], ["-inf", "2"]),
    "boolean": (["True", "false"], ["TRUE"], ["true", "True"]),
    "text": (
        *(["007", "1"], ["+1"], ["00"], ["-01", "2"], ["01.5"], ["1", "x"], ["True", "1"]),
        *(["9223372036854775808"], ["1.5", "12345678901234567890"], ["1_000"], ["0x1F"]),
        *(["2020-01-01"], ["1,5"], ["nan", "1"], ["yes", "no"], ["1 2"], ["- 1"], ["e5"], ["."]),
        # Python's patterns take these for spaces; its numbers, pandas and Arrow do not.
        *(["\x1c3"], ["3\x1f"], ["\x1d2.5"], ["\xa03"]),
    ),
}
CASES = [(kind, cells) for kind, columns in COLUMNS.items() for cells in columns]


@pytest.mark.parametrize(("kind", "cells"), CASES)
def test_the_type_of_a_text_column(kind, cells):
    assert infer_text_type(cells) == kind
    assert infer_cell_type(pa.array([None, *cells])) == kind
    assert infer_text_type(cells[::-1]) == kind
    assert infer_cell_type(pa.array([*cells[::-1], None])) == kind


CELLS = st.one_of(
    st.sampled_from([cell for _, cells in CASES for cell in cells]),
    st.from_regex(r"\A[-+]?[0-9]{0,3}\.?[0-9]{0,3}(e[-+]?[0-9])?\Z"),
)


@given(st.lists(CELLS, min_size=1, max_size=5))
def test_arrays_and_lists_of_cells_have_one_type(cells):
    kind = infer_text_type(cells)
    assert infer_cell_type(pa.array(cells)) == kind
    assert convert_cells(pa.array(cells), kind).tolist() == convert_texts(cells, kind).tolist()


@given(
    st.lists(
        st.one_of(st.integers(-(2**53), 2**53), st.floats(allow_nan=False), st.booleans()),
        min_size=1,
    )
)
def test_numbers_that_pandas_writes_are_numbers_that_pandas_reads(tmp_path_factory, values):
    path = tmp_path_factory.mktemp("t") / "t.csv"
    pd.DataFrame({"x": values, "y": 0}).to_csv(path, index=False)
    cells = pd.read_csv(path, dtype=str)["x"].tolist()
    expected = pd.read_csv(path, float_precision="round_trip")["x"]
    found = convert_texts(cells, infer_text_type(cells))
    assert found.tolist() == expected.tolist()


@pytest.mark.parametrize(
    "text", ["", " ", "NA", "na", "Na", "N/A", "n/a", "NaN", "nan", "NULL", "?"]
)
def test_markers_mean_missing_in_any_case(text):
    assert MissingRule().matches(text)
    cells, counts = null_missing(pa.array(["x", text, "y", text]), MissingRule())
    assert cells.to_pylist() == ["x", None, "y", None]
    assert counts == {text: 2}


@pytest.mark.parametrize("text", ["none", "missing", "-", ".", "nans", "??", "NAN1", "0"])
def test_other_texts_do_not(text):
    assert not MissingRule().matches(text)
    assert null_missing(pa.array([text]), MissingRule()) == (pa.array([text]), {})


def test_a_list_replaces_the_markers():
    rule = MissingRule(frozenset({"-9"}))
    assert null_missing(pa.array(["-9", "NA", ""]), rule)[0].to_pylist() == [None, "NA", ""]


def test_values_of_python():
    day = dt.date(2020, 1, 2)
    for value, name in (
        (day, "2020-01-02"),
        (dt.datetime(2020, 1, 2), "2020-01-02"),
        (dt.datetime(2020, 1, 2, 3, 4), "2020-01-02 03:04:00"),
        (pd.Timestamp("2020-01-02"), "2020-01-02"),
        (np.datetime64("2020-01-02"), "2020-01-02"),
        (decimal.Decimal("1.50"), "1.50"),
    ):
        assert value_name(value) == name
    assert typed_array([decimal.Decimal("1.5"), 2]).tolist() == [1.5, 2.0]
    mixed = typed_array(["1", 1, True, 2.5])
    assert [type(value) for value in mixed.tolist()] == [str, int, bool, float]
    assert mixed[sort_values(mixed)].tolist() == [True, 2.5, 1, "1"]
