"""A text table in shards of blocks that are scattered over the file and come in a random order.

A file that is sorted by its label, or by time, has no part that stands for the whole. Here the file
is cut into many small blocks of bytes, and each shard is made of blocks from all over the file.
"""

from __future__ import annotations

import codecs
import re
from bisect import bisect_right
from collections.abc import Generator, Iterator, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayes_lcs.core.errors import DataError
from bayes_lcs.io.formats.csv import CsvFormat, check_nul, explain_errors
from bayes_lcs.io.formats.csv_diagnose import line_in_blocks, text_encoding
from bayes_lcs.io.formats.csv_shards import (
    ChooseNumber,
    RawShard,
    ReadCount,
    end_of_records,
    parse_records,
)

__all__ = ["CannotSeek", "CsvBlocks", "can_seek", "deal"]

IntArray = NDArray[np.int64]

BLOCKS_PER_SHARD = 128
"""Blocks of a shard, so that the shards of a sorted file are alike."""

USUAL_SHARDS = 128
"""Shards by which blocks are sized where their number is not known yet."""

MIN_BLOCK, MAX_BLOCK = 1 << 10, 1 << 16
"""Bytes of a block."""

ROWS_PER_BLOCK = 16
"""Rows of a block, at least: with its last record, the beginning of the next one is read."""

SAMPLE_ROWS = 1000
"""Rows from which the number of rows and labels of a file is estimated."""

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


class CannotSeek(Exception):
    """No place was found at which a text file can be cut into records: read it in order."""


def can_seek(form: CsvFormat) -> bool:
    """Return whether records can be found from anywhere in a text file.

    A packed file can only be read from its beginning. Of encodings, those are left out in which
    the byte of a delimiter may be a part of a letter.
    """
    name = codecs.lookup(text_encoding(form.encoding)).name
    return not form.is_packed and name.startswith(("utf-8", "ascii", "iso8859", "cp125"))


class CsvBlocks:
    """The rows of a text table in shards of scattered blocks, each read when it is asked for.

    Blocks that follow one another are dealt to different shards at random. So every shard holds
    rows from all over the file, and given the first shard, the others come in a uniformly random
    order. No byte is read twice.

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
        and the number of labels in a random sample.
    rows_per_shard
        Approximate number of rows of a shard, instead of ``num_shards``.
    extra_rows
        Rows that the first shard holds in addition; it is at most twice as large as others.
    seed
        Seed of the random order.

    Attributes
    ----------
    source
        Names the line of a row; rows are counted in the order in which they were read.
    """

    is_shuffled = True
    num_rows = None

    def __init__(
        self,
        form: CsvFormat,
        columns: Sequence[str],
        label: str,
        num_shards: int | ChooseNumber,
        rows_per_shard: int | None,
        extra_rows: int,
        seed: int,
    ) -> None:
        self._columns, self._label, self._extra = list(columns), label, extra_rows
        self._asked, self._rows_per_shard, self._seed = num_shards, rows_per_shard, seed
        known = isinstance(num_shards, int) and rows_per_shard is None
        self._given = num_shards if isinstance(num_shards, int) and known else 0
        self.num_shards = self._given
        self.source = replace(form.source, line_of=self._line_of)
        self._form = replace(form, source=self.source)
        self._rows_before: list[int] = []
        self._places: list[list[tuple[int, int]]] = []

    def read(self, count: ReadCount) -> Generator[RawShard]:
        """Yield the shards."""
        rng = np.random.default_rng(self._seed)
        self._rows_before, self._places = [0], []
        self.num_shards = self._given
        with _BlockReader(self._form, count, self.num_shards or USUAL_SHARDS) as reader:
            yield RawShard(0, 0, *self._read_first(reader, count, rng))
            for number, blocks in enumerate(deal(self._rest, self.num_shards - 1, rng), start=1):
                first_row = self._rows_before[-1]
                yield RawShard(number, first_row, *self._read_blocks(reader, blocks, count))

    def _read_first(
        self, reader: _BlockReader, count: ReadCount, rng: np.random.Generator
    ) -> tuple[Any, IntArray]:
        """Return the rows of the first shard; from some of them the number of shards follows."""
        import pyarrow as pa

        every = np.arange(reader.num_blocks)
        rows = min(SAMPLE_ROWS, self._rows_per_shard or SAMPLE_ROWS)
        wanted = rows * reader.bytes_per_row / reader.block_bytes
        if self.num_shards:
            wanted = len(every) / self.num_shards
        sample = _spread(every, int(np.ceil(wanted)), rng)
        table, own_blocks = self._read_blocks(reader, sample, count)
        num_rows = table.num_rows * len(every) / len(sample)
        if not self.num_shards:
            self.num_shards = self._choose(round(num_rows), table)
            if self.num_shards > 1 and len(every) < 2 * self.num_shards:
                raise CannotSeek(f"there are too few rows for {self.num_shards} scattered parts")
        extra = min(self._extra / max(num_rows, 1.0), 1.0 / self.num_shards)
        lacking = int(np.ceil(len(every) * ((1.0 - extra) / self.num_shards + extra))) - len(sample)
        rest = np.setdiff1d(every, sample)
        more = rest if self.num_shards == 1 else _spread(rest, lacking, rng)
        self._rest = np.setdiff1d(rest, more)
        if not len(more):
            return table, own_blocks
        second, second_blocks = self._read_blocks(reader, more, count)
        return pa.concat_tables([table, second]), np.concatenate([own_blocks, second_blocks])

    def _choose(self, num_rows: int, sample: Any) -> int:
        """Return the number of shards for an estimated number of rows."""
        import pyarrow.compute as pc

        if self._rows_per_shard is not None:
            return max(round(num_rows / self._rows_per_shard), 1)
        assert not isinstance(self._asked, int)
        return self._asked(num_rows, pc.count_distinct(sample.column(self._label)).as_py())

    def _read_blocks(
        self, reader: _BlockReader, blocks: IntArray, count: ReadCount
    ) -> tuple[Any, IntArray]:
        """Return the rows of some blocks, and for each row the number of its block."""
        blocks = np.sort(blocks)
        pieces = [reader.read(block) for block in blocks.tolist()]
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
                table = parse_records(self._form, self._columns, memoryview(text))
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
        if sum(sizes) != table.num_rows:  # lines are empty, or within quotes
            first = self._columns[:1]
            sizes = [parse_records(self._form, first, memoryview(p)).num_rows for _, p in pieces]
        return table, np.repeat(blocks, sizes)

    def _line_of(self, row: int) -> int | None:
        """Return the line of a row that was read."""
        form = self._form
        group = min(bisect_right(self._rows_before, row), len(self._places)) - 1
        if group < 0:
            return None
        row -= self._rows_before[group]
        return line_in_blocks(form.path, form.encoding, form.delimiter, self._places[group], row)


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


