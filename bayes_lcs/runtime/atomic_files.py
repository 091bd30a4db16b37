"""Write files atomically (temporary file, sync, rename), with a checksum beside them."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from contextlib import suppress
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from bayes_lcs.core.errors import DataError, DataWarning, one_line, warn_user
from bayes_lcs.runtime.checksums import append_checksum, is_resaved, verify_appended_checksum
from bayes_lcs.runtime.memory import require_memory

if TYPE_CHECKING:
    import xarray as xr

__all__ = [
    "UnwritableError",
    "load_datatree",
    "save_datatree",
    "verify_checksum",
    "write_atomically",
    "write_with_checksum",
]

_HDF5 = b"\x89HDF\r\n\x1a\n"


class UnwritableError(OSError):
    """A file could not be written; ``strerror`` gives the reason, such as a full disk."""

    def __str__(self) -> str:
        return f"{self.filename}: could not be written ({self.strerror})"


def write_atomically(
    path: str | Path, write: Callable[[Path], None], *, is_synced: bool = True
) -> Path:
    """Call ``write`` with a temporary file beside ``path``, then rename that file to ``path``.

    After a crash or on a full disk, the old file or no file is there, but never an incomplete one.
    If ``path`` is a symbolic link, its target is written and the link stays. Use
    ``is_synced=False`` for temporary files of this process.
    """
    given = Path(path)
    target = _follow(given)
    if not target.parent.is_dir():
        raise FileNotFoundError(
            f"{given}: the folder {target.parent} does not exist; create it first"
        )
    if target.is_dir():
        raise IsADirectoryError(f"{given}: this is a folder; give the path of a file in it")
    if target.exists() and not target.is_file():
        raise OSError(f"{given}: this is a device or a pipe; give the path of a regular file")
    temporary = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        write(temporary)
        if is_synced:
            with temporary.open("r+b") as stream:  # Windows syncs writable files only
                os.fsync(stream.fileno())
        temporary.replace(target)
    except OSError as error:
        # Some libraries add text of their own; keep the message of the system only.
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise UnwritableError(error.errno, reason, str(given)) from error
    finally:
        with suppress(OSError):  # the disk may have become read-only
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
    """Write a file atomically, and its sha256 to ``path`` + ".sha256"."""
    given = Path(path)
    target = _follow(given)
    checksum, beside_link = _checksum_path(target), _checksum_path(given)

    def write_file(temporary: Path) -> None:
        write(temporary)
        # Remove the old checksum first, so that it never stands beside the new file.
        checksum.unlink(missing_ok=True)
        if _follow(beside_link) != checksum:
            beside_link.unlink(missing_ok=True)

    def write_checksum(temporary: Path) -> None:
        temporary.write_text(f"{digest}  {target.name}\n", encoding="utf-8")

    write_atomically(given, write_file)
    digest = _sha256(target)
    write_atomically(checksum, write_checksum)
    return given


def verify_checksum(path: str | PathLike[str]) -> Path:
    """Return the path if the file exists and matches the checksum beside it, if there is one.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    DataError
        If the checksum differs.
    """
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
                "damaged after it was written. Create it again; if you saved it with another "
                f"program, remove {checksum.name}",
                file=str(source),
            )
    return source


def save_datatree(tree: xr.DataTree, path: str | Path) -> Path:
    """Write a tree as netCDF, atomically, with a checksum at its end and in a file beside it."""
    return write_with_checksum(path, lambda temporary: _to_netcdf(tree, temporary))


def _to_netcdf(tree: xr.DataTree, path: Path) -> None:
    # Serialize in memory: on a full disk the HDF5 library terminates the process.
    path.write_bytes(tree.to_netcdf(engine="h5netcdf"))
    append_checksum(path)


def load_datatree(path: str | Path) -> xr.DataTree:
    """Read a tree that :func:`save_datatree` wrote; raise a `DataError` if it was changed.

    A tree that another program, such as xarray, saved again has no checksum, and is read with a
    warning.
    """
    import xarray as xr

    source = verify_checksum(path)
    with source.open("rb") as stream:
        is_netcdf = stream.read(len(_HDF5)) == _HDF5
    reason = f"it does not begin with {_HDF5!r}"
    if is_netcdf:
        is_again = is_resaved(source)
        if not is_again:
            verify_appended_checksum(source)
        try:
            with xr.open_datatree(source, engine="h5netcdf") as tree:
                # A small (malicious) file can declare arrays of any size.
                require_memory(tree.nbytes, "its content", "Load it on a larger machine")
                loaded = tree.load()
        except Exception as error:  # the checksum matches, but xarray or HDF5 cannot read the file
            reason = one_line(error)
        else:
            if is_again:
                warn_user(
                    f"{source}: another program saved this file again, without a checksum: "
                    "changes and damage cannot be detected",
                    DataWarning,
                )
            return loaded
    raise DataError(
        f"this is not a complete netCDF file ({reason}); load reads files "
        "that Posterior.save wrote",
        file=str(source),
    )
