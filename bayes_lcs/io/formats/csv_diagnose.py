"""Find the header of a text file, and the line and column of a fault.

pyarrow reads files but does not report lines. Python's csv module does, so the file is searched
with it after an error, and only then.
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

from bayes_lcs.core.errors import DataError

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
SPACED_RECORDS = 20
"""Records that tell whether spaces separate cells."""
DELIMITERS = (",", ";", "\t", "|")
_REPLACEMENT = "\ufffd"
_UNDECODED = re.compile("[\udc80-\udcff]")
"""Characters that stand for undecodable bytes under ``surrogateescape``."""


def _open_bytes(path: Path) -> gzip.GzipFile | io.BufferedReader:
    """Open a file, unpacking gzip whatever its name."""
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
        raise DataError(f"the gzip file is damaged or cut short: {error}", file=path.name) from None


@contextmanager
def _open_text(path: Path, encoding: str, errors: str = "replace") -> Iterator[IO[str]]:
    """Open as text with undecodable bytes replaced, so that lines can be counted."""
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
        raise DataError(f"there is no encoding called {encoding!r}", file=path.name) from None
    except UnicodeError as error:
        raise DataError(f"is not {encoding} text: {error}", file=path.name) from None
    except csv.Error as error:
        raise DataError(f"cannot be read as CSV: {error}", file=path.name) from None
    finally:
        csv.field_size_limit(limit)


def _records(text: IO[str], delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Yield non-empty records with the line on which each begins, counted from 1."""
    reader = csv.reader(text, delimiter=delimiter)
    end = 0
    for record in reader:
        if record:
            yield end + 1, record
        end = reader.line_num


def read_header(
    path: Path, encoding: str, delimiter: str | None, expected: Sequence[str]
) -> tuple[str, list[str], int]:
    """Find the delimiter, the cells of the first record and the line on which it begins.

    Without a delimiter those in `DELIMITERS` are tried: the one by which most of the expected
    names are columns wins, then the one that gives most columns.
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
            "holds NUL bytes: it is not a text file, or it is UTF-16 (pass encoding='utf-16')",
            file=path.name,
            line=line,
        )
    if any(_REPLACEMENT in cell for cell in cells):
        find_bad_bytes(path, encoding, best, ())
    return best, cells, line


def _is_split_by_spaces(path: Path, encoding: str) -> bool:
    """Return whether single spaces cut the first records into equally many cells, three or more.

    Sentences in a file of one column do not.
    """
    with _open_text(path, encoding) as text:
        widths = [len(cells) for _, cells in islice(_records(text, " "), SPACED_RECORDS)]
    return len(widths) > 2 and min(widths) == max(widths) >= 3


def line_of_row(path: Path, encoding: str, delimiter: str, header: bool, row: int) -> int | None:
    """Return the line on which a row begins; rows count from 0, without the header."""
    with _open_text(path, encoding) as text:
        for number, (line, _) in enumerate(_records(text, delimiter), start=-1 if header else 0):
            if number == row:
                return line
    return None


def line_in_blocks(
    path: Path, encoding: str, delimiter: str, blocks: Sequence[tuple[int, int]], row: int
) -> int | None:
    """Return the line on which a row begins that was read with others from parts of a file.

    ``blocks`` are the places and sizes of whole records, in bytes; ``row`` counts from 0 in all of
    them together.
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
    """Raise an error naming the first row that has too few or too many cells, if one has."""
    width = len(names)
    with _open_text(path, encoding) as text:
        for line, cells in _records(text, delimiter):
            if len(cells) < width:
                raise DataError(
                    f"the row has {len(cells)} cells where {width} are expected, and ends before "
                    "this column; complete the row, or quote cells that hold line breaks",
                    file=path.name,
                    line=line,
                    column=names[len(cells)],
                )
            if len(cells) > width:
                raise DataError(
                    f"the row has {len(cells)} cells where {width} are expected: {cells[width]!r} "
                    f"follows this last column; quote cells that hold {delimiter!r}, or pass "
                    "delimiter= if it is another",
                    file=path.name,
                    line=line,
                    column=names[-1],
                )


def find_open_quote(path: Path, encoding: str, delimiter: str) -> None:
    """Raise an error naming the line of a quote that is never closed, if there is one."""
    last = 1
    with _open_text(path, encoding) as text:
        for line, _ in _records(text, delimiter):
            last = line
    with _open_text(path, encoding) as text:
        for _ in range(last - 1):
            next(text)
        try:
            # Only the last record can be open; strict parsing of others would stop at odd quotes.
            list(csv.reader(text, delimiter=delimiter, strict=True))
        except csv.Error as error:
            if "unexpected end of data" in str(error):
                raise DataError(
                    "a quote is opened in this row and never closed; close it, or double it if it "
                    "is part of the cell",
                    file=path.name,
                    line=last,
                ) from None


def find_bad_bytes(path: Path, encoding: str, delimiter: str, names: Sequence[str]) -> None:
    """Raise an error naming the first bytes that are not text in the encoding, if there are any."""
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
                line, column = _place_of_bad_byte(path, encoding, delimiter, names)
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


def _place_of_bad_byte(
    path: Path, encoding: str, delimiter: str, names: Sequence[str]
) -> tuple[int | None, str | None]:
    """Return the line and the column of the first byte that is no text."""
    try:
        with _open_text(path, encoding, "surrogateescape") as text:
            for line, cells in _records(text, delimiter):
                for place, cell in enumerate(cells):
                    if found := _UNDECODED.search(cell):
                        line += len(re.findall("\r\n|\r|\n", cell[: found.start()]))
                        return line, names[place] if place < len(names) else None
    except DataError:  # an encoding that knows no such escape, or quotes that make no sense
        return None, None
    return None, None
