from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from bayes_lcs.core.errors import DataError, DataWarning
from bayes_lcs.data.grouped_table import GroupedTable


@pytest.fixture
def table() -> GroupedTable:
    frame = pd.DataFrame(
        {
            "who": ["ann", "ann", "bob", "bob"],
            "size": ["2", "10", "?", "2"],
            "age": [20, 30, 40, 50],
            "buys": ["no", "yes", "no", "yes"],
        }
    )
    return GroupedTable.from_frame(
        frame, group="who", label="buys", missing_values=("?", ""), edges={"age": [25, 45]}
    )


def rows(**columns: object) -> pd.DataFrame:
    content: dict[str, object] = {
        "size": ["10", "2", "?"],
        "age": [99, 25, None],
        "who": ["bob", "cy", "dora"],
    }
    return pd.DataFrame({**content, **columns})


def test_new_rows_get_the_codes_of_the_table(table: GroupedTable) -> None:
    coded = table.encode(rows())
    assert coded.values == table.values
    assert coded.features.tolist() == [[0, 2], [1, 1], [-1, -1]]
    assert coded.labels.tolist() == [-1, -1, -1]
    assert coded.groups.tolist() == [1, -1, -1]
    assert coded.new_group_names == ("cy", "dora")
    assert coded.new_groups.tolist() == [-1, 0, 1]
    assert coded.row_group_names() == ["bob", "cy", "dora"]
    assert coded.to_frame()["who"].tolist() == ["bob", "cy", "dora"]
    assert coded.group_sizes.tolist() == [0, 1]


def test_no_rows_are_no_error(table: GroupedTable) -> None:
    assert table.encode(rows().iloc[:0]).num_rows == 0


def test_parts_of_coded_rows_keep_the_new_groups(table: GroupedTable) -> None:
    coded = table.encode(rows())
    assert coded.take([2]).row_group_names() == ["dora"]
    assert coded.select_groups(["bob"]).row_group_names() == ["bob"]
    assert coded.content_hash() != table.encode(rows(who=["bob", "dora", "cy"])).content_hash()
    assert "2 groups not in the training table" in coded.describe()


def test_the_table_itself_encodes_to_itself(table: GroupedTable) -> None:
    assert table.encode(table) == table
    assert table.encode(table.encode(rows())) == table.encode(rows())


def test_missing_cells_are_those_of_the_table(table: GroupedTable) -> None:
    coded = table.encode(rows(size=["?", "", None]), unseen="error")
    assert coded.features[:, 0].tolist() == [-1, -1, -1]


def test_unseen_values_are_counted_and_warned_of(table: GroupedTable) -> None:
    new = rows(size=["3", "2", "3"])
    said = r"taken as missing: column 'size' 2 cells \('3'\)$"
    with pytest.warns(DataWarning, match=said):
        assert table.encode(new).features[:, 0].tolist() == [-1, 1, -1]
    with pytest.raises(DataError, match="row 0, column 'size': '3' is not one of the known values"):
        table.encode(new, unseen="error")
    with pytest.raises(DataError, match="unseen must be 'missing' or 'error', got 'ignore'"):
        table.encode(rows(), unseen="ignore")  # type: ignore[arg-type]


def test_labels_are_read_if_there_and_must_be_known(table: GroupedTable) -> None:
    coded = table.encode(rows(buys=["yes", None, "no"]))
    assert coded.labels.tolist() == [1, -1, 0]
    with pytest.raises(DataError, match="row 1, column 'buys': 'maybe' is not one of the known"):
        table.encode(rows(buys=["yes", "maybe", "no"]))


@pytest.mark.parametrize("name", ["size", "age", "who"])
def test_absent_columns_are_named(table: GroupedTable, name: str) -> None:
    with pytest.raises(DataError, match=f"column '{name}': there is no such column"):
        table.encode(rows().drop(columns=name))


def test_a_row_without_group(table: GroupedTable) -> None:
    with pytest.raises(DataError, match="row 1, column 'who': the row has no group"):
        table.encode(rows(who=["bob", None, "ann"]))


def test_a_binned_column_must_hold_numbers(table: GroupedTable) -> None:
    with pytest.raises(DataError, match="row 0, column 'age': 'old' is not a number"):
        table.encode(rows(age=["old", 1, 2]))


def test_tables_binned_otherwise(table: GroupedTable) -> None:
    options = {"group": "who", "label": "buys", "missing_values": ("?", "")}
    raw = rows(buys=["yes", "no", "no"])
    unbinned = GroupedTable.from_frame(raw, **options)  # type: ignore[arg-type]
    assert unbinned.value_types == ("text", "float")
    assert table.encode(unbinned).features.tolist() == [[0, 2], [1, 1], [-1, -1]]
    other = GroupedTable.from_frame(raw, edges={"age": [30]}, **options)  # type: ignore[arg-type]
    with pytest.raises(
        DataError, match=r"column 'age': is binned at \[30.0\], but the training table at"
    ):
        table.encode(other)


def test_files(table: GroupedTable, tmp_path: Path) -> None:
    path = tmp_path / "new.csv"
    rows().to_csv(path, index=False, sep=";")
    assert table.encode(path) == table.encode(str(path), delimiter=";") == table.encode(rows())
    path.write_text("size;age;who\n10;99;bob\n2;25;cy\n3;;dora\n")
    with pytest.raises(DataError, match=r"new\.csv, line 4, column 'size': '3' is not one of the"):
        table.encode(path, unseen="error")
    with pytest.warns(DataWarning, match=r"new\.csv: values not seen in training"):
        assert table.encode(path) == table.encode(rows())
    rows().to_parquet(tmp_path / "new.parquet")
    assert table.encode(tmp_path / "new.parquet") == table.encode(rows())
