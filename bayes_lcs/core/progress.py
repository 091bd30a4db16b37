"""Progress on long work: a bar on a terminal; elsewhere silence, or plain lines if asked for."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from rich.progress import ProgressColumn

__all__ = ["Tick", "bar_columns", "plain_lines", "progress_bar", "says_lines"]

_seconds_between_lines: float | None = None


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


def _line_by_line(description: str, total: int, seconds: float) -> Tick:
    done, last = 0, time.monotonic()

    def tick(steps: int = 1, status: str = "") -> None:
        nonlocal done, last
        done += steps
        if time.monotonic() - last >= seconds:
            last = time.monotonic()
            share = f"{done / total:.0%}" if total else f"{done}"
            sys.stderr.write(f"{description}: {share} {status}".rstrip() + "\n")
            sys.stderr.flush()

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
    if enabled is None:
        enabled = sys.stderr.isatty()
        if not enabled and _seconds_between_lines is not None:
            yield _line_by_line(description, total, _seconds_between_lines)
            return
    if not enabled:
        yield _silent
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(*bar_columns(), console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(description, total=total, status="")

        def tick(steps: int = 1, status: str = "") -> None:
            progress.update(task, advance=steps, status=status)

        yield tick


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
