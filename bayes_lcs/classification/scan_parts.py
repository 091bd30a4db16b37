"""Rows in disjoint parts: of arrays here, of files by `bayes_lcs.data.file_parts`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from bayes_lcs.classification.scan_rows import take_rows
from bayes_lcs.data.errors import DataError
from bayes_lcs.data.file_parts import FileParts, PartReader

__all__ = ["ArrayParts", "FilePartSource", "PartSource", "RowPart", "check_finite"]


class RowPart(NamedTuple):
    """Consecutive rows, their labels, and which part they are."""

    number: int
    first_row: int
    X: Any
    y: NDArray[Any]


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

    def reader(self) -> PartReader | None:
        """What reads any part, wherever it is sent, if parts can be read in any order."""

    def count_more(self, num_rows: int, num_bytes: int) -> None:
        """Something was read elsewhere."""

    def error(self, part: RowPart, row: int, column: str | None, message: str) -> DataError:
        """The error that names a place in a part."""


class ArrayParts:
    """An array in parts of consecutive rows, as `numpy.array_split` cuts it."""

    bytes_read: int | None = None
    where = "X"

    def __init__(
        self, X: Any, y: NDArray[Any], num_parts: int, order: NDArray[np.int64] | None = None
    ) -> None:
        self._X, self._y = X, y
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
            yield RowPart(number, rows.start, take_rows(self._X, rows), self._y[rows])

    def reader(self) -> PartReader | None:
        """Rows in memory are sent."""
        return None

    def count_more(self, num_rows: int, num_bytes: int) -> None:
        """Nothing is read elsewhere."""

    def error(self, part: RowPart, row: int, column: str | None, message: str) -> DataError:
        """The error that names a row, counted from 0."""
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

    def __init__(self, parts: FileParts, name: str, label: str) -> None:
        self._parts, self.where, self._label = parts, name, label

    @property
    def is_shuffled(self) -> bool:
        """Whether the order of the parts is random by construction."""
        return self._parts.is_shuffled

    @property
    def num_parts(self) -> int:
        """Number of parts in all."""
        return self._parts.num_parts

    @property
    def rows_read(self) -> int:
        """Rows so far."""
        return self._parts.rows_read

    @property
    def bytes_read(self) -> int | None:
        """Bytes so far."""
        return self._parts.bytes_read

    @property
    def fraction(self) -> float:
        """Rows over all rows where their number is known, else bytes over all bytes."""
        if self._parts.num_rows is not None:
            return self._parts.rows_read / self._parts.num_rows
        return min(self._parts.bytes_read / self._parts.file_bytes, 1.0)

    def __iter__(self) -> Iterator[RowPart]:
        for part in self._parts:
            rows = RowPart(part.number, part.first_row, part.frame, part.labels)
            check_finite(rows, self.error)
            yield rows

    def reader(self) -> PartReader | None:
        """What reads any part, wherever it is sent, if parts can be read in any order."""
        return self._parts.reader()

    def count_more(self, num_rows: int, num_bytes: int) -> None:
        """Something was read elsewhere."""
        self._parts.count_more(num_rows, num_bytes)

    def error(self, part: RowPart, row: int, column: str | None, message: str) -> DataError:
        """The error that names the file, the line and the column; that of the labels by default."""
        column = self._label if column is None else column
        return self._parts.error(part, row, column, message)
