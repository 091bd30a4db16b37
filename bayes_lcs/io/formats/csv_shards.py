"""Read a text table in shards, in the order of the file or of blocks from everywhere in it.

Pyarrow's streaming reader prefetches blocks. Here the text is first split into whole records, which
are then parsed by pyarrow, so that no more of the file is read than requested.

No contiguous part of a file that is sorted by its label, or by time, represents the whole. If the
file allows random access, it is therefore divided into many small blocks of bytes, which are
permuted to the shards at random.
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

from bayes_lcs.core.errors import DataError, plural
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
    "deal_blocks",
    "end_of_records",
]

IntArray = NDArray[np.int64]

SMALL_FILE = 1 << 18
"""Maximum size of a file that is read at once and divided by rows."""

MIN_STEP = 1 << 12
"""Minimum number of bytes of text of a gzipped file that are read at a time."""

TAIL_BYTES = 1 << 14
"""Bytes at the end of a chunk in which the end of its last record is searched first."""

SAMPLE_BYTES, SAMPLE_ROWS = 1 << 16, 1000
"""Minimum sample from which the numbers of rows and labels of a file are estimated."""

BLOCKS_PER_SHARD = 128
"""Number of blocks per shard, so that the shards of a sorted file are similar."""

USUAL_SHARDS = 128
"""Number of shards that determines the block size if their number is not known yet."""

MIN_BLOCK, MAX_BLOCK = 1 << 10, 1 << 16
"""Minimum and maximum size of a block in bytes."""

ROWS_PER_BLOCK = 16
"""Minimum number of rows per block, since each block reads into the next one."""

HEAD_BYTES = 1 << 12
"""Bytes at the beginning of a file that are first searched for the end of the header."""

CHECKED_RECORDS = 8
"""Number of valid records that must follow a cut in a file with quotes."""

SEARCH_QUOTES = 1 << 12
"""Bytes after a cut in which a quote is searched in a file with quotes."""

MAX_REJECTED = 64
"""Maximum number of line breaks after a cut that are rejected as part of a cell."""

MAX_SEARCH = 1 << 22
"""Maximum number of bytes in which the beginning of a record is searched."""

ChooseNumber = Callable[[int, int], int]
"""Function that returns the number of shards for numbers of rows and of distinct labels."""


class CannotSeek(Exception):
    """A text file cannot be split into records at an offset; it must be read in order."""


def can_seek(form: CsvFormat) -> bool:
    """Return whether records can be found at any offset of a text file.

    A gzipped file can only be read from its beginning. Encodings in which the byte of a delimiter
    can be part of another character are excluded.
    """
    name = codecs.lookup(text_encoding(form.encoding)).name
    return not form.is_packed and name.startswith(("utf-8", "ascii", "iso8859", "cp125"))


@dataclass
class ReadCount:
    """Counts of rows and bytes read so far, in all passes over a file.

    ``unlabelled`` counts rows without a label, ``num_empty`` shards without a labelled row, and
    ``notes`` missing cells.
    """

    num_rows: int = 0
    num_bytes: int = 0
    unlabelled: int = 0
    num_empty: int = 0
    notes: Notes = field(default_factory=Notes)

    def add(self, other: ReadCount) -> None:
        """Add the counts of a worker."""
        self.num_rows += other.num_rows
        self.num_bytes += other.num_bytes
        self.unlabelled += other.unlabelled
        self.num_empty += other.num_empty
        for column, found in other.notes.missing.items():
            for text, number in found.items():
                self.notes.count_missing(column, text, number)


class RawShard(NamedTuple):
    """Number, first row and Arrow table of a shard, and the block of each row."""

    number: int
    first_row: int
    table: Any
    blocks: IntArray | None = None


class CsvShards:
    """Shards of the rows of a text table, which are read on demand.

    In file order, shards have equally many bytes, or equally many rows of a small file. If they are
    shuffled, neighbouring blocks are dealt to different shards at random: every shard has rows from
    everywhere in the file, and given the first shard, all orders of the others are equally likely.

    Parameters
    ----------
    form
        The file and its format.
    columns
        The columns to read.
    label
        Column whose distinct values are counted for ``num_shards``.
    num_shards
        Number of shards, or a function that returns it for the estimated number of rows and the
        number of labels in a sample.
    rows_per_shard
        Approximate number of rows of a shard, instead of ``num_shards``.
    is_shuffled
        Whether shards consist of blocks from everywhere in the file.
    extra_rows
        Additional rows of the first shuffled shard, which is at most twice as large as others.
    seed
        Seed of the random order.

    Attributes
    ----------
    source
        Origin of the rows for errors; rows are counted in reading order.
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
        self._offsets: list[list[tuple[int, int]]] = []

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
                f"only {plural(whole.num_rows, 'row')}, too few for {self.num_shards} parts; ask "
                f"for {plural(whole.num_rows, 'part')} or fewer"
            )
        for number, rows in enumerate(np.array_split(np.arange(whole.num_rows), self.num_shards)):
            first_row = int(rows[0])
            yield RawShard(number, first_row, whole.slice(first_row, len(rows)))

    def _read_in_order(self, count: ReadCount) -> Iterator[RawShard]:
        """Yield shards of equally many bytes; a shard is empty if a record is longer than that."""
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
            # These rows are read and counted again with the first shard.
            with closing(_TextStream(self._form, USUAL_SHARDS)) as stream:
                table = self._read_to(stream, size, 0, ReadCount())
                position = stream.position
            if table.num_rows >= SAMPLE_ROWS or stream.at_end:
                return self._size * table.num_rows / max(position, 1), table
            size *= 4

    def _read_to(self, stream: _TextStream, goal: int, first_row: int, count: ReadCount) -> Any:
        """Return the next rows, up to an offset in the file."""
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
        self._rows_before, self._offsets = [0], []
        with closing(_BlockReader(self._form, self.num_shards or USUAL_SHARDS)) as reader:
            count.num_bytes += reader.start
            table, blocks, rest = self._read_first(reader, count, rng)
            yield RawShard(0, 0, table, blocks)
            for number, own in enumerate(deal_blocks(rest, self.num_shards - 1, rng), start=1):
                first_row = self._rows_before[-1]
                yield RawShard(number, first_row, *self._read_blocks(reader, own, count))

    def _read_first(
        self, reader: _BlockReader, count: ReadCount, rng: np.random.Generator
    ) -> tuple[Any, IntArray, IntArray]:
        """Return the rows of the first shard, their blocks, and the blocks of other shards.

        The number of shards is estimated from a sample of the blocks.
        """
        import pyarrow as pa

        every = np.arange(reader.num_blocks)
        rows = min(SAMPLE_ROWS, self._rows_per_shard or SAMPLE_ROWS)
        wanted = rows * reader.bytes_per_row / reader.block_bytes
        if self.num_shards:
            wanted = len(every) / self.num_shards
        sample = _draw_spread(every, int(np.ceil(wanted)), rng)
        table, blocks = self._read_blocks(reader, sample, count)
        num_rows = table.num_rows * len(every) / len(sample)
        if not self.num_shards:
            self._choose(num_rows, table)
            if self.num_shards > 1 and len(every) < 2 * self.num_shards:
                raise CannotSeek(f"the file has too few rows for {self.num_shards} scattered parts")
        extra = min(self._extra / max(num_rows, 1.0), 1.0 / self.num_shards)
        lacking = int(np.ceil(len(every) * ((1.0 - extra) / self.num_shards + extra))) - len(sample)
        rest = np.setdiff1d(every, sample)
        more = rest if self.num_shards == 1 else _draw_spread(rest, lacking, rng)
        if len(more):
            second, second_blocks = self._read_blocks(reader, more, count)
            table = pa.concat_tables([table, second])
            blocks = np.concatenate([blocks, second_blocks])
        return table, blocks, np.setdiff1d(rest, more)

    def _read_blocks(
        self, reader: _BlockReader, blocks: IntArray, count: ReadCount
    ) -> tuple[Any, IntArray]:
        """Return the rows of some blocks, and the block of each row."""
        blocks = np.sort(blocks)
        pieces = [reader.read(block) for block in blocks.tolist()]
        count.num_bytes += sum(len(piece) for _, piece in pieces)
        # Whole records have an even number of quotes; a cut within a quoted cell changes that.
        if any(piece.count(b'"') % 2 for _, piece in pieces):
            raise CannotSeek("a cell in quotes was cut")
        text = b"".join(piece for _, piece in pieces)
        self._offsets.append([(offset, len(piece)) for offset, piece in pieces])
        codec = text_encoding(self._form.encoding)
        try:
            with explain_errors(self._form):
                if codec != "utf-8-sig":
                    text = text.decode(codec).encode()
                table = parse_records(self._form, self._columns, text)
        except DataError as error:
            # Only errors that are located in the file itself have a line.
            if error.line is not None or b'"' not in text:
                raise
            raise CannotSeek("a cell in quotes was cut") from None
        if b"\x00" in text:
            check_nul(self._form, table, self._rows_before[-1])
        self._rows_before.append(self._rows_before[-1] + table.num_rows)
        count.num_rows += table.num_rows
        sizes = [piece.count(reader.newline) for _, piece in pieces]
        sizes[-1] += not text.endswith((b"\n", b"\r"))  # the end of the file
        if sum(sizes) != table.num_rows:  # empty lines, or line breaks within quotes
            first = self._columns[:1]
            sizes = [parse_records(self._form, first, piece).num_rows for _, piece in pieces]
        return table, np.repeat(blocks, sizes)

    def _line_of(self, row: int) -> int | None:
        """Return the first line of a row that was read from blocks."""
        form = self._form
        group = min(bisect_right(self._rows_before, row), len(self._offsets)) - 1
        if group < 0:
            return None
        row -= self._rows_before[group]
        return line_in_blocks(form.path, form.encoding, form.delimiter, self._offsets[group], row)


