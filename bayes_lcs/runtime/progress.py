"""Progress on long work: a bar on a terminal; elsewhere silence, or plain lines if asked for.

Work within work adds a bar to the display that there is: a terminal has room for one. Nothing is
shown of what ends within a second.
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
    "displayed",
    "plain_lines",
    "progress_bar",
    "reading_bar",
    "says_lines",
    "write_line",
]

SECONDS_BEFORE_BAR = 1.0
"""Work that takes no longer shows no bar."""

LONGEST_NAME = 40
"""Characters of a file name that a bar shows."""

_seconds_between_lines: float | None = None
_display: Progress | None = None


class Tick(Protocol):
    """Advance a progress bar."""

    def __call__(self, steps: int = 1, status: str = "") -> None:
        """Advance by some steps and show a status beside the bar."""


def _silent(steps: int = 1, status: str = "") -> None:
    """No bar to advance."""


@contextmanager
def plain_lines(seconds: float) -> Iterator[None]:
    """Where there is no terminal, say a line on standard error every so many seconds."""
    global _seconds_between_lines
    before, _seconds_between_lines = _seconds_between_lines, seconds
    try:
        yield
    finally:
        _seconds_between_lines = before


def says_lines() -> bool:
    """Whether plain lines were asked for."""
    return _seconds_between_lines is not None


def can_show(enabled: bool | None) -> bool:
    """Return whether a display is wanted and standard error can show it.

    Programs without a terminal, such as services and those with windows, may have none.

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
    """Write a line to standard error at once, if there is any."""
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

    It may be called from several threads; the status stands beside the bar.

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

    waits = threading.Timer(SECONDS_BEFORE_BAR, show)
    waits.daemon = True
    waits.start()
    try:
        with displayed(progress):
            yield tick
    finally:
        waits.cancel()
        waits.join()
        if outer is not None:
            outer.remove_task(task)
        elif is_shown:
            progress.stop()


def _new_display() -> Progress:
    from rich.console import Console
    from rich.progress import Progress

    return Progress(*bar_columns(), console=Console(stderr=True), transient=True)


@contextmanager
def displayed(progress: Progress) -> Iterator[None]:
    """Bars of the work inside are added to this display."""
    global _display
    before, _display = _display, progress
    try:
        yield
    finally:
        _display = before


def bar_columns() -> tuple[ProgressColumn, ...]:
    """What a bar consists of; its task has a field ``status``."""
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
    """Show progress of reading a file, counted in bytes or rows; only commands show it."""
    shown = None if says_lines() else False
    with progress_bar(f"reading {visible(path.name, LONGEST_NAME)}", total, shown) as tick:
        yield tick
