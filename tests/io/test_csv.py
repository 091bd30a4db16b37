"""Text tables read in batches: the same rows whatever the size of the blocks."""

from __future__ import annotations

import csv
import gzip
import io
from concurrent.futures import ThreadPoolExecutor, wait
from threading import Event

import pandas as pd
import pyarrow as pa
import pytest

from bayes_lcs.core.errors import DataError, DataNote
from bayes_lcs.io.formats import csv as csv_format
from bayes_lcs.io.open_tables import open_file
from bayes_lcs.io.options import CsvOptions

HEAD = "a,b\n"
TEXTS = {
    "plain": HEAD + "".join(f"{i},{i * i}\n" for i in range(40)),
    "no last line break": HEAD + "1,2\n3,4",
    "two bytes a line break": (HEAD + "1,2\n3,4\n5,6\n").replace("\n", "\r\n"),
    "blank lines": "\n\n" + HEAD + "1,2\n" + "\n" * 100 + "3,4\n" + "\n" * 50,
    "quoted line breaks": HEAD + '1,"x\ny"\n"2\n\n\n",z\n3,"a ""quote"" and, a comma"\n',
    "a quoted header": '"a\nname",b\n1,2\n',
    "stray quotes": HEAD + '5" pipe,2\n3,4\n',
    "a long cell": HEAD + "1," + "x" * 5000 + "\n2,y\n",
    "a mark first": "\ufeff" + HEAD + "1,ä\n2,€\n",
}


def cells(path, size, monkeypatch, **options):
    monkeypatch.setattr(csv_format, "BLOCK_BYTES", size)
    raw = open_file(path, CsvOptions(**options))
    whole = rows_of(raw.batches(raw.names))
    assert rows_of(raw.batches(raw.names, encoded=raw.names)) == whole
    return whole


def rows_of(batches):
    return [[str(cell) for cell in row.values()] for batch in batches for row in batch.to_pylist()]


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("size", [16, 64, 1 << 22])
def test_rows_do_not_depend_on_blocks(tmp_path, monkeypatch, name, size):
    text = TEXTS[name]
    expected = [row for row in csv.reader(io.StringIO(text.removeprefix("\ufeff"))) if row][1:]
    (tmp_path / "t.csv").write_bytes(text.encode())
    assert cells(tmp_path / "t.csv", size, monkeypatch) == expected
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(text.encode()))
    assert cells(tmp_path / "t.csv.gz", size, monkeypatch) == expected
    (tmp_path / "t.txt").write_bytes(text.encode("utf-16"))
    assert cells(tmp_path / "t.txt", size, monkeypatch, encoding="utf-16") == expected


@pytest.mark.parametrize("packed", [False, True])
def test_memory_does_not_grow_with_the_file(tmp_path, packed):
    line = b"some text of a row,and more of it,7\n"
    num_rows = (1 << 26) // len(line)
    text = b"a,b,c\n" + line * num_rows
    path = tmp_path / "long.csv"
    path.write_bytes(gzip.compress(text, 1) if packed else text)
    raw = open_file(path)
    before, rows = pa.total_allocated_bytes(), 0
    for batch in raw.batches(raw.names):
        rows += batch.num_rows
        assert pa.total_allocated_bytes() - before < 1 << 25
    assert rows == num_rows


@pytest.mark.parametrize("size", [64, 1 << 20])
def test_a_quote_that_is_never_closed_is_named(tmp_path, monkeypatch, size):
    monkeypatch.setattr(csv_format, "BLOCK_BYTES", size)
    path = tmp_path / "t.csv"
    path.write_text(HEAD + '1,2\n5" pipe,x\n3,"4\n' + "5,6\n" * 30)
    raw = open_file(path)
    with pytest.raises(DataError, match=r"t\.csv, line 4: a quote in this row is never closed"):
        list(raw.batches(raw.names))


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "gzip"])
def test_lines_are_counted_where_the_first_quote_comes_late(tmp_path, encoding):
    """Lines before the first quote are counted afterwards."""
    path, text = tmp_path / "t.csv", HEAD + "ü,2\n" * 500 + '1,"x\ny"\n' + "3,4\n" * 500
    packed = encoding == "gzip"
    content = text.encode("utf-8" if packed else encoding)
    path.write_bytes(gzip.compress(content) if packed else content)
    form = csv_format.read_format(path, CsvOptions("utf-8" if packed else encoding))
    with csv_format.CsvText(form) as stream:
        while stream.read(100):
            pass
        assert (stream.num_quotes, stream.num_lines) == (2, text.count("\n"))


