"""A text table read piece by piece, and never further than was asked for.

pyarrow's own streaming reader reads dozens of blocks ahead in a thread of its own. Here the bytes
are cut into whole records first, and pyarrow gets to parse what was cut.
"""

from __future__ import annotations

import codecs
import gzip
import io
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np

from bayes_lcs.data.columns import BEGINNING, Mark, Source
from bayes_lcs.data.counted_file import CountedFile, ReadCount
from bayes_lcs.data.csv_cut import last_record_end
from bayes_lcs.data.csv_scan import (
    find_bad_bytes,
    find_ragged_row,
    text_encoding,
)
from bayes_lcs.data.errors import DataError, one_line

__all__ = ["CsvFormat", "CsvPieces", "Piece", "Records"]

_MOST = 1 << 24

_LONGEST = 1 << 28
"""A quote that is not closed within this many bytes is one that nothing closes."""

_UNPACKED = 1 << 16
"""Bytes that are unpacked at a time."""


@dataclass(frozen=True)
class CsvFormat:
    """A text table and how it is to be read: its columns, and those that are wanted."""

    path: Path
    encoding: str
    delimiter: str
    names: tuple[str, ...]
    wanted: tuple[str, ...]
    has_header: bool
    is_packed: bool
    source: Source
    coded: frozenset[str] = frozenset()
    """Columns that come as Arrow dictionaries; a header may be among their values."""
    numbers: frozenset[str] = frozenset()
    """Columns that come as numbers in a piece in which all of them hold nothing else."""
    missing: frozenset[str] = frozenset()
    """Cells of such columns that mean "missing"."""


@dataclass(frozen=True)
class Records:
    """Text that holds whole records, and the bytes of the file that were read for it.

    ``text_end`` and ``lines`` are the bytes of text (as UTF-8) and the line breaks up to its end.
    """

    text: bytes
    begin: int
    end: int
    text_end: int
    lines: int


@dataclass(frozen=True)
class Piece:
    """Consecutive rows as an Arrow table, and the bytes of the file that were read for them.

    ``mark`` is where they end.
    """

    table: Any
    begin: int
    end: int
    mark: Mark

    def rows_before(self, place: int) -> int:
        """How many of its rows end before a byte of the file, as if all were equally long."""
        rows: int = self.table.num_rows
        if place >= self.end:
            return rows
        if place <= self.begin:
            return 0
        return rows * (place - self.begin) // (self.end - self.begin)

    def place_after(self, rows: int) -> int:
        """The byte of the file at which so many of its rows end, by the same measure."""
        return self.begin - (self.begin - self.end) * rows // max(self.table.num_rows, 1)

    def after(self, rows: int) -> Piece:
        """The piece without its first rows."""
        return Piece(self.table.slice(rows), self.place_after(rows), self.end, self.mark)


