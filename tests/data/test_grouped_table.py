from __future__ import annotations

import copy
import dataclasses
import pickle
import subprocess
import sys

import numpy as np
import pytest

from bayes_lcs.core.errors import DataError
from bayes_lcs.data.grouped_table import GroupedTable

HASH = "d6087cf3d062b7f95620cb5db6397b8bdfe52275ad7182c446b953c3007411f7"


def small(**changes: object) -> GroupedTable:
    """Three groups of unequal size; ``cy`` has no labelled row and ``bob`` has one row."""
    content: dict[str, object] = {
        "features": [[0, 1], [1, -1], [2, 0], [0, 0], [1, 1]],
        "labels": [0, 1, 1, -1, -1],
        "groups": [0, 0, 1, 2, 2],
        "feature_names": ("colour", "size"),
        "values": (("blue", "green", "red"), ("big", "small")),
        "label_name": "buys",
        "label_values": ("no", "yes"),
        "group_name": "who",
        "group_names": ("ann", "bob", "cy"),
    }
    return GroupedTable(**{**content, **changes})  # type: ignore[arg-type]


def test_shape() -> None:
    table = small()
    assert (table.num_rows, table.num_groups, table.num_features, table.num_labels) == (5, 3, 2, 2)
    assert table.num_values == (3, 2)
    assert table.schema.num_cells == 5
    assert table.group_sizes.tolist() == [2, 1, 2]
    assert table.has_missing_labels
    assert repr(table) == (
        "GroupedTable(5 rows, 3 groups by 'who', 2 features, label 'buys' with 2 values, "
        "2 labels missing)"
    )


def test_arrays_are_int32_copies_that_cannot_be_written() -> None:
    labels = np.array([0, 1, 1, -1, -1])
    table = small(labels=labels)
    labels[:] = 0
    assert table.labels.tolist() == [0, 1, 1, -1, -1]
    for array in (table.features, table.labels, table.groups, table.new_groups):
        assert array.dtype == np.int32
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0
    with pytest.raises(dataclasses.FrozenInstanceError):
        table.labels = labels  # type: ignore[misc]


def test_a_read_only_view_of_a_writable_array_is_copied() -> None:
    base = np.array([0, 1, 1, -1, -1], np.int32)
    view = base[:]
    view.setflags(write=False)
    table = small(labels=view)
    base[0] = 1
    assert table.labels[0] == 0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"features": [[0, 2], [1, -1], [2, 0], [0, 0], [1, 1]]}, "row 0, column 'size': code 2"),
        ({"features": [[0, 1], [1, -2], [2, 0], [0, 0], [1, 1]]}, "row 1, column 'size': code -2"),
        ({"features": [[0.5, 1.0]] * 5}, "integer codes, got an array of float64"),
        ({"features": [[0], [1], [2], [0], [1]]}, r"shape \(5, 2\), got \(5, 1\)"),
        ({"labels": [0, 1, 2, 0, 0]}, "row 2: code 2 in labels, expected -1 .missing. to 1"),
        ({"labels": [0, 1]}, r"labels must have shape \(5,\), got \(2,\)"),
        ({"groups": [0, 0, 1, 2, 3]}, "row 4: code 3 in groups"),
        ({"groups": [0, 0, 1, 2, -1]}, "row 4, column 'who': a row must belong to one group"),
        (
            {"new_group_names": ("dora",), "new_groups": [0, -1, -1, -1, -1]},
            "row 0, column 'who': a row must belong to one group",
        ),
        ({"feature_names": ("colour", "colour")}, "feature_names must be distinct, got 'colour'"),
        ({"feature_names": ("colour", "buys")}, "column names must be distinct, got 'buys' twice"),
        ({"feature_names": ("colour", 3)}, "feature_names must be strings, got 3"),
        ({"values": (("a", "b", "a"), ("big", "small"))}, "column 'colour': values must be distin"),
        ({"values": (("blue", "green", "red"),)}, "values has 1 entries for 2 features"),
        ({"values": ((), ("big", "small"))}, "column 'colour': a feature needs at least one value"),
        ({"label_values": ()}, "column 'buys': there must be at least one label value"),
        ({"group_names": ("ann", "bob", "ann")}, "group_names must be distinct, got 'ann' twice"),
        ({"group_names": "abc"}, "group_names must be a sequence of strings, not one string"),
        ({"edges": ((1.0,),)}, "edges has 1 entries for 2 features"),
    ],
)
def test_unsound_content_is_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(DataError, match=message):
        small(**changes)


def test_equality_is_by_content() -> None:
    assert small() == small()
    assert hash(small()) == hash(small())
    assert small() != "table"
    assert small() != small(labels=[1, 1, 1, -1, -1])
    assert small() != small(missing_values=(("?",), ()))
    assert small() != small(edges=((1.0, 2.0), ()))


def test_copies_and_pickles_are_equal() -> None:
    table = small()
    assert copy.deepcopy(table) == table
    assert pickle.loads(pickle.dumps(table)) == table  # noqa: S301


