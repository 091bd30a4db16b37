"""Protocol of executors.

Estimators and inference accept any executor. It runs independent *tasks*, and it applies functions
to *blocks* of rows that were loaded once on a worker and stay there, so that only parameters and
statistics are sent (`bayes_lcs.runtime.executors.base`). Results are returned in the order of tasks
and blocks, so that sums added in that order are the same with every executor.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

__all__ = ["Executor", "Placed", "Traffic"]


@dataclass
class Traffic:
    """Number of calls and bytes since the executor was created.

    Attributes
    ----------
    calls
        Number of tasks, loaded blocks and calls on blocks, including repeated ones.
    sent, received
        Bytes of arguments and results; 0 if nothing has to be sent.
    repeated
        Number of calls repeated because a worker was lost; 0 if this is not counted.
    """

    calls: int = 0
    sent: int = 0
    received: int = 0
    repeated: int = 0


class Placed(Protocol):
    """Blocks that were loaded on the workers that will process them."""

    @property
    def num_blocks(self) -> int:
        """Number of blocks."""

    def release(self) -> None:
        """Free the memory of the blocks."""


class Executor(Protocol):
    """Executor of functions, in this process or on workers.

    Functions must be importable by name on the worker, or `functools.partial` of such functions:
    neither lambdas nor nested functions. Arguments and results must be picklable. An error in a
    function is raised again in the calling process.
    """

    @property
    def kind(self) -> str:
        """Name of the kind, as in `bayes_lcs.executor`."""

    @property
    def num_workers(self) -> int:
        """Number of calls that can run at the same time."""

    @property
    def traffic(self) -> Traffic:
        """Calls and bytes sent and received so far."""

    @property
    def mesh(self) -> Any:
        """JAX mesh of the devices, or None."""

    def run(self, function: Callable[[Any], Any], tasks: Sequence[Any]) -> list[Any]:
        """Return ``function(task)`` for all tasks, in order."""

    def place(self, load: Callable[[Any], Any], keys: Sequence[Any]) -> Placed:
        """Load blocks ``load(key)``, each once, on the worker that will process it.

        A key is either a slice of an array, which is sent once, or the name of a part of a file,
        which the worker reads. It is used again if a worker is lost.
        """

    def each(
        self, placed: Placed, function: Callable[[Any, Any], Any], params: Any = None
    ) -> list[Any]:
        """Return ``function(params, block)`` for all blocks, in order."""

    def close(self) -> None:
        """Stop the workers and close connections of this executor."""
