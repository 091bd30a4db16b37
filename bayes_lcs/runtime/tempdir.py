"""Temporary folder that is removed although threads may still write to it."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path

__all__ = ["temporary_folder"]

_TRIES, _PAUSE = 40, 0.05


@contextmanager
def temporary_folder(place: str | PathLike[str] | None = None) -> Iterator[Path]:
    """Create a folder, by default in the temporary folder of the system, and remove it at the end.

    After Ctrl-C or an error, other threads may still write to it: they fail, because the folder is
    renamed before it is removed.

    Examples
    --------
    >>> with temporary_folder() as folder:
    ...     _ = (folder / "a").write_text("x")
    >>> folder.exists()
    False
    """
    with tempfile.TemporaryDirectory(
        prefix="bayes-lcs-", dir=place, ignore_cleanup_errors=True
    ) as name:
        folder = Path(name)
        try:
            yield folder
        finally:
            _remove(_rename(folder))


def _rename(folder: Path) -> Path:
    """Rename first, so that late writers fail instead of recreating files."""
    try:
        return folder.rename(folder.with_name(f"{folder.name}-done"))
    except OSError:  # on Windows, if a file in it is open
        return folder


def _remove(folder: Path) -> None:
    for _ in range(_TRIES):
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            break
        time.sleep(_PAUSE)
