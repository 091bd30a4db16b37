"""A text table read in pieces: the same rows wherever it is cut, and begun again."""

from __future__ import annotations

import csv
import gzip
import io

import pyarrow as pa
import pytest

from bayes_lcs.core.cores import num_cores
from bayes_lcs.data import csv_pieces, csv_reader
from bayes_lcs.data.columns import Mark
from bayes_lcs.data.errors import DataError
from bayes_lcs.data.reader import raw_from_file

HEAD = "a,b\n"
TEXTS = {
    "plain": HEAD + "".join(f"{i},{i * i}\n" for i in range(40)),
    "no last line break": HEAD + "1,2\n3,4",
    "two bytes a line break": (HEAD + "1,2\n3,4\n5,6\n").replace("\n", "\r\n"),
    "blank lines": HEAD + "1,2\n" + "\n" * 100 + "3,4\n" + "\n" * 50,
    "quoted line breaks": HEAD + '1,"x\ny"\n"2\n\n\n",z\n3,"a ""quote"" and, a comma"\n',
    "a long cell": HEAD + "1," + "x" * 500 + "\n2,y\n",
    "a mark first": "\ufeff" + HEAD + "1,ä\n2,€\n",
}


def cells(path, size, monkeypatch, **options):
    monkeypatch.setattr(csv_reader, "PIECE_BYTES", size)
    raw = raw_from_file(path, **options)
    assert raw.blocks is not None
    blocks = list(raw.blocks(raw.names))
    whole = [row for block in blocks for row in texts(raw, block)]
    coded = list(raw.blocks(raw.names, coded=raw.names))
    assert [row for block in coded for row in texts(raw, block)] == whole
    for number, before in enumerate(blocks):
        rest = list(raw.blocks(raw.names, before.mark))
        after = [row for block in blocks[number + 1 :] for row in texts(raw, block)]
        assert [row for block in rest for row in texts(raw, block)] == after
        assert all(block.mark.rows > before.mark.rows for block in rest)
        assert before.mark.rows == len(whole) - len(after)
    return whole


def texts(raw, block):
    found = block.table.select(raw.names).to_pylist()
    assert found
    return [[str(cell) for cell in row.values()] for row in found]


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("size", [3, 7, 64, 1 << 22])
def test_rows_do_not_depend_on_pieces(tmp_path, monkeypatch, name, size):
    text = TEXTS[name]
    expected = [row for row in csv.reader(io.StringIO(text.removeprefix("\ufeff"))) if row][1:]
    (tmp_path / "t.csv").write_bytes(text.encode())
    assert cells(tmp_path / "t.csv", size, monkeypatch) == expected
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(text.encode()))
    assert cells(tmp_path / "t.csv.gz", size, monkeypatch) == expected
    (tmp_path / "t.txt").write_bytes(text.encode("utf-16"))
    assert cells(tmp_path / "t.txt", size, monkeypatch, encoding="utf-16") == expected


@pytest.mark.parametrize("packed", [False, True])
def test_no_more_than_a_few_pieces_are_read_ahead(tmp_path, monkeypatch, packed):
    """What lies in memory are pieces for all threads, not a share of the file."""
    monkeypatch.setattr(csv_reader, "PIECE_BYTES", 1 << 20)
    most = 2 * (min(num_cores(), csv_reader.MOST_THREADS) + 2)
    line = b"some text of a row,and more of it,7\n"
    num_rows = 2 * most * csv_reader.PIECE_BYTES // len(line)
    text = b"a,b,c\n" + line * num_rows
    path = tmp_path / "long.csv"
    path.write_bytes(gzip.compress(text, 1) if packed else text)
    raw = raw_from_file(path)
    assert raw.blocks is not None
    before, rows = pa.total_allocated_bytes(), 0
    for block, _ in raw.blocks(raw.names):
        rows += block.num_rows
        assert pa.total_allocated_bytes() - before <= most * csv_reader.PIECE_BYTES
    assert rows == num_rows


@pytest.mark.parametrize("kind", ["utf-16", "latin-1", "gzip"])
def test_text_goes_on_wherever_it_ends(tmp_path, monkeypatch, kind):
    """Pieces of a file that is gone through again lie elsewhere: its end may come early."""
    monkeypatch.setattr(csv_pieces, "_UNPACKED", 50)
    for num_rows in range(1, 60):
        text = HEAD + "".join(f"{i},{'xyz'[i % 3] * (i % 5)}\n" for i in range(num_rows))
        content = gzip.compress(text.encode()) if kind == "gzip" else text.encode(kind)
        (tmp_path / "t.csv").write_bytes(content)
        encoding = "utf-8" if kind == "gzip" else kind
        for size in (24, 100):
            found = cells(tmp_path / "t.csv", size, monkeypatch, encoding=encoding)
            assert len(found) == num_rows


def test_faults_after_a_mark_are_explained(tmp_path, monkeypatch):
    whole = gzip.compress((HEAD + "1,2\n" * 100_000).encode(), 0)
    (tmp_path / "t.csv").write_bytes(whole[: len(whole) * 9 // 10])
    monkeypatch.setattr(csv_reader, "PIECE_BYTES", 1 << 16)
    raw = raw_from_file(tmp_path / "t.csv")
    far = Mark(95_000, 380_004, 95_001)
    with pytest.raises(DataError, match=r"t.csv: the gzip file is cut short"):
        list(raw.blocks(raw.names, far))
