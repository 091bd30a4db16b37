"""Text tables, read by pyarrow with every cell as text."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

from bayes_lcs.data.columns import Cost, RawColumn, RawTable, Source
from bayes_lcs.data.counted_file import ReadCount
from bayes_lcs.data.csv_pieces import CsvFormat, CsvPieces
from bayes_lcs.data.csv_scan import (
    find_bad_bytes,
    find_ragged_row,
    find_unclosed_quote,
    is_packed,
    line_of_row,
    open_bytes,
    read_header,
    text_encoding,
)
from bayes_lcs.data.errors import DataError, one_line
from bayes_lcs.data.parquet_reader import check_nul, column_from_arrow
from bayes_lcs.data.read_progress import TickingFile, reading_bar

__all__ = ["PIECE_BYTES", "raw_from_csv"]

_CHUNK = 1 << 24
PIECE_BYTES = 1 << 22
"""Text that is parsed together where a file is read in pieces."""


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

    def read(wanted: Sequence[str]) -> dict[str, RawColumn]:
        return _read(path, encoding, delimiter, names, wanted, source, has_header)

    def blocks(wanted: Sequence[str]) -> Iterator[Any]:
        form = CsvFormat(
            path,
            encoding,
            delimiter,
            tuple(names),
            tuple(wanted),
            has_header,
            is_packed(path),
            source,
        )
        return _blocks(form)

    def cost(_: Sequence[str]) -> Cost:
        return Cost(None, path.stat().st_size)

    return RawTable(tuple(names), source, read, blocks, cost)


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


def _read(
    path: Path,
    encoding: str,
    delimiter: str,
    names: list[str],
    wanted: Sequence[str],
    source: Source,
    has_header: bool,
) -> dict[str, RawColumn]:
    import pyarrow as pa
    from pyarrow import csv

    text = pa.dictionary(pa.int32(), pa.string())
    options = _options(encoding, delimiter, names, wanted, has_header, text)
    try:
        _check_quotes(path, encoding, delimiter)
        with reading_bar(path, path.stat().st_size) as tick, TickingFile(path, tick) as file:
            text_of_file = gzip.GzipFile(fileobj=file) if is_packed(path) else file
            table = csv.read_csv(text_of_file, **options)
    except (pa.ArrowException, UnicodeError, EOFError, OSError, zlib.error) as error:
        _explain(path, encoding, delimiter, names, error)
    return {
        name: check_nul(column_from_arrow(name, table.column(name), source), source)
        for name in wanted
    }


def _options(
    encoding: str,
    delimiter: str,
    names: list[str],
    wanted: Sequence[str],
    has_header: bool,
    text: Any,
) -> dict[str, Any]:
    """How pyarrow is to read: every cell as text, nothing guessed."""
    from pyarrow import csv

    codec = text_encoding(encoding)
    return {
        "read_options": csv.ReadOptions(
            column_names=None if has_header else names,
            encoding="utf8" if codec == "utf-8-sig" else codec,
            block_size=_CHUNK,
        ),
        "parse_options": csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
        "convert_options": csv.ConvertOptions(
            column_types=dict.fromkeys(names, text),
            include_columns=list(wanted),
            strings_can_be_null=False,
        ),
    }


def _blocks(form: CsvFormat) -> Iterator[Any]:
    """The file in pieces of text cells, as Arrow tables; nothing is read ahead."""
    with (
        CsvPieces(form, ReadCount(), PIECE_BYTES, PIECE_BYTES) as pieces,
        reading_bar(form.path, form.path.stat().st_size) as tick,
    ):
        while not pieces.at_end:
            piece = pieces.read(pieces.position + PIECE_BYTES)
            if piece.table.num_rows:
                yield piece.table
            tick(piece.end - piece.begin)


def _check_quotes(path: Path, encoding: str, delimiter: str) -> None:
    """Look for a quote that is never closed, if the number of quotes allows one."""
    quotes = 0
    with open_bytes(path) as stream:
        while chunk := stream.read(_CHUNK):
            quotes += chunk.count(b'"')
    if quotes % 2:
        find_unclosed_quote(path, encoding, delimiter)


def _explain(
    path: Path, encoding: str, delimiter: str, names: list[str], error: Exception
) -> NoReturn:
    """Raise the error that names the line and column on which reading failed."""
    if "Empty CSV file or block" in str(error):
        raise DataError("there are no rows, only a header", file=path.name) from None
    if isinstance(error, EOFError):
        raise DataError(f"the gzip file is cut short: {error}", file=path.name) from None
    if isinstance(error, gzip.BadGzipFile | zlib.error):
        raise DataError(f"the gzip file is damaged: {error}", file=path.name) from None
    find_ragged_row(path, encoding, delimiter, names)
    find_bad_bytes(path, encoding, delimiter, names)
    raise DataError(f"cannot be read as CSV: {one_line(error)}", file=path.name) from error
