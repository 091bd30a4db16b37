"""Everything here, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from bayes_lcs.scaling.executors.base import BaseExecutor, Blocks

__all__ = ["SerialExecutor"]


class SerialExecutor(BaseExecutor):
    """The plainest executor: others must agree with it."""

    kind = "serial"

    @property
    def num_workers(self) -> int:
        """One call at a time."""
        return 1

    def run(self, function: Callable[[Any], Any], tasks: Sequence[Any]) -> list[Any]:
        """``function(task)`` of all tasks, in their order."""
        self._check()
        self.traffic.calls += len(tasks)
        return [function(task) for task in tasks]

    def place(self, load: Callable[[Any], Any], keys: Sequence[Any]) -> Blocks:
        """Blocks ``load(key)``."""
        self._check()
        placed = Blocks(self, load, keys)
        self.traffic.calls += len(keys)
        placed.held = [load(key) for key in keys]
        return placed

    def each(
        self, placed: Any, function: Callable[[Any, Any], Any], params: Any = None
    ) -> list[Any]:
        """``function(params, block)`` of all blocks, in their order."""
        self._check(placed)
        self.traffic.calls += placed.num_blocks
        return [function(params, block) for block in placed.held]
