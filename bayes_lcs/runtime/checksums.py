"""Append a checksum to a result file, so that later changes are detected.

A checksum in a second file is lost when only the result is copied. Therefore the file also ends
with the sha256 of all its other bytes: a flipped bit anywhere or a missing end is detected. netCDF
(HDF5) readers ignore bytes after the end of the data, and in a zip file the checksum is the archive
comment, so other programs can still read the files. The checksum detects damage, not manipulation:
anyone can compute one.

A netCDF file that another program saved again has no checksum. It is distinguished from a truncated
file by the length that HDF5 stores at its beginning.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import BinaryIO

from bayes_lcs.core.errors import DataError, one_line

__all__ = ["append_checksum", "as_data_errors", "is_resaved", "verify_appended_checksum"]

_MARK = b"\nbayes_lcs sha256 "
_LENGTH = len(_MARK) + 64 + 1
_ZIP_END = b"PK\x05\x06"
_ZIP_END_LENGTH = 22
_BLOCK = 1 << 20
_HDF5_LENGTH = {0: 40, 1: 44, 2: 28, 3: 28}
"""Offset of the length of the data in an HDF5 file, by the version of the format."""


def append_checksum(path: Path) -> None:
    """Append the sha256 of a file's bytes to the file.

    Parameters
    ----------
    path
        A netCDF or zip file without an appended checksum.
    """
    with path.open("r+b") as file:
        size = file.seek(0, 2)
        file.seek(max(size - _ZIP_END_LENGTH, 0))
        end = file.read()
        if end.startswith(_ZIP_END):
            file.seek(size - 2)
            file.write(_LENGTH.to_bytes(2, "little"))  # the length of the comment to come
        digest = _digest(file, size)
        file.seek(size)
        file.write(_MARK + digest + b"\n")


def verify_appended_checksum(path: Path) -> None:
    """Raise a `DataError` if a file has no appended checksum or does not match it."""
    with path.open("rb") as file:
        size = file.seek(0, 2) - _LENGTH
        file.seek(max(size, 0))
        end = file.read()
        if size < 0 or not (end.startswith(_MARK) and end.endswith(b"\n")):
            raise DataError(
                "the file does not end with the checksum that save appends: it was truncated, or "
                "another program wrote it. Only files written by save are loaded; create it again",
                file=str(path),
            )
        if _digest(file, size) != end[len(_MARK) : -1]:
            raise DataError(
                "the file does not match the checksum at its end; it was changed or damaged after "
                "it was written. Create it again",
                file=str(path),
            )


def is_resaved(path: Path) -> bool:
    """Return whether another program wrote a netCDF file (its length is that of the data)."""
    with path.open("rb") as file:
        start = file.read(64)
        size = file.seek(0, 2)
    offset = _HDF5_LENGTH.get(start[8], len(start)) if len(start) > 8 else len(start)
    return int.from_bytes(start[offset : offset + 8], "little") == size


def _digest(file: BinaryIO, size: int) -> bytes:
    """Return the sha256 of the first ``size`` bytes of a file, in hexadecimal."""
    digest = hashlib.sha256()
    file.seek(0)
    while size:
        block = file.read(min(_BLOCK, size))
        if not block:
            break
        digest.update(block)
        size -= len(block)
    return digest.hexdigest().encode()


@contextmanager
def as_data_errors(path: str | PathLike[str], what: str) -> Iterator[None]:
    """Turn errors from decoding a file into a `DataError` with its path.

    Parameters
    ----------
    path
        The file, which matched its checksum.
    what
        Name of the content, for the message.
    """
    try:
        yield
    except DataError as error:
        if error.file is not None:
            raise
        raise DataError(error.message, file=str(path)) from error
    except (
        *(ValueError, TypeError, KeyError, AttributeError, LookupError, ArithmeticError),
        RecursionError,
    ) as error:
        raise DataError(
            f"this file contains no {what} that this version of bayes_lcs can read "
            f"({type(error).__name__}: {one_line(error)})",
            file=str(path),
        ) from error
