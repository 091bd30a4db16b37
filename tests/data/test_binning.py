from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayes_lcs.core.errors import DataError, DataNote
from bayes_lcs.data.binning import bin_names, check_edges, quantile_edges
from bayes_lcs.data.grouped_table import GroupedTable


def code(ages: object, **options: object) -> GroupedTable:
    ages = list(ages)  # type: ignore[call-overload]
    frame = pd.DataFrame({"age": pd.Series(ages, dtype=object), "who": "ann"})
    frame["buys"] = np.where(np.arange(len(ages)) % 2, "yes", "no")
    return GroupedTable.from_frame(frame, group="who", label="buys", **options)  # type: ignore[arg-type]


def test_quantile_bins_are_even_without_ties() -> None:
    table = code(np.random.default_rng(0).permutation(100), bins={"age": 4})
    assert table.edges == ((25.0, 50.0, 75.0),)
    assert table.values == (("< 25", "[25, 50)", "[50, 75)", "≥ 75"),)
    assert np.bincount(table.features[:, 0]).tolist() == [25, 25, 25, 25]


def test_ties_make_fewer_bins_but_none_empty() -> None:
    table = code([0] * 50 + list(range(1, 51)), bins={"age": 4})
    counts = np.bincount(table.features[:, 0], minlength=table.num_values[0])
    assert table.num_values[0] < 4
    assert (counts > 0).all()
    assert counts.sum() == 100


def test_explicit_edges_have_open_ends_and_closed_lower_ends() -> None:
    ages = [-1e300, -0.1, 0, 9.99, 10, 20, 1e300, "-inf", "inf", "nan", None, ""]
    with pytest.warns(DataNote, match="column 'age' 2 empty, 1 'nan'"):
        table = code(ages, edges={"age": [0, 10, 20]})
    assert table.values == (("< 0", "[0, 10)", "[10, 20)", "≥ 20"),)
    assert table.features[:, 0].tolist() == [0, 0, 1, 1, 2, 3, 3, 0, 3, -1, -1, -1]


def test_bins_nobody_falls_into_are_kept() -> None:
    assert code([1, 2], edges={"age": [100]}).values == (("< 100", "≥ 100"),)


def test_edges_that_print_alike_get_longer_names() -> None:
    names = bin_names([1.0000001, 1.0000002])
    assert names == ("< 1.0000001", "[1.0000001, 1.0000002)", "≥ 1.0000002")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"bins": {"age": 1}}, "column 'age': the number of bins must be an integer of 2 or more"),
        (
            {"bins": {"age": 2.5}},
            "column 'age': the number of bins must be an integer of 2 or more",
        ),
        ({"edges": {"age": []}}, "column 'age': edges must be one or more finite numbers"),
        ({"edges": {"age": [2, 1]}}, "column 'age': edges must increase"),
        ({"edges": {"age": [1, 1]}}, "column 'age': edges must increase"),
        ({"edges": {"age": [1, float("inf")]}}, "column 'age': edges must be one or more finite"),
        ({"edges": {"age": ["old"]}}, "column 'age': edges must be a list of numbers"),
        ({"edges": {"age": 7}}, "column 'age': edges must be a list of numbers"),
    ],
)
def test_wrong_bins(options: dict[str, object], message: str) -> None:
    with pytest.raises(DataError, match=message):
        code([1, 2, 3], **options)


def test_bins_that_collapse() -> None:
    with pytest.raises(
        DataError, match=r"column 'age': 4 bins collapse to one: .* only one distinct number"
    ):
        code([3, 3, 3], bins={"age": 4})
    with pytest.raises(DataError, match="collapse to one: the column has no number"):
        code(["nan", None, "inf"], bins={"age": 4})


def test_a_cell_that_is_no_number() -> None:
    for options in ({"bins": {"age": 2}}, {"edges": {"age": [2]}}):
        with pytest.raises(DataError, match="row 1, column 'age': '1_000' is not a number"):
            code([1, "1_000", 3], **options)
        table = code([1, "1_000", 3], missing_values=["1_000"], **options)
        assert table.features[1, 0] == -1


def test_numbers_are_never_binned_silently() -> None:
    assert code([*range(20)] * 2).num_values == (20,)
    with pytest.raises(DataError, match=r"column 'age': holds 21 .* bins=\{'age': 4\} or edges="):
        code([*range(21)] * 2)
    assert code([*range(21)] * 2, categorical=["age"]).num_values == (21,)
    assert code([*range(21)] * 2, categorical=True).num_values == (21,)
    names = [f"n{number}" for number in range(21)]
    assert code(names * 2).num_values == (21,)


def test_many_rows_excuse_some_numbers_but_not_hundreds() -> None:
    assert code([*range(25)] * 1001).num_values == (25,)
    with pytest.raises(DataError, match="holds 101 different numbers"):
        code([*range(101)] * 1001)


def test_identifiers_are_refused() -> None:
    names = [f"n{number}" for number in range(30)]
    with pytest.raises(DataError, match=r"30 different values in 59 rows .*identifier.*ignore="):
        code((names * 2)[:59])
    assert code(names * 2).num_values == (30,)
    assert code(names, categorical=["age"]).num_values == (30,)


@given(
    st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=40),
    st.integers(2, 6),
)
def test_every_number_falls_into_the_bin_that_its_name_says(numbers: list[float], n: int) -> None:
    array = np.array(numbers)
    if np.unique(array).size < 2:
        with pytest.raises(DataError, match="collapse"):
            quantile_edges(array, n)
        return
    edges = check_edges(quantile_edges(array, n))
    bins = np.searchsorted(edges, array, side="right")
    assert len(edges) < n
    assert set(bins) == set(range(len(edges) + 1))
    bounds = [-np.inf, *edges, np.inf]
    assert all(bounds[b] <= x < bounds[b + 1] for b, x in zip(bins, array, strict=True))
    weights = np.array([np.sum(array == x) for x in np.unique(array)])
    assert quantile_edges(np.unique(array), n, weights) == edges