class _TextStream:
    """Sequential reader of whole records of a text file, up to given offsets."""

    def __init__(self, form: CsvFormat, num_shards: int) -> None:
        self._form, self._text, self._rest = form, CsvText(form), b""
        # The bytes of a plain file are text, so that the goal is reached in one step.
        step = max(form.path.stat().st_size // (8 * num_shards), MIN_STEP)
        self._step = None if can_seek(form) else step
        self.at_end, self.lacks_header = False, form.has_header

    def close(self) -> None:
        """Close the file."""
        self._text.close()

    @property
    def position(self) -> int:
        """Number of bytes of the file read so far."""
        return self._text.position

    def read(self, goal: int) -> bytes:
        """Return the text of the next records that end before an offset in the file."""
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
    """Reader of blocks of a text file, each with the records that begin in it.

    A record that begins with the first byte of a block belongs to the previous block, so that the
    same rule holds everywhere: the cut of a block is the first beginning of a record after its
    first byte.
    """

    def __init__(self, form: CsvFormat, num_shards: int) -> None:
        self._form = form
        self._file = form.path.open("rb", buffering=0)
        self._end = form.path.stat().st_size
        self._has_quotes = False
        try:
            self._plan_blocks(num_shards)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _plan_blocks(self, num_shards: int) -> None:
        """Read the header and divide the rest into blocks."""
        head, self.start = self._read_head()
        rows = max(head[self.start :].count(self.newline), 1)
        self.bytes_per_row = max((len(head) - self.start) / rows, 1.0)
        length = max(self._end - self.start, 1)
        block = min(length / (BLOCKS_PER_SHARD * num_shards), MAX_BLOCK)
        block = max(block, MIN_BLOCK, ROWS_PER_BLOCK * self.bytes_per_row)
        self.num_blocks = max(round(length / block), 1)
        if self.num_blocks < 2 * num_shards:
            raise CannotSeek(
                f"the file has too few rows for {num_shards} parts of scattered blocks"
            )
        self.block_bytes = length / self.num_blocks
        edges = np.linspace(self.start, self._end, self.num_blocks + 1).round().astype(np.int64)
        self._edges: list[int] = edges.tolist()
        self._cut_offsets = {0: self.start, self.num_blocks: self._end}

    def read(self, block: int) -> tuple[int, bytes]:
        """Return the offset of the records of a block, and their text."""
        start, stop = self._edges[block], self._edges[block + 1]
        # The next cut is searched in the same text, so that quotes affect both cuts equally.
        text = self._read(start, stop + self._window)
        begin = self._find_cut(block, text)
        end = self._find_cut(block + 1, text[stop - start :])
        text += self._read(start + len(text), end)
        return begin, text[begin - start : end - start]

    def _read_head(self) -> tuple[bytes, int]:
        """Return the beginning of the file, and the offset of its first row."""
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
                raise CannotSeek("the end of the header was not found")
            size *= 4

    def _end_of_header(self, head: bytes, start: int) -> int:
        """Return the offset of the end of the first record, or -1 if it is not found."""
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
        """Number of bytes in which the beginning of a record is searched first."""
        records = CHECKED_RECORDS + 2 if self._has_quotes else 2
        return int(records * self.bytes_per_row) + 16

    def _find_cut(self, block: int, text: bytes) -> int:
        """Return the offset of the first record after the first byte of a block."""
        if block not in self._cut_offsets:
            # Searches from other offsets may interpret quotes differently: prevent overlaps.
            low, high = (
                self._cut_offsets.get(block - 1, 0),
                self._cut_offsets.get(block + 1, self._end),
            )
            self._cut_offsets[block] = min(
                max(self._find_record(self._edges[block], text), low), high
            )
        return self._cut_offsets[block]

    def _find_record(self, start: int, text: bytes) -> int:
        """Return the offset of the first record after ``start``, where ``text`` begins."""
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
                raise CannotSeek(f"no record was found in {size} bytes after byte {start}")
            size *= 2

    def _first_record(self, text: bytes, at_end: bool) -> int | None:
        """Return the offset of the first record after a line break; None if more text is needed."""
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
        raise CannotSeek("the beginning of a row cannot be determined from quotes and line breaks")

    def _begins_record(self, text: bytes, place: int, at_end: bool) -> bool | None:
        """Return whether a record begins at an offset; None if more text is needed.

        A line break within quotes does not begin a record. In a file with quotes, some records must
        therefore follow that have as many cells as there are columns, with quotes around some of
        them: if the offset were within quotes, the next quote would close a cell.
        """
        form = self._form
        if not self._has_quotes:
            end = text.find(self.newline, place)
            if end < 0 and not at_end:
                return None
            line = text[place : end if end >= 0 else len(text)].rstrip(b"\r\n")
            # An empty line may be within a quoted cell; the next line decides.
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
    """Parse records to an Arrow table in which every cell is text."""
    import pyarrow as pa
    from pyarrow import csv

    if not text[:64].strip(b"\r\n") and not text.strip(b"\r\n"):
        return pa.schema([(name, pa.string()) for name in columns]).empty_table()
    if text.startswith(codecs.BOM_UTF8):  # pyarrow would drop one in the first cell
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
    r"""Return the offset of the end of the last whole record of a text that begins with a record.

    As in pyarrow and in Python's csv module, a quote counts only at the beginning of a cell, and a
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
        # Most of the text is only searched for quotes; a doubled quote has no line break in it.
        middle = text.rfind(b"\n", 0, max(len(text) - TAIL_BYTES, 0)) + 1
        found = records.match(text, cells.match(text, 0, middle).end())
        end: int = found.end()
        return end if end > found.start() else records.match(text).end()
    # A carriage return at the end may be the first half of a line break.
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
    """Return patterns of whole records with ``width`` cells, and of the beginning of one.

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


def deal_blocks(items: IntArray, num_hands: int, rng: np.random.Generator) -> Iterator[IntArray]:
    """Deal items to hands: of ``num_hands`` neighbours, each hand gets a random one.

    The hands are exchangeable: all orders of them are equally likely.

    Examples
    --------
    >>> hands = list(deal_blocks(np.arange(7), 3, np.random.default_rng(0)))
    >>> sorted(len(hand) for hand in hands)
    [2, 2, 3]
    >>> sorted(int(item) for hand in hands for item in hand)
    [0, 1, 2, 3, 4, 5, 6]
    """
    if num_hands < 1:
        return
    rounds, left = divmod(len(items), num_hands)
    # Surplus items are chosen anywhere, not only at the end.
    over = np.sort(rng.choice(len(items), left, replace=False))
    permuted = rng.permuted(np.delete(items, over).reshape(rounds, num_hands), axis=1)
    extra_hands = rng.permutation(num_hands)[:left]
    for hand in range(num_hands):
        yield np.concatenate([permuted[:, hand], items[over[extra_hands == hand]]])


def _draw_spread(items: IntArray, number: int, rng: np.random.Generator) -> IntArray:
    """Return a stratified random sample of items, one from each of equally long runs."""
    number = min(max(number, 0), len(items))
    if not number:
        return items[:0]
    edges = np.arange(number + 1) * len(items) // number
    return items[rng.integers(edges[:-1], edges[1:])]
