"""Base class of the executors, and the merging of sums that they return."""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, NamedTuple, NoReturn, Self, TypeVar

from bayes_lcs.core.errors import ExecutorError
from bayes_lcs.runtime.executors.protocol import Traffic

__all__ = ["BaseExecutor", "Blocks", "merge_sums"]


class Blocks:
    """Blocks of an executor: their number in it, how they are loaded, and of what."""

    def __init__(
        self, owner: BaseExecutor, load: Callable[[Any], Any], keys: Sequence[Any]
    ) -> None:
        self.owner = owner
        self.load = load
        self.keys = keys  # not a list of them: slices of an array are cut when they are asked for
        self.number = owner._next_number()
        self.held: list[Any] = []

    @property
    def num_blocks(self) -> int:
        """Number of blocks."""
        return len(self.keys)

    def release(self) -> None:
        """Let them go."""
        self.owner._release(self)
        self.keys = ()


class BaseExecutor(ABC):
    """An executor that can be left with ``with``, and is shared by copies of what it was given to.

    scikit-learn's ``clone`` copies the parameters of an estimator; processes and connections
    cannot be copied.
    """

    kind: str
    mesh: Any = None

    def __init__(self) -> None:
        self.traffic = Traffic()
        self._closed = False
        self._hurries = False
        """Whether it is left after an error or Ctrl-C: then nobody waits for workers to end."""
        self._numbers = itertools.count()

    @property
    @abstractmethod
    def num_workers(self) -> int:
        """How many calls can be under way at once."""

    @abstractmethod
    def run(self, function: Callable[[Any], Any], tasks: Sequence[Any]) -> list[Any]:
        """``function(task)`` of all tasks, in their order."""

    @abstractmethod
    def place(self, load: Callable[[Any], Any], keys: Sequence[Any]) -> Blocks:
        """Blocks ``load(key)``, each loaded once where it will be worked on."""

    @abstractmethod
    def each(
        self, placed: Any, function: Callable[[Any, Any], Any], params: Any = None
    ) -> list[Any]:
        """``function(params, block)`` of all blocks, in their order."""

    def close(self) -> None:
        """End what was begun for it."""
        self._closed = True

    def _next_number(self) -> int:
        return next(self._numbers)

    def _release(self, placed: Blocks) -> None:
        """Forget some blocks."""
        placed.held = []

    def _check(self, placed: Any = None) -> None:
        if self._closed:
            raise ExecutorError(f"this {self.kind} executor is closed; make another one")
        if placed is not None and placed.owner is not self:
            raise ExecutorError("these blocks were placed by another executor")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._hurries = kind is not None
        self.close()

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            f"a {self.kind} executor holds workers and can be neither pickled nor sent elsewhere"
        )

    def __repr__(self) -> str:
        return f"bayes_lcs.executor({self.kind!r}, workers={self.num_workers})"


Sums = TypeVar("Sums", bound=NamedTuple)


def merge_sums(a: Sums, b: Sums) -> Sums:
    """Add two named tuples of sums, field by field.

    Examples
    --------
    >>> class Moments(NamedTuple):
    ...     count: float
    ...     total: float
    >>> merge_sums(Moments(1, 2.0), Moments(3, 4.0))
    Moments(count=4, total=6.0)
    """
    return type(a)(*(x + y for x, y in zip(a, b, strict=True)))
