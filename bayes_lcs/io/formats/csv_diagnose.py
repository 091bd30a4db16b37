"""Read the header of a text file, and locate the line and column of an error.

Pyarrow does not report lines. After an error, and only then, the file is searched with Python's csv
module, which does.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import re
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import IO

from bayes_lcs.core.errors import DataError, plural

__all__ = [
    "find_bad_bytes",
    "find_open_quote",
    "find_ragged_row",
    "is_packed",
    "line_in_blocks",
    "line_of_row",
    "read_header",
    "text_encoding",
]

_CHUNK = 1 << 16
NUM_SPACED_RECORDS = 20
"""Number of records that are tested for separation by spaces."""
DELIMITERS = (",", ";", "\t", "|")
_REPLACEMENT = "\ufffd"
_UNDECODED = re.compile("[\udc80-\udcff]")
"""Characters for undecodable bytes with ``surrogateescape``."""


def _open_bytes(path: Path) -> gzip.GzipFile | io.BufferedReader:
    """Open a file, decompressing gzip whatever its name."""
    return gzip.open(path, "rb") if is_packed(path) else path.open("rb")


def is_packed(path: Path) -> bool:
    """Return whether a file is gzip, whatever its name."""
    with path.open("rb") as stream:
        return stream.read(2) == b"\x1f\x8b"


def text_encoding(encoding: str) -> str:
    """Return the codec to read with: UTF-8 with or without byte order mark."""
    return "utf-8-sig" if encoding.lower().replace("_", "-") in ("utf-8", "utf8") else encoding


@contextmanager
def _unpacking(path: Path) -> Iterator[None]:
    try:
        yield
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(
            f"the gzip file is damaged or incomplete: {error}", file=path.name
        ) from None


@contextmanager
def _open_text(path: Path, encoding: str, errors: str = "replace") -> Iterator[IO[str]]:
    """Open a file as text; undecodable bytes are replaced, so that lines can be counted."""
    limit = csv.field_size_limit(2**31 - 1)  # a quote that is not closed makes a long cell
    try:
        with (
            _unpacking(path),
            _open_bytes(path) as raw,
            io.TextIOWrapper(
                raw, encoding=text_encoding(encoding), errors=errors, newline=""
            ) as text,
        ):
            yield text
    except LookupError:
        raise DataError(f"there is no encoding {encoding!r}", file=path.name) from None
    except UnicodeError as error:
        raise DataError(f"is not {encoding} text: {error}", file=path.name) from None
    except csv.Error as error:
        raise DataError(f"cannot be read as CSV: {error}", file=path.name) from None
    finally:
        csv.field_size_limit(limit)


def _records(text: IO[str], delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Yield non-empty records with their first line, counted from 1."""
    reader = csv.reader(text, delimiter=delimiter)
    end = 0
    for record in reader:
        if record:
            yield end + 1, record
        end = reader.line_num


def read_header(
    path: Path, encoding: str, delimiter: str | None, expected: Sequence[str]
) -> tuple[str, list[str], int]:
    """Return the delimiter, the cells of the first record and its line.

    Without a delimiter, the one in `DELIMITERS` is chosen that gives the most expected columns, and
    among these the one that gives the most columns.
    """
    found: list[tuple[int, int, str, list[str], int]] = []
    for candidate in DELIMITERS if delimiter is None else (delimiter,):
        with _open_text(path, encoding) as text:
            line, cells = next(_records(text, candidate), (0, []))
        found.append((sum(name in cells for name in expected), len(cells), candidate, cells, line))
    _, _, best, cells, line = max(found, key=lambda entry: entry[:2])
    if delimiter is None and len(cells) == 1 and _is_split_by_spaces(path, encoding):
        return read_header(path, encoding, " ", expected)
    if not cells:
        raise DataError("the file is empty", file=path.name)
    if any("\x00" in cell for cell in cells):
        raise DataError(
            "contains NUL bytes: it is not a text file, or it is UTF-16 (pass encoding='utf-16')",
            file=path.name,
            line=line,
        )
    if any(_REPLACEMENT in cell for cell in cells):
        find_bad_bytes(path, encoding, best, ())
    return best, cells, line


def _is_split_by_spaces(path: Path, encoding: str) -> bool:
    """Return whether single spaces split the first records into three or more equally many cells.

    This is not the case for sentences in a file with one column.
    """
    with _open_text(path, encoding) as text:
        widths = [len(cells) for _, cells in islice(_records(text, " "), NUM_SPACED_RECORDS)]
    return len(widths) > 2 and min(widths) == max(widths) >= 3


