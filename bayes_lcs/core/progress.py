"""Progress on long work: a bar on a terminal, silence elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

__all__ = ["Tick", "progress_bar"]


class Tick(Protocol):
    """Advance a progress bar."""

    def __call__(self, steps: int = 1, status: str = "") -> None:
        """Advance by some steps and show a status beside the bar."""


def _silent(steps: int = 1, status: str = "") -> None:
    """No bar to advance."""


@contextmanager
def progress_bar(description: str, total: int, enabled: bool | None = None) -> Iterator[Tick]:
    """Yield a function ``tick(steps=1, status="")`` that advances the bar.

    It may be called from several threads; the status stands beside the bar.

    Parameters
    ----------
    enabled
        True or False, or None for "when standard error is a terminal".
    """
    if enabled is None:
        enabled = sys.stderr.isatty()
    if not enabled:
        yield _silent
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[status]}", markup=False),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(description, total=total, status="")

        def tick(steps: int = 1, status: str = "") -> None:
            progress.update(task, advance=steps, status=status)

        yield tick
