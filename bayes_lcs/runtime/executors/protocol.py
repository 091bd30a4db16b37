"""What an algorithm in bulk needs to know of where it runs, and nothing more.

Estimators and inference are handed an executor and never ask which one. It does two things: it
runs *tasks* that have nothing to do with each other, and it works on *blocks* of rows that were
placed once and stay where they are, so that only parameters travel out and statistics back
(`bayes_lcs.runtime.executors.base`). Results come in the order of tasks and
blocks, so that sums merged in that order are the same with every executor.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

__all__ = ["Executor", "Placed", "Traffic"]


@dataclass
class Traffic:
    """What went to workers and came back since the executor was made.

    Attributes
    ----------
    calls
        Tasks, loads and looks at blocks, repeated ones too.
    sent, received
        Bytes of their arguments and results; 0 where nothing has to be sent.
    repeated
        How many of the calls were made again because a worker was lost; 0 where others see to it.
    """

    calls: int = 0
    sent: int = 0
    received: int = 0
    repeated: int = 0


class Placed(Protocol):
    """Blocks that were loaded where they will be worked on."""

    @property
    def num_blocks(self) -> int:
        """Number of blocks."""

    def release(self) -> None:
        """Let them go; what holds memory for them may forget them."""


class Executor(Protocol):
    """Whoever runs functions, here or elsewhere.

    Functions must be importable by name where they run, or `functools.partial` of such ones:
    neither lambdas nor functions within functions. What they take and return must be picklable.
    An error in a function is raised here as it was raised there.
    """

    @property
    def kind(self) -> str:
        """Its name in `bayes_lcs.executor`."""

    @property
    def num_workers(self) -> int:
        """How many calls can be under way at once."""

    @property
    def traffic(self) -> Traffic:
        """What was sent and received so far."""

    @property
    def mesh(self) -> Any:
        """The JAX mesh that it works on, if it does; else None."""

    def run(self, function: Callable[[Any], Any], tasks: Sequence[Any]) -> list[Any]:
        """``function(task)`` of all tasks, in their order."""

    def place(self, load: Callable[[Any], Any], keys: Sequence[Any]) -> Placed:
        """Blocks ``load(key)``, each loaded once by the worker that will work on it.

        A key is what a block is made of: a slice of an array, which is then sent once, or the name
        of a piece of a file, which the worker reads itself. It is asked for again if a worker is
        lost.
        """

    def each(
        self, placed: Placed, function: Callable[[Any, Any], Any], params: Any = None
    ) -> list[Any]:
        """``function(params, block)`` of all blocks, in their order."""

    def close(self) -> None:
        """End what was begun for it."""
