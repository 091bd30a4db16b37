"""A text table in shards of about equally many bytes, read one after the other.

pyarrow's own streaming reader reads blocks ahead. Here the text is cut into whole records first, so
that no more of the file is read than was asked for, and pyarrow parses what was cut.
"""

from __future__ import annotations

import codecs
import re
import sys
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayes_lcs.core.errors import DataError
from bayes_lcs.io.formats.csv import (
    MAX_BLOCK_BYTES,
    CsvFormat,
    CsvText,
    check_nul,
    explain_errors,
    parse_options,
)
from bayes_lcs.io.formats.csv_diagnose import find_open_quote
from bayes_lcs.io.options import Notes

__all__ = ["ChooseNumber", "CsvShards", "RawShard", "ReadCount", "end_of_records", "parse_records"]

SMALL_FILE = 1 << 18
"""A file of no more bytes than this is read at once, and divided by rows."""

MIN_STEP, MAX_STEP = 1 << 12, 1 << 24
"""Bytes of text that are read at a time."""

TAIL_BYTES = 1 << 14
"""Text at the end of a chunk in which the end of its last record is searched first."""

SAMPLE_BYTES, SAMPLE_ROWS = 1 << 16, 1000
"""Text and rows from which the number of rows and labels of a file is estimated, at least."""

_TO_THE_END = sys.maxsize

ChooseNumber = Callable[[int, int], int]
"""Returns the number of shards for a number of rows and a number of distinct labels."""


@dataclass
class ReadCount:
    """Rows and bytes that were read so far, in all passes over a file.

    ``unlabelled`` counts rows without a label, ``num_empty`` shards without a labelled row, and
    ``notes`` the missing cells.
    """

    num_rows: int = 0
    num_bytes: int = 0
    unlabelled: int = 0
    num_empty: int = 0
    notes: Notes = field(default_factory=Notes)

    def add(self, other: ReadCount) -> None:
        """Add what was read elsewhere."""
        self.num_rows += other.num_rows
        self.num_bytes += other.num_bytes
        self.unlabelled += other.unlabelled
        self.num_empty += other.num_empty
        for column, found in other.notes.missing.items():
            for text, number in found.items():
                self.notes.count_missing(column, text, number)


class RawShard(NamedTuple):
    """Number, first row and Arrow table of a shard, and for each row the block it was read from."""

    number: int
    first_row: int
    table: Any
    blocks: NDArray[np.int64] | None = None


