from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bayes_lcs.core.errors import DataError, DataNote
from bayes_lcs.data.grouped_table import GroupedTable
from bayes_lcs.data.read_grouped import read_grouped
from bayes_lcs.io.column_types import infer_text_type
from bayes_lcs.io.options import MissingRule


def frame(**columns: object) -> pd.DataFrame:
    content: dict[str, object] = {
        "who": ["ann", "ann", "bob"],
        "size": [2, 10, 2],
        "buys": ["no", "yes", "no"],
    }
    return pd.DataFrame({**content, **columns})


def code(df: pd.DataFrame, **options: object) -> GroupedTable:
    return GroupedTable.from_frame(df, group="who", label="buys", **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("column", "names", "codes"),
    [
        ([2, 10, 2], ("2", "10"), [0, 1, 0]),
        ([2.0, None, 10.0], ("2", "10"), [0, -1, 1]),
        ([0.5, np.nan, 10.0], ("0.5", "10"), [0, -1, 1]),
        ([True, False, True], ("False", "True"), [1, 0, 1]),
        (["b", None, "a"], ("a", "b"), [1, -1, 0]),
        (["007", "7", "NB"], ("007", "7", "NB"), [0, 1, 2]),
        (["10", "2", "10"], ("10", "2"), [0, 1, 0]),
        (["b", "", "a"], ("a", "b"), [1, -1, 0]),
        ([1, "1", None], ("1",), [0, 0, -1]),
        (pd.array([2, None, 10], dtype="Int64"), ("2", "10"), [0, -1, 1]),
        (pd.array(["b", None, "a"], dtype="string"), ("a", "b"), [1, -1, 0]),
        (pd.array([True, None, True], dtype="boolean"), ("True",), [0, -1, 0]),
        (np.array([0.1, 0.1, 2], dtype=np.float32), ("0.1", "2"), [0, 0, 1]),
        (
            pd.to_datetime(["2024-01-02", None, "2024-01-01"]),
            ("2024-01-01", "2024-01-02"),
            [1, -1, 0],
        ),
    ],
)
def test_column_types(column: object, names: tuple[str, ...], codes: list[int]) -> None:
    table = code(frame(size=column))
    assert table.values == (names,)
    assert table.features[:, 0].tolist() == codes


def test_only_ordered_categoricals_keep_their_order_and_unused_values_are_dropped() -> None:
    size = pd.Categorical(["small", "big", None], categories=["small", "middle", "big"])
    buys = pd.Categorical(["yes", "no", "yes"], categories=["yes", "no", "maybe"])
    who = pd.Categorical(["bob", "ann", "bob"], categories=["zoe", "ann", "bob"])
    table = code(frame(size=size, buys=buys, who=who))
    assert table.values == (("big", "small"),)
    assert table.features[:, 0].tolist() == [1, 0, -1]
    assert table.label_values == ("no", "yes")
    assert table.group_names == ("bob", "ann")
    size, buys, who = (column.as_ordered() for column in (size, buys, who))
    table = code(frame(size=size, buys=buys, who=who))
    assert table.values == (("small", "big"),)
    assert table.label_values == ("yes", "no")
    assert table.group_names == ("ann", "bob")
    assert table.groups.tolist() == [1, 0, 1]
    listed = code(frame(size=size), values={"size": list(size.categories)})
    assert listed.values == (("small", "middle", "big"),)


def test_missing_values_for_all_and_by_column() -> None:
    df = frame(size=["?", "", "a"], shape=["?", "", "b"])
    table = code(df, missing_values=["?"])
    assert table.values == (("", "a"), ("", "b"))
    with pytest.warns(DataNote, match="missing: column 'shape' 1 empty, 1 '\\?'; missing_values="):
        table = code(df, missing_values={"size": ["?"]})
    assert table.values == (("", "a"), ("b",))
    assert table.missing_values == (("?",), None)
    assert code(df, missing_values="?").values == (("", "a"), ("", "b"))
    with pytest.raises(DataError, match="column 'siez': there is no such column; did you mean 'si"):
        code(df, missing_values={"siez": ["?"]})


def test_fixed_vocabularies() -> None:
    table = code(frame(), values={"size": ["10", "2", "7"]}, label_values=["yes", "no"])
    assert table.values == (("10", "2", "7"),)
    assert table.features[:, 0].tolist() == [1, 0, 1]
    assert table.labels.tolist() == [1, 0, 1]
    with pytest.raises(DataError, match="row 1, column 'size': '10' is not one of the known"):
        code(frame(), values={"size": [2]})
    with pytest.raises(DataError, match="row 1, column 'buys': 'yes' is not one of the known"):
        code(frame(), label_values=["no", "maybe"])


