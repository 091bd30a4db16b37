"""A seal at the end of a result file, by which any later change to the file is noticed.

The checksum beside a file is lost when the file is copied without it. So the file ends with the
sha256 of all its other bytes as well: one flipped bit anywhere, or a missing end, and it is
refused. netCDF (HDF5) readers pay no attention to bytes after the end of the data, and in a zip
file, which ends with room for a comment, the seal is that comment: other programs read sealed files
as before. A seal tells of damage, not of malice; anybody can compute one.

A netCDF file that another program saved again has no seal. It is told from one that was cut short
by the length that HDF5 notes at its beginning.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import BinaryIO

from bayes_lcs.core.errors import DataError, one_line

__all__ = ["check_seal", "is_saved_again", "seal", "understood"]

_MARK = b"\nbayes_lcs sha256 "
_LENGTH = len(_MARK) + 64 + 1
_ZIP_END = b"PK\x05\x06"
_ZIP_END_LENGTH = 22
_BLOCK = 1 << 20
_HDF5_LENGTH = {0: 40, 1: 44, 2: 28, 3: 28}
"""Where HDF5 notes the length of the data, by the version of the format."""


def seal(path: Path) -> None:
    """Write the sha256 of a file's bytes at its end.

    Parameters
    ----------
    path
        A netCDF or zip file without a seal.
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


def check_seal(path: Path) -> None:
    """Raise a `DataError` if a file has no seal, or was changed after it was sealed."""
    with path.open("rb") as file:
        size = file.seek(0, 2) - _LENGTH
        file.seek(max(size, 0))
        end = file.read()
        if size < 0 or not (end.startswith(_MARK) and end.endswith(b"\n")):
            raise DataError(
                "the file does not end as files do that save writes: it was cut short, or another "
                "program wrote it, and only what save wrote is loaded. Make it again",
                file=str(path),
            )
        if _digest(file, size) != end[len(_MARK) : -1]:
            raise DataError(
                "the file does not match the checksum at its end; it was changed or damaged after "
                "it was written. Make it again",
                file=str(path),
            )


def is_saved_again(path: Path) -> bool:
    """Return whether another program wrote a netCDF file: it ends with the data, without a seal."""
    with path.open("rb") as file:
        start = file.read(64)
        size = file.seek(0, 2)
    place = _HDF5_LENGTH.get(start[8], len(start)) if len(start) > 8 else len(start)
    return int.from_bytes(start[place : place + 8], "little") == size


def _digest(file: BinaryIO, size: int) -> bytes:
    """The sha256 of the first bytes of a file, in hexadecimal."""
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
def understood(path: str | PathLike[str], what: str) -> Iterator[None]:
    """While a whole file is made sense of: what is not as ``save`` writes it is a `DataError`."""
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
            f"this file holds no {what} that this version of bayes_lcs can read "
            f"({type(error).__name__}: {one_line(error)})",
            file=str(path),
        ) from error
