"""Encode categorical columns that are read batch by batch."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayes_lcs.core.errors import DataError, plural
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
"""Maximum number of distinct values of a categorical column."""

MAX_FRACTIONS = 12
"""A column with more distinct numbers, some of them not integers, is a measurement."""


class Categories(NamedTuple):
    """Final values of a column, and the map from encoder codes to them (last entry: -1)."""

    values: NDArray[Any]
    recode: NDArray[np.int32]


class CategoryEncoder:
    """Incremental encoder: codes in order of appearance; types and final order at the end.

    The type of a CSV column is known only after its last cell. Cells are therefore first encoded as
    texts; `finish` infers the type, converts the distinct texts, and merges equal values such as
    ``1`` and ``1.0``.

    Parameters
    ----------
    name, rule
        Name of the column, and its rule for missing cells.
    values
        All possible values in order; other values are an error with their row.
    limit
        Maximum number of distinct values; None for no limit.
    notes
        Counter of missing cells, unless the user has listed the markers.
    as_text
        Whether cells of a text file are kept as text without type inference.

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
        given = [] if self._given is None else self._given.tolist()
        self._given_codes = {value: place for place, value in enumerate(given)}
        self._typed: ColumnType | None = None
        self._first_type = ""  # and its file, for messages
        self._has_text_cells = False
        self._declared: dict[Any, int] = {}
        self.is_ordered = False
        self._finished: Categories | None = None

    def encode(self, cells: Any, source: Source, start: int) -> NDArray[np.int32]:
        """Return codes of the cells of a batch that begins at row ``start`` of its file."""
        if source.is_text:
            self._has_text_cells = True
        else:
            self._check_type(cells.type, source)
        column = decode_column(self.name, cells, source)
        if column.is_ordered:
            self.is_ordered = True
            for item in column.values.tolist():
                self._declared.setdefault(item, len(self._declared))
        return self._table(column, source, start)[column.codes]

    def _check_type(self, kind: Any, source: Source) -> None:
        """Raise an error if a column is text in one file and numbers in another."""
        own = arrow_type(kind)
        if own is None:
            return
        what = f"{own if own == 'text' else own + 's'} ({kind})"
        merged = merge_types(self._typed, own)
        if self._typed not in (None, own) and merged == "text":
            raise source.error(
                f"holds {what}, but {self._first_type}; store the column alike in all files, or "
                f"leave it out with ignore=[{self.name!r}]",
                column=self.name,
            )
        self._first_type = self._first_type or f"{what} in {source.file}"
        self._typed = merged

    def _table(self, column: RawColumn, source: Source, start: int) -> NDArray[np.int32]:
        """Return the map from the codes of a batch to those of the whole column."""
        items = column.values.tolist()
        missing = [self._is_missing(item) for item in items]
        unknown = {c for c, item in enumerate(items) if not missing[c] and item not in self._known}
        if unknown:
            self._learn(column, items, unknown, source, start)
        if self._notes is not None:
            for code in (-1, *np.flatnonzero(missing).tolist()):
                text = "" if code < 0 else items[code]
                number = int(np.count_nonzero(column.codes == code))
                self._notes.count_missing(self.name, text, number)
        known = [-1 if missing[c] else self._known.get(item, -1) for c, item in enumerate(items)]
        return np.array([*known, -1], np.int32)  # the last entry serves code -1

    def _is_missing(self, item: Any) -> bool:
        if isinstance(item, str):
            return self._rule.matches(item)
        return bool(self._rule.tokens) and self._rule.matches(value_name(item))

    def _learn(
        self, column: RawColumn, items: list[Any], unknown: set[int], source: Source, start: int
    ) -> None:
        self._finished = None
        # Values of a dictionary that never occur are not categories.
        for code in (code for code in column.order_of_appearance() if code in unknown):
            wrong = self._describe_fault(items[code])
            if wrong is not None:
                row = column.first_row(code)
                place = None if row is None else start + row
                raise source.error(wrong, row=place, column=self.name)
            self._known[items[code]] = len(self._known)

    def _describe_fault(self, item: Any) -> str | None:
        """Return an error message for an invalid new value, or None."""
        if isinstance(item, str) and "\x00" in item:
            return "the cell contains a NUL byte; the file is damaged or not a text file"
        if self._given is not None and self._code_of(item) is None:
            return (
                f"{item!r} is not one of the {plural(len(self._given), 'value')} given for this "
                "column; "
                "correct the cell, or list it in missing_values="
            )
        if self._limit is not None and len(self._known) >= self._limit:
            return (
                f"has more than {self._limit:,} distinct values, too many for a category; "
                f"leave it out with ignore=[{self.name!r}], or bin it first"
            )
        return None

    def _code_of(self, item: Any) -> int | None:
        """Return the code of a raw cell among the given values, which may be numbers."""
        assert self._given is not None
        if (
            item not in self._given_codes
            and isinstance(item, str)
            and self._given.dtype.kind != "O"
        ):
            kind = infer_text_type([item])
            return (
                None
                if kind == "text"
                else self._given_codes.get(convert_texts([item], kind)[0].item())
            )
        return self._given_codes.get(item)

    @property
    def num_values(self) -> int:
        """Number of distinct raw values so far."""
        return len(self._known)

    def finish(self) -> Categories:
        """Return the typed values in their final order, and the map from codes to final codes."""
        if self._finished is None:
            self._finished = self._finish()
        return self._finished

    def _finish(self) -> Categories:
        items = list(self._known)
        if self._given is not None:
            places = [self._code_of(item) for item in items]
            return Categories(self._given, np.array([*places, -1], np.int32))
        values = self._typed_values(items)
        distinct: dict[Any, int] = {}
        merged = [distinct.setdefault(value, len(distinct)) for value in values.tolist()]
        values = values[np.unique(merged, return_index=True)[1]]
        order = sort_values(values)
        if self.is_ordered:  # a declared order takes precedence
            last = len(self._declared)
            ranks = [self._declared.get(value, last) for value in values[order].tolist()]
            order = order[np.argsort(ranks, kind="stable")]
        if self._rule.tokens:  # cells such as "-9.0" are missing, too, where -9 is listed
            known = [not self._is_missing(value) for value in values[order].tolist()]
            order = order[np.array(known, bool)]
        final = np.full(len(values), -1, np.int32)
        final[order] = np.arange(len(order))
        recode = np.append(final[np.array(merged, np.int64)], -1)
        return Categories(values[order], recode.astype(np.int32))

    def _typed_values(self, items: list[Any]) -> NDArray[Any]:
        if not self._has_text_cells:
            return typed_array(items)
        texts = [item for item in items if isinstance(item, str)]
        kind = "text" if self._as_text else merge_types(infer_text_type(texts), self._typed)
        if kind == "text":
            return np.array([value_name(item) for item in items], dtype=object)
        typed = iter(convert_texts(texts, infer_text_type(texts)).tolist())
        return typed_array([next(typed) if isinstance(item, str) else item for item in items])


