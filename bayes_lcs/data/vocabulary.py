"""The categories of a column that is read in pieces, and numbers read the same way."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayes_lcs.data.arrow_columns import column_from_arrow, plain_numbers, without
from bayes_lcs.data.columns import RawColumn, Source, natural_order, parse_number

__all__ = ["MOST_CATEGORIES", "AnyNames", "Vocabulary", "block_numbers"]

MOST_CATEGORIES = 10_000
"""A column with more different values than this is not taken for a category."""


class Vocabulary:
    """Codes for names in the order in which they are met; their final order comes at the end.

    Examples
    --------
    >>> import pyarrow as pa
    >>> sizes = Vocabulary("size", frozenset({"?"}))
    >>> first = sizes.code(pa.chunked_array([["10", "?"]]), Source(), 0)
    >>> second = sizes.code(pa.chunked_array([["2", "10"]]), Source(), 2)
    >>> sizes.order(), sizes.recode()[first].tolist(), sizes.recode()[second].tolist()
    (('2', '10'), [1, -1], [0, 1])
    """

    def __init__(
        self, name: str, missing: frozenset[str], values: Sequence[str] | None = None
    ) -> None:
        self.name = name
        self._missing = missing
        self._known = {value: code for code, value in enumerate(values or ())}
        # Values that are given are all that there may be, in their order.
        self._closed = self._fixed = values is not None
        self._order: tuple[str, ...] | None = None

    def code(self, cells: Any, source: Source, start: int) -> NDArray[np.int32]:
        """Codes of the cells of a piece whose first row is row ``start`` of its file."""
        column = column_from_arrow(self.name, cells, source)
        self._fixed = self._fixed or column.fixed
        return self._table(column, source, start)[column.codes]

    def _table(self, column: RawColumn, source: Source, start: int) -> NDArray[np.int32]:
        """From the codes of a piece to those of all."""
        for code in self._new(column):
            name = column.names[code]
            self._check(name, code, column, source, start)
            self._known[name] = len(self._known)
            self._order = None
        known = [
            -1 if name in self._missing else self._known.get(name, -1) for name in column.names
        ]
        return np.array([*known, -1], np.int32)  # the last entry serves code -1

    def _new(self, column: RawColumn) -> list[int]:
        """Codes of names that were not met before, in the order in which they are."""
        strange = [
            code
            for code, name in enumerate(column.names)
            if name not in self._known and name not in self._missing
        ]
        # What the source lists is there in its order, be it met or not.
        return column.met(strange) if strange and not column.fixed else strange

    def _check(self, name: str, code: int, column: RawColumn, source: Source, start: int) -> None:
        """Refuse a new name; only then is it looked for in its column."""
        wrong = self._refused(name)
        if wrong is not None:
            row = column.first_row(code)
            place = None if row is None else start + row
            raise source.error(wrong, row=place, column=self.name)

    def _refused(self, name: str) -> str | None:
        """What is wrong with a new name, if anything is."""
        if self._closed:
            return (
                f"{name!r} is none of the {len(self._known)} values that this column had before; "
                "correct the cell, list it in missing_values=, or learn the values anew"
            )
        if "\x00" in name:
            return "the cell holds a NUL byte; the file is damaged or not a text file"
        if len(self._known) == MOST_CATEGORIES:
            return (
                f"has more than {MOST_CATEGORIES} different values and is not taken for a "
                f"category; leave it out with ignore=[{self.name!r}], bin it first, or read "
                "numbers with kind='numbers'"
            )
        return None

    @property
    def kept(self) -> tuple[list[str], bool]:
        """Names in the order in which they were met, and whether that is their final order."""
        return list(self._known), self._fixed

    def go_on(self, names: Sequence[str], is_fixed: bool) -> None:
        """Take up what another one has kept."""
        self._known = {name: code for code, name in enumerate(names)}
        self._fixed, self._order = is_fixed, None

    def order_met(self) -> tuple[str, ...]:
        """All names in the order in which they were met."""
        return tuple(self._known)

    def order(self) -> tuple[str, ...]:
        """All names in their final order: that of a Parquet dictionary, else the natural one."""
        if self._order is None:
            self._order = tuple(self._known) if self._fixed else tuple(natural_order(self._known))
        return self._order

    def recode(self) -> NDArray[np.int32]:
        """From the codes given so far to places in the final order; the last entry is for -1."""
        places = {name: place for place, name in enumerate(self.order())}
        return np.array([*(places[name] for name in self._known), -1], np.int32)


class AnyNames(Vocabulary):
    """Names of which there may be any number."""

    def _table(self, column: RawColumn, source: Source, start: int) -> NDArray[np.int32]:
        if "\x00" in "".join(column.names) or not self._missing.isdisjoint(column.names):
            return super()._table(column, source, start)
        known, self._order = self._known, None
        if column.fixed or column.is_as_met:
            codes = [known.setdefault(name, len(known)) for name in column.names]
            return np.array([*codes, -1], np.int32)
        for code in self._new(column):
            known[column.names[code]] = len(known)
        return np.array([*(known.get(name, -1) for name in column.names), -1], np.int32)

    def _refused(self, name: str) -> str | None:
        return super()._refused(name) if "\x00" in name else None


def block_numbers(
    name: str, cells: Any, missing: frozenset[str], source: Source, start: int
) -> NDArray[np.float64]:
    """The cells of a piece as numbers, NaN where missing."""
    import pyarrow as pa
    import pyarrow.types as types

    if (
        types.is_floating(cells.type)
        or types.is_integer(cells.type)
        or types.is_boolean(cells.type)
    ):
        numbers = cells.cast(pa.float64(), safe=False).to_numpy()
        return np.asarray(numbers, np.float64)
    if types.is_string(cells.type) or types.is_large_string(cells.type):
        known = without(cells, missing)
        plain = plain_numbers(known)
        if plain is not None and np.count_nonzero(np.isnan(plain)) == known.null_count:
            return plain
    column = column_from_arrow(name, cells, source)
    table = np.full(len(column.names) + 1, np.nan)
    for code, text in enumerate(column.names):
        if text in missing:
            continue
        number = parse_number(text)
        if number is None:
            row = column.first_row(code)
            raise source.error(
                f"{text!r} is not a number; correct the cell, leave the column out with "
                f"ignore=[{name!r}], list it in missing_values=, or read names with "
                "kind='categories'",
                row=None if row is None else start + row,
                column=name,
            )
        table[code] = number
    return table[column.codes]
