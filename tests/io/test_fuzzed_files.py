"""Odd and damaged CSV, gzip and Parquet files through every reader.

Each is read as what it holds, or refused with one line that names it. The examples are the same in
every run unless BAYES_LCS_SWEEP is set.
"""

from __future__ import annotations

import csv
import gzip
import io
import random
from collections.abc import Callable
from pathlib import Path
from unittest.mock import patch

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import bayes_lcs as bl
from bayes_lcs.io.open_tables import open_file
from tests.fuzzing import damaged, good_csv, good_parquet, odd_csv, strict_table
from tests.io.readings import EXACT, in_batches, in_shards, readings

# Rows without a group or a label are left out with a warning; damaged files have such rows.
pytestmark = pytest.mark.filterwarnings("ignore::bayes_lcs.core.errors.DataWarning")

FIXTURE = HealthCheck.function_scoped_fixture
SEEDS = st.integers(0, 2**32 - 1)


def check_refusal(error: bl.DataError, path: Path) -> None:
    text = str(error)
    assert text.startswith(path.name), text
    assert len(text.splitlines()) == 1, text
    assert text.isprintable(), text
    assert len(text) < 1000, text


def check_every_reader(path: Path) -> None:
    """The public readers with the columns that the file seems to have."""
    try:
        names = open_file(path).names
    except bl.DataError as error:
        check_refusal(error, path)
        names = ("who", "buys")
    for _, read in readings(path, names):
        try:
            read()
        except bl.DataError as error:
            check_refusal(error, path)


def check_cells(path: Path, content: bytes, delimiter: str = ",") -> None:
    """A text that can be read one way only is read that way."""
    truth = strict_table(content, delimiter)
    for read in EXACT:
        refused, found = None, None
        try:
            found = read(path, delimiter)
        except bl.DataError as error:
            refused = error
            check_refusal(error, path)
        if truth is None:
            continue
        if refused is not None and len(truth[0]) == 1 and "are left" in str(refused):
            continue  # one column is no table to learn from
        assert refused is None, f"{content!r} was refused: {refused}"
        assert found == truth, content


@settings(max_examples=150, suppress_health_check=[FIXTURE])
@given(SEEDS)
def test_odd_text(tmp_path: Path, seed: int) -> None:
    content = odd_csv(random.Random(seed))
    path = tmp_path / "odd.csv"
    path.write_bytes(content)
    for delimiter in (",", ";"):
        check_cells(path, content, delimiter)
    check_every_reader(path)


CELL = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=6)
NAME = CELL.filter(lambda text: text.strip())


@settings(max_examples=150, suppress_health_check=[FIXTURE])
@given(st.data())
def test_tables_that_were_written_well(tmp_path: Path, data: st.DataObject) -> None:
    """Whatever Python's csv module writes, with any delimiter, line end and amount of quotes."""
    width = data.draw(st.integers(1, 3))
    names = data.draw(st.lists(NAME, min_size=width, max_size=width, unique=True))
    row = st.lists(CELL, min_size=width, max_size=width)
    rows = data.draw(st.lists(row, min_size=1, max_size=6))
    delimiter = data.draw(st.sampled_from(",;\t|:"))
    end = data.draw(st.sampled_from(["\n", "\r\n", "\r"]))
    quoting = data.draw(st.sampled_from([csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC]))
    text = io.StringIO(newline="")
    writer = csv.writer(text, delimiter=delimiter, lineterminator=end, quoting=quoting)
    writer.writerows([names, *rows])
    content = text.getvalue().encode(data.draw(st.sampled_from(["utf-8", "utf-8-sig"])))
    if data.draw(st.booleans()):
        content = gzip.compress(content, mtime=0)
    path = tmp_path / "good.csv"
    path.write_bytes(content)
    for read in EXACT[: 1 if width == 1 else 2]:
        assert read(path, delimiter) == [names, *rows]


