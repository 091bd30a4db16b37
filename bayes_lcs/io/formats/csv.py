"""CSV files, read batch by batch with `pyarrow.csv.open_csv`."""

from __future__ import annotations

import codecs
import gzip
import io
import zlib
from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any

from bayes_lcs.core.errors import DataError, DataNote, DataWarning, one_line, warn_user
from bayes_lcs.io.column_types import parse_number
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

BLOCK_BYTES = 1 << 21
"""Text parsed at once: pyarrow reads some blocks ahead, so that larger ones fill memory."""

HEAD_BYTES = 1 << 20
"""Text from which the types of columns are told where the whole file cannot be read first."""

MAX_BLOCK_BYTES = 1 << 28
"""No record is longer than this; a quote that is not closed before is never closed."""


MAX_SPELLED = 10_000
"""Letters of all texts that mean "missing", for pyarrow to look for them."""


@dataclass(frozen=True)
class CsvFormat:
    """A text table: its file, how it is written, and its columns.

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
    """Return the columns of a text table.

    Parameters
    ----------
    path
        A text file, plain or gzipped.
    options
        How the file is written.
    expected
        Columns that should exist: they help to find the delimiter.
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
    """Read the header of a text table and find its delimiter."""
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
    """Return the names in a header; those that are empty or repeated are made as pandas makes them.

    A note lists them, but for the index, of which another note speaks.
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
            f"{path.name}, line {line}: columns with an empty or repeated name are called {some}; "
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
    numbers = [number for name in names if (number := parse_number(name)) is not None]
    whole = all(number.is_integer() for number in numbers)
    if not whole or numbers != sorted(set(numbers)):
        some = next(name for name in names if parse_number(name) is not None)
        warn_user(
            f"{path.name}, line {line}: it is taken as the header, but {some!r} is a number; if "
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


class CsvText(io.RawIOBase):
    """The text of a file as UTF-8 without byte order mark, as a stream of bytes.

    A last line without a line break gets one, so that pyarrow sees the end of the record.

    Attributes
    ----------
    position
        Bytes of the file that were read; packed bytes, if it is packed.
    num_quotes, num_lines
        Number of quote characters and of line feeds seen; the latter is 0 without quotes.
    has_nul
        Whether a NUL byte was seen.
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
        """Bytes of the file that were read."""
        return self._raw.tell()

    def readable(self) -> bool:
        """Return True."""
        return True

    def close(self) -> None:
        """Close the file, once a thread of pyarrow that reads ahead has left it.

        Its number may be given to the next file at once: the thread would take bytes of that one.
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
        # A list of one chunk is joined without a copy.
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
            # A mark is three bytes; a file is never read in smaller steps than that.
            self._is_first = False
            chunk = chunk.removeprefix(codecs.BOM_UTF8)
        if self._at_end and self._last not in b"\r\n":
            chunk += b"\n"
        self._last = chunk[-1:] or self._last
        quotes = chunk.count(b'"')
        if quotes and not self.num_quotes and self._length:
            # Most files have no quotes, and need not pay for counting their lines.
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
    """Yield tables; a record longer than a block is read again with larger blocks."""
    block, skip_rows = BLOCK_BYTES, 0
    while True:
        try:
            for table in _stream(form, columns, skip_rows, encoded, numeric, block):
                skip_rows += table.num_rows
                yield table
        except _RecordTooLong:
            block *= 8
        except _NotANumber:
            numeric = {}  # as text, the caller finds the cell
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
    missing = _common_spellings(numeric)
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
                    use_threads=not is_head,  # threads would parse blocks ahead
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
                    raise _NotANumber  # a cell that spells NaN but does not mean "missing"
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
        # A quote that is never closed swallows line breaks; so does a cell of several lines.
        lines = row + form.lines_before + form.has_header
        if text.num_quotes and (text.num_quotes % 2 or text.num_lines != lines):
            find_open_quote(form.path, form.encoding, form.delimiter)


def _common_spellings(rules: Mapping[str, MissingRule]) -> list[str] | None:
    """Return the texts that mean "missing" in all columns; None if pyarrow cannot take them."""
    distinct = set(rules.values())
    if len(distinct) > 1:
        return None
    spellings = [text for rule in distinct for text in rule.spellings]
    # pyarrow ends the process over a list of some hundred thousand letters.
    return spellings if sum(map(len, spellings)) <= MAX_SPELLED else None


def parse_options(form: CsvFormat) -> Any:
    """Return pyarrow's options for parsing."""
    from pyarrow import csv

    return csv.ParseOptions(delimiter=form.delimiter, newlines_in_values=True)


def check_nul(form: CsvFormat, table: Any, start: int) -> None:
    """Raise an error naming the first cell that holds a NUL byte."""
    import pyarrow as pa
    import pyarrow.compute as pc

    for name in table.column_names:
        cells = table.column(name)
        if not pa.types.is_floating(cells.type):
            found = pc.index(pc.match_substring(cells.cast(pa.string()), "\x00"), True).as_py()
            if found >= 0:
                raise form.source.error(
                    "the cell holds a NUL byte; the file is damaged or not a text file",
                    row=start + found,
                    column=name,
                )


@contextmanager
def explain_errors(form: CsvFormat) -> Iterator[None]:
    """Turn errors of the reader into a `DataError` that names line and column."""
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowException, UnicodeError, EOFError, OSError, zlib.error) as error:
        raise _explain(form, error) from error


def _explain(form: CsvFormat, error: Exception) -> DataError:
    """Return the error; the file is searched again for the fault that it most likely names."""
    if isinstance(error, EOFError):
        return form.source.error(f"the gzip file is cut short: {error}")
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