class CsvShards:
    """The rows of a text table in consecutive shards, each read when it is asked for.

    A shard ends where its share of the bytes does. The number of rows in the rest of the file is
    unknown, so as many rows as there are shards to come are read in advance: no shard is empty.

    Parameters
    ----------
    form
        The file and how it is written.
    columns
        The columns to read.
    label
        The column whose distinct values are counted for ``num_shards``.
    num_shards
        Number of shards, or a function that returns it for the number of rows, which is estimated,
        and the number of labels among the first rows.
    rows_per_shard
        Number of rows of the first shard; the bytes they take determine the number of shards.
    """

    is_shuffled = False
    num_rows = None

    def __init__(
        self,
        form: CsvFormat,
        columns: Sequence[str],
        label: str,
        num_shards: int | ChooseNumber,
        rows_per_shard: int | None,
    ) -> None:
        self._form, self._columns, self._label = form, list(columns), label
        self._first_rows, self._asked = rows_per_shard, num_shards
        self._size = form.path.stat().st_size
        known = isinstance(num_shards, int) and rows_per_shard is None
        self.num_shards = num_shards if isinstance(num_shards, int) and known else 0

    def read(self, count: ReadCount) -> Generator[RawShard]:
        """Yield the shards."""
        with _Records(self._form, self._columns, count, self._step) as records:
            if self._size <= SMALL_FILE:
                records.fill(_TO_THE_END)
            first = self._plan(records)
            row = 0
            for number in range(self.num_shards):
                later = self.num_shards - 1 - number
                goal = self._goal(number, first) if later else _TO_THE_END
                records.fill(goal, 1 + later)
                if not number and records.num_rows <= later:
                    raise self._too_few_rows(records.num_rows)
                if not number and later and self._first_rows is not None:
                    rows = self._first_rows
                elif records.at_end:
                    rows = -(-records.num_rows // (later + 1))
                else:
                    # Rows for the shards to come lie between the goal and what was read.
                    records.fill(goal + int(later * records.bytes_per_row))
                    rows = max(records.num_rows - later, 1)
                yield RawShard(number, row, records.take(rows))
                row += rows

    @property
    def _step(self) -> int:
        return min(max(self._size // (8 * max(self.num_shards, 64)), MIN_STEP), MAX_STEP)

    def _plan(self, records: _Records) -> float:
        """Set the number of shards if the first is given in rows; return its share of the file."""
        rows = self._first_rows
        if rows is None:
            if not isinstance(self._asked, int):
                records.fill(SAMPLE_BYTES, SAMPLE_ROWS)
                whole = records.num_rows if records.at_end else self._size / records.bytes_per_row
                self.num_shards = self._asked(round(whole), records.count_distinct(self._label))
            return 1.0 / self.num_shards
        while records.num_rows < rows and not records.at_end:
            lacking = int((rows - records.num_rows) * records.bytes_per_row)
            # A packed file is read by blocks, so that the first rows seem to take many bytes.
            records.fill(records.position + max(min(lacking, records.position), 1))
        share = rows * records.bytes_per_row / self._size
        later = max(round(1.0 / share) - 1 if share else 0, 0)
        records.fill(0, rows + later)
        self.num_shards = 1 + min(later, max(records.num_rows - rows, 0))
        return share

    def _goal(self, number: int, first: float) -> int:
        """Return the byte at which a shard ends; shards after the first have equal shares."""
        rest = number / max(self.num_shards - 1, 1)
        return int(self._size * (first + (1.0 - first) * rest))

    def _too_few_rows(self, num_rows: int) -> DataError:
        if not num_rows:
            only = ", only a header" if self._form.has_header else ""
            return self._form.source.error(f"there are no rows{only}")
        return self._form.source.error(
            f"there are only {num_rows} rows, too few for {self.num_shards} parts; ask for "
            f"{num_rows} parts or fewer"
        )


class _Records:
    """Rows that were read from a text table and not yet taken."""

    def __init__(
        self, form: CsvFormat, columns: Sequence[str], count: ReadCount, step: int
    ) -> None:
        self._form, self._columns, self._count, self._step = form, columns, count, step
        self._text = CsvText(form)
        self._rest = b""
        self._tables: list[Any] = []
        self._lacks_header = form.has_header
        self._rows_before = 0
        self.num_rows, self.at_end = 0, False

    def __enter__(self) -> _Records:
        return self

    def __exit__(self, *_: object) -> None:
        self._text.close()

    @property
    def position(self) -> int:
        """Bytes of the file that were read."""
        return self._text.position

    @property
    def bytes_per_row(self) -> float:
        """Bytes of the file that a row takes, on average so far."""
        return self.position / max(self._rows_before + self.num_rows, 1)

    def fill(self, goal: int, num_rows: int = 0) -> None:
        """Read up to a byte of the file, and on until there are so many rows."""
        while not self.at_end and (self.position < goal or self.num_rows < num_rows):
            before = self.position
            try:
                with explain_errors(self._form):
                    table = parse_records(self._form, self._columns, self._read(goal))
            finally:
                self._count.num_bytes += self.position - before
            if self._lacks_header and table.num_rows:
                table, self._lacks_header = table.slice(1), False
            if self._text.has_nul:
                check_nul(self._form, table, self._rows_before + self.num_rows)
            self._tables.append(table)
            self.num_rows += table.num_rows
            self._count.num_rows += table.num_rows

    def count_distinct(self, column: str) -> int:
        """Return the number of distinct cells of a column in the rows that were not taken."""
        import pyarrow as pa
        import pyarrow.compute as pc

        found: int = pc.count_distinct(pa.concat_tables(self._tables).column(column)).as_py()
        return found

    def take(self, rows: int) -> Any:
        """Remove and return the first rows as one Arrow table."""
        import pyarrow as pa

        whole = pa.concat_tables(self._tables)
        self._tables = [whole.slice(rows)]
        self.num_rows -= rows
        self._rows_before += rows
        return whole.slice(0, rows)

    def _read(self, goal: int) -> memoryview:
        """Return the text of whole records up to a byte of the file, or of one that ends later."""
        chunks, length = [self._rest] if self._rest else [], len(self._rest)
        while True:
            ahead = goal - self.position
            if ahead <= 0:
                # Twice as much where a record is long, so that it is not searched over and over.
                size = max(self._step, length)
            else:
                size = self._step if self._form.is_packed else min(ahead, MAX_STEP)
            chunk = self._text.read(max(size, len(codecs.BOM_UTF8)))
            self.at_end = not chunk
            chunks.append(chunk)
            length += len(chunk)
            if not self.at_end and self.position < goal and length < MAX_STEP:
                continue
            text = b"".join(chunks)
            if self.at_end and text.endswith(b"\r"):
                text += b"\n"
            end = end_of_records(text, self._form.delimiter)
            if end < len(text) if self.at_end else not end and length > MAX_BLOCK_BYTES:
                find_open_quote(self._form.path, self._form.encoding, self._form.delimiter)
            if end or self.at_end:
                self._rest = text[end:]
                return memoryview(text)[:end]
            chunks = [text]


def parse_records(form: CsvFormat, columns: Sequence[str], text: memoryview) -> Any:
    """Return the rows of a text as an Arrow table in which every cell is text."""
    import pyarrow as pa
    from pyarrow import csv

    if not bytes(text[:64]).strip(b"\r\n") and not bytes(text).strip(b"\r\n"):
        return pa.schema([(name, pa.string()) for name in columns]).empty_table()
    content = pa.py_buffer(text)
    if bytes(text[:3]) == codecs.BOM_UTF8:  # pyarrow would drop that of a first cell
        content = pa.py_buffer(codecs.BOM_UTF8 + bytes(text))
    return csv.read_csv(
        pa.BufferReader(content),
        read_options=csv.ReadOptions(
            column_names=form.names,
            use_threads=False,
            block_size=min(content.size, 2**31 - 1),
        ),
        parse_options=parse_options(form),
        convert_options=csv.ConvertOptions(
            column_types=dict.fromkeys(form.names, pa.string()),
            include_columns=list(columns),
            null_values=[],
            strings_can_be_null=False,
        ),
    )


def end_of_records(text: bytes, delimiter: str) -> int:
    r"""Return where the last whole record of a text ends; the text begins with a record.

    As in pyarrow and in Python's csv module, a quote counts only if its cell begins with it, and a
    line break within quotes belongs to the cell.

    Examples
    --------
    >>> end_of_records(b'a,b\n1,"x\ny', ",")
    4
    >>> end_of_records(b'5" pipe,b\n1,2\n3', ",")
    14
    """
    if b'"' in text:
        cells, records = _patterns(delimiter)
        # Most of the text is only searched for quotes; no line break lies within a doubled one.
        middle = text.rfind(b"\n", 0, max(len(text) - TAIL_BYTES, 0)) + 1
        found = records.match(text, cells.match(text, 0, middle).end())
        end: int = found.end()
        return end if end > found.start() else records.match(text).end()
    # A carriage return at the very end may be the first half of a line break.
    return text.rfind(b"\n") + 1 or text.rfind(b"\r", 0, len(text) - 1) + 1


@cache
def _patterns(delimiter: str) -> tuple[Any, Any]:
    """Return patterns of text up to a quote that is not closed, and of whole records."""
    border = re.escape(delimiter.encode())
    quoted = rb'(?<![^\r\n%b])"[^"]*+(?:""[^"]*+)*+"' % border
    stray = rb'(?<=[^\r\n%b])"' % border
    cells = rb'(?:[^"]*+(?:%b|%b))*+' % (quoted, stray)
    records = rb'(?:(?:[^"\r\n]++|%b|%b)*+(?:\n|\r\n|\r(?!\Z)))*+' % (quoted, stray)
    return re.compile(cells), re.compile(records)
