"""CSV files, read batch by batch with `pyarrow.csv.open_csv`."""

from __future__ import annotations

import codecs
import gzip
import io
import re
import zlib
from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any

from bayes_lcs.core.errors import DataError, DataNote, DataWarning, one_line, plural, warn_user
from bayes_lcs.io.formats.csv_diagnose import (
    find_bad_bytes,
    find_open_quote,
    find_ragged_row,
    is_packed,
    line_of_row,
    read_header,
    text_encoding,
)
from bayes_lcs.io.options import DEFAULT_CSV, INDEX_NAME, CsvOptions, MissingRule
from bayes_lcs.io.raw_table import NO_RULES, RawTable, SizeEstimate, Source, file_stamp
from bayes_lcs.runtime.progress import reading_bar

__all__ = [
    "CsvFormat",
    "CsvText",
    "check_nul",
    "explain_errors",
    "open_csv_table",
    "parse_options",
    "read_format",
]

_NUMBER = re.compile(r"0|-?[1-9]\d*(\.\d+)?|-?0?\.\d+")

BLOCK_BYTES = 1 << 21
"""Block size of pyarrow, which prefetches some blocks: larger ones need more memory."""

HEAD_BYTES = 1 << 20
"""Bytes of text from which column types are inferred if the file is not read completely first."""

MAX_BLOCK_BYTES = 1 << 28
"""Maximum length of a record; a quote that is open for longer is taken as never closed."""

MAX_MARKER_LETTERS = 10_000
"""Maximum total length of the markers of missing cells that are passed to pyarrow."""


@dataclass(frozen=True)
class CsvFormat:
    """Path, text format and columns of a CSV file.

    ``lines_before`` counts the lines before the first record.
    """

    path: Path
    encoding: str
    delimiter: str
    names: tuple[str, ...]
    has_header: bool
    is_packed: bool
    lines_before: int
    source: Source


def open_csv_table(
    path: Path, options: CsvOptions = DEFAULT_CSV, expected: Sequence[str] = ()
) -> RawTable:
    """Open a CSV file as a raw table.

    Parameters
    ----------
    path
        A text file, plain or gzipped.
    options
        Format of the text.
    expected
        Columns that should exist, which help to detect the delimiter.
    """
    form = read_format(path, options, expected)
    stamp = f"{file_stamp(path)}, {options}, {form.names}"

    def batches(
        columns: Sequence[str],
        /,
        *,
        encoded: Collection[str] = (),
        numeric: Mapping[str, MissingRule] = NO_RULES,
    ) -> Iterator[Any]:
        return _read_batches(form, columns, encoded, numeric)

    def size() -> SizeEstimate:
        return SizeEstimate(None, path.stat().st_size)

    def head(columns: Sequence[str]) -> Any:
        for block in (HEAD_BYTES, MAX_BLOCK_BYTES):
            with (
                suppress(_RecordTooLong),
                closing(_stream(form, columns, 0, (), {}, block, is_head=True)) as tables,
            ):
                return next(tables, None)
        return None

    return RawTable(form.names, form.source, batches, size, stamp=stamp, head=head)


def read_format(path: Path, options: CsvOptions, expected: Sequence[str] = ()) -> CsvFormat:
    """Read the header of a CSV file and detect its delimiter."""
    delimiter = options.delimiter
    if delimiter is not None and (len(delimiter) != 1 or delimiter in '"\r\n'):
        raise DataError(f"delimiter must be a single character, got {delimiter!r}", file=path.name)
    if delimiter is not None and not delimiter.isascii():
        raise DataError(f"delimiter must be an ASCII character, got {delimiter!r}", file=path.name)
    if delimiter is None and path.name.removesuffix(".gz").endswith(".tsv"):
        delimiter = "\t"
    delimiter, cells, line = read_header(path, options.encoding, delimiter, expected)
    names = _column_names(path, cells, line, options.header)
    has_header = options.header is True
    line_of = partial(line_of_row, path, options.encoding, delimiter, has_header)
    return CsvFormat(
        path,
        options.encoding,
        delimiter,
        tuple(names),
        has_header,
        is_packed(path),
        line - 1,
        Source(path.name, line_of),
    )


def _unique_names(path: Path, cells: list[str], line: int) -> list[str]:
    """Return the names in a header; empty or repeated names are replaced as in pandas.

    A note lists the new names, except that of the index, which has its own note.
    """
    names: list[str] = []
    changed = []
    for position, cell in enumerate(cells):
        name = cell
        if not cell.strip() and len(cells) > 1:
            name = f"Unnamed: {position}"
        number = 0
        while name in names:
            number += 1
            name = f"{cell}.{number}"
        names.append(name)
        if name != cell and name != INDEX_NAME:
            changed.append(name)
    if changed:
        some = ", ".join(map(repr, changed[:8])) + (", …" if len(changed) > 8 else "")
        warn_user(
            f"{path.name}, line {line}: columns with an empty or repeated name are renamed {some}; "
            "if this line is not a header, pass header=False",
            DataNote,
        )
    else:
        _warn_of_values(path, names, line)
    return names


