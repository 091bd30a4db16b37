"""A text table in shards, in the order of the file or made of blocks from all over the file.

pyarrow's own streaming reader reads blocks ahead. Here the text is cut into whole records first, so
that no more of the file is read than was asked for, and pyarrow parses what was cut.

A file that is sorted by its label, or by time, has no part that stands for the whole. Where records
can be found from anywhere, the file is therefore cut into many small blocks of bytes, which are
dealt to the shards at random.
"""

from __future__ import annotations

import codecs
import re
from bisect import bisect_right
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
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
from bayes_lcs.io.formats.csv_diagnose import find_open_quote, line_in_blocks, text_encoding
from bayes_lcs.io.options import Notes

__all__ = [
    "CannotSeek",
    "ChooseNumber",
    "CsvShards",
    "RawShard",
    "ReadCount",
    "can_seek",
    "deal",
    "end_of_records",
]

IntArray = NDArray[np.int64]

SMALL_FILE = 1 << 18
"""A file of no more bytes than this is read at once, and divided by rows."""

MIN_STEP = 1 << 12
"""Bytes of text of a packed file that are read at a time, at least."""

TAIL_BYTES = 1 << 14
"""Text at the end of a chunk in which the end of its last record is searched first."""

SAMPLE_BYTES, SAMPLE_ROWS = 1 << 16, 1000
"""Text and rows from which the number of rows and labels of a file is estimated, at least."""

BLOCKS_PER_SHARD = 128
"""Blocks of a shard, so that the shards of a sorted file are alike."""

USUAL_SHARDS = 128
"""Shards by which blocks are sized where their number is not known yet."""

MIN_BLOCK, MAX_BLOCK = 1 << 10, 1 << 16
"""Bytes of a block."""

ROWS_PER_BLOCK = 16
"""Rows of a block, at least: with its last record, the beginning of the next one is read."""

HEAD_BYTES = 1 << 12
"""Text at the beginning of a file that is searched for the end of the header."""

CHECKED_RECORDS = 8
"""Records that must be whole after a cut, in a file that holds quotes."""

SEARCH_QUOTES = 1 << 12
"""Bytes after a cut in which a quote is searched, in a file that holds quotes."""

MAX_REJECTED = 64
"""Line breaks after a cut that may be within cells."""

MAX_SEARCH = 1 << 22
"""Bytes in which the beginning of a record is searched."""

ChooseNumber = Callable[[int, int], int]
"""Returns the number of shards for a number of rows and a number of distinct labels."""


class CannotSeek(Exception):
    """No place was found at which a text file can be cut into records: read it in order."""


def can_seek(form: CsvFormat) -> bool:
    """Return whether records can be found from anywhere in a text file.

    A packed file can only be read from its beginning. Of encodings, those are left out in which
    the byte of a delimiter may be a part of a letter.
    """
    name = codecs.lookup(text_encoding(form.encoding)).name
    return not form.is_packed and name.startswith(("utf-8", "ascii", "iso8859", "cp125"))


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
    blocks: IntArray | None = None