def test_hash_is_the_same_in_another_process() -> None:
    assert small().content_hash() == HASH
    code = (
        "import sys; sys.path.insert(0, 'tests/data'); from test_grouped_table import small; "
        "print(small().content_hash())"
    )
    run = [sys.executable, "-c", code]
    out = subprocess.run(run, check=True, capture_output=True, text=True, cwd=_root())
    assert out.stdout.strip() == HASH


def _root() -> str:
    from pathlib import Path

    return str(Path(__file__).parents[2])


@pytest.mark.parametrize(
    "changes",
    [
        {"labels": [0, 1, 1, -1, 0]},
        {"groups": [0, 0, 1, 2, 1]},
        {"features": [[0, 1], [1, -1], [2, 0], [0, 0], [1, 0]]},
        {"feature_names": ("colour", "Size")},
        {"values": (("blue", "green", "rot"), ("big", "small"))},
        {"label_name": "bought"},
        {"label_values": ("yes", "no")},
        {"group_name": "user"},
        {"group_names": ("ann", "bob", "cyd")},
    ],
)
def test_hash_sees_every_code_and_name(changes: dict[str, object]) -> None:
    assert small(**changes).content_hash() != small().content_hash()


def test_hash_is_not_fooled_by_moving_a_boundary() -> None:
    one = small(group_names=("ab", "c", "x"))
    two = small(group_names=("a", "bc", "x"))
    assert one.content_hash() != two.content_hash()


def test_take() -> None:
    table = small()
    assert table.take([2, 0]).labels.tolist() == [1, 0]
    assert table.take(table.groups == 2) == table.take([3, 4]) == table.take(slice(3, None))
    assert table.take([-1]) == table.take([4])
    assert table.take([]).num_rows == 0
    assert table.take([]).group_names == table.group_names
    with pytest.raises(DataError, match="between 0 and 4"):
        table.take([5])
    with pytest.raises(DataError, match="mask has 2 entries for 5 rows"):
        table.take([True, False])
    with pytest.raises(DataError, match="row numbers, a boolean mask or a slice"):
        table.take([0.5])


def test_labelled_keeps_groups_without_a_label() -> None:
    table = small()
    assert table.labelled().group_sizes.tolist() == [2, 1, 0]
    assert table.labelled().group_names == table.group_names
    assert not table.labelled().has_missing_labels
    assert table.unlabelled().group_sizes.tolist() == [0, 0, 2]
    assert (table.unlabelled().labels == -1).all()


def test_select_groups() -> None:
    table = small()
    chosen = table.select_groups(["cy", "ann"])
    assert chosen.group_names == ("cy", "ann")
    assert chosen.groups.tolist() == [1, 1, 0, 0]
    assert chosen.features.tolist() == [[0, 1], [1, -1], [0, 0], [1, 1]]
    assert table.select_groups([2, 0]) == chosen
    assert table.select_groups("bob") == table.select_groups([1])
    with pytest.raises(DataError, match="column 'who': there is no group 'dora'"):
        table.select_groups(["dora"])
    with pytest.raises(DataError, match="there is no group 3"):
        table.select_groups([3])


def test_with_labels_and_mask_labels() -> None:
    table = small()
    assert table.with_labels([1, 1, 0, 0, -1]).labels.tolist() == [1, 1, 0, 0, -1]
    named = np.array(["yes", "yes", "no", "no", None], dtype=object)
    assert table.with_labels(named) == table.with_labels([1, 1, 0, 0, -1])
    with pytest.raises(DataError, match="row 1, column 'buys': unknown label 'maybe'"):
        table.with_labels(["yes", "maybe", "no", "no", "no"])
    assert table.mask_labels([0]).labels.tolist() == [-1, 1, 1, -1, -1]
    assert table.mask_labels(np.array([False, True, True, False, False])).labels.max() == 0
    assert table.labels.tolist() == [0, 1, 1, -1, -1]


def test_counts_leave_out_what_is_missing() -> None:
    counts = small().counts()
    assert np.asarray(counts.labels).tolist() == [[1, 1], [0, 1], [0, 0]]
    assert np.asarray(counts.features)[0].tolist() == [[1, 0, 0, 0, 1], [0, 1, 0, 0, 0]]
    assert np.asarray(counts.features)[1].tolist() == [[0, 0, 0, 0, 0], [0, 0, 1, 1, 0]]
    assert not np.asarray(counts.features)[2].any()


def test_describe_names_everything() -> None:
    text = small().describe()
    assert "5 rows in 3 groups ('who'): 1 to 2 rows, median 2" in text
    assert "label 'buys', 2 missing: no 1, yes 2" in text
    assert "'size'    2 values, 1 missing: big 2, small 2" in text
    many = GroupedTable.from_arrays([[9]], [0], num_values=10, num_labels=2)
    assert ", … 4 more" in many.describe()