def _warn_of_values(path: Path, names: Sequence[str], line: int) -> None:
    """Warn if the header looks like a row of values, which would be lost.

    Whole numbers in ascending order are names, such as years or the columns of an array.
    """
    numbers = [float(name) for name in names if _NUMBER.fullmatch(name.strip())]
    if not all(map(float.is_integer, numbers)) or numbers != sorted(set(numbers)):
        example = next(name for name in names if _NUMBER.fullmatch(name.strip()))
        warn_user(
            f"{path.name}, line {line}: it is taken as the header, but {example!r} is a number; if "
            "this line is a row, pass header=False",
            DataWarning,
        )


def _column_names(
    path: Path, cells: list[str], line: int, header: bool | Sequence[str]
) -> list[str]:
    if header is True:
        names = _unique_names(path, cells, line)
    elif header is False:
        names = [f"column_{number}" for number in range(1, len(cells) + 1)]
    else:
        names = [header] if isinstance(header, str) else [str(name) for name in header]
        if len(names) != len(cells):
            raise DataError(
                f"header= has {plural(len(names), 'name')}, but the first row has "
                f"{plural(len(cells), 'cell')}",
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
                "two columns have this name; rename one of them in the header",
                file=path.name,
                line=line,
                column=name,
            )
    return names


class CsvText(io.RawIOBase):
    """Stream of the text of a file, as bytes of UTF-8 without byte order mark.

    A line break is added to a last line without one, so that pyarrow sees the end of the record.

    Attributes
    ----------
    position
        Number of bytes of the file read so far; compressed bytes of a gzipped file.
    num_quotes, num_lines
        Number of quote characters and of line feeds seen; the latter is 0 without quotes.
    has_nul
        Whether a NUL byte was read.
    """

    def __init__(self, form: CsvFormat) -> None:
        self._form, self._length = form, 0
        self._lock = Lock()
        self._raw = form.path.open("rb", buffering=0)
        self._unpacked = gzip.GzipFile(fileobj=self._raw) if form.is_packed else None
        codec = text_encoding(form.encoding)
        self._decoder = None if codec == "utf-8-sig" else codecs.getincrementaldecoder(codec)()
        self._held = b""
        self._is_first, self._at_end = True, False
        self._last = b"\n"
        self.num_quotes, self.num_lines, self.has_nul = 0, 0, False

    @property
    def position(self) -> int:
        """Number of bytes of the file read so far."""
        return self._raw.tell()

    def readable(self) -> bool:
        """Return True."""
        return True

    def close(self) -> None:
        """Close the file after pyarrow's prefetching thread has finished its read.

        Otherwise the file descriptor may be reused, and the thread would read from another file.
        """
        with self._lock:
            self._raw.close()
        super().close()

    def read(self, size: int | None = -1, /) -> bytes:
        """Return up to ``size`` bytes of text, empty at the end."""
        with self._lock:
            return self._read(size)

    def _read(self, size: int | None) -> bytes:
        wanted = 1 << 62 if size is None or size < 0 else size
        # Joining a list of one chunk makes no copy.
        chunks, length = [self._held] if self._held else [], len(self._held)
        while length < wanted and not self._at_end:
            chunk = self._next(min(wanted - length, 1 << 24))
            chunks.append(chunk)
            length += len(chunk)
        text = b"".join(chunks)
        if length <= wanted:
            self._held = b""
            return text
        self._held = text[wanted:]
        return text[:wanted]

    def _next(self, size: int) -> bytes:
        stream = self._raw if self._unpacked is None else self._unpacked
        chunk = stream.read(size) or b""
        self._at_end = not chunk
        if self._decoder is not None:
            chunk = self._decoder.decode(chunk, final=self._at_end).encode()
        if self._is_first and (chunk or self._at_end):
            # A byte order mark has three bytes; reads are never smaller than that.
            self._is_first = False
            chunk = chunk.removeprefix(codecs.BOM_UTF8)
        if self._at_end and self._last not in b"\r\n":
            chunk += b"\n"
        self._last = chunk[-1:] or self._last
        quotes = chunk.count(b'"')
        if quotes and not self.num_quotes and self._length:
            # Lines are counted only in files with quotes, so read again up to here.
            with CsvText(self._form) as again:
                seen = 0
                while part := again.read(min(self._length - seen, 1 << 20)):
                    seen += len(part)
                    self.num_lines += part.count(b"\n")
        self.num_quotes += quotes
        if self.num_quotes:
            self.num_lines += chunk.count(b"\n")
        self._length += len(chunk)
        self.has_nul = self.has_nul or b"\x00" in chunk
        return chunk


def _read_batches(
    form: CsvFormat,
    columns: Sequence[str],
    encoded: Collection[str],
    numeric: Mapping[str, MissingRule],
) -> Iterator[Any]:
    """Yield tables; use larger blocks if a record is longer than a block."""
    block, skip_rows = BLOCK_BYTES, 0
    while True:
        try:
            for table in _stream(form, columns, skip_rows, encoded, numeric, block):
                skip_rows += table.num_rows
                yield table
        except _RecordTooLong:
            block *= 8
        except _NotANumber:
            numeric = {}  # read as text, so that the caller can locate the cell
        else:
            return


