"""Disjoint parts of the rows of arrays and of files (`bayes_lcs.io.shards`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from bayes_lcs.classification.partial_scan.validate_input import distinct_texts, take_rows
from bayes_lcs.core.errors import DataError
from bayes_lcs.io.shards import FileShards, ReadCount, Shard, ShardReader

__all__ = [
    "ArrayParts",
    "FilePartSource",
    "PartSource",
    "RowPart",
    "check_finite",
    "choose_num_parts",
    "part_from_shard",
    "sample_part",
    "select_rows",
]

PART_ROWS, PART_ROWS_PER_CLASS = 1000, 200
"""Minimum number of rows per part, and per class; with fewer rows models are of little use."""

MIN_PARTS, MAX_PARTS = 16, 128
"""Minimum number of parts, since about a dozen must agree; maximum, above which parts grow."""

VALIDATION_SHARE = 0.2
"""Maximum share of the rows of an array that is held out for validation."""


def choose_num_parts(num_rows: int, num_classes: int) -> int:
    """Return the number of parts for ``n_partitions="auto"``; 1 means one model of all rows.

    A part has at least 1,000 rows, and 200 for each class. There are at most 128 parts. Data that
    are too small for 16 parts (16,000 rows for up to five classes) are not divided.

    Examples
    --------
    >>> choose_num_parts(15_999, 2), choose_num_parts(30_000, 2), choose_num_parts(10**6, 2)
    (1, 30, 128)
    >>> choose_num_parts(30_000, 26)
    1
    """
    parts = num_rows // max(PART_ROWS, PART_ROWS_PER_CLASS * num_classes)
    return 1 if parts < MIN_PARTS else min(parts, MAX_PARTS)


class RowPart(NamedTuple):
    """Labelled rows of a part.

    ``rows`` are their row numbers after ``first_row`` if they are not consecutive; ``texts`` the
    distinct texts of text columns; ``blocks`` the block of the file that each row was read from, if
    rows were read in blocks; ``sample`` the indices into ``y`` of the rows in ``X``, if not all.
    """

    number: int
    first_row: int
    X: Any
    y: NDArray[Any]
    rows: NDArray[np.int64] | None = None
    texts: Mapping[Any, Sequence[str]] = MappingProxyType({})
    blocks: NDArray[np.int64] | None = None
    sample: NDArray[np.int64] | None = None


class PartSource(Protocol):
    """Protocol of sources that yield rows part by part and count what was read."""

    @property
    def is_shuffled(self) -> bool:
        """True if the order of the parts is random by construction."""

    @property
    def num_parts(self) -> int:
        """Number of parts in all."""

    @property
    def rows_read(self) -> int:
        """Number of rows read so far."""

    @property
    def bytes_read(self) -> int | None:
        """Number of bytes read so far; None for rows in memory."""

    @property
    def fraction(self) -> float:
        """Share of the data that has been read."""

    @property
    def where(self) -> str:
        """Name of the source, for messages."""

    @property
    def validation(self) -> RowPart | None:
        """Rows that are held out of all parts; known once the first part was read."""

    @property
    def num_known(self) -> int:
        """Number of parts known when validation rows were chosen, which are not bet on."""

    @property
    def num_empty(self) -> int:
        """Number of parts so far that had no labelled rows and were skipped."""

    def __iter__(self) -> Iterator[RowPart]:
        """Yield the parts in the order in which they are read."""

    def reader(self) -> ShardReader | None:
        """Return a reader that can be sent to workers, if parts can be read in any order."""

    def count_more(self, count: ReadCount) -> None:
        """Add what workers have read."""

    def error(self, part: RowPart, row: int, column: str | None, message: str) -> DataError:
        """Return the error with the position of a cell in a part."""


class ArrayParts:
    """Labelled rows in memory, split into parts by `numpy.array_split`.

    Parameters
    ----------
    X, y
        The rows and their labels.
    rows
        Indices of the training rows, in the order in which they are split.
    held_out
        Indices of the validation rows.
    text
        Text columns.
    num_parts
        Number of parts.
    order
        The order in which parts are read.
    is_shuffled
        Whether that order is random, or that of the rows.
    are_neighbours
        Whether a part consists of neighbouring rows.
    file
        The file from which all rows were read at once.
    """

    num_known = num_empty = 0

    def __init__(
        self,
        X: Any,
        y: NDArray[Any],
        rows: NDArray[np.int64],
        held_out: NDArray[np.int64],
        text: Sequence[Any],
        num_parts: int,
        order: Sequence[int],
        is_shuffled: bool,
        are_neighbours: bool,
        file: FilePartSource | None = None,
    ) -> None:
        self._X, self._y, self._text, self._file = X, y, text, file
        self._are_neighbours = are_neighbours
        self._pieces = np.array_split(rows, num_parts)
        self.num_parts, self._order, self.is_shuffled = num_parts, order, is_shuffled
        self.validation = self._part(0, held_out) if len(held_out) else None
        self.rows_read = len(held_out)
        self.where = "X" if file is None else file.where
        self.bytes_read: int | None = None
        if file is not None:
            self.rows_read, self.bytes_read = file.rows_read, file.bytes_read

    @property
    def fraction(self) -> float:
        """Share of the rows that was yielded, or of the file that was read."""
        return self.rows_read / len(self._y) if self._file is None else self._file.fraction

    def __iter__(self) -> Iterator[RowPart]:
        for number in self._order:
            rows = self._pieces[number]
            if self._file is None:
                self.rows_read += len(rows)
            part = self._part(number, rows)
            # Neighbouring rows may be similar: a part is then treated like a block of a file.
            blocks = np.full(len(rows), number) if self._are_neighbours else None
            yield part._replace(blocks=blocks)

    def _part(self, number: int, rows: NDArray[np.int64]) -> RowPart:
        X = take_rows(self._X, rows)
        places = rows if self._file is None else self._file.places[rows]
        return RowPart(number, 0, X, self._y[rows], places, distinct_texts(X, self._text))

    def reader(self) -> ShardReader | None:
        """Return None: rows in memory are sent to workers."""
        return None

    def count_more(self, count: ReadCount) -> None:
        """Do nothing: workers read nothing."""

    def error(self, part: RowPart, row: int, column: str | None, message: str) -> DataError:
        """Return the error with the row, counted from 0, or the line of the file."""
        if self._file is not None:
            return self._file.error(part, row, column, message)
        row = row if part.rows is None else int(part.rows[row])
        return DataError(message, row=part.first_row + row, column=column)


def check_finite(part: RowPart, error: Callable[..., DataError]) -> None:
    """Raise an error for infinite numbers; a learner's own error would lack file and line."""
    for name, column in part.X.items():
        infinite = np.isinf(column.to_numpy()) if column.dtype.kind == "f" else np.zeros(0)
        if infinite.any():
            raise error(
                part,
                int(np.argmax(infinite)),
                str(name),
                "the number is infinite; correct it, list it in missing_values=, or treat the "
                f"column as categorical with categorical=[{name!r}]",
            )


