"""A bar for files that a command reads; who reads them in Python sees nothing."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bayes_lcs.core.progress import Tick, progress_bar, says_lines
from bayes_lcs.core.visible import visible

__all__ = ["TickingFile", "reading_bar"]

LONGEST_NAME = 40


@contextmanager
def reading_bar(path: Path, total: int) -> Iterator[Tick]:
    """A bar of so many bytes or rows of a file, with its name."""
    shown = None if says_lines() else False
    with progress_bar(f"reading {visible(path.name, LONGEST_NAME)}", total, shown) as tick:
        yield tick


class TickingFile(io.FileIO):
    """A file that advances a bar by the bytes that are read from it."""

    def __init__(self, path: Path, tick: Tick) -> None:
        super().__init__(path, "rb")
        self._tick = tick

    def read(self, size: int | None = -1, /) -> bytes:
        """Up to ``size`` bytes, empty at the end of the file."""
        content: bytes = super().read(-1 if size is None else size) or b""
        self._tick(len(content))
        return content
