from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayes_lcs.core.errors import DataError
from bayes_lcs.data.grouped_table import GroupedTable

from_arrays = GroupedTable.from_arrays


def test_numbers_are_sorted_by_size_and_text_as_text() -> None:
    table = from_arrays([[10, "10"], [2, "2"], [1.5, "1.5"]], ["b", "a", "b"], ["v", "u", "v"])
    assert table.values == (("1.5", "2", "10"), ("1.5", "10", "2"))
    assert table.value_types == ("float", "text")
    assert table.label_values == ("a", "b")
    assert table.group_names == ("v", "u")
    assert from_arrays([["a"], ["b"]], [0, 1], np.array([5, 3])).group_names == ("5", "3")


def test_what_is_missing_in_named_arrays() -> None:
    features = [["a", None], [float("nan"), 1], ["-1", 2.0]]
    table = from_arrays(features, ["x", "y", None], ["u", "u", "u"])
    assert table.values == (("-1", "a"), ("1", "2"))
    assert table.features.tolist() == [[1, -1], [-1, 0], [0, 1]]
    assert table.labels.tolist() == [0, 1, -1]


def test_minus_one_is_a_name_without_num_values_and_missing_with_it() -> None:
    features = np.array([[-1, 0], [1, 1]])
    assert from_arrays(features, [0, 1]).values == (("-1", "1"), ("0", "1"))
    coded = from_arrays(features, [0, 1], num_values=2)
    assert coded.values == (("0", "1"), ("0", "1"))
    assert coded.features.tolist() == [[-1, 0], [1, 1]]


def test_masked_entries_are_missing_either_way() -> None:
    features = np.ma.array([[0, 1], [1, 0]], mask=[[True, False], [False, False]])
    labels = np.ma.array([0, 1], mask=[False, True])
    for options in ({"num_values": 2, "num_labels": 2}, {"label_values": ("0", "1")}):
        table = from_arrays(features, labels, [0, 0], **options)
        assert table.features[0, 0] == -1
        assert table.features[1, 0] >= 0
        assert table.labels.tolist() == [0, -1]


def test_missing_values_and_names_of_floats() -> None:
    table = from_arrays(np.array([[1.0], [2.5], [-9.0]]), [0, 1, 1], missing_values=["-9"])
    assert table.values == (("1", "2.5"),)
    assert table.features.tolist() == [[0], [1], [-1]]


def test_coded_with_names() -> None:
    table = from_arrays(
        [[0], [1]],
        ["yes", "no"],
        ["u", "v"],
        num_values=[2],
        values=[["off", "on"]],
        label_values=["no", "yes"],
        feature_names=["lamp"],
    )
    assert table.values == (("off", "on"),)
    assert table.labels.tolist() == [1, 0]
    assert table.group_names == ("u", "v")


def test_no_groups_is_one_group_and_no_labels_are_all_missing() -> None:
    for options in ({"num_values": 2}, {}):
        table = from_arrays([[0], [1]], None, label_values=("n", "y"), **options)
        assert table.group_names == ("all",)
        assert table.group_sizes.tolist() == [2]
        assert table.labels.tolist() == [-1, -1]
        assert table.label_values == ("n", "y")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: from_arrays([1, 2], [0, 1]), "two axes"),
        (lambda: from_arrays([[1], [2]], [0]), r"labels must have shape \(2,\)"),
        (lambda: from_arrays([[1], [2]], [0, 1], [0]), r"groups must have shape \(2,\)"),
        (
            lambda: from_arrays([[0], [2]], [0, 1], num_values=2),
            "row 1, column 'feature_0': code 2",
        ),
        (lambda: from_arrays([[0], [1]], [0, 1], num_values=[2, 2]), "2 entries for 1 features"),
        (lambda: from_arrays([[0], [1]], [-1, -1], num_values=2), "num_labels= or label_values="),
        (lambda: from_arrays([["a"], ["b"]], ["x", "x"]), "column 'label': the label has only one"),
        (lambda: from_arrays([["a"], ["b"]], [None, None]), "column 'label': every label is miss"),
        (lambda: from_arrays([["a"], ["b"]], [0, 1], [None, None]), "column 'group': no row has"),
        (lambda: from_arrays([[["a"]], [["b"]]], [0, 1]), "two axes"),
        (
            lambda: from_arrays(np.random.default_rng(0).normal(size=(50, 1)), [0, 1] * 25),
            "column 'feature_0': holds 50 different numbers; say how to bin them",
        ),
        (
            lambda: from_arrays([[0]], ["x"], num_values=1, label_values=["y", "z"]),
            "row 0, column 'label': unknown name 'x'",
        ),
        (
            lambda: from_arrays([[0]], [0], num_values=2, values=[["only"]]),
            r"values must have \[2\] names",
        ),
    ],
)
def test_wrong_arrays(call, message: str) -> None:
    with pytest.raises(DataError, match=message):
        call()


@given(st.data())
def test_coded_round_trip(data: st.DataObject) -> None:
    sizes = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
    rows = data.draw(st.integers(1, 6))
    features = [[data.draw(st.integers(-1, size - 1)) for size in sizes] for _ in range(rows)]
    labels = data.draw(st.lists(st.integers(-1, 2), min_size=rows, max_size=rows))
    groups = data.draw(st.lists(st.integers(0, 3), min_size=rows, max_size=rows))
    table = from_arrays(features, labels, groups, num_values=sizes, num_labels=3, num_groups=4)
    assert table.features.tolist() == features
    assert table.labels.tolist() == labels
    assert table.groups.tolist() == groups
    assert table.num_values == tuple(sizes)


NAMES = st.characters(codec="utf-8", exclude_characters="\x00")


@given(
    st.lists(
        st.tuples(
            st.one_of(st.none(), st.text(NAMES, max_size=3)),
            st.sampled_from("ab"),
            st.text(NAMES, min_size=1),
        ),
        min_size=1,
        max_size=12,
    )
)
def test_names_come_back(rows: list[tuple[str | None, str, str]]) -> None:
    values, labels, groups = (list(column) for column in zip(*rows, strict=True))
    if all(value is None for value in values):
        with pytest.raises(DataError, match="every cell is missing"):
            from_arrays(
                [[v] for v in values], labels, groups, label_values=["a", "b"], missing_values=()
            )
        return
    table = from_arrays(
        [[v] for v in values], labels, groups, label_values=("a", "b"), missing_values=()
    )
    back = table.to_frame()
    assert back["feature_0"].tolist() == values
    assert back["label"].tolist() == labels
    assert back["group"].tolist() == groups
    assert list(dict.fromkeys(groups)) == list(table.group_names)
