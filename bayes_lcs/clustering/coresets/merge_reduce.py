"""Leaves of a coreset tree: blocks of rows of an array or of files, in their order."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import _check_sample_weight, check_array

from bayes_lcs.core.errors import DataError
from bayes_lcs.io.formats.parquet_ranges import RowRange
from bayes_lcs.io.sampler import FileSampler
from bayes_lcs.runtime.checkpoints import Arrays, CheckpointedTask, checkpointed_task, source_task

__all__ = [
    "LARGEST_NUMBER",
    "Leaves",
    "Node",
    "Unread",
    "UnreadLeaves",
    "build_leaves",
    "check_size",
]

FloatArray = NDArray[np.float64]

LARGEST_NUMBER = 1e140
"""Distances are sums of squares, which larger numbers would turn into infinity."""


class Node(NamedTuple):
    """Weighted points, and their place in the tree."""

    level: int
    number: int
    points: NDArray[Any]
    weights: FloatArray

    @property
    def num_rows(self) -> int:
        """Number of its rows."""
        return len(self.weights)

    @property
    def weight(self) -> float:
        """Total weight of its rows."""
        return float(self.weights.sum())


class Unread(NamedTuple):
    """Leaf given as row ranges of Parquet files, read by the worker that reduces it."""

    number: int
    ranges: list[RowRange]

    @property
    def num_rows(self) -> int:
        """Number of rows in its ranges."""
        return sum(one.stop - one.start for one in self.ranges)

    @property
    def weight(self) -> float:
        """Total weight: one for each row of a file."""
        return float(self.num_rows)


def build_leaves(source: Any, sample_weight: Any, size: int, workers_read: bool) -> Leaves:
    """Return the leaves of an array or a source of files.

    With ``workers_read``, leaves of Parquet files are read by the workers that reduce them.
    """
    if not isinstance(source, FileSampler):
        return ArrayLeaves(source, sample_weight, size)
    ranges = source.row_ranges(size) if workers_read else None
    return FileLeaves(source, size) if ranges is None else UnreadLeaves(source, ranges)


class Leaves(ABC):
    """Blocks of equal length and a last shorter one; `place` is the position of the next."""

    def __init__(self) -> None:
        self._number = 0

    @abstractmethod
    def work(self, *key: Any) -> CheckpointedTask:
        """Return a checkpointed computation over all leaves, if they can be identified."""

    @property
    def place(self) -> Arrays:
        """Position of the next leaf."""
        return {"leaf": np.array(self._number)}

    def load_state(self, place: Arrays) -> None:
        """Continue from a position that `place` returned."""
        self._number = int(place["leaf"])

    @abstractmethod
    def __iter__(self) -> Iterator[Any]:
        """Yield the leaves from the current position."""


class UnreadLeaves(Leaves):
    """Leaves of Parquet files, read by the workers."""

    def __init__(self, source: FileSampler, ranges: list[list[RowRange]]) -> None:
        super().__init__()
        self._source, self._ranges = source, ranges

    def work(self, *key: Any) -> CheckpointedTask:
        """Return a checkpointed computation, identified by the files."""
        return source_task(self._source, "tree", "unread", *key)

    def __iter__(self) -> Iterator[Unread]:
        for number in range(self._number, len(self._ranges)):
            self._number = number + 1
            yield Unread(number, self._ranges[number])


class ArrayLeaves(Leaves):
    """Leaves of an array."""

    def __init__(self, X: Any, sample_weight: Any, size: int) -> None:
        super().__init__()
        self._X = check_array(X, dtype=[np.float64, np.float32])
        self._weights = _check_sample_weight(
            sample_weight, self._X, dtype=np.float64, ensure_non_negative=True
        )
        self._size = size

    def work(self, *key: Any) -> CheckpointedTask:
        """Return a checkpointed computation, identified by all rows."""
        return checkpointed_task("tree", self._X, self._weights, *key)

    def __iter__(self) -> Iterator[Node]:
        for start in range(self._number * self._size, len(self._X), self._size):
            number, own = self._number, slice(start, start + self._size)
            self._number += 1
            yield Node(0, number, self._X[own], self._weights[own])


class FileLeaves(Leaves):
    """Leaves of files that are read in this process."""

    def __init__(self, source: FileSampler, size: int) -> None:
        super().__init__()
        self._source, self._size, self._rows_read = source, size, 0
        self._rest: FloatArray | None = None

    def work(self, *key: Any) -> CheckpointedTask:
        """Return a checkpointed computation, identified by the files."""
        return source_task(self._source, "tree", *key)

    @property
    def place(self) -> Arrays:
        """Position of the next leaf, with the rows that were read but not yielded."""
        rest = np.zeros((0, 0)) if self._rest is None else self._rest
        return {**super().place, "read": np.array(self._rows_read), "rest": rest}

    def load_state(self, place: Arrays) -> None:
        """Continue from a position that `place` returned."""
        super().load_state(place)
        self._rest = place["rest"] if len(place["rest"]) else None
        self._rows_read = int(place["read"])

    def __iter__(self) -> Iterator[Node]:
        yield from self._full_blocks()
        for frame in self._source.number_blocks(self._rows_read):
            piece = frame.to_numpy()
            check_size(piece, self._source.features, None)
            self._rest = piece if self._rest is None else np.concatenate([self._rest, piece])
            self._rows_read += len(piece)
            yield from self._full_blocks()
        if self._rest is not None and len(self._rest):
            rows, self._rest = self._rest, None
            yield self._next(rows)

    def _full_blocks(self) -> Iterator[Node]:
        while self._rest is not None and len(self._rest) >= self._size:
            rows, self._rest = self._rest[: self._size], self._rest[self._size :]
            yield self._next(rows)

    def _next(self, rows: FloatArray) -> Node:
        self._number += 1
        return Node(0, self._number - 1, rows, np.ones(len(rows)))


def check_size(rows: FloatArray, columns: Sequence[str], file: str | None) -> None:
    """Refuse numbers whose squares would be infinite."""
    largest = np.abs(rows).max(axis=0, initial=0.0)
    if largest.max(initial=0.0) > LARGEST_NUMBER:
        raise DataError(
            f"holds numbers as large as {largest.max():.3g}, whose squares a computer cannot hold; "
            "divide the column by some number, or leave it out",
            file=file,
            column=str(columns[int(largest.argmax())]),
        )