class CsvShards:
    """The rows of a text table in shards, each read when it is asked for.

    In order, the shards hold equally many bytes, or equally many rows of a small file. Shuffled,
    blocks that follow one another are dealt to different shards at random: every shard holds rows
    from all over the file, and given the first shard, the others come in a uniformly random order.

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
        and the number of labels in a sample.
    rows_per_shard
        Approximate number of rows of a shard, instead of ``num_shards``.
    is_shuffled
        Whether shards are made of blocks from all over the file.
    extra_rows
        Rows that the first shuffled shard holds in addition; it is at most twice as large as
        others.
    seed
        Seed of the random order.

    Attributes
    ----------
    source
        Names the line of a row; rows are counted in the order in which they were read.
    """

    num_rows = None

    def __init__(
        self,
        form: CsvFormat,
        columns: Sequence[str],
        label: str,
        num_shards: int | ChooseNumber,
        rows_per_shard: int | None = None,
        *,
        is_shuffled: bool = False,
        extra_rows: int = 0,
        seed: int = 0,
    ) -> None:
        self._columns, self._label, self._extra = list(columns), label, extra_rows
        self._asked, self._rows_per_shard, self._seed = num_shards, rows_per_shard, seed
        known = isinstance(num_shards, int) and rows_per_shard is None
        self._given = num_shards if isinstance(num_shards, int) and known else 0
        self.num_shards, self.is_shuffled = self._given, is_shuffled
        self.source = replace(form.source, line_of=self._line_of) if is_shuffled else form.source
        self._form = replace(form, source=self.source)
        self._size = form.path.stat().st_size
        self._rows_before: list[int] = []
        self._places: list[list[tuple[int, int]]] = []

    def read(self, count: ReadCount) -> Generator[RawShard]:
        """Yield the shards."""
        self.num_shards = self._given
        if self.is_shuffled:
            yield from self._read_scattered(count)
        elif self._size <= SMALL_FILE:
            yield from self._read_small(count)
        else:
            yield from self._read_in_order(count)

    def _choose(self, num_rows: float, sample: Any) -> None:
        """Set the number of shards for a number of rows."""
        import pyarrow.compute as pc

        if self._rows_per_shard is not None:
            self.num_shards = max(round(num_rows / self._rows_per_shard), 1)
        elif not isinstance(self._asked, int):
            labels = pc.count_distinct(sample.column(self._label)).as_py()
            self.num_shards = self._asked(round(num_rows), labels)

    # In order ---------------------------------------------------------------------------------

    def _read_small(self, count: ReadCount) -> Iterator[RawShard]:
        """Yield shards of equally many rows."""
        with closing(_TextStream(self._form, 1)) as stream:
            whole = self._read_to(stream, self._size + 1, 0, count)
        if not whole.num_rows:
            raise self._no_rows()
        self._choose(whole.num_rows, whole)
        if whole.num_rows < self.num_shards:
            raise self.source.error(
                f"there are only {whole.num_rows} rows, too few for {self.num_shards} parts; ask "
                f"for {whole.num_rows} parts or fewer"
            )
        for number, rows in enumerate(np.array_split(np.arange(whole.num_rows), self.num_shards)):
            first_row = int(rows[0])
            yield RawShard(number, first_row, whole.slice(first_row, len(rows)))

    def _read_in_order(self, count: ReadCount) -> Iterator[RawShard]:
        """Yield shards of equally many bytes; one is empty if a record is longer than that."""
        if not self.num_shards:
            self._choose(*self._sample())
        row = 0
        with closing(_TextStream(self._form, self.num_shards)) as stream:
            for number in range(self.num_shards):
                is_last = number == self.num_shards - 1
                goal = self._size * (number + 1) // self.num_shards + is_last
                table = self._read_to(stream, goal, row, count)
                if is_last and not row + table.num_rows:
                    raise self._no_rows()
                yield RawShard(number, row, table)
                row += table.num_rows

    def _sample(self) -> tuple[float, Any]:
        """Return the estimated number of rows, and the first of them."""
        size = SAMPLE_BYTES
        while True:
            # What is read here is read again with the first shard, and counted then.
            with closing(_TextStream(self._form, USUAL_SHARDS)) as stream:
                table = self._read_to(stream, size, 0, ReadCount())
                position = stream.position
            if table.num_rows >= SAMPLE_ROWS or stream.at_end:
                return self._size * table.num_rows / max(position, 1), table
            size *= 4

    def _read_to(self, stream: _TextStream, goal: int, first_row: int, count: ReadCount) -> Any:
        """Return the next rows, up to a byte of the file."""
        before = stream.position
        with explain_errors(self._form):
            text = stream.read(goal)
            table = parse_records(self._form, self._columns, text)
        if stream.lacks_header and table.num_rows:
            table, stream.lacks_header = table.slice(1), False
        if b"\x00" in text:
            check_nul(self._form, table, first_row)
        count.num_bytes += stream.position - before
        count.num_rows += table.num_rows
        return table

    def _no_rows(self) -> DataError:
        only = ", only a header" if self._form.has_header else ""
        return self.source.error(f"there are no rows{only}")

    # Scattered --------------------------------------------------------------------------------

    def _read_scattered(self, count: ReadCount) -> Iterator[RawShard]:
        rng = np.random.default_rng(self._seed)
        self._rows_before, self._places = [0], []
        with closing(_BlockReader(self._form, self.num_shards or USUAL_SHARDS)) as reader:
            count.num_bytes += reader.start
            table, blocks, rest = self._read_first(reader, count, rng)
            yield RawShard(0, 0, table, blocks)
            for number, own in enumerate(deal(rest, self.num_shards - 1, rng), start=1):
                first_row = self._rows_before[-1]
                yield RawShard(number, first_row, *self._read_blocks(reader, own, count))

    def _read_first(
        self, reader: _BlockReader, count: ReadCount, rng: np.random.Generator
    ) -> tuple[Any, IntArray, IntArray]:
        """Return the rows of the first shard, their blocks, and the blocks of other shards.

        The number of shards follows from a sample of the blocks.
        """
        import pyarrow as pa

        every = np.arange(reader.num_blocks)
        rows = min(SAMPLE_ROWS, self._rows_per_shard or SAMPLE_ROWS)
        wanted = rows * reader.bytes_per_row / reader.block_bytes
        if self.num_shards:
            wanted = len(every) / self.num_shards
        sample = _spread(every, int(np.ceil(wanted)), rng)
        table, blocks = self._read_blocks(reader, sample, count)
        num_rows = table.num_rows * len(every) / len(sample)
        if not self.num_shards:
            self._choose(num_rows, table)
            if self.num_shards > 1 and len(every) < 2 * self.num_shards:
                raise CannotSeek(f"there are too few rows for {self.num_shards} scattered parts")
        extra = min(self._extra / max(num_rows, 1.0), 1.0 / self.num_shards)
        lacking = int(np.ceil(len(every) * ((1.0 - extra) / self.num_shards + extra))) - len(sample)
        rest = np.setdiff1d(every, sample)
        more = rest if self.num_shards == 1 else _spread(rest, lacking, rng)
        if len(more):
            second, second_blocks = self._read_blocks(reader, more, count)
            table = pa.concat_tables([table, second])
            blocks = np.concatenate([blocks, second_blocks])
        return table, blocks, np.setdiff1d(rest, more)

    def _read_blocks(
        self, reader: _BlockReader, blocks: IntArray, count: ReadCount
    ) -> tuple[Any, IntArray]:
        """Return the rows of some blocks, and for each row the number of its block."""
        blocks = np.sort(blocks)
        pieces = [reader.read(block) for block in blocks.tolist()]
        count.num_bytes += sum(len(piece) for _, piece in pieces)
        # Whole records hold an even number of quotes; a cut within a quoted cell leaves one over.
        if any(piece.count(b'"') % 2 for _, piece in pieces):
            raise CannotSeek("a cell in quotes was cut")
        text = b"".join(piece for _, piece in pieces)
        self._places.append([(offset, len(piece)) for offset, piece in pieces])
        codec = text_encoding(self._form.encoding)
        try:
            with explain_errors(self._form):
                if codec != "utf-8-sig":
                    text = text.decode(codec).encode()
                table = parse_records(self._form, self._columns, text)
        except DataError as error:
            # Only a fault that is found in the file itself has a line.
            if error.line is not None or b'"' not in text:
                raise
            raise CannotSeek("a cell in quotes was cut") from None
        if b"\x00" in text:
            check_nul(self._form, table, self._rows_before[-1])
        self._rows_before.append(self._rows_before[-1] + table.num_rows)
        count.num_rows += table.num_rows
        sizes = [piece.count(reader.newline) for _, piece in pieces]
        sizes[-1] += not text.endswith((b"\n", b"\r"))  # the end of the file
        if sum(sizes) != table.num_rows:  # lines are empty, or within quotes
            first = self._columns[:1]
            sizes = [parse_records(self._form, first, piece).num_rows for _, piece in pieces]
        return table, np.repeat(blocks, sizes)

    def _line_of(self, row: int) -> int | None:
        """Return the line of a row that was read from blocks."""
        form = self._form
        group = min(bisect_right(self._rows_before, row), len(self._places)) - 1
        if group < 0:
            return None
        row -= self._rows_before[group]
        return line_in_blocks(form.path, form.encoding, form.delimiter, self._places[group], row)