def line_of_row(path: Path, encoding: str, delimiter: str, header: bool, row: int) -> int | None:
    """Return the first line of a row; rows are counted from 0, without the header."""
    with _open_text(path, encoding) as text:
        for number, (line, _) in enumerate(_records(text, delimiter), start=-1 if header else 0):
            if number == row:
                return line
    return None


def line_in_blocks(
    path: Path, encoding: str, delimiter: str, blocks: Sequence[tuple[int, int]], row: int
) -> int | None:
    """Return the first line of a row that was read from blocks of a file.

    ``blocks`` are offsets and sizes of whole records, in bytes; ``row`` is counted from 0 over all
    of them.
    """
    for offset, size in blocks:
        with path.open("rb") as stream:
            stream.seek(offset)
            text = stream.read(size)
        lines = io.StringIO(text.decode(text_encoding(encoding), errors="replace"), newline="")
        number = -1
        for number, (line, _) in enumerate(_records(lines, delimiter)):
            if number == row:
                with path.open("rb") as stream:
                    return len(re.findall(rb"\r\n|\n|\r", stream.read(offset))) + line
        row -= number + 1
    return None


def find_ragged_row(path: Path, encoding: str, delimiter: str, names: Sequence[str]) -> None:
    """Raise an error with the position of the first row with a wrong number of cells, if any."""
    width = len(names)
    with _open_text(path, encoding) as text:
        for line, cells in _records(text, delimiter):
            if len(cells) < width:
                raise DataError(
                    f"the row has {plural(len(cells), 'cell')} where {width} are expected, and "
                    "ends before this column; complete the row, or quote cells with line breaks",
                    file=path.name,
                    line=line,
                    column=names[len(cells)],
                )
            if len(cells) > width:
                raise DataError(
                    f"the row has {len(cells)} cells where {width} are expected: {cells[width]!r} "
                    f"follows this last column; quote cells that contain {delimiter!r}, or pass "
                    "delimiter= if it is another character",
                    file=path.name,
                    line=line,
                    column=names[-1],
                )


def find_open_quote(path: Path, encoding: str, delimiter: str) -> None:
    """Raise an error with the line of a quote that is never closed, if there is one."""
    last = 1
    with _open_text(path, encoding) as text:
        for line, _ in _records(text, delimiter):
            last = line
    with _open_text(path, encoding) as text:
        for _ in range(last - 1):
            next(text)
        try:
            # Only the last record can be open; strict parsing of others may stop at stray quotes.
            list(csv.reader(text, delimiter=delimiter, strict=True))
        except csv.Error as error:
            if "unexpected end of data" in str(error):
                raise DataError(
                    "a quote in this row is never closed; close it, or double it if it is part of "
                    "the cell",
                    file=path.name,
                    line=last,
                ) from None


def find_bad_bytes(path: Path, encoding: str, delimiter: str, names: Sequence[str]) -> None:
    """Raise an error with the position of the first undecodable byte, if there is one."""
    codec = text_encoding(encoding)
    decoder = codecs.getincrementaldecoder(codec)()
    read, head = 0, b""
    with _unpacking(path), _open_bytes(path) as stream:
        while True:
            chunk = stream.read(_CHUNK)
            head = head or chunk[:2]
            read += len(chunk)
            try:
                decoder.decode(chunk, final=not chunk)
            except UnicodeDecodeError as error:
                line, column = _locate_bad_byte(path, encoding, delimiter, names)
                other = (
                    "utf-16" if head in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE) else "latin-1"
                )
                raise DataError(
                    f"byte 0x{error.object[error.start]:02x} at offset "
                    f"{read - len(error.object) + error.start} is not {encoding} text; pass the "
                    f"right encoding=, for instance encoding={other!r}",
                    file=path.name,
                    line=line,
                    column=column,
                ) from None
            if not chunk:
                return


def _locate_bad_byte(
    path: Path, encoding: str, delimiter: str, names: Sequence[str]
) -> tuple[int | None, str | None]:
    """Return the line and the column of the first undecodable byte."""
    try:
        with _open_text(path, encoding, "surrogateescape") as text:
            for line, cells in _records(text, delimiter):
                for place, cell in enumerate(cells):
                    if found := _UNDECODED.search(cell):
                        line += len(re.findall("\r\n|\r|\n", cell[: found.start()]))
                        return line, names[place] if place < len(names) else None
    except DataError:  # an encoding without surrogateescape, or wrong quotes
        return None, None
    return None, None
