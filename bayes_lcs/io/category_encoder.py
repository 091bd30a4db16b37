"""Encode the values of a column that is read batch by batch."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayes_lcs.core.errors import DataError
from bayes_lcs.io.column_types import (
    ColumnType,
    arrow_type,
    convert_texts,
    infer_text_type,
    merge_types,
    sort_values,
    typed_array,
    value_name,
)
from bayes_lcs.io.decode import decode_column
from bayes_lcs.io.options import MissingRule, Notes, as_list
from bayes_lcs.io.raw_table import RawColumn, RawTable, Source

__all__ = [
    "MAX_CATEGORIES",
    "Categories",
    "CategoryEncoder",
    "check_measurements",
    "read_columns",
]

MAX_CATEGORIES = 10_000
"""A column with more distinct values than this is refused as a category."""

MAX_MEASURED = 12
"""A column of more distinct numbers that are not all whole is a measurement, not a category."""


class Categories(NamedTuple):
    """Final values of a column, and the map from the encoder's codes to places among them.

    ``recode`` has one more entry, -1, which serves code -1.
    """

    values: NDArray[Any]
    recode: NDArray[np.int32]


class CategoryEncoder:
    """Codes for values in order of appearance; types and the final order follow at the end.

    The type of a CSV column is known only when its last cell was read. Cells are therefore encoded
    as texts first; `finish` decides the type, converts the distinct texts, and merges those that
    are one value, such as ``1`` and ``1.0``.

    Parameters
    ----------
    name
        Name of the column.
    rule
        Which texts mean "missing".
    values
        All values that there may be, in their order; other values are an error that names the row.
    limit
        Largest number of distinct values; None for any number.
    notes
        Where markers for "missing" are counted, unless the user has listed them.
    as_text
        Whether cells of a text file stay text, whatever they look like: a model was fitted to text.

    Examples
    --------
    >>> import pyarrow as pa
    >>> encoder = CategoryEncoder("size", MissingRule())
    >>> text = Source("t.csv", line_of=lambda row: row + 2)
    >>> first = encoder.encode(pa.chunked_array([["10", "NA"]]), text, 0)
    >>> second = encoder.encode(pa.chunked_array([["2", "10"]]), text, 2)
    >>> values, recode = encoder.finish()
    >>> values.tolist(), recode[first].tolist(), recode[second].tolist()
    ([2, 10], [1, -1], [0, 1])
    """

    def __init__(
        self,
        name: str,
        rule: MissingRule,
        values: Sequence[Any] | NDArray[Any] | None = None,
        *,
        limit: int | None = MAX_CATEGORIES,
        notes: Notes | None = None,
        as_text: bool = False,
    ) -> None:
        self.name = name
        self._rule, self._limit, self._as_text = rule, limit, as_text
        self._notes = notes if rule.tokens is None else None
        self._known: dict[Any, int] = {}
        self._given = None if values is None else typed_array(list(values))
        self._typed: ColumnType | None = None
        self._first_file: tuple[str, str | None] | None = None
        self._has_text_cells = False
        self._declared: dict[Any, int] = {}
        self.is_ordered = False
        self._finished: Categories | None = None

    def encode(self, cells: Any, source: Source, start: int) -> NDArray[np.int32]:
        """Return codes of the cells of a batch that begins at row ``start`` of its file."""
        self._check_type(cells.type, source)
        column = decode_column(self.name, cells, source)
        if column.is_ordered:
            self.is_ordered = True
            for item in column.values.tolist():
                self._declared.setdefault(item, len(self._declared))
        return self._table(column, source, start)[column.codes]

    def _check_type(self, kind: Any, source: Source) -> None:
        """Raise an error if a column is text in one file and numbers in another."""
        if source.is_text:
            self._has_text_cells = True
            return
        own = arrow_type(kind)
        if own is None:
            return
        merged = merge_types(self._typed, own)
        if self._typed not in (None, own) and merged == "text":
            known, where = self._first_file or ("", None)
            raise source.error(
                f"holds {_plural(own)} ({kind}), but {known} in {where}; store the column alike in "
                f"all files, or leave it out with ignore=[{self.name!r}]",
                column=self.name,
            )
        self._first_file = self._first_file or (f"{_plural(own)} ({kind})", source.file)
        self._typed = merged

    def _table(self, column: RawColumn, source: Source, start: int) -> NDArray[np.int32]:
        """Return the map from the codes of a batch to those of the whole column."""
        items = column.values.tolist()
        missing = [self._is_missing(item) for item in items]
        strange = [c for c, item in enumerate(items) if not missing[c] and item not in self._known]
        if strange:
            self._learn(column, items, strange, source, start)
        if self._notes is not None and any(missing):
            for code in np.flatnonzero(missing):
                number = int(np.count_nonzero(column.codes == code))
                self._notes.count_markers(self.name, items[code], number)
        known = [-1 if missing[c] else self._known.get(item, -1) for c, item in enumerate(items)]
        return np.array([*known, -1], np.int32)  # the last entry serves code -1

    def _is_missing(self, item: Any) -> bool:
        if isinstance(item, str):
            return self._rule.matches(item)
        return bool(self._rule.tokens) and self._rule.matches(value_name(item))

    def _learn(
        self, column: RawColumn, items: list[Any], strange: list[int], source: Source, start: int
    ) -> None:
        self._finished = None
        wanted = set(strange)
        # Values of a dictionary that never occur are no categories.
        for code in (code for code in column.order_of_appearance() if code in wanted):
            item = items[code]
            wrong = self._find_fault(item)
            if wrong is not None:
                row = column.first_row(code)
                place = None if row is None else start + row
                raise source.error(wrong, row=place, column=self.name)
            self._known[item] = len(self._known)

    def _find_fault(self, item: Any) -> str | None:
        """Return what is wrong with a new value, if anything is."""
        if isinstance(item, str) and "\x00" in item:
            return "the cell holds a NUL byte; the file is damaged or not a text file"
        if self._given is not None and self._place_of(item) is None:
            return (
                f"{item!r} is not one of the {len(self._given)} values given for this column; "
                "correct the cell, or list it in missing_values="
            )
        if self._limit is not None and len(self._known) >= self._limit:
            return (
                f"has more than {self._limit:,} distinct values and is not taken for a category; "
                f"leave it out with ignore=[{self.name!r}], or bin it first"
            )
        return None

    def _place_of(self, item: Any) -> int | None:
        """Return the place of a raw cell among the values given."""
        assert self._given is not None
        if not hasattr(self, "_places"):
            self._places = {value: place for place, value in enumerate(self._given.tolist())}
        if item in self._places:
            return self._places[item]
        if isinstance(item, str) and self._given.dtype.kind != "O":
            kind = infer_text_type([item])
            if kind is not None and kind != "text":
                return self._places.get(convert_texts([item], kind)[0].item())
        return None

    @property
    def num_values(self) -> int:
        """Number of distinct raw values so far."""
        return len(self._known)

    def finish(self) -> Categories:
        """Return the typed values in their final order, and the map from codes to places."""
        if self._finished is None:
            self._finished = self._finish()
        return self._finished

    def _finish(self) -> Categories:
        items = list(self._known)
        if self._given is not None:
            places = [self._place_of(item) for item in items]
            return Categories(self._given, np.array([*places, -1], np.int32))
        values = self._typed_values(items)
        distinct: dict[Any, int] = {}
        merged = [distinct.setdefault(value, len(distinct)) for value in values.tolist()]
        first = [0] * len(distinct)
        for place in range(len(merged) - 1, -1, -1):
            first[merged[place]] = place
        values = values[np.array(first, np.int64)]
        order = sort_values(values)
        if self.is_ordered:  # a declared order counts, whatever occurs first
            last = len(self._declared)
            ranks = [self._declared.get(value, last) for value in values[order].tolist()]
            order = order[np.argsort(ranks, kind="stable")]
        if self._rule.tokens:  # cells such as "-9.0" are missing, too, where -9 is listed
            known = [not self._is_missing(value) for value in values[order].tolist()]
            order = order[np.array(known, bool)]
        final = np.full(len(values), -1, np.int32)
        final[order] = np.arange(len(order))
        recode = np.append(final[np.array(merged, np.int64)], -1) if merged else np.array([-1])
        return Categories(values[order], recode.astype(np.int32))

    def _typed_values(self, items: list[Any]) -> NDArray[Any]:
        if not self._has_text_cells:
            return typed_array(items)
        texts = [item for item in items if isinstance(item, str)]
        kind = "text" if self._as_text else merge_types(infer_text_type(texts), self._typed)
        if kind == "text":
            return np.array([value_name(item) for item in items], dtype=object)
        typed = convert_texts(texts, infer_text_type(texts)).tolist()
        rest = iter(typed)
        return typed_array([next(rest) if isinstance(item, str) else item for item in items])

    def order_of_appearance(self) -> list[Any]:
        """Return the typed values in the order in which they appeared."""
        values, recode = self.finish()
        met = dict.fromkeys(recode[recode >= 0].tolist())
        return values[np.array(list(met), np.int64)].tolist()


def _plural(kind: ColumnType) -> str:
    return {"integer": "integers", "boolean": "booleans", "float": "floats"}.get(kind, kind)


def read_columns(
    table: RawTable,
    columns: Sequence[str],
    rules: Mapping[str, MissingRule],
    notes: Notes | None = None,
    as_text: Collection[str] = (),
) -> dict[str, RawColumn]:
    """Return columns as codes into typed values; missing cells have code -1.

    Parameters
    ----------
    table
        The table to read.
    columns
        The columns.
    rules
        Which texts mean "missing", by column.
    notes
        Where markers for "missing" are counted.
    as_text
        Columns whose cells stay text if this is a text file.
    """
    encoders = {
        name: CategoryEncoder(name, rules[name], limit=None, notes=notes, as_text=name in as_text)
        for name in columns
    }
    batches: dict[str, list[NDArray[Any]]] = {name: [] for name in columns}
    row = 0
    for batch in table.batches(list(columns), encoded=columns):
        for name, encoder in encoders.items():
            codes = encoder.encode(batch.column(name), table.source, row)
            batches[name].append(codes.astype(np.min_scalar_type(-int(codes.max(initial=0)) - 1)))
        row += batch.num_rows
    return {name: _join(encoders[name], batches.pop(name)) for name in columns}


def _join(encoder: CategoryEncoder, batches: list[NDArray[Any]]) -> RawColumn:
    values, recode = encoder.finish()
    codes = np.concatenate([np.zeros(0, np.int32), *(recode[codes] for codes in batches)])
    return RawColumn(encoder.name, codes, values, encoder.is_ordered)


def check_measurements(
    columns: Mapping[str, NDArray[Any]], categorical: Any = (), error: Any = DataError
) -> None:
    """Raise an error if columns hold measurements, which must not become categories.

    Parameters
    ----------
    columns
        Distinct values of each column, by name.
    categorical
        Columns that are categories whatever they hold; True for all.
    error
        ``error(message, column=)`` makes the error.
    """
    if categorical is True:
        return
    declared = {str(name) for name in as_list(categorical or ())}
    found = [name for name in columns if name not in declared and _is_measured(columns[name])]
    if not found:
        return
    first, *others = found
    more = f" (and so do {', '.join(map(repr, others))})" if others else ""
    leave = "of X" if error is DataError else f"with ignore=[{first!r}]"
    raise error(
        f"holds {len(columns[first])} distinct numbers that are not whole{more}: a measurement, "
        f"not a category; bin it first (pandas.qcut), leave it out {leave}, or "
        f"take each number for a category with categorical=[{first!r}]",
        column=first,
    )


def _is_measured(values: NDArray[Any]) -> bool:
    if values.dtype.kind != "f" or len(values) <= MAX_MEASURED:
        return False
    finite = values[np.isfinite(values)]
    return len(finite) < len(values) or not np.array_equal(finite, np.round(finite))