class CsvPieces:
    """An open text table. Every cell is text, and nothing is guessed.

    Parameters
    ----------
    form
        The file and how to read it.
    count
        Where rows and bytes are counted.
    block
        A packed file is read by so many bytes at a time.
    most
        No piece is longer than this many bytes of text, unless a record is.
    after
        Where to go on: at the end of a piece that was read before. Text that is packed, or not
        UTF-8, is gone through again up to there, but not parsed.
    """

    def __init__(
        self,
        form: CsvFormat,
        count: ReadCount,
        block: int,
        most: int = _MOST,
        after: Mark = BEGINNING,
    ) -> None:
        self._form = form
        self._count = count
        self._most = most
        self._raw = CountedFile(form.path, count, most=block if form.is_packed else None)
        self._unpacked = gzip.GzipFile(fileobj=self._raw) if form.is_packed else None
        codec = text_encoding(form.encoding)
        self._decoder = None if codec == "utf-8-sig" else codecs.getincrementaldecoder(codec)()
        self._rest: bytes | None = None
        self._line = 1
        self._row = -1 if form.has_header else 0
        self._cut_text = 0
        self.at_end = False
        """Whether the end of the file was seen."""
        if after != BEGINNING:
            try:
                with self._explaining():
                    self._go_on(after)
            except DataError:
                self._raw.close()
                raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._raw.close()

    @property
    def position(self) -> int:
        """Bytes of the file that were read; packed bytes, if it is packed."""
        return self._raw.tell()

    def read(self, goal: int) -> Piece:
        """The records that end before the position ``goal``, or fewer if they would be too long.

        If none does, more is read until one ends.
        """
        records = self.cut(goal)
        return self.piece(records, self.parse(records))

    def cut(self, goal: int) -> Records:
        """The text of the next piece, which `parse` and then `piece` get."""
        begin = self.position
        with self._explaining():
            text = self._records(goal)
        return Records(text, begin, self.position, self._cut_text, self._line - 1)

    def parse(self, records: Records) -> Any:
        """All rows of a text, a header too, as an Arrow table; any thread may do this."""
        with self._explaining():
            return self._parsed(records)

    def piece(self, records: Records, table: Any) -> Piece:
        """The rows of a text once they are parsed; texts come in their order."""
        if self._row < 0 and table.num_rows:  # the header is a row of text like any other
            table, self._row = table.slice(1), 0
        if b"\x00" in records.text:
            self._check_nul(table)
        self._row += table.num_rows
        self._count.num_rows += table.num_rows
        mark = Mark(max(self._row, 0), records.text_end, records.lines)
        return Piece(table, records.begin, records.end, mark)

    def _go_on(self, after: Mark) -> None:
        """Begin behind the text of a mark."""
        rest = self._after_bom(self._text(len(codecs.BOM_UTF8), len(codecs.BOM_UTF8)))
        left = after.text - len(rest)
        if left > 0 and self._decoder is None and self._unpacked is None:
            self._raw.seek(left, io.SEEK_CUR)
            rest = b""
        else:
            while left > 0 and not self.at_end:
                rest = self._text(self.position + self._most, 1)
                left -= len(rest)
            rest = rest[len(rest) + left :] if left < 0 else b""
        self._rest = rest
        self.at_end = self.at_end and not rest  # it will be met again after these
        self._row, self._cut_text, self._line = after.rows, after.text, after.lines + 1

    @staticmethod
    def _after_bom(text: bytes) -> bytes:
        return text.removeprefix(codecs.BOM_UTF8)

    def _records(self, goal: int) -> bytes:
        """Bytes that hold whole records."""
        if self._rest is None:
            text = self._after_bom(self._text(goal, len(codecs.BOM_UTF8)))
        else:
            text = self._rest + self._text(goal, 1)
        end, is_open = last_record_end(text, self._form.delimiter)
        while not end and not self.at_end and len(text) < _LONGEST:
            text += self._text(0, len(text) + 1)  # twice as much, so that long cells take no time
            end, is_open = last_record_end(text, self._form.delimiter)
        if is_open and (self.at_end or not end):
            raise self._open_quote(text[:end])
        if self.at_end or not end:
            end = len(text)
        self._rest = text[end:]
        text = text[:end]
        self._line += _line_breaks(text)
        self._cut_text += end
        return text

    def _open_quote(self, before: bytes) -> DataError:
        return DataError(
            "a quote is opened in this row and never closed; close it, or double it if it is "
            "part of the cell",
            file=self._form.source.file,
            line=self._line + _line_breaks(before),
        )

    def _text(self, goal: int, least: int) -> bytes:
        """The next bytes as UTF-8, up to a position and no fewer than ``least``."""
        blocks: list[bytes] = []
        size = 0
        while size < least or (self.position < goal and size < self._most):
            block = self._block(max(goal - self.position, least - size))
            self.at_end = not block
            if self._decoder is not None:
                block = self._decoder.decode(block, final=self.at_end).encode()
            blocks.append(block)
            size += len(block)
            if self.at_end:
                break
        return b"".join(blocks)

    def _block(self, size: int) -> bytes:
        if self._unpacked is not None:
            return self._unpacked.read1(_UNPACKED)
        return bytes(self._raw.read(min(size, self._most)))

    def _parsed(self, records: Records) -> Any:
        import pyarrow as pa
        import pyarrow.compute as pc

        form = self._form
        if not records.text:
            return pa.schema([(name, pa.string()) for name in form.wanted]).empty_table()
        if form.numbers:
            try:
                table = self._typed(records.text, dict.fromkeys(form.numbers, pa.float64()))
            except pa.ArrowInvalid:
                pass  # a header, or a cell that is no number: the text tells
            else:
                if not any(pc.any(pc.is_nan(table.column(name))).as_py() for name in form.numbers):
                    return table  # a cell that spells NaN is not one that is missing
        return self._typed(records.text, {})

    def _typed(self, text: bytes, kinds: dict[str, Any]) -> Any:
        """The rows of a text as an Arrow table of the wanted columns."""
        import pyarrow as pa
        from pyarrow import csv

        form = self._form
        codes = dict.fromkeys(form.coded, pa.dictionary(pa.int32(), pa.string()))
        plain = dict.fromkeys(form.names, pa.string())
        is_ascii = text.isascii()
        if text.startswith(codecs.BOM_UTF8):  # pyarrow would take a first cell's own for a mark
            text = codecs.BOM_UTF8 + text
        return csv.read_csv(
            pa.BufferReader(text),
            read_options=csv.ReadOptions(
                column_names=form.names, use_threads=False, block_size=min(len(text), 2**31 - 1)
            ),
            parse_options=csv.ParseOptions(delimiter=form.delimiter, newlines_in_values=True),
            convert_options=csv.ConvertOptions(
                column_types={**plain, **codes, **kinds},
                include_columns=form.wanted,
                null_values=sorted(form.missing) if kinds else [],
                strings_can_be_null=False,
                check_utf8=not is_ascii,
            ),
        )

    def _check_nul(self, table: Any) -> None:
        for name in self._form.wanted:
            for row, cell in enumerate(table.column(name).to_pylist(), start=self._row):
                if isinstance(cell, str) and "\x00" in cell:
                    raise self._form.source.error(
                        "the cell holds a NUL byte; the file is damaged or not a text file",
                        row=row,
                        column=name,
                    )

    @contextmanager
    def _explaining(self) -> Iterator[None]:
        import pyarrow as pa

        try:
            yield
        except (pa.ArrowException, UnicodeError, EOFError, OSError, zlib.error) as error:
            raise self._explained(error) from error

    def _explained(self, error: Exception) -> DataError:
        """The error that names the line and column on which reading failed.

        The file is gone through again up to the fault, with the search that will find it first.
        """
        form = self._form
        if isinstance(error, EOFError):
            return form.source.error(f"the gzip file is cut short: {error}")
        if isinstance(error, gzip.BadGzipFile | zlib.error):
            return form.source.error(f"the gzip file is damaged: {error}")
        searches = [find_ragged_row, find_bad_bytes]
        if "CSV parse error" not in str(error):
            searches.reverse()
        for search in searches:
            search(form.path, form.encoding, form.delimiter, form.names)
        return form.source.error(f"cannot be read as CSV: {one_line(error)}")


def _line_breaks(text: bytes) -> int:
    breaks = int(np.count_nonzero(np.frombuffer(text, np.uint8) == ord("\n")))
    if b"\r" in text:
        breaks += text.count(b"\r") - text.count(b"\r\n")
    return breaks