def read_columns(
    table: RawTable,
    columns: Sequence[str],
    rules: Mapping[str, MissingRule],
    notes: Notes | None = None,
    as_text: Collection[str] = (),
) -> dict[str, RawColumn]:
    """Return columns as codes into typed values; missing cells have code -1.

    ``rules`` are the rules for missing cells, ``notes`` counts them, and columns in ``as_text`` are
    kept as text if this is a text file.
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
    found = {}
    for name, encoder in encoders.items():
        values, recode = encoder.finish()
        recoded = [recode[codes] for codes in batches.pop(name)]
        joined = np.concatenate([np.zeros(0, np.int32), *recoded])
        found[name] = RawColumn(name, joined, values, encoder.is_ordered)
    return found


def check_measurements(
    columns: Mapping[str, NDArray[Any]], categorical: Any = (), error: Any = DataError
) -> None:
    """Raise an error if columns are measurements, which must not be treated as categories.

    Parameters
    ----------
    columns
        Distinct values of each column, by name.
    categorical
        Columns that are declared as categorical; True for all.
    error
        ``error(message, column=)`` creates the error.
    """
    if categorical is True:
        return
    declared = {str(name) for name in as_list(categorical or ())}
    found = [name for name in columns if name not in declared and _is_measurement(columns[name])]
    if not found:
        return
    first, *others = found
    more = f" (and so do {', '.join(map(repr, others))})" if others else ""
    it = "them" if others else "it"
    leave = "of X" if error is DataError else f"with ignore={found!r}"
    raise error(
        f"holds {len(columns[first])} distinct numbers that are not whole{more}: a measurement, "
        f"not a category; bin {it} first (pandas.qcut), leave {it} out {leave}, or "
        f"take each number for a category with categorical={found!r}",
        column=first,
    )


def _is_measurement(values: NDArray[Any]) -> bool:
    if values.dtype.kind != "f" or len(values) <= MAX_FRACTIONS:
        return False
    finite = values[np.isfinite(values)]
    return len(finite) < len(values) or not np.array_equal(finite, np.round(finite))