def test_features_and_ignore() -> None:
    df = frame(shape=["x", "y", "x"], noise=["p", "q", "r"])
    assert code(df).feature_names == ("size", "shape", "noise")
    assert code(df, ignore=["noise"]).feature_names == ("size", "shape")
    assert code(df, features=["shape", "size"]).feature_names == ("shape", "size")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: code(frame(), features=["who"]), "column 'who': the group column cannot be a fea"),
        (lambda: code(frame(), features=["size", "size"]), "column 'size': is listed twice"),
        (lambda: code(frame(), features=[]), "no feature columns are left"),
        (lambda: code(frame(), ignore=["Size"]), "column 'Size': there is no such column; did you"),
        (
            lambda: code(frame(), bins={"buys": 2}),
            "column 'buys': bins= names a column that is not",
        ),
        (lambda: code(frame(), categorical=["x"]), "column 'x': categorical= names a column that"),
        (
            lambda: code(frame(), bins={"size": 2}, edges={"size": [3]}),
            "column 'size': is in both bins= and edges=",
        ),
        (lambda: code(frame(size=[[1], [2], [3]])), "column 'size': cells must be single values"),
        (lambda: code(frame(size=[b"a", b"b", b"c"])), "column 'size': a cell holds bytes"),
        (lambda: code(frame(size=[None] * 3)), r"column 'size': every cell is missing; .*ignore="),
        (lambda: code(frame(who=["", None, np.nan])), "column 'who': no row has a group; is it"),
        (lambda: code(frame().iloc[:0]), "there are no rows"),
        (lambda: code({"who": []}), "expected a pandas, polars or Arrow frame, got dict"),
        (lambda: code(pd.concat([frame(), frame()], axis=1)), "column 'who': the frame has two"),
        (
            lambda: GroupedTable.from_frame(frame(), group="who", label="who"),
            "column 'who': one column cannot be both group and label",
        ),
    ],
)
def test_wrong_frames(make, message: str) -> None:
    with pytest.raises(DataError, match=message):
        make()


def test_to_frame_shows_none_for_missing_and_categories_round_trip() -> None:
    table = code(frame(size=["b", None, "a"], buys=["no", "yes", None]))
    back = table.to_frame()
    assert list(back.columns) == ["who", "size", "buys"]
    assert back["size"].tolist() == ["b", None, "a"]
    assert back["buys"].tolist() == ["no", "yes", None]
    fixed = code(frame(size=["b", "a", "b"]), values={"size": ["z", "b", "a"]})
    back = fixed.to_frame(categorical=True)
    assert back["size"].cat.categories.tolist() == ["z", "b", "a"]
    assert code(back, values={"size": ["z", "b", "a"]}) == fixed


CELLS = st.one_of(
    st.text(st.characters(codec="utf-8", exclude_characters="\x00\r"), max_size=4),
    st.sampled_from(["NA", " null", "?", "007", "+1"]),
).filter(lambda text: infer_text_type([text]) == "text")  # a frame of text keeps numbers as text


@pytest.mark.filterwarnings("ignore::bayes_lcs.core.errors.DataNote")
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.tuples(CELLS.filter(bool), CELLS, CELLS, st.sampled_from(["", "no", "yes"])),
        min_size=1,
        max_size=8,
    )
)
def test_frame_csv_and_parquet_give_the_same_table(
    tmp_path: Path, rows: list[tuple[str, str, str, str]]
) -> None:
    df = pd.DataFrame(rows, columns=["who", "size", "a b", "buys"], dtype=object)
    options = {"group": "who", "label": "buys", "label_values": ["no", "yes"]}
    df.to_csv(tmp_path / "t.csv", index=False, quoting=1, encoding="utf-8", lineterminator="\n")
    df.to_parquet(tmp_path / "t.parquet")
    is_missing = MissingRule().matches
    empty = [name for name in ("size", "a b") if df[name].map(is_missing).all()]
    if empty:
        for name in ("t.csv", "t.parquet"):
            with pytest.raises(DataError, match="every cell is missing") as caught:
                read_grouped(tmp_path / name, **options)  # type: ignore[arg-type]
            assert (caught.value.file, caught.value.column) == (name, empty[0])
        return
    expected = GroupedTable.from_frame(df, **options)  # type: ignore[arg-type]
    for name in ("t.csv", "t.parquet"):
        table = read_grouped(tmp_path / name, **options)  # type: ignore[arg-type]
        assert table == expected
        assert table.content_hash() == expected.content_hash()
    back = expected.to_frame()
    assert back["size"].tolist() == [None if is_missing(row[1]) else row[1] for row in rows]