class _BlockReader:
    """Blocks of a text file: the records that begin in each, and no byte read twice.

    A record that begins with the first byte of a block belongs to the block before, so that one
    rule holds everywhere: the cut of a block is the first beginning of a record after its first
    byte. What was read to find a cut is kept until its block is read.
    """

    def __init__(self, form: CsvFormat, count: ReadCount, num_shards: int) -> None:
        self._form, self._count = form, count
        self._file = form.path.open("rb", buffering=0)
        self._end = form.path.stat().st_size
        self._has_quotes = False
        try:
            self._lay_out(num_shards)
        except BaseException:
            self._file.close()
            raise

    def _lay_out(self, num_shards: int) -> None:
        """Read the header, and cut the rest into blocks."""
        head, start = self._read_head()
        rows = max(head[start:].count(self.newline), 1)
        self.bytes_per_row = max((len(head) - start) / rows, 1.0)
        length = max(self._end - start, 1)
        block = min(length / (BLOCKS_PER_SHARD * num_shards), MAX_BLOCK)
        block = max(block, MIN_BLOCK, ROWS_PER_BLOCK * self.bytes_per_row)
        self.num_blocks = max(round(length / block), 1)
        if self.num_blocks < 2 * num_shards:
            raise CannotSeek(f"there are too few rows for {num_shards} parts of scattered blocks")
        self.block_bytes = length / self.num_blocks
        edges = np.linspace(start, self._end, self.num_blocks + 1).round().astype(np.int64)
        self._edges: list[int] = edges.tolist()
        self._cuts = {0: start, self.num_blocks: self._end}
        self._known: dict[int, bytes] = {}
        for block_number, edge in enumerate(self._edges[:-1]):
            if edge >= len(head):
                break
            self._known[block_number] = head[edge : self._edges[block_number + 1]]
        self._done: set[int] = set()

    def __enter__(self) -> _BlockReader:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def read(self, block: int) -> tuple[int, bytes]:
        """Return where the records of a block begin in the file, and their text."""
        start, stop = self._edges[block], self._edges[block + 1]
        whole = self._peek(block, stop - start)
        begin = self._cut(block)
        end = self._cut(block + 1)
        text = b""
        if begin < end:
            text = whole[begin - start :] + self._between(block + 1, end)
            if end == self._end and not text.endswith((b"\n", b"\r")):
                text += b"\n"
        # The bytes before the cut belong to a block that may still be read.
        self._known[block] = whole[: max(begin - start, 0)]
        self._done.add(block)
        return begin, text

    def _read_head(self) -> tuple[bytes, int]:
        """Return the beginning of the file, and where its rows begin."""
        size = HEAD_BYTES
        head = b""
        while True:
            head += self._pread(len(head), size - len(head))
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
            if text.strip(b"\r\n") and end_of_records(text + b"x", self._form.delimiter) == len(
                text
            ):
                return end
        return -1

    def _pread(self, offset: int, size: int) -> bytes:
        self._file.seek(offset)
        found = b""
        while len(found) < size and (chunk := self._file.read(size - len(found))):
            found += chunk
        self._count.num_bytes += len(found)
        self._has_quotes = self._has_quotes or b'"' in found
        return found

    def _peek(self, block: int, size: int) -> bytes:
        """Return at least so many of the first bytes of a block, if it has them."""
        known = self._known.get(block, b"")
        size = min(size, self._edges[block + 1] - self._edges[block])
        if len(known) < size and block not in self._done:
            known += self._pread(self._edges[block] + len(known), size - len(known))
            self._known[block] = known
        return known

    def _between(self, block: int, end: int) -> bytes:
        """Return the text from the beginning of a block to a place in the file."""
        pieces = []
        while block < self.num_blocks and self._edges[block] < end:
            size = end - self._edges[block]
            pieces.append(self._peek(block, size)[:size])
            block += 1
        return b"".join(pieces)

    def _cut(self, block: int) -> int:
        """Return where the first record begins after the first byte of a block."""
        if block not in self._cuts:
            self._cuts[block] = self._search(block)
        return self._cuts[block]

    def _search(self, block: int) -> int:
        start = self._edges[block]
        size = int(2 * self.bytes_per_row) + 16
        while True:
            text = self._between(block, min(start + size, self._end))
            at_end = start + len(text) >= self._end
            found = self._first_record(text, at_end)
            if found is not None:
                later = self._cuts.get(block + 1, self._end)
                return min(start + found, later)
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
