"""A folder for what nobody needs once the work is done."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path

__all__ = ["scratch_folder"]

_TRIES, _PAUSE = 40, 0.05


@contextmanager
def scratch_folder(place: str | PathLike[str] | None = None) -> Iterator[Path]:
    """A new folder, by default where the system keeps temporary files; removed at the end.

    After Ctrl-C or a fault somebody may still be about to write there: he will find no folder any
    more, and what he has written is removed.

    Examples
    --------
    >>> with scratch_folder() as folder:
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
            _remove(_renamed(folder))


def _renamed(folder: Path) -> Path:
    """Nobody writes to a folder whose name he does not know."""
    try:
        return folder.rename(folder.with_name(f"{folder.name}-done"))
    except OSError:  # on Windows, while a file in it is open
        return folder


def _remove(folder: Path) -> None:
    for _ in range(_TRIES):
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            break
        time.sleep(_PAUSE)
