from __future__ import annotations

import gzip
import pickle
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bayes_lcs.core.errors import DataError, DatasetNotFound
from bayes_lcs.data.read_grouped import read_grouped

Write = Callable[..., Path]
HEAD = "who,size,buys\n"
GOOD = HEAD + "ann,a,no\nann,b,yes\n"
MANY = [f"ann,{row},{'no' if row % 2 else 'yes'}" for row in range(30)]
NAMES = [f"ann,id{row},{'no' if row % 2 else 'yes'}" for row in range(30)]


def failure(path: Path, **options: object) -> DataError:
    with pytest.raises(DataError) as caught:
        read_grouped(path, **{"group": "who", "label": "buys", **options})  # type: ignore[arg-type]
    return caught.value


CASES = {
    "empty": ("", {}, None, None, "file is empty"),
    "blank lines only": ("\n\n", {}, None, None, "file is empty"),
    "header only": (HEAD, {}, None, None, "there are no rows"),
    "header only, no newline": (HEAD.strip(), {}, None, None, "there are no rows"),
    "short row": (GOOD + "bob,a\n", {}, 4, "buys", "has 2 cells where 3 are expected"),
    "very short row": (GOOD + "bob\n", {}, 4, "size", "has 1 cell where 3"),
    "long row": (GOOD + "bob,a,no,x\n", {}, 4, "buys", "'x' follows this last column; quote"),
    "short row after a quoted line break": (
        HEAD + 'ann,"a\n\nb",no\nann,b,yes\nbob,a\n',
        {},
        6,
        "buys",
        "has 2 cells",
    ),
    "short row after blank lines": (HEAD + "\n\nann,a,no\nbob\n", {}, 5, "size", "has 1 cell "),
    "short row in another column": (
        GOOD.replace("\n", ",x\n") + "bob,a,no\n",
        {"header": ["who", "size", "buys", "note"], "group": "who"},
        4,
        "note",
        "has 3 cells where 4",
    ),
    "duplicate names given": (
        "a,b,c,d\n",
        {"header": ["who", "size", "size", "buys"]},
        1,
        "size",
        "two columns have this",
    ),
    "empty name given": (
        "a,b,c\n",
        {"header": ["who", "", "buys"]},
        1,
        "",
        "column number 2 has no",
    ),
    "absent group": (GOOD, {"group": "whom"}, None, "whom", "no such column; did you mean 'who'?"),
    "absent label": (GOOD, {"label": "Buys"}, None, "Buys", "did you mean 'buys'?"),
    "absent column, nothing like it": (
        GOOD,
        {"label": "zzz"},
        None,
        "zzz",
        "there are 'who', 'size', 'buys'",
    ),
    "absent feature": (GOOD, {"features": ["sise"]}, None, "sise", "did you mean 'size'?"),
    "unknown delimiter": (
        GOOD.replace(",", "~"),
        {},
        None,
        "who",
        "is the delimiter right? pass delimiter=",
    ),
    "group is label": (GOOD, {"label": "who"}, None, "who", "both group and label"),
    "one label": (HEAD + "ann,a,no\nbob,b,no\n", {}, None, "buys", "only one value, 'no'"),
    "a quantity as label": (
        HEAD + "\n".join(MANY),
        {"label": "size"},
        None,
        "size",
        "the label has 30 different values",
    ),
    "an identifier as label": (
        HEAD + "\n".join(NAMES),
        {"label": "size"},
        None,
        "size",
        "the label has 30 different values",
    ),
    "no label": (HEAD + "ann,a,\nbob,b,\n", {}, None, "buys", "every label is missing"),
    "no feature value": (HEAD + "ann,,no\nbob,,yes\n", {}, None, "size", "every cell is missing"),
    "no group at all": (HEAD + ",a,no\n,b,yes\n", {}, None, "who", "no row has a group"),
    "value not listed after a row without group": (
        HEAD + ",b,no\nann,a,no\nann,b,yes\n",
        {"values": {"size": ["a", "c"]}},
        4,
        "size",
        "'b' is not one of the known values",
    ),
    "measurements": (
        HEAD + "\n".join(f"ann,{row / 2},{row % 2}" for row in range(13)),
        {},
        None,
        "size",
        "holds 13 different numbers; say how to bin them with bins={'size': 4} or edges=",
    ),
    "unbinned numbers": (
        HEAD + "\n".join(MANY),
        {},
        None,
        "size",
        "holds 30 different numbers; say how to bin them with bins={'size': 4} or edges=",
    ),
    "identifier": (
        HEAD + "\n".join(NAMES),
        {},
        None,
        "size",
        "looks like an identifier; leave it out with ignore=['size']",
    ),
    "text among numbers": (
        HEAD + "\n".join(MANY) + "\nann,old,no\n",
        {"bins": {"size": 4}},
        32,
        "size",
        "'old' is not a number",
    ),
    "value not listed": (
        GOOD,
        {"values": {"size": ["a", "c"]}},
        3,
        "size",
        "'b' is not one of the known values 'a', 'c'",
    ),
    "label not listed": (
        GOOD,
        {"label_values": ["no", "maybe"]},
        3,
        "buys",
        "'yes' is not one of the known values",
    ),
    "bytes that are no UTF-8": (
        GOOD.encode() + b"ann,gr\xfcn,no\n",
        {},
        4,
        "size",
        "byte 0xfc at offset 39 is not utf-8 text; pass the right encoding=",
    ),
    "header that is no UTF-8": (
        b"who,gr\xf6sse,buys\nann,a,no\n",
        {},
        1,
        None,
        "byte 0xf6 at offset 6 is not utf-8 text",
    ),
    "UTF-16 with mark": (GOOD.encode("utf-16"), {}, 1, None, "encoding='utf-16'"),
    "UTF-16 without mark": (GOOD.encode("utf-16-le"), {}, 1, None, "NUL bytes"),
    "bytes that are no ASCII": (
        GOOD.encode() + "ann,ü,no\n".encode(),
        {"encoding": "ascii"},
        4,
        "size",
        "byte 0xc3 at offset 37 is not ascii text",
    ),
    "unknown encoding": (GOOD, {"encoding": "utf-9"}, None, None, "no encoding 'utf-9'"),
    "NUL byte": (GOOD + "ann,a\x00b,no\n", {}, 4, "size", "NUL byte"),
    "quote never closed": (
        GOOD + 'bob,a,"no\nbob,b,yes\nbob,b,yes\n',
        {},
        4,
        None,
        "a quote in this row is never closed",
    ),
    "long delimiter": (GOOD, {"delimiter": "::"}, None, None, "must be a single character"),
    "wrong number of names": (GOOD, {"header": ["who", "buys"]}, 1, None, "has 2 names, but"),
    "zip": (b"PK\x03\x04rest", {}, None, None, "zip or Excel"),
}