class _TextStream:
    """Whole records of a text file, read one after the other up to places in the file."""

    def __init__(self, form: CsvFormat, num_shards: int) -> None:
        self._form, self._text, self._rest = form, CsvText(form), b""
        # Bytes of a plain file are bytes of text, so that the goal is reached at once.
        step = max(form.path.stat().st_size // (8 * num_shards), MIN_STEP)
        self._step = None if can_seek(form) else step
        self.at_end, self.lacks_header = False, form.has_header

    def close(self) -> None:
        """Close the file."""
        self._text.close()

    @property
    def position(self) -> int:
        """Bytes of the file that were read."""
        return self._text.position

    def read(self, goal: int) -> bytes:
        """Return the text of the next records, as far as they end before a byte of the file."""
        form, chunks = self._form, [self._rest]
        while not self.at_end and self.position < goal:
            size = self._step or goal - self.position
            chunks.append(self._text.read(max(size, len(codecs.BOM_UTF8))))
            self.at_end = not chunks[-1]
        text = b"".join(chunks)
        if self.at_end and text.endswith(b"\r"):
            text += b"\n"
        end = end_of_records(text, form.delimiter)
        if end < len(text) if self.at_end else len(text) - end > MAX_BLOCK_BYTES:
            find_open_quote(form.path, form.encoding, form.delimiter)
        self._rest = text[end:]
        return text[:end]


class _BlockReader:
    """Blocks of a text file: the records that begin in each.

    A record that begins with the first byte of a block belongs to the block before, so that one
    rule holds everywhere: the cut of a block is the first beginning of a record after its first
    byte.
    """

    def __init__(self, form: CsvFormat, num_shards: int) -> None:
        self._form = form
        self._file = form.path.open("rb", buffering=0)
        self._end = form.path.stat().st_size
        self._has_quotes = False
        try:
            self._lay_out(num_shards)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _lay_out(self, num_shards: int) -> None:
        """Read the header, and cut the rest into blocks."""
        head, self.start = self._read_head()
        rows = max(head[self.start :].count(self.newline), 1)
        self.bytes_per_row = max((len(head) - self.start) / rows, 1.0)
        length = max(self._end - self.start, 1)
        block = min(length / (BLOCKS_PER_SHARD * num_shards), MAX_BLOCK)
        block = max(block, MIN_BLOCK, ROWS_PER_BLOCK * self.bytes_per_row)
        self.num_blocks = max(round(length / block), 1)
        if self.num_blocks < 2 * num_shards:
            raise CannotSeek(f"there are too few rows for {num_shards} parts of scattered blocks")
        self.block_bytes = length / self.num_blocks
        edges = np.linspace(self.start, self._end, self.num_blocks + 1).round().astype(np.int64)
        self._edges: list[int] = edges.tolist()
        self._cuts = {0: self.start, self.num_blocks: self._end}

    def read(self, block: int) -> tuple[int, bytes]:
        """Return where the records of a block begin in the file, and their text."""
        start, stop = self._edges[block], self._edges[block + 1]
        # The next cut is searched in the same text; whether it holds quotes matters for both.
        text = self._read(start, stop + self._window)
        begin = self._cut(block, text)
        end = self._cut(block + 1, text[stop - start :])
        text += self._read(start + len(text), end)
        return begin, text[begin - start : end - start]

    def _read_head(self) -> tuple[bytes, int]:
        """Return the beginning of the file, and where its rows begin."""
        size = HEAD_BYTES
        while True:
            head = self._read(0, size)
            start = len(codecs.BOM_UTF8) if head.startswith(codecs.BOM_UTF8) else 0
            self.newline = b"\n" if b"\n" in head else b"\r"
            if self._form.has_header:
                start = self._end_of_header(head, start)
            if start >= 0:
                return head, start
            if len(head) >= min(self._end, MAX_SEARCH):
                raise CannotSeek("the header does not end")
            size *= 4

    def _end_of_header(self, head: bytes, start: int) -> int:
        """Return where the first record ends, -1 if it is not known."""
        end = start
        while (end := head.find(self.newline, end) + 1) > 0:
            text = head[start:end]
            is_whole = end_of_records(text + b"x", self._form.delimiter) == len(text)
            if text.strip(b"\r\n") and is_whole:
                return end
        return -1

    def _read(self, start: int, stop: int) -> bytes:
        """Return the bytes of the file from ``start`` to ``stop``."""
        self._file.seek(start)
        found = self._file.read(max(stop - start, 0))
        self._has_quotes = self._has_quotes or b'"' in found
        return found

    @property
    def _window(self) -> int:
        """Bytes after a place in which the beginning of a record is searched first."""
        records = CHECKED_RECORDS + 2 if self._has_quotes else 2
        return int(records * self.bytes_per_row) + 16

    def _cut(self, block: int, text: bytes) -> int:
        """Return where the first record begins after the first byte of a block, with its text."""
        if block not in self._cuts:
            # Quotes may be judged differently from another place: blocks never overlap.
            low, high = self._cuts.get(block - 1, 0), self._cuts.get(block + 1, self._end)
            self._cuts[block] = min(max(self._search(self._edges[block], text), low), high)
        return self._cuts[block]

    def _search(self, start: int, text: bytes) -> int:
        """Return where the first record begins after a byte of the file, with which text begins."""
        size = self._window
        while True:
            text += self._read(start + len(text), start + size)
            at_end = start + size >= self._end
            found = self._first_record(text[:size], at_end)
            if found is not None:
                return start + found
            if at_end:
                return self._end
            if size >= MAX_SEARCH:
                raise CannotSeek(f"no record is found in {size} bytes after byte {start}")
            size *= 2

    def _first_record(self, text: bytes, at_end: bool) -> int | None:
        """Return where the first record begins after a line break; None if more is needed."""
        place = 0
        for _ in range(MAX_REJECTED):
            place = text.find(self.newline, place) + 1
            if place in (0, len(text)):
                return None
            is_one = self._begins_record(text, place, at_end)
            if is_one is None:
                return None
            if is_one:
                return place
        raise CannotSeek("its quotes and line breaks do not tell where a row begins")

    def _begins_record(self, text: bytes, place: int, at_end: bool) -> bool | None:
        """Return whether a record begins at a place; None if more text is needed to know it.

        A line break within quotes begins none. So in a file that holds quotes, some records must
        follow that have as many cells as there are columns, with quotes around some of them: if
        the place were within quotes, the next quote would close a cell.
        """
        form = self._form
        if not self._has_quotes:
            end = text.find(self.newline, place)
            if end < 0 and not at_end:
                return None
            line = text[place : end if end >= 0 else len(text)].rstrip(b"\r\n")
            # An empty line may be within a cell in quotes; the next line tells.
            return bool(line) and line.count(form.delimiter.encode()) == len(form.names) - 1
        if at_end and not text.endswith((b"\n", b"\r")):
            text += b"\n"
        records, beginning = _record_patterns(form.delimiter, len(form.names))
        end = records.match(text, place).end()
        seen = text[place:end]
        if seen.count(self.newline) >= CHECKED_RECORDS and (
            b'"' in seen or len(seen) >= max(SEARCH_QUOTES, self.block_bytes)
        ):
            return True
        if at_end or not beginning.match(text, end):
            return at_end and end == len(text)
        return None


def parse_records(form: CsvFormat, columns: Sequence[str], text: bytes) -> Any:
    """Return the rows of a text as an Arrow table in which every cell is text."""
    import pyarrow as pa
    from pyarrow import csv

    if not text[:64].strip(b"\r\n") and not text.strip(b"\r\n"):
        return pa.schema([(name, pa.string()) for name in columns]).empty_table()
    if text.startswith(codecs.BOM_UTF8):  # pyarrow would drop that of a first cell
        text = codecs.BOM_UTF8 + text
    return csv.read_csv(
        pa.BufferReader(text),
        read_options=csv.ReadOptions(
            column_names=form.names, use_threads=False, block_size=min(len(text), 2**31 - 1)
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


@cache
def _record_patterns(delimiter: str, width: int) -> tuple[Any, Any]:
    """Return patterns of whole records with so many cells, and of the beginning of one.

    Quotes are only accepted around cells.
    """
    border = re.escape(delimiter.encode())
    bare = rb'[^"\r\n%b]*+' % border
    quoted = rb'"[^"]*+(?:""[^"]*+)*+'
    cell = rb'(?:%b"|%b)' % (quoted, bare)
    line_break = rb"(?:\r\n|\n|\r(?!\Z))"
    record = rb"(?:%b%b){%d}%b%b" % (cell, border, width - 1, cell, line_break)
    beginning = rb"(?:%b%b){0,%d}(?:%b\Z|%b\r?\Z)" % (cell, border, width - 1, quoted, cell)
    return re.compile(rb"(?:%b|%b)*+" % (record, line_break)), re.compile(beginning)


def deal(items: IntArray, num_hands: int, rng: np.random.Generator) -> Iterator[IntArray]:
    """Deal items to hands: of as many neighbours as there are hands, each gets a random one.

    The hands have the same law: any order of them is as likely as any other.

    Examples
    --------
    >>> hands = list(deal(np.arange(7), 3, np.random.default_rng(0)))
    >>> sorted(len(hand) for hand in hands)
    [2, 2, 3]
    >>> sorted(int(item) for hand in hands for item in hand)
    [0, 1, 2, 3, 4, 5, 6]
    """
    if num_hands < 1:
        return
    rounds, left = divmod(len(items), num_hands)
    # Those that are left over are anywhere, not at the end.
    over = np.sort(rng.choice(len(items), left, replace=False))
    dealt = rng.permuted(np.delete(items, over).reshape(rounds, num_hands), axis=1)
    lucky = rng.permutation(num_hands)[:left]
    for hand in range(num_hands):
        yield np.concatenate([dealt[:, hand], items[over[lucky == hand]]])


def _spread(items: IntArray, number: int, rng: np.random.Generator) -> IntArray:
    """Return some random items, one out of each of equally long runs."""
    number = min(max(number, 0), len(items))
    if not number:
        return items[:0]
    edges = np.arange(number + 1) * len(items) // number
    return items[rng.integers(edges[:-1], edges[1:])]