def test_a_gzip_file_that_is_cut_short_is_named(tmp_path):
    whole = gzip.compress((HEAD + "1,2\n" * 100_000).encode(), 0)
    (tmp_path / "t.csv").write_bytes(whole[: len(whole) * 9 // 10])
    raw = open_file(tmp_path / "t.csv")
    with pytest.raises(DataError, match=r"t.csv: the gzip file is incomplete"):
        list(raw.batches(raw.names))


def test_empty_and_repeated_names_are_those_of_pandas(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(",a,b,a,,a.1\n" + "0,1,2,3,4,5\n" * 3)
    with pytest.warns(DataNote, match=r"renamed 'a\.1', 'Unnamed: 4', 'a\.1\.1'"):
        found = open_file(path)
    assert found.index == found.names[0] == "Unnamed: 0"
    assert found.names[1:] == ("a", "b", "a.1", "Unnamed: 4", "a.1.1")
    path.write_text("x,a,x\n1,2,3\n")
    with pytest.warns(DataNote, match="pass header=False"):
        assert list(open_file(path).names) == pd.read_csv(path).columns.tolist()


@pytest.mark.parametrize("header", ["5.1,3.5,1.4,Iris-setosa", "n,0,1,0,y", "2,1"])
def test_a_row_taken_as_the_header_is_announced(tmp_path, header):
    (tmp_path / "t.data").write_text(f"{header}\n{header}\n")
    with pytest.warns(Warning, match="pass header=False"):
        open_file(tmp_path / "t.data")
    open_file(tmp_path / "t.data", CsvOptions(header=False))  # no warning


@pytest.mark.parametrize("header", ["0,1,2", "name,2019,2020", "a,b1", "id,7"])
def test_numbers_may_be_names(tmp_path, header):
    (tmp_path / "t.csv").write_text(f"{header}\n{header}\n")
    assert list(open_file(tmp_path / "t.csv").names) == header.split(",")


@pytest.mark.parametrize(
    ("line", "width"), [("A11 6 A34 x\n", 4), ("two words\n", 1), ("a sentence of words\n", 4)]
)
def test_cells_may_be_separated_by_spaces(tmp_path, line, width):
    (tmp_path / "t.data").write_text(line * 30)
    assert len(open_file(tmp_path / "t.data", CsvOptions(header=False)).names) == width
    (tmp_path / "t.data").write_text(line * 3 + "one more sentence of words\n")
    assert len(open_file(tmp_path / "t.data", CsvOptions(header=False)).names) == 1


def test_a_file_is_not_closed_while_a_thread_reads_it(tmp_path):
    # The number of a closed file goes to the next one, whose bytes the thread would take.
    path = tmp_path / "t.csv"
    path.write_text("a,b\n1,2\n")
    text = csv_format.CsvText(csv_format.read_format(path, CsvOptions()))
    file, is_reading, may_go_on = text._raw, Event(), Event()

    class Slow:
        def read(self, size):
            is_reading.set()
            assert may_go_on.wait(60)
            return file.read(size)

        def close(self):
            file.close()

    text._raw = Slow()
    with ThreadPoolExecutor(2) as threads:
        content = threads.submit(text.read, 4)
        assert is_reading.wait(60)
        closed = threads.submit(text.close)
        wait([closed], timeout=0.5)  # it must not end before the read does
        may_go_on.set()
        assert content.result(60) == b"a,b\n"
        closed.result(60)
    assert file.closed
