"""Raw tables: column names and a function that reads batches of rows.

Every source (file, Arrow data set, Dask dataframe, pandas or polars frame) is opened as a
`RawTable`, so that the rules for types, missing cells and categories are implemented once.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from bayes_lcs.core.errors import DataError
from bayes_lcs.io.column_types import value_name
from bayes_lcs.io.options import MissingRule, is_index_name

__all__ = ["NO_RULES", "RawColumn", "RawTable", "SizeEstimate", "Source", "file_stamp"]


@dataclass(frozen=True)
class Source:
    """Origin of rows, for the positions in error messages.

    ``line_of`` returns the line of a row of a text file; without it rows are counted from 0.
    ``row_of`` converts the number of a row in reading order to its number in the file.
    """

    file: str | None = None
    line_of: Callable[[int], int | None] | None = None
    row_of: Callable[[int], int] | None = None

    @property
    def is_text(self) -> bool:
        """True for a text file, whose columns have no declared types."""
        return self.line_of is not None

    def error(
        self, message: str, *, row: int | None = None, column: str | None = None
    ) -> DataError:
        """Return the error with file, line or row, and column."""
        if row is not None and self.row_of is not None:
            row = self.row_of(row)
        line = None if row is None or self.line_of is None else self.line_of(row)
        shown_row = row if line is None else None
        return DataError(message, file=self.file, line=line, row=shown_row, column=column)


class SizeEstimate(NamedTuple):
    """Rows and bytes of a table if known before reading, and rows of its Parquet row groups."""

    rows: int | None
    bytes: int | None
    groups: tuple[int, ...] = ()


NO_RULES: Mapping[str, MissingRule] = MappingProxyType({})


class ReadsBatches(Protocol):
    """Protocol of functions that read columns batch by batch, in the order of the rows.

    Text columns in ``encoded`` may be returned as Arrow dictionaries. Columns in ``numeric``, with
    the rule of their missing cells, may be returned from a text file as float64 with null for
    missing cells; they are returned as text if a cell is not a number.
    """

    def __call__(
        self,
        columns: Sequence[str],
        /,
        *,
        encoded: Collection[str] = (),
        numeric: Mapping[str, MissingRule] = NO_RULES,
    ) -> Iterator[Any]:
        """Yield Arrow tables."""
        ...


@dataclass(frozen=True)
class RawTable:
    """Columns of a source.

    Parameters
    ----------
    names, source, batches, size
        Column names, the origin, the reader, and rows and bytes if they are known.
    path
        The path of a Parquet file, of which any range of rows can be read.
    stamp
        Cache key of the file and the reader options; empty if changes cannot be detected.
    head
        Reads the first rows of some columns to infer their types; a source whose columns have
        declared types may return no rows.
    """

    names: tuple[str, ...]
    source: Source
    batches: ReadsBatches
    size: Callable[[], SizeEstimate] = lambda: SizeEstimate(None, None)
    path: Path | None = None
    stamp: str = ""
    head: Callable[[Sequence[str]], Any] | None = None

    def read_head(self, columns: Sequence[str]) -> Any:
        """Return the first rows of some columns, or an empty table of their declared types."""
        if self.head is not None:
            return self.head(columns)
        return next(iter(self.batches(columns)), None)

    @property
    def index(self) -> str | None:
        """Name of the first column if it is an index, as pandas and R write it."""
        return self.names[0] if len(self.names) > 1 and is_index_name(self.names[0]) else None


@dataclass(frozen=True)
class RawColumn:
    """Column as ``codes`` into distinct typed ``values``; -1 is missing.

    ``is_ordered`` is True if the source declares an order of the values (an ordered Categorical).
    ``edges`` are set if the values are names of bins.
    """

    name: str
    codes: NDArray[np.int32]
    values: NDArray[Any]
    is_ordered: bool = False
    edges: tuple[float, ...] = ()

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Name of each value."""
        return tuple(value_name(value) for value in self.values.tolist())

    def first_row(self, code: int) -> int | None:
        """Return the first row with a value, or None."""
        rows = np.flatnonzero(self.codes == code)
        return int(rows[0]) if rows.size else None

    def order_of_appearance(self) -> list[int]:
        """Return the codes that occur, in order of first appearance.

        Examples
        --------
        >>> RawColumn("x", np.array([2, -1, 0, 2]), np.array(["a", "b", "c"])).order_of_appearance()
        [2, 0]
        """
        never = len(self.codes)
        first = np.full(len(self.values) + 1, never)  # the last entry serves code -1
        first[self.codes[::-1]] = np.arange(never)[::-1]
        order = np.argsort(first[:-1], kind="stable")
        return order[first[order] < never].tolist()


def file_stamp(path: Path) -> str:
    """Return path, size and modification time of a file: a cache key that changes with it."""
    about = path.stat()
    return f"{path.absolute()}, {about.st_size} bytes, {about.st_mtime_ns}"