@pytest.mark.parametrize("case", CASES)
def test_error_names_file_line_and_column(write: Write, case: str) -> None:
    content, options, line, column, message = CASES[case]
    error = failure(write(content), **options)
    assert error.file == "people.csv"
    assert error.line == line
    assert error.column == column
    assert message in error.message
    where = "people.csv"
    where += "" if line is None else f", line {line}"
    where += "" if column is None else f", column {column!r}"
    assert str(error) == f"{where}: {error.message}"


def test_files_that_cannot_be_opened(tmp_path: Path) -> None:
    error = failure(tmp_path / "absent.csv")
    assert error.file == str(tmp_path / "absent.csv")
    assert "there is no such file" in error.message
    assert "is a directory" in failure(tmp_path).message


def test_bad_bytes_in_a_quoted_cell_with_a_line_break(write: Write) -> None:
    error = failure(write(HEAD.encode() + b'ann,"a\n\xff",no\nann,b,yes\n'))
    assert error.line == 3


def test_damaged_gzip(write: Write) -> None:
    packed = gzip.compress(("".join([GOOD, *[f"u{n},{n % 7},no\n" for n in range(5000)]])).encode())
    error = failure(write(packed[: len(packed) // 2], "people.csv.gz"))
    assert error.file == "people.csv.gz"
    assert "incomplete" in error.message


def test_damaged_parquet(tmp_path: Path) -> None:
    path = tmp_path / "people.parquet"
    pq.write_table(pa.table({"who": ["a", "b"], "size": ["x", "y"], "buys": ["n", "y"]}), path)
    whole = path.read_bytes()
    for content in (whole[: len(whole) // 2], whole[:20], GOOD.encode()):
        path.write_bytes(content)
        error = failure(path)
        assert error.file == "people.parquet"
        assert "not a complete Parquet file" in error.message
    path.write_bytes(b"")
    assert "empty" in failure(path).message


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (pa.array([["x"], ["y"]]), "nested cells (list<"),
        (pa.array([{"x": 1}, {"x": 2}]), "nested cells (struct<"),
        (pa.array([b"x", b"y"]), "has cells of bytes (binary)"),
        (pa.nulls(2), "every cell is missing"),
    ],
)
def test_parquet_columns_that_cannot_be_coded(
    tmp_path: Path, column: pa.Array, message: str
) -> None:
    path = tmp_path / "people.parquet"
    pq.write_table(pa.table({"who": ["a", "b"], "size": column, "buys": ["n", "y"]}), path)
    error = failure(path)
    assert (error.file, error.column) == ("people.parquet", "size")
    assert message in error.message
    assert "ignore=['size']" in error.message


def test_parquet_rows_are_counted_from_0(tmp_path: Path) -> None:
    path = tmp_path / "people.parquet"
    pq.write_table(pa.table({"who": ["a", "b"], "size": ["x", "y"], "buys": ["n", "y"]}), path)
    error = failure(path, values={"size": ["x"]})
    assert str(error).startswith("people.parquet, row 1, column 'size': 'y' is not one of the kno")


def test_duplicate_and_no_rows_in_parquet(tmp_path: Path) -> None:
    path = tmp_path / "people.parquet"
    names = ["who", "size", "size", "buys"]
    pq.write_table(pa.table([["a"], ["x"], ["y"], ["n"]], names=names), path)
    assert failure(path).column == "size"
    pq.write_table(pa.table({name: pa.array([], pa.string()) for name in set(names)}), path)
    assert "there are no rows" in failure(path).message


def test_errors_survive_pickling() -> None:
    error = DataError("wrong", file="a.csv", line=3, column="x")
    back = pickle.loads(pickle.dumps(error))  # noqa: S301
    assert (str(back), back.line, back.column) == (str(error), 3, "x")
    assert isinstance(error, ValueError)
    absent = pickle.loads(pickle.dumps(DatasetNotFound("fetch it")))  # noqa: S301
    assert (type(absent), str(absent)) == (DatasetNotFound, "fetch it")
