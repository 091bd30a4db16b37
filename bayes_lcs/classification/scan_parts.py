"""Rows in disjoint parts: of arrays here, of files by `bayes_lcs.io.shards`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from bayes_lcs.classification.scan_rows import distinct_texts, take_rows
from bayes_lcs.core.errors import DataError
from bayes_lcs.io.shards import FileShards, ReadCount, Shard, ShardReader

__all__ = ["ArrayParts", "FilePartSource", "PartSource", "RowPart", "check_finite", "part_of_shard"]


class RowPart(NamedTuple):
    """Consecutive rows with a label, and which part they are.

    ``rows`` are their places in the part if others were left out; ``texts`` the distinct texts of
    columns that hold text.
    """

    number: int
    first_row: int
    X: Any
    y: NDArray[Any]
    rows: NDArray[np.int64] | None = None
    texts: Mapping[Any, Sequence[str]] = MappingProxyType({})


class PartSource(Protocol):
    """Rows that come part by part, and what has been read of them."""

    @property
    def is_shuffled(self) -> bool:
        """Whether the order of the parts is random by construction."""

    @property
    def num_parts(self) -> int:
        """Number of parts in all."""

    @property
    def rows_read(self) -> int:
        """Rows so far."""

    @property
    def bytes_read(self) -> int | None:
        """Bytes so far; None of rows in memory."""

    @property
    def fraction(self) -> float:
        """The share of all that has been read."""

    @property
    def where(self) -> str:
        """In words, for messages."""

    def __iter__(self) -> Iterator[RowPart]:
        """Parts, in the order in which they are read."""

    def reader(self) -> ShardReader | None:
        """What reads any part, wherever it is sent, if parts can be read in any order."""

    def count_more(self, count: ReadCount) -> None:
        """Add what was read elsewhere."""

    def error(self, part: RowPart, row: int, column: str | None, message: str) -> DataError:
        """The error that names a place in a part."""


class ArrayParts:
    """An array in parts of consecutive rows, as `numpy.array_split` cuts it.

    Rows without a label are left out after the cut, as in the shards of a file.
    """

    bytes_read: int | None = None
    where = "X"

    def __init__(
        self,
        X: Any,
        y: NDArray[Any],
        is_known: NDArray[np.bool_],
        text: Sequence[Any],
        num_parts: int,
        order: NDArray[np.int64] | None = None,
    ) -> None:
        self._X, self._y, self._is_known, self._text = X, y, is_known, text
        self._bounds = np.cumsum([0, *map(len, np.array_split(np.empty(len(y)), num_parts))])
        self.num_parts = num_parts
        self.is_shuffled = order is not None
        self._order = np.arange(num_parts) if order is None else order
        self.rows_read = 0

    @property
    def fraction(self) -> float:
        """The share of the rows that has been handed over."""
        return self.rows_read / len(self._y)

    def __iter__(self) -> Iterator[RowPart]:
        for number in map(int, self._order):
            rows = slice(int(self._bounds[number]), int(self._bounds[number + 1]))
            self.rows_read += rows.stop - rows.start
            X, y, kept = take_rows(self._X, rows), self._y[rows], None
            if not self._is_known[rows].all():
                kept = np.flatnonzero(self._is_known[rows])
                X, y = take_rows(X, kept), y[kept]
            if len(y):
                texts = distinct_texts(X, self._text)
                yield RowPart(number, rows.start, X, y, kept, texts)

    def reader(self) -> ShardReader | None:
        """Rows in memory are sent."""
        return None

    def count_more(self, count: ReadCount) -> None:
        """Nothing is read elsewhere."""

    def error(self, part: RowPart, row: int, column: str | None, message: str) -> DataError:
        """The error that names a row, counted from 0."""
        row = row if part.rows is None else int(part.rows[row])
        return DataError(message, row=part.first_row + row, column=column)


def check_finite(part: RowPart, error: Callable[..., DataError]) -> None:
    """Name the cell here: what a learner says of it names neither file nor line."""
    for name, column in part.X.items():
        infinite = np.isinf(column.to_numpy()) if column.dtype.kind == "f" else np.zeros(0)
        if infinite.any():
            raise error(
                part,
                int(np.argmax(infinite)),
                str(name),
                "the number is infinite; correct it, list it in missing_values=, or take all "
                f"for names with categorical=[{name!r}]",
            )


class FilePartSource:
    """A file in parts."""

    def __init__(self, shards: FileShards, name: str, label: str) -> None:
        self._shards, self.where, self._label = shards, name, label

    @property
    def is_shuffled(self) -> bool:
        """Whether the order of the parts is random by construction."""
        return self._shards.is_shuffled

    @property
    def num_parts(self) -> int:
        """Number of parts in all."""
        return self._shards.num_shards

    @property
    def rows_read(self) -> int:
        """Rows so far."""
        return self._shards.count.num_rows

    @property
    def bytes_read(self) -> int | None:
        """Bytes so far."""
        return self._shards.count.num_bytes

    @property
    def fraction(self) -> float:
        """Rows over all rows where their number is known, else bytes over all bytes."""
        count = self._shards.count
        if self._shards.num_rows is not None:
            return count.num_rows / self._shards.num_rows
        return min(count.num_bytes / self._shards.file_bytes, 1.0)

    def __iter__(self) -> Iterator[RowPart]:
        for shard in self._shards:
            part = part_of_shard(shard)
            check_finite(part, self.error)
            yield part

    def reader(self) -> ShardReader | None:
        """What reads any part, wherever it is sent, if parts can be read in any order."""
        return self._shards.reader()

    def count_more(self, count: ReadCount) -> None:
        """Add what was read elsewhere."""
        self._shards.count.add(count)

    def error(self, part: RowPart, row: int, column: str | None, message: str) -> DataError:
        """The error that names the file, the line and the column; that of the labels by default."""
        column = self._label if column is None else column
        return self._shards.error(part, row, column, message)


def part_of_shard(shard: Shard) -> RowPart:
    """Return the rows of a shard as a part."""
    text = [name for name, kind in shard.frame.dtypes.items() if kind.kind == "O"]
    texts = distinct_texts(shard.frame, text)
    return RowPart(shard.number, shard.first_row, shard.frame, shard.labels, shard.rows, texts)
