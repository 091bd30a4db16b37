"""Create the executor of ``--executor``, ``--scheduler`` and ``--workers``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from bayes_lcs.cli.errors import echo

if TYPE_CHECKING:
    from bayes_lcs.runtime.executors.protocol import Executor

__all__ = ["open_executor", "row_layout"]

KINDS = ("serial", "processes", "dask", "devices")
WORKERS_PARAMETERS = {
    "serial": "threads",
    "processes": "workers",
    "dask": "workers",
    "devices": "devices",
}
"""Name of the parameter of ``--workers`` for each kind of executor."""
TIMEOUT = 30.0
"""Seconds to wait for a scheduler and its first worker."""


@contextmanager
def open_executor(
    kind: str | None, scheduler: str | None, workers: int | None
) -> Iterator[Executor | None]:
    """Yield the executor of the options and close it at the end; yield None without options."""
    kind = _kind(kind, scheduler, workers)
    if kind is None:
        yield None
        return
    from bayes_lcs.runtime.executors.factory import executor

    options: dict[str, object] = {} if workers is None else {WORKERS_PARAMETERS[kind]: workers}
    if kind == "dask":
        options |= {"scheduler": scheduler, "timeout": TIMEOUT}
    with executor(kind, **options) as runner:
        if kind == "dask":  # standard output is reserved for results
            echo(f"{runner.num_workers} Dask workers; dashboard: {runner.dashboard_link}", err=True)
        yield runner


def row_layout(kind: str | None, scheduler: str | None) -> str:
    """Return how rows are divided, which affects the last digits of sums.

    A run can be resumed with any executor that divides them in the same way.
    """
    return "blocks" if scheduler or kind in ("serial", "processes", "dask") else "whole"


def _kind(kind: str | None, scheduler: str | None, workers: int | None) -> str | None:
    if kind is not None and kind not in KINDS:
        raise ValueError(f"--executor must be one of {', '.join(KINDS)}, got {kind!r}")
    if scheduler is None:
        if kind is None and workers is not None:
            raise ValueError("--workers needs --executor, which says what the workers are")
        return kind
    if kind not in (None, "dask"):
        raise ValueError(
            f"--scheduler is the address of a Dask scheduler; leave out --executor {kind}"
        )
    if workers is not None:
        raise ValueError(
            "a cluster with --scheduler has its own workers; give either --workers or --scheduler"
        )
    return "dask"