@pytest.mark.parametrize("size", [1, 5, 17])
@settings(max_examples=80, suppress_health_check=[FIXTURE])
@given(seed=SEEDS)
def test_text_that_is_read_in_small_pieces(tmp_path: Path, size: int, seed: int) -> None:
    """As files of gigabytes are: a cut within quotes or between two line ends changes nothing."""
    content = odd_csv(random.Random(seed))
    truth = strict_table(content, ",")
    if truth is None or len(truth[0]) == 1:
        return
    path = tmp_path / "pieces.csv"
    path.write_bytes(content)
    with (
        patch("bayes_lcs.io.formats.csv_shards.SMALL_FILE", 0),
        patch("bayes_lcs.io.formats.csv_shards.MIN_STEP", size),
    ):
        assert in_shards(path, ",") == truth
    with patch("bayes_lcs.io.formats.csv.BLOCK_BYTES", max(size, 8)):
        assert in_batches(path, ",") == truth


MAKERS: dict[str, Callable[[random.Random], bytes]] = {
    "rows.csv": good_csv,
    "rows.csv.gz": lambda rng: gzip.compress(good_csv(rng), mtime=0),
    "rows.parquet": good_parquet,
}


@settings(max_examples=100, suppress_health_check=[FIXTURE])
@pytest.mark.parametrize("name", MAKERS)
@given(seed=SEEDS)
def test_damaged_bytes(tmp_path: Path, name: str, seed: int) -> None:
    rng = random.Random(seed)
    content = damaged(MAKERS[name](rng), rng)
    path = tmp_path / name
    path.write_bytes(content)
    if name != "rows.parquet":
        check_cells(path, content)
    check_every_reader(path)


@settings(max_examples=100, suppress_health_check=[FIXTURE])
@given(st.binary(max_size=60))
@example(b"\x1f\x8b")
@example(b"PAR1")
@example(b"PAR1PAR1")
@example(b"\xff\xfea\x00")
def test_any_bytes_at_all(tmp_path: Path, content: bytes) -> None:
    for name in ("any.csv", "any.parquet"):
        path = tmp_path / name
        path.write_bytes(content)
        check_every_reader(path)
        if name == "any.csv":
            check_cells(path, content)


