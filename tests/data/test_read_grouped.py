from __future__ import annotations

import gzip
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bayes_lcs.core.errors import DataNote
from bayes_lcs.data.grouped_table import GroupedTable
from bayes_lcs.data.read_grouped import read_grouped

Write = Callable[..., Path]
PLAIN = "who,size,buys\nann,2,no\nann,10,yes\nbob,,no\n"


def read(path: Path, **options: object) -> GroupedTable:
    return read_grouped(path, group="who", label="buys", **options)  # type: ignore[arg-type]


@pytest.fixture
def plain(write: Write) -> GroupedTable:
    return read(write(PLAIN))


def test_plain(plain: GroupedTable) -> None:
    assert plain.feature_names == ("size",)
    assert plain.values == (("2", "10"),)
    assert plain.features.tolist() == [[0], [1], [-1]]
    assert plain.labels.tolist() == [0, 1, 0]
    assert plain.label_values == ("no", "yes")
    assert plain.groups.tolist() == [0, 0, 1]
    assert plain.group_names == ("ann", "bob")


@pytest.mark.parametrize(
    ("content", "name", "options"),
    [
        (PLAIN.replace("\n", "\r\n"), "a.csv", {}),
        (PLAIN.rstrip("\n"), "a.csv", {}),
        (PLAIN.replace("\n", "\n\n"), "a.csv", {}),
        ("\n\n" + PLAIN, "a.csv", {}),
        ("\r\n\r\n" + PLAIN.replace("\n", "\r\n"), "a.csv", {}),
        ("\n" + PLAIN.split("\n", 1)[1], "a.csv", {"header": ["who", "size", "buys"]}),
        ("\ufeff" + PLAIN, "a.csv", {}),
        (PLAIN.replace(",", ";"), "a.csv", {}),
        (PLAIN.replace(",", "|"), "a.txt", {}),
        (PLAIN.replace(",", "\t"), "a.tsv", {}),
        (PLAIN.replace(",", "\t"), "a.txt", {}),
        (PLAIN.replace(",", "~"), "a.csv", {"delimiter": "~"}),
        (gzip.compress(PLAIN.encode(), mtime=0), "a.csv.gz", {}),
        (gzip.compress(PLAIN.encode(), mtime=0), "a.csv", {}),
        (PLAIN.encode("utf-16"), "a.csv", {"encoding": "utf-16"}),
        (PLAIN.replace("ann", '"ann"'), "a.csv", {}),
        (PLAIN.split("\n", 1)[1], "a.csv", {"header": ["who", "size", "buys"]}),
    ],
)
def test_the_same_table_in_other_clothes(
    write: Write, plain: GroupedTable, content: str | bytes, name: str, options: dict[str, object]
) -> None:
    assert read(write(content, name), **options) == plain


def test_path_as_text(write: Write, plain: GroupedTable) -> None:
    assert read_grouped(str(write(PLAIN)), group="who", label="buys") == plain


def test_cells_mean_what_they_say(write: Write) -> None:
    path = write("who,code,buys\nNA,007,no\nnull,7,yes\nNA,NA,NaN\nNA,,\n")
    said = "column 'code' 1 empty, 1 'NA'; column 'buys' 1 empty, 1 'NaN'; missing_values="
    with pytest.warns(DataNote, match=said):
        table = read(path)
    assert table.values == (("007", "7"),)
    assert table.features[:, 0].tolist() == [0, 1, -1, -1]
    assert table.label_values == ("no", "yes")
    assert table.labels.tolist() == [0, 1, -1, -1]
    assert table.group_names == ("NA", "null")

    with pytest.warns(DataNote, match="missing: column 'buys' 1 empty, 1 'NaN'; missing_values="):
        table = read(path, missing_values={"code": [""]})
    assert table.values == (("007", "7", "NA"),)
    assert table.labels.tolist() == [0, 1, -1, -1]
    assert table.group_names == ("NA", "null")

    table = read(path, missing_values=["NA"])
    assert table.values == (("", "007", "7"),)
    assert table.label_values == ("", "NaN", "no", "yes")
    assert table.group_names == ("NA", "null")


def test_quoted_delimiters_quotes_and_line_breaks(write: Write) -> None:
    table = read(write('who,size,buys\n"a,b","x ""y""",no\n"c\nd","p\r\nq",yes\n'))
    assert table.group_names == ("a,b", "c\nd")
    assert table.values == (("p\r\nq", 'x "y"'),)


def test_spaces_are_kept(write: Write) -> None:
    assert read(write("who,size,buys\nann, a,no\nann,a,yes \n")).values == ((" a", "a"),)


def test_a_lone_quote_inside_a_cell_is_text(write: Write) -> None:
    assert read(write('who,size,buys\nann,5",no\nann,6,yes\n')).values == (('5"', "6"),)


def test_unequal_groups_and_groups_without_labels(write: Write) -> None:
    table = read(write("who,size,buys\nann,a,no\nann,b,yes\nbob,a,no\ncy,b,\ncy,a,\n"))
    assert table.group_sizes.tolist() == [2, 1, 2]
    assert table.labelled().group_sizes.tolist() == [2, 1, 0]


