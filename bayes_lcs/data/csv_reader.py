"""Text tables, read by pyarrow with every cell as text."""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

from bayes_lcs.core.cores import num_cores
from bayes_lcs.data.ahead import each_ahead
from bayes_lcs.data.column_reading import read_columns
from bayes_lcs.data.columns import (
    BEGINNING,
    Block,
    Cost,
    Mark,
    RawColumn,
    RawTable,
    Source,
    file_stamp,
)
from bayes_lcs.data.counted_file import ReadCount
from bayes_lcs.data.csv_pieces import CsvFormat, CsvPieces, Records
from bayes_lcs.data.csv_scan import (
    is_packed,
    line_of_row,
    read_header,
)
from bayes_lcs.data.errors import DataError
from bayes_lcs.data.read_progress import reading_bar

__all__ = ["PIECE_BYTES", "raw_from_csv"]

PIECE_BYTES = 1 << 22
"""Text that is parsed together where a file is read in pieces."""

_LONG_LIST = 10_000
"""pyarrow ends the process where cells that mean "missing" are some hundred thousand letters."""

MOST_THREADS = 4
"""Pieces that are parsed at once: one thread cuts all of them, and each lies in memory."""


def raw_from_csv(
    path: Path,
    *,
    encoding: str = "utf-8",
    delimiter: str | None = None,
    header: bool | Sequence[str] = True,
    expected: Sequence[str] = (),
) -> RawTable:
    """The columns of a text table; `bayes_lcs.read_grouped` explains the parameters.

    ``expected`` are columns that should be there: they help to tell the delimiter.
    """
    if delimiter is not None and (len(delimiter) != 1 or delimiter in '"\r\n'):
        raise DataError(f"delimiter must be a single character, got {delimiter!r}", file=path.name)
    if delimiter is not None and not delimiter.isascii():
        raise DataError(f"delimiter must be an ASCII character, got {delimiter!r}", file=path.name)
    if delimiter is None and path.name.removesuffix(".gz").endswith(".tsv"):
        delimiter = "\t"
    delimiter, cells, line = read_header(path, encoding, delimiter, expected)
    names = _column_names(path, cells, line, header)
    has_header = header is True
    line_of = partial(line_of_row, path, encoding, delimiter, has_header)
    source = Source(path.name, line_of)
    stamp = f"{file_stamp(path)}, {encoding}, {delimiter}, {has_header}, {names}"

    def read(wanted: Sequence[str]) -> dict[str, RawColumn]:
        found = read_columns(blocks, source, wanted, stamp)
        if has_header and wanted and not found[wanted[0]].codes.size:
            raise source.error("there are no rows, only a header")
        return found

    def blocks(
        wanted: Sequence[str],
        after: Mark = BEGINNING,
        /,
        *,
        coded: Collection[str] = (),
        numbers: Mapping[str, frozenset[str]] = MappingProxyType({}),
    ) -> Iterator[Block]:
        # pyarrow knows one list of missing cells for all columns.
        missing = set(numbers.values())
        letters = sum(len(cell) for cells in missing for cell in cells)
        is_one = len(missing) == 1 and letters <= _LONG_LIST
        form = CsvFormat(
            path,
            encoding,
            delimiter,
            tuple(names),
            tuple(wanted),
            has_header,
            is_packed(path),
            source,
            frozenset(coded),
            frozenset(numbers if is_one else ()),
            missing.pop() if is_one else frozenset(),
        )
        return _blocks(form, after)

    def cost(_: Sequence[str]) -> Cost:
        return Cost(None, path.stat().st_size)

    return RawTable(tuple(names), source, read, blocks, cost, stamp=stamp)


def _column_names(
    path: Path, cells: list[str], line: int, header: bool | Sequence[str]
) -> list[str]:
    if header is True:
        names = cells
    elif header is False:
        names = [f"column_{number}" for number in range(1, len(cells) + 1)]
    else:
        names = [header] if isinstance(header, str) else list(header)
        if len(names) != len(cells):
            raise DataError(
                f"header= has {len(names)} names, but the first row has {len(cells)} cells",
                file=path.name,
                line=line,
            )
    for position, name in enumerate(names):
        if not name.strip():
            raise DataError(
                f"column number {position + 1} has no name; name every column in the header",
                file=path.name,
                line=line,
                column=name,
            )
        if name in names[:position]:
            raise DataError(
                "two columns have this name; rename one in the header",
                file=path.name,
                line=line,
                column=name,
            )
    return names


def _blocks(form: CsvFormat, after: Mark) -> Iterator[Block]:
    """The file in pieces of text cells; while one is worked on a few more are read."""
    with (
        CsvPieces(form, ReadCount(), PIECE_BYTES, PIECE_BYTES, after) as pieces,
        reading_bar(form.path, form.path.stat().st_size) as tick,
        closing(_parsed_ahead(pieces)) as ahead,
    ):
        tick(pieces.position)
        for records, table in ahead:
            piece = pieces.piece(records, table)
            if piece.table.num_rows:
                yield Block(piece.table, piece.mark)
            tick(piece.end - piece.begin)


def _parsed_ahead(pieces: CsvPieces) -> Generator[tuple[Records, Any]]:
    def cut() -> Iterator[Records]:
        while not pieces.at_end:
            yield pieces.cut(pieces.position + PIECE_BYTES)

    def parse(records: Records) -> tuple[Records, Any]:
        return records, pieces.parse(records)

    return each_ahead(parse, cut(), min(num_cores(), MOST_THREADS))
