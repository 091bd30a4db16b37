"""Files that are either whole or not there: written aside, synced, renamed, with a checksum."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from contextlib import suppress
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from bayes_lcs.core.errors import DataError, DataWarning, one_line, warn_user
from bayes_lcs.runtime.checksums import check_seal, is_saved_again, seal
from bayes_lcs.runtime.memory import require_memory

if TYPE_CHECKING:
    import xarray as xr

__all__ = [
    "UnwritableError",
    "check_whole",
    "load_datatree",
    "save_datatree",
    "write_atomically",
    "write_with_checksum",
]

_HDF5 = b"\x89HDF\r\n\x1a\n"


class UnwritableError(OSError):
    """A file that could not be written; ``strerror`` says why: the disk is full, or read-only."""

    def __str__(self) -> str:
        return f"{self.filename}: could not be written ({self.strerror})"


def write_atomically(
    path: str | Path, write: Callable[[Path], None], *, is_synced: bool = True
) -> Path:
    """Let ``write`` fill a temporary file beside ``path``, then move it into place.

    A crash or a full disk leaves the old file, or none; never half a file. A symbolic link stays:
    the file that it leads to is written. Not to be synced are files that nobody needs once this
    process has ended.
    """
    given = Path(path)
    target = _follow(given)
    if not target.parent.is_dir():
        raise FileNotFoundError(
            f"{given}: there is no folder {target.parent} to write into; create it first"
        )
    if target.is_dir():
        raise IsADirectoryError(f"{given}: this is a folder; give the name of a file in it")
    if target.exists() and not target.is_file():
        raise OSError(f"{given}: this is a device or a pipe; give the name of a regular file")
    temporary = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        write(temporary)
        if is_synced:
            with temporary.open("r+b") as stream:  # Windows syncs only what may be written to
                os.fsync(stream.fileno())
        temporary.replace(target)
    except OSError as error:
        # Some libraries put words of their own before those of the system.
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise UnwritableError(error.errno, reason, str(given)) from error
    finally:
        with suppress(OSError):  # a disk that became read-only keeps what it has
            temporary.unlink(missing_ok=True)
    return given


def _follow(path: Path) -> Path:
    return Path(os.path.realpath(path)) if path.is_symlink() else path


def _checksum_path(path: Path) -> Path:
    return path.with_name(path.name + ".sha256")


def _sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def write_with_checksum(path: str | PathLike[str], write: Callable[[Path], None]) -> Path:
    """`write_atomically`, with the sha256 of the file in another beside it."""
    given = Path(path)
    target = _follow(given)
    checksum, beside_link = _checksum_path(target), _checksum_path(given)

    def write_file(temporary: Path) -> None:
        write(temporary)
        # No checksum of the old file may stand beside the new one, not even for a moment.
        checksum.unlink(missing_ok=True)
        if _follow(beside_link) != checksum:
            beside_link.unlink(missing_ok=True)

    def write_checksum(temporary: Path) -> None:
        temporary.write_text(f"{digest}  {target.name}\n", encoding="utf-8")

    write_atomically(given, write_file)
    digest = _sha256(target)
    write_atomically(checksum, write_checksum)
    return given


def check_whole(path: str | PathLike[str]) -> Path:
    """The path of a file that is there and, if it has one, matches its checksum."""
    source = Path(path)
    if not source.is_file():
        raise FileNotFoundError(f"{source}: there is no such file")
    checksum = _checksum_path(source)
    if not checksum.is_file():
        checksum = _checksum_path(_follow(source))
    if checksum.is_file():
        expected = checksum.read_bytes().split()[:1]
        if expected != [_sha256(source).encode()]:
            raise DataError(
                f"the file does not match its checksum in {checksum.name}; it was changed or "
                "damaged after it was written. Make it again; if you saved it again with another "
                f"program, remove {checksum.name}",
                file=str(source),
            )
    return source


def save_datatree(tree: xr.DataTree, path: str | Path) -> Path:
    """Write a tree as netCDF, sealed, atomically, with its sha256 in a file beside it."""
    return write_with_checksum(path, lambda temporary: _to_netcdf(tree, temporary))


def _to_netcdf(tree: xr.DataTree, path: Path) -> None:
    # By way of memory: on a disk that is full the HDF5 library ends the whole program.
    path.write_bytes(tree.to_netcdf(engine="h5netcdf"))
    seal(path)


def load_datatree(path: str | Path) -> xr.DataTree:
    """Read a tree that :func:`save_datatree` wrote; damage is noticed and refused.

    A tree that another program saved again is read with a warning.
    """
    import xarray as xr

    source = check_whole(path)
    with source.open("rb") as stream:
        is_netcdf = stream.read(len(_HDF5)) == _HDF5
    reason = f"it does not begin with {_HDF5!r}"
    if is_netcdf:
        is_again = is_saved_again(source)
        if not is_again:
            check_seal(source)
        try:
            with xr.open_datatree(source, engine="h5netcdf") as tree:
                # A small file can declare arrays of any size.
                require_memory(tree.nbytes, "its content", "Load it on a larger machine")
                loaded = tree.load()
        except Exception as error:  # sealed, and yet nothing that xarray and HDF5 can read
            reason = one_line(error)
        else:
            if is_again:
                warn_user(
                    f"{source}: another program saved this file again, without a checksum: "
                    "changes and damage cannot be noticed",
                    DataWarning,
                )
            return loaded
    raise DataError(
        f"this is not a netCDF file, or not a whole one ({reason}); load reads what "
        "Posterior.save wrote",
        file=str(source),
    )