class FilePartSource:
    """Parts of a file; up to half of the rows of the first are held out for validation.

    ``validation_size`` is the maximum number of validation rows, ``seed`` the seed of their choice.
    """

    num_known = 1

    def __init__(
        self, shards: FileShards, name: str, label: str, validation_size: int, seed: int
    ) -> None:
        self._shards, self.where, self._label = shards, name, label
        self._size, self._seed = validation_size, seed
        self.validation: RowPart | None = None
        self.places = np.arange(0)  # row numbers of a file that is read at once

    @property
    def num_empty(self) -> int:
        """Number of parts so far that had no labelled rows and were skipped."""
        return self._shards.count.num_empty

    @property
    def is_shuffled(self) -> bool:
        """True if the order of the parts is random by construction."""
        return self._shards.is_shuffled

    @property
    def num_parts(self) -> int:
        """Number of parts in all."""
        return self._shards.num_shards

    @property
    def rows_read(self) -> int:
        """Number of rows read so far."""
        return self._shards.count.num_rows

    @property
    def bytes_read(self) -> int | None:
        """Number of bytes read so far."""
        return self._shards.count.num_bytes

    @property
    def fraction(self) -> float:
        """Share of the rows if their number is known, otherwise share of the bytes."""
        count = self._shards.count
        if self._shards.num_rows is not None:
            return count.num_rows / self._shards.num_rows
        return min(count.num_bytes / self._shards.file_bytes, 1.0)

    def __iter__(self) -> Iterator[RowPart]:
        self.validation = None
        for number, part in enumerate(map(part_from_shard, self._shards)):
            check_finite(part, self.error)
            yield part if number else self._hold_out(part)

    def read_whole(self) -> RowPart:
        """Return all rows of a file that is read at once."""
        (part,) = map(part_from_shard, self._shards)
        check_finite(part, self.error)
        self.places = np.arange(len(part.y)) if part.rows is None else part.rows
        return part

    def _hold_out(self, first: RowPart) -> RowPart:
        """Take the validation rows out of the first part."""
        size = min(self._size, len(first.y) // 2)
        if not size or self._shards.num_shards == 1:
            return first
        order = np.random.default_rng(self._seed).permutation(len(first.y))
        self.validation = select_rows(first, np.sort(order[:size]))
        return select_rows(first, np.sort(order[size:]))

    def reader(self) -> ShardReader | None:
        """Return a reader that can be sent to workers, if parts can be read in any order."""
        return self._shards.reader()

    def count_more(self, count: ReadCount) -> None:
        """Add what workers have read."""
        self._shards.count.add(count)

    def error(self, part: RowPart, row: int, column: str | None, message: str) -> DataError:
        """Return the error with file, line and column, by default the label column."""
        column = self._label if column is None else column
        return self._shards.error(part, row, column, message)


def part_from_shard(shard: Shard) -> RowPart:
    """Return the rows of a shard as a part."""
    text = [name for name, kind in shard.frame.dtypes.items() if kind.kind == "O"]
    texts = distinct_texts(shard.frame, text)
    return RowPart(
        shard.number,
        shard.first_row,
        shard.frame,
        shard.labels,
        shard.rows,
        texts,
        shard.blocks,
    )


def select_rows(part: RowPart, rows: NDArray[np.int64]) -> RowPart:
    """Return some rows of a part."""
    X = take_rows(part.X, rows)
    places = rows if part.rows is None else part.rows[rows]
    texts = distinct_texts(X, part.texts)
    blocks = None if part.blocks is None else part.blocks[rows]
    return RowPart(part.number, part.first_row, X, part.y[rows], places, texts, blocks)


def sample_part(part: RowPart, size: int, seed: int) -> RowPart:
    """Return a part with a random sample of its rows in ``X``, in random order; at least one."""
    size = max(size, 1)
    if part.sample is not None:
        return part._replace(X=take_rows(part.X, slice(size)), sample=part.sample[:size])
    rows = np.random.default_rng((seed, part.number)).permutation(len(part.y))[:size]
    return part._replace(X=take_rows(part.X, rows), sample=rows)
