"""A bar for files that a command reads; who reads them in Python sees nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bayes_lcs.core.progress import Tick, progress_bar, says_lines
from bayes_lcs.core.visible import visible

__all__ = ["reading_bar"]

LONGEST_NAME = 40


@contextmanager
def reading_bar(path: Path, total: int) -> Iterator[Tick]:
    """A bar of so many bytes or rows of a file, with its name."""
    shown = None if says_lines() else False
    with progress_bar(f"reading {visible(path.name, LONGEST_NAME)}", total, shown) as tick:
        yield tick
