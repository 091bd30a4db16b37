"""Columns as they come from a file, a frame or an array, before they are coded for a table.

Every source hands over the same thing, a `RawTable` of dictionary-coded text columns, so that all
rules about names, missing cells and bins are written once, in `bayes_lcs.data.assemble`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from bayes_lcs.data.errors import DataError

__all__ = [
    "BEGINNING",
    "Block",
    "Cost",
    "Mark",
    "RawColumn",
    "RawTable",
    "Source",
    "file_stamp",
    "is_missing",
    "natural_order",
    "parse_number",
    "raw_column",
    "value_name",
]


@dataclass(frozen=True)
class Source:
    """Where rows came from, so that errors can name the place.

    ``line_of`` gives the line of a row in a text file; without it rows are counted from 0.
    ``plain`` are columns of text that are read as Arrow dictionaries although the source itself
    lists no values of theirs.
    """

    file: str | None = None
    line_of: Callable[[int], int | None] | None = None
    plain: frozenset[str] = frozenset()

    def lists_values(self, column: str) -> bool:
        """Whether an Arrow dictionary of a column is the source's own: it then means something.

        A text file has none, and none of its columns a type.
        """
        return self.line_of is None and column not in self.plain

    def error(
        self, message: str, *, row: int | None = None, column: str | None = None
    ) -> DataError:
        """Return the error for one place."""
        line = None if row is None or self.line_of is None else self.line_of(row)
        shown_row = row if line is None else None
        return DataError(message, file=self.file, line=line, row=shown_row, column=column)


class Cost(NamedTuple):
    """What reading takes, as far as it is known beforehand: rows, and bytes of the file."""

    rows: int | None
    bytes: int | None


class Mark(NamedTuple):
    """How far a table was read: rows, and bytes of text (as UTF-8) and line breaks, if it is text.

    Reading can go on from here, in this process or in another.
    """

    rows: int = 0
    text: int = 0
    lines: int = 0


BEGINNING = Mark()


class Block(NamedTuple):
    """Consecutive rows as an Arrow table, and how far was read when they end."""

    table: Any
    mark: Mark


class ReadsBlocks(Protocol):
    """Reads columns piece by piece, in the order of the rows; from a mark on, if one is given.

    What will be made of columns of text may be said, since it takes less work to do it at once:
    those that are ``coded`` may then come as Arrow dictionaries, and ``numbers`` as numbers; these
    are given with the cells that mean "missing". Either may still come as text.
    """

    def __call__(
        self,
        wanted: Sequence[str],
        after: Mark = BEGINNING,
        /,
        *,
        coded: Collection[str] = (),
        numbers: Mapping[str, frozenset[str]] = MappingProxyType({}),
    ) -> Iterator[Block]:
        """The rows after a mark."""
        ...


@dataclass(frozen=True)
class RawColumn:
    """One column of text: ``codes`` into distinct ``names``, -1 where the source has no value.

    ``fixed`` says that the source itself lists the values (a Categorical): their order, and those
    that never occur, then mean something. ``edges`` are set if the names are bins already.
    """

    name: str
    codes: NDArray[np.int32]
    names: tuple[str, ...]
    fixed: bool = False
    edges: tuple[float, ...] = ()

    def first_row(self, code: int) -> int | None:
        """The first row that holds a name, if any does."""
        rows = np.flatnonzero(self.codes == code)
        return int(rows[0]) if rows.size else None

    @property
    def is_as_met(self) -> bool:
        """Whether all names occur, and in their order.

        Examples
        --------
        >>> RawColumn("x", np.array([0, -1, 1, 0]), ("a", "b")).is_as_met
        True
        >>> RawColumn("x", np.array([1, 0]), ("a", "b")).is_as_met
        False
        """
        last = np.maximum.accumulate(np.append(-1, self.codes))
        return bool(last[-1] == len(self.names) - 1 and np.all(np.diff(last) <= 1))

    def met(self, codes: Iterable[int]) -> list[int]:
        """Those of some codes that occur, in the order in which they first do.

        Examples
        --------
        >>> RawColumn("x", np.array([2, -1, 0, 2]), ("a", "b", "c")).met([0, 1, 2])
        [2, 0]
        """
        never = len(self.codes)
        first = np.full(len(self.names) + 1, never)  # the last entry serves code -1
        first[self.codes[::-1]] = np.arange(never)[::-1]
        return sorted((code for code in codes if first[code] < never), key=first.__getitem__)


@dataclass(frozen=True)
class RawTable:
    """The column names of a source, and a function that reads some of the columns.

    ``blocks`` reads the same columns of a file piece by piece, so that the whole is never in
    memory; ``cost`` says what that will take. ``path`` is the Parquet file that this is, if it is
    one: any of its rows can then be read without the others. ``stamp`` changes with the file and
    with how it is read; where it is empty nobody can tell whether the rows are still the same.
    """

    names: tuple[str, ...]
    source: Source
    read: Callable[[Sequence[str]], dict[str, RawColumn]]
    blocks: ReadsBlocks | None = None
    cost: Callable[[Sequence[str]], Cost] = lambda _: Cost(None, None)
    path: Path | None = None
    stamp: str = ""


def file_stamp(path: Path) -> str:
    """Place, size and time of a file: what changes when it does."""
    about = path.stat()
    return f"{path.absolute()}, {about.st_size} bytes, {about.st_mtime_ns}"


def is_missing(value: Any) -> bool:
    """Whether a Python object means "no value": None, NaN, NaT or pandas.NA.

    Examples
    --------
    >>> [is_missing(value) for value in (None, float("nan"), "", 0)]
    [True, True, False, False]
    """
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, float | np.floating) and math.isnan(value)


def value_name(value: Any) -> str:
    """The text that names a value: whole numbers without a point, the rest as Python prints it.

    Examples
    --------
    >>> [value_name(value) for value in ("007", 7, 7.0, 0.5, True)]
    ['007', '7', '7', '0.5', 'True']
    """
    if isinstance(value, str):
        return str(value)
    if isinstance(value, float | np.floating) and math.isfinite(value) and value == int(value):
        return str(int(value))
    if isinstance(value, bytes | bytearray | list | dict | set | tuple | np.ndarray):
        raise DataError(f"a cell holds {type(value).__name__} {value!r:.40}, not a single value")
    return str(value)


def parse_number(text: str) -> float | None:
    """The number that a text spells, or None; NaN spells no number.

    Examples
    --------
    >>> [parse_number(text) for text in ("1e3", " 7", "1_000", "NaN", "12 kg")]
    [1000.0, 7.0, None, None, None]
    """
    if "_" in text:  # Python's own digit grouping is not how data files write numbers
        return None
    try:
        number = float(text)
    except ValueError:
        return None
    return None if math.isnan(number) else number


def natural_order(names: Iterable[str]) -> list[str]:
    """Sort names as numbers if every one is a number, else as text.

    Examples
    --------
    >>> natural_order(["10", "2", "1.5"]), natural_order(["10", "2", "x"])
    (['1.5', '2', '10'], ['10', '2', 'x'])
    """
    names = list(names)
    numbers = [parse_number(name) for name in names]
    if any(number is None for number in numbers):
        return sorted(names)
    return [name for _, name in sorted(zip(numbers, names, strict=True))]


def raw_column(
    name: str, codes: NDArray[Any], uniques: Iterable[Any], *, fixed: bool = False
) -> RawColumn:
    """Name the distinct values of a factorised column; values of one name become one.

    Parameters
    ----------
    name
        The name of the column.
    codes
        Index of each row into ``uniques``; -1 is missing.
    uniques
        Distinct objects of any simple type, missing ones allowed.
    fixed
        Whether the source listed the values in an order that counts.

    Examples
    --------
    >>> column = raw_column("size", np.array([0, 1, 2, -1, 3]), [1, "1", None, 2.0])
    >>> column.names, column.codes.tolist()
    (('1', '2'), [0, 0, -1, -1, 1])
    """
    known: dict[str, int] = {}
    recode = []
    for value in uniques:
        try:
            text = None if is_missing(value) else value_name(value)
        except DataError as error:
            raise DataError(error.message, column=name) from None
        recode.append(-1 if text is None else known.setdefault(text, len(known)))
    if recode != list(range(len(recode))):
        table = np.array([*recode, -1], dtype=np.int32)  # the last entry serves code -1
        codes = table[codes]
    return RawColumn(name, codes.astype(np.int32, copy=False), tuple(known), fixed)