def test_columns_not_read_may_be_in_another_encoding(write: Write, plain: GroupedTable) -> None:
    lines = PLAIN.encode().split(b"\n")
    spoilt = b"\n".join([lines[0] + b",note", *(line + b",\xff" for line in lines[1:4])])
    assert read(write(spoilt), ignore=["note"]) == plain


def test_latin_1(write: Write) -> None:
    path = write("who,size,buys\nJosé,grün,no\nann,b,yes\n".encode("latin-1"))
    assert read(path, encoding="latin-1").group_names == ("José", "ann")


def test_many_blocks_keep_the_order_of_first_appearance(write: Write, monkeypatch) -> None:
    monkeypatch.setattr("bayes_lcs.io.formats.csv.BLOCK_BYTES", 1000)
    names = [f"g{(7 * row) % 97}" for row in range(2000)]
    cells = ['"a\n\nb"', '"c""d"']
    lines = [f"{name},{cells[row % 2]},{row % 3}" for row, name in enumerate(names)]
    table = read(write("\n".join(["who,size,buys", *lines])))
    assert table.values == (("a\n\nb", 'c"d'),)
    assert table.features[:, 0].tolist() == [row % 2 for row in range(2000)]
    assert table.group_names == tuple(dict.fromkeys(names))
    assert table.row_group_names() == names
    assert table.labels.tolist() == [row % 3 for row in range(2000)]


def parquet(path: Path, **columns: object) -> Path:
    content: dict[str, object] = {"who": ["ann", "ann", "bob"], "buys": ["no", "yes", "no"]}
    pq.write_table(pa.table({**content, **columns}), path)
    return path


@pytest.mark.parametrize(
    ("column", "names", "codes"),
    [
        (pa.array([2, 10, None]), ("2", "10"), [0, 1, -1]),
        (pa.array([2, 10, 2], pa.uint8()), ("2", "10"), [0, 1, 0]),
        (pa.array([2.0, float("nan"), None]), ("2",), [0, -1, -1]),
        (pa.array([0.1, 2, None], pa.float32()), ("0.1", "2"), [0, 1, -1]),
        (pa.array([True, False, None]), ("False", "True"), [1, 0, -1]),
        (pa.array(["b", "", "a"]), ("a", "b"), [1, -1, 0]),
        (pa.array(["b", None, "a"], pa.large_string()), ("a", "b"), [1, -1, 0]),
        (pa.array(["b", None, "a"], pa.string_view()), ("a", "b"), [1, -1, 0]),
        (pa.array(["b", None, "a"]).dictionary_encode(), ("a", "b"), [1, -1, 0]),
        (
            pa.DictionaryArray.from_arrays(pa.array([1, None, 2]), ["never", "often", "no"]),
            ("no", "often"),
            [1, -1, 0],
        ),
        (
            pa.DictionaryArray.from_arrays(
                pa.array([1, None, 2]), ["never", "often", "no"], ordered=True
            ),
            ("often", "no"),
            [0, -1, 1],
        ),
        (
            pa.array([1, 0, None], pa.date32()),
            ("1970-01-01", "1970-01-02"),
            [1, 0, -1],
        ),
    ],
)
def test_parquet_types(
    tmp_path: Path, column: pa.Array, names: tuple[str, ...], codes: list[int]
) -> None:
    table = read(parquet(tmp_path / "a.parquet", size=column))
    assert table.values == (names,)
    assert table.features[:, 0].tolist() == codes


def test_parquet_under_another_name_and_with_row_groups(tmp_path: Path) -> None:
    frame = pd.DataFrame(
        {
            "who": [f"g{row % 7}" for row in range(100)],
            "size": pd.Categorical(list("ba" * 50), categories=list("cba"), ordered=True),
            "buys": ["no", "yes"] * 50,
        }
    )
    frame.to_parquet(tmp_path / "table.data", row_group_size=9)
    expected = GroupedTable.from_frame(frame, group="who", label="buys")
    assert read(tmp_path / "table.data") == expected
    assert expected.values == (("b", "a"),)


def test_the_index_of_pandas_is_no_feature(tmp_path: Path) -> None:
    frame = pd.DataFrame({"who": ["a", "b"], "size": ["x", "y"], "buys": ["n", "y"]}, index=[5, 3])
    frame.to_parquet(tmp_path / "a.parquet")
    assert read(tmp_path / "a.parquet").feature_names == ("size",)


def test_parquet_bins(tmp_path: Path) -> None:
    path = parquet(tmp_path / "a.parquet", size=[1.5, 2.5, None])
    assert read(path, edges={"size": [2]}).features[:, 0].tolist() == [0, 1, -1]


def test_importing_the_readers_imports_nothing_heavy() -> None:
    code = (
        "import sys, bayes_lcs.data.grouped_table, bayes_lcs.data.read_grouped, "
        "bayes_lcs.data.datasets, bayes_lcs.data.simulated_meetings; "
        "print([m for m in ('pandas', 'pyarrow', 'scipy', 'jax', 'pooch') if m in sys.modules])"
    )
    root = Path(__file__).parents[2]
    run = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, cwd=root
    )
    assert run.stdout.strip() == "[]"