@pytest.mark.slow
@settings(max_examples=3000, suppress_health_check=[FIXTURE])
@given(SEEDS)
@example(188651)  # a row without a group
def test_much_more_of_it(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    name = rng.choice(("odd.csv", *MAKERS))
    content = odd_csv(rng) if name == "odd.csv" else damaged(MAKERS[name](rng), rng)
    path = tmp_path / name
    path.write_bytes(content)
    if name != "rows.parquet":
        check_cells(path, content)
    check_every_reader(path)


# What was found so, each as small as it gets.


@pytest.mark.parametrize(
    "content", [b"a;b;\xe9\r1;2;3\r", b"a;c;b\r1;x;\xe9\r", b"a;c;b\n1;2;\xe9\rx;y;z\n"]
)
def test_bytes_that_are_no_text_before_a_carriage_return(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "mac.csv"
    path.write_bytes(content)
    line = content[: content.index(b"\xe9")].replace(b"\n", b"\r").count(b"\r") + 1
    with pytest.raises(
        bl.DataError, match=rf"mac\.csv, line {line}.*byte 0xe9 at offset"
    ) as caught:
        bl.read_grouped(path, group="a", label="b")
    assert f"offset {content.index(0xE9)} " in str(caught.value)


def test_damage_within_packed_bytes(tmp_path: Path) -> None:
    """Every byte in turn: noticed by zlib, by the checksum, or where the names are looked for."""
    good = gzip.compress(b"who,size,buys\n" + b"ann,s,no\nbob,m,yes\n" * 20, mtime=0)
    kinds = set()
    for place in range(10, len(good)):
        packed = bytearray(good)
        packed[place] ^= 0x10
        try:
            gzip.decompress(packed)
        except Exception as error:
            kinds.add(type(error).__name__)
        path = tmp_path / "packed.csv"
        path.write_bytes(packed)
        for _, read in readings(path, ("who", "buys")):
            with pytest.raises(bl.DataError) as caught:
                read()
            check_refusal(caught.value, path)
    assert {"error", "BadGzipFile"} <= kinds


def test_parquet_text_that_is_no_text(tmp_path: Path) -> None:
    """pyarrow writes what it is told to be text without a look at it."""
    array = pa.array([b"x", b"\xe5\xff"] * 2).view(pa.string())
    path = tmp_path / "text.parquet"
    pq.write_table(pa.table({"a": array, "b": array, "c": ["y", "n"] * 2}), path)
    for what, read in readings(path, ("a", "b")):
        if what == "number_blocks":  # takes columns of numbers, and there are none
            continue
        with pytest.raises(bl.DataError, match=r"text\.parquet, column '[ab]': "):
            read()


def test_what_pyarrow_says_in_two_lines_is_said_in_one(tmp_path: Path) -> None:
    content = bytearray(good_parquet(random.Random(0)))
    content[-100:-20] = bytes(80)
    path = tmp_path / "footer.parquet"
    path.write_bytes(content)
    with pytest.raises(bl.DataError) as caught:
        bl.read_grouped(path, group="who", label="buys")
    check_refusal(caught.value, path)


def test_no_rows_is_said_by_every_reader(tmp_path: Path) -> None:
    (tmp_path / "none.csv").write_text("a,b,c\n")
    pq.write_table(
        pa.table({name: pa.array([], pa.string()) for name in "abc"}),
        tmp_path / "none.parquet",
    )
    for path in tmp_path.iterdir():
        for _, read in readings(path, ("a", "c")):
            with pytest.raises(bl.DataError, match=rf"{path.name}: there are no rows"):
                read()


def test_infinite_numbers_are_named_before_a_learner_stumbles(tmp_path: Path) -> None:
    (tmp_path / "text.csv").write_text("x,y\n1,a\n1e999,b\n")
    pq.write_table(
        pa.table({"x": [1.0, float("-inf")], "y": ["a", "b"]}), tmp_path / "typed.parquet"
    )
    for path, place in ((tmp_path / "text.csv", "line 3"), (tmp_path / "typed.parquet", "row 1")):
        with pytest.raises(bl.DataError, match=f"{place}, column 'x': the number is infinite"):
            bl.PartialScanClassifier("tree", 1).fit_file(path, label="y")
        with pytest.raises(bl.DataError, match=f"{place}, column 'x': the number is infinite"):
            list(bl.number_blocks(path, ignore=["y"]))


def test_nul_bytes_are_refused_in_every_kind_of_file(tmp_path: Path) -> None:
    """A netCDF file cannot hold them, which would come out at the end of long work."""
    (tmp_path / "nul.csv").write_bytes(b"a,b,c\nx,y\0,z\nx,w,u\nx,w,u\n")
    cells = {"a": ["x", "x", "x"], "b": ["y\0", "w", "w"], "c": ["z", "u", "u"]}
    pq.write_table(pa.table(cells), tmp_path / "nul.parquet")
    for path in tmp_path.iterdir():
        for what, read in readings(path, ("a", "c")):
            if what != "number_blocks":
                with pytest.raises(bl.DataError, match=r"nul\..*column 'b': .* NUL byte"):
                    read()


def test_a_nul_byte_in_the_name_of_a_column(tmp_path: Path) -> None:
    path = tmp_path / "name.parquet"
    pq.write_table(pa.table({"a": ["x"], "\0b": ["y"], "c": ["z"]}), path)
    for _, read in readings(path, ("a", "c")):
        with pytest.raises(bl.DataError, match=r"name\.parquet, column '.x00b': the name contains"):
            read()


@pytest.mark.parametrize("name", ["a\x00", "\ud800"])
def test_names_that_no_file_can_hold_are_refused(name: str) -> None:
    with pytest.raises(bl.DataError, match="must be text that a file can hold"):
        bl.GroupedTable.from_arrays([["a"], ["b"]], ["n", "y"], ["u", name])
    with pytest.raises(bl.DataError, match="must be text that a file can hold"):
        bl.GroupedTable.from_arrays([["a"], [name]], ["n", "y"], ["u", "v"])
