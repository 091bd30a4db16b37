"""Executor in this process: one call after the other, or several at a time in threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from bayes_lcs.runtime.executors.base import BaseExecutor, Blocks

__all__ = ["LocalExecutor"]


class LocalExecutor(BaseExecutor):
    """Run calls in this process; the reference for the other executors.

    Parameters
    ----------
    threads
        Number of calls at the same time. More than one helps if functions spend their time in
        compiled code that releases the GIL.

    Examples
    --------
    >>> with LocalExecutor() as here:
    ...     blocks = here.place(list, ["ab", "c"])
    ...     here.each(blocks, lambda more, block: len(block) + more, 10)
    [12, 11]
    """

    kind = "serial"

    def __init__(self, threads: int = 1) -> None:
        super().__init__()
        self.threads = threads
        self._pool = ThreadPoolExecutor(threads) if threads > 1 else None

    @property
    def num_workers(self) -> int:
        """Number of threads."""
        return self.threads

    def run(self, function: Callable[[Any], Any], tasks: Sequence[Any]) -> list[Any]:
        """Return ``function(task)`` for all tasks, in order."""
        self._check()
        return self._calls(function, tasks)

    def place(self, load: Callable[[Any], Any], keys: Sequence[Any]) -> Blocks:
        """Load blocks ``load(key)``."""
        self._check()
        placed = Blocks(self, load, keys)
        placed.held = self._calls(load, keys)
        return placed

    def each(
        self, placed: Any, function: Callable[[Any, Any], Any], params: Any = None
    ) -> list[Any]:
        """Return ``function(params, block)`` for all blocks, in order."""
        self._check(placed)
        return self._calls(lambda block: function(params, block), placed.held)

    def close(self) -> None:
        """Stop the threads."""
        super().close()
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)

    def _calls(self, function: Callable[[Any], Any], values: Sequence[Any]) -> list[Any]:
        self.traffic.calls += len(values)
        if self._pool is None:
            return [function(value) for value in values]
        futures: list[Future[Any]] = []
        try:
            futures += [self._pool.submit(function, value) for value in values]
            return [future.result() for future in futures]
        except BaseException:
            for future in futures:
                future.cancel()
            raise