class _RecordTooLong(Exception):
    pass


class _NotANumber(Exception):
    pass


def _stream(
    form: CsvFormat,
    columns: Sequence[str],
    skip_rows: int,
    encoded: Collection[str],
    numeric: Mapping[str, MissingRule],
    block: int,
    *,
    is_head: bool = False,
) -> Generator[Any]:
    import pyarrow as pa
    import pyarrow.compute as pc
    from pyarrow import csv

    kinds: dict[str, Any] = dict.fromkeys(form.names, pa.string())
    kinds.update(dict.fromkeys(encoded, pa.dictionary(pa.int32(), pa.string())))
    missing = _common_markers(numeric)
    if missing is None:
        numeric, missing = {}, []
    kinds.update(dict.fromkeys(numeric, pa.float64()))
    own_markers = [name for name, rule in numeric.items() if rule.tokens is not None]
    with (
        CsvText(form) as text,
        explain_errors(form),
        reading_bar(form.path, form.path.stat().st_size) as tick,
    ):
        try:
            reader = csv.open_csv(
                pa.PythonFile(text, mode="r"),
                read_options=csv.ReadOptions(
                    column_names=form.names,
                    skip_rows=form.lines_before,
                    skip_rows_after_names=int(form.has_header),
                    block_size=block,
                    use_threads=not is_head,  # threads would prefetch blocks
                ),
                parse_options=parse_options(form),
                convert_options=csv.ConvertOptions(
                    column_types=kinds,
                    include_columns=list(columns),
                    null_values=missing,
                    strings_can_be_null=False,
                ),
            )
            row, seen = 0, 0
            for batch in reader:
                table = pa.Table.from_batches([batch])
                if text.has_nul:
                    check_nul(form, table, row)
                if any(pc.any(pc.is_nan(table.column(name))).as_py() for name in own_markers):
                    raise _NotANumber  # a cell with NaN that is not a marker of missing cells
                row += table.num_rows
                if row > skip_rows:
                    kept = table.slice(max(table.num_rows - (row - skip_rows), 0))
                    if kept.num_rows:
                        yield kept
                tick(text.position - seen)
                seen = text.position
        except pa.ArrowInvalid as error:
            if "straddling" in str(error) and block < min(MAX_BLOCK_BYTES, 1 << 31):
                raise _RecordTooLong from None
            if "conversion error to double" in str(error):
                raise _NotANumber from None
            raise
        # A quote that is never closed includes line breaks; so does a cell with several lines.
        lines = row + form.lines_before + form.has_header
        if text.num_quotes and (text.num_quotes % 2 or text.num_lines != lines):
            find_open_quote(form.path, form.encoding, form.delimiter)


def _common_markers(rules: Mapping[str, MissingRule]) -> list[str] | None:
    """Return the common markers of all columns; None if pyarrow cannot handle them."""
    distinct = set(rules.values())
    if len(distinct) > 1:
        return None
    spellings = [text for rule in distinct for text in rule.spellings]
    # pyarrow crashes if the list has some hundred thousand letters.
    return spellings if sum(map(len, spellings)) <= MAX_MARKER_LETTERS else None


def parse_options(form: CsvFormat) -> Any:
    """Return the parse options for pyarrow."""
    from pyarrow import csv

    return csv.ParseOptions(delimiter=form.delimiter, newlines_in_values=True)


def check_nul(form: CsvFormat, table: Any, start: int) -> None:
    """Raise an error with the position of the first cell with a NUL byte, if there is one."""
    import pyarrow as pa
    import pyarrow.compute as pc

    for name in table.column_names:
        cells = table.column(name)
        if not pa.types.is_floating(cells.type):
            found = pc.index(pc.match_substring(cells.cast(pa.string()), "\x00"), True).as_py()
            if found >= 0:
                raise form.source.error(
                    "the cell contains a NUL byte; the file is damaged or not a text file",
                    row=start + found,
                    column=name,
                )


@contextmanager
def explain_errors(form: CsvFormat) -> Iterator[None]:
    """Convert errors of the reader to a `DataError` with line and column."""
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowException, UnicodeError, EOFError, OSError, zlib.error) as error:
        raise _explain(form, error) from error


def _explain(form: CsvFormat, error: Exception) -> DataError:
    """Return the error for a fault that is located by searching the file again."""
    if isinstance(error, EOFError):
        return form.source.error(f"the gzip file is incomplete: {error}")
    if isinstance(error, gzip.BadGzipFile | zlib.error):
        return form.source.error(f"the gzip file is damaged: {error}")
    searches = [find_ragged_row, find_bad_bytes]
    if "CSV parse error" not in str(error):
        searches.reverse()
    if "straddling" in str(error):
        find_open_quote(form.path, form.encoding, form.delimiter)
    for search in searches:
        search(form.path, form.encoding, form.delimiter, form.names)
    return form.source.error(f"cannot be read as CSV: {one_line(error)}")
