"""Show progress: a bar on a terminal; otherwise nothing, or plain lines if requested.

A nested computation adds its bar to the display of the outer one. Computations that end within a
second show nothing.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

from bayes_lcs.core.escape import visible

if TYPE_CHECKING:
    from pathlib import Path

    from rich.progress import Progress, ProgressColumn

__all__ = [
    "Tick",
    "bar_columns",
    "can_show",
    "plain_lines",
    "prints_plain_lines",
    "progress_bar",
    "reading_bar",
    "share_display",
    "write_line",
]

SECONDS_BEFORE_BAR = 1.0
"""Seconds after which a bar appears."""

MAX_NAME_LENGTH = 40
"""Maximum number of characters of a file name beside a bar."""

_seconds_between_lines: float | None = None
_display: Progress | None = None


class Tick(Protocol):
    """Function that advances a progress bar."""

    def __call__(self, steps: int = 1, status: str = "") -> None:
        """Advance by ``steps`` and show a status beside the bar."""


def _silent(steps: int = 1, status: str = "") -> None:
    """Do nothing: there is no bar."""


@contextmanager
def plain_lines(seconds: float) -> Iterator[None]:
    """Print progress as a line on standard error every ``seconds`` if there is no terminal."""
    global _seconds_between_lines
    before, _seconds_between_lines = _seconds_between_lines, seconds
    try:
        yield
    finally:
        _seconds_between_lines = before


def prints_plain_lines() -> bool:
    """Return whether progress is printed as plain lines (see `plain_lines`)."""
    return _seconds_between_lines is not None


def can_show(enabled: bool | None) -> bool:
    """Return whether progress is enabled and standard error can show it.

    Services and GUI programs may have no standard error.

    Parameters
    ----------
    enabled
        True or False, or None for "when standard error is a terminal".
    """
    stream: Any = sys.stderr
    if stream is None or getattr(stream, "closed", False):
        return False
    return bool(stream.isatty()) if enabled is None else enabled


def write_line(text: str) -> None:
    """Write a line to standard error and flush it, if there is a standard error."""
    if can_show(True):
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()


def _line_by_line(description: str, total: int, seconds: float) -> Tick:
    done, last = 0, time.monotonic()

    def tick(steps: int = 1, status: str = "") -> None:
        nonlocal done, last
        done += steps
        if time.monotonic() - last >= seconds:
            last = time.monotonic()
            share = f"{done / total:.0%}" if total else f"{done}"
            write_line(f"{description}: {share} {status}".rstrip())

    return tick


@contextmanager
def progress_bar(description: str, total: int, enabled: bool | None = None) -> Iterator[Tick]:
    """Yield a function ``tick(steps=1, status="")`` that advances the bar.

    It may be called from several threads. The status is shown beside the bar.

    Parameters
    ----------
    enabled
        True or False, or None for "when standard error is a terminal"; see also `plain_lines`.
    """
    if not can_show(enabled):
        if enabled is None and _seconds_between_lines is not None:
            yield _line_by_line(description, total, _seconds_between_lines)
        else:
            yield _silent
        return
    outer = _display
    progress = _new_display() if outer is None else outer
    task = progress.add_task(description, total=total, status="", visible=False)
    is_shown = False

    def show() -> None:
        nonlocal is_shown
        is_shown = True
        progress.update(task, visible=True)
        if outer is None:
            progress.start()

    def tick(steps: int = 1, status: str = "") -> None:
        progress.update(task, advance=steps, status=status)

    timer = threading.Timer(SECONDS_BEFORE_BAR, show)
    timer.daemon = True
    timer.start()
    try:
        with share_display(progress):
            yield tick
    finally:
        timer.cancel()
        timer.join()
        if outer is not None:
            outer.remove_task(task)
        elif is_shown:
            progress.stop()


def _new_display() -> Progress:
    from rich.console import Console
    from rich.progress import Progress

    return Progress(*bar_columns(), console=Console(stderr=True), transient=True)


@contextmanager
def share_display(progress: Progress) -> Iterator[None]:
    """Add the bars of the computations inside to this display."""
    global _display
    before, _display = _display, progress
    try:
        yield
    finally:
        _display = before


def bar_columns() -> tuple[ProgressColumn, ...]:
    """Return the columns of a progress bar; its task must have a field ``status``."""
    from rich.progress import BarColumn, TextColumn, TimeRemainingColumn

    return (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[status]}", markup=False),
    )


@contextmanager
def reading_bar(path: Path, total: int) -> Iterator[Tick]:
    """Show the progress of reading a file, in bytes or rows; shown by commands only."""
    shown = None if prints_plain_lines() else False
    with progress_bar(f"reading {visible(path.name, MAX_NAME_LENGTH)}", total, shown) as tick:
        yield tick
