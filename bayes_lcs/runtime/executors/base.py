"""Base class of the executors, and addition of the sums that they return."""

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
    """Blocks that an executor loaded, with their loader and keys."""

    def __init__(
        self, owner: BaseExecutor, load: Callable[[Any], Any], keys: Sequence[Any]
    ) -> None:
        self.owner = owner
        self.load = load
        self.keys = keys  # not copied to a list: keys may be slices of an array, cut on access
        self.number = owner._next_number()
        self.held: list[Any] = []

    @property
    def num_blocks(self) -> int:
        """Number of blocks."""
        return len(self.keys)

    def release(self) -> None:
        """Free the blocks."""
        self.owner._release(self)
        self.keys = ()


class BaseExecutor(ABC):
    """Base class of executors: context manager, with copies that share its workers.

    scikit-learn's ``clone`` copies the parameters of an estimator, but processes and connections
    cannot be copied.
    """

    kind: str
    mesh: Any = None

    def __init__(self) -> None:
        self.traffic = Traffic()
        self._closed = False
        self._kills_workers = False
        """True after an error or Ctrl-C: `close` does not wait for running tasks."""
        self._numbers = itertools.count()

    @property
    @abstractmethod
    def num_workers(self) -> int:
        """Number of calls that can run at the same time."""

    @abstractmethod
    def run(self, function: Callable[[Any], Any], tasks: Sequence[Any]) -> list[Any]:
        """Return ``function(task)`` for all tasks, in order."""

    @abstractmethod
    def place(self, load: Callable[[Any], Any], keys: Sequence[Any]) -> Blocks:
        """Load blocks ``load(key)``, each once, on the workers that will process them."""

    @abstractmethod
    def each(
        self, placed: Any, function: Callable[[Any, Any], Any], params: Any = None
    ) -> list[Any]:
        """Return ``function(params, block)`` for all blocks, in order."""

    def close(self) -> None:
        """Stop the workers and close connections of this executor."""
        self._closed = True

    def _next_number(self) -> int:
        return next(self._numbers)

    def _release(self, placed: Blocks) -> None:
        """Free blocks."""
        placed.held = []

    def _check(self, placed: Any = None) -> None:
        if self._closed:
            raise ExecutorError(f"this {self.kind} executor is closed; create a new one")
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
        self._kills_workers = kind is not None
        self.close()

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            f"a {self.kind} executor owns workers and cannot be pickled or sent to another process"
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
