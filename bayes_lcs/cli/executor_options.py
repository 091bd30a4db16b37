"""Where a command runs: ``--executor``, ``--scheduler`` and ``--workers``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from bayes_lcs.cli.errors import say

if TYPE_CHECKING:
    from bayes_lcs.runtime.executors.protocol import Executor

__all__ = ["layout_of", "open_executor"]

KINDS = ("serial", "processes", "dask", "devices")
SIZES = {"serial": "threads", "processes": "workers", "dask": "workers", "devices": "devices"}
"""What ``--workers`` is called where the executor is made."""
PATIENCE = 30.0
"""Seconds to wait for a scheduler that does not answer, and for its first worker."""


@contextmanager
def open_executor(
    kind: str | None, scheduler: str | None, workers: int | None
) -> Iterator[Executor | None]:
    """The executor that was asked for, closed at the end; None if none was."""
    kind = _kind(kind, scheduler, workers)
    if kind is None:
        yield None
        return
    from bayes_lcs.runtime.executors.factory import executor

    options: dict[str, object] = {} if workers is None else {SIZES[kind]: workers}
    if kind == "dask":
        options |= {"scheduler": scheduler, "timeout": PATIENCE}
    with executor(kind, **options) as made:
        if kind == "dask":  # standard output is for results
            say(f"{made.num_workers} Dask workers; dashboard: {made.dashboard_link}", err=True)
        yield made


def layout_of(kind: str | None, scheduler: str | None) -> str:
    """How rows are cut, which decides the last digits of sums.

    A run is resumed by any executor that cuts them as the one that began it.
    """
    return "blocks" if scheduler or kind in ("serial", "processes", "dask") else "whole"


def _kind(kind: str | None, scheduler: str | None, workers: int | None) -> str | None:
    if kind is not None and kind not in KINDS:
        raise ValueError(f"--executor must be one of {', '.join(KINDS)}, got {kind!r}")
    if scheduler is None:
        if kind is None and workers is not None:
            raise ValueError("--workers needs --executor, which says what they are")
        return kind
    if kind not in (None, "dask"):
        raise ValueError(f"--scheduler is the address of a Dask scheduler, not of {kind!r}")
    if workers is not None:
        raise ValueError(
            "--workers are begun here, and a scheduler has its own; give --workers or --scheduler"
        )
    return "dask"
