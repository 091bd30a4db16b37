"""Encode columns in memory as integer codes, with the same rules as for columns of files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayes_lcs.core.errors import DataError, DataWarning, plural, warn_user
from bayes_lcs.data.rows.encoded_rows import DenseRows, EncodedColumns, SparseRows
from bayes_lcs.io.column_types import (
    is_null,
    sort_values,
    typed_array,
    value_name,
    value_type,
    widen_floats,
)
from bayes_lcs.io.options import MissingRule, Notes

__all__ = [
    "encode_columns",
    "encode_sparse",
    "encode_sparse_by",
    "learn_categories",
]

MAX_SPAN = 1 << 16
"""Integers in a range up to this size are counted with an array instead of sorted."""

DEFAULT_RULE = MissingRule()


def learn_categories(
    column: Any, missing_values: Iterable[Any] | None = None, name: Any = None
) -> NDArray[Any]:
    """Return the values of a column, typed and sorted, without missing values.

    Only values that occur are categories. An ordered Categorical keeps its order.

    Parameters
    ----------
    column
        An array or a pandas Series.
    missing_values
        Markers of missing values besides None and NaN; by default texts such as "NA" and "?".
    name
        Name of the column, for errors.

    Examples
    --------
    >>> learn_categories(np.array([3, 1, 3])).tolist()
    [1, 3]
    >>> learn_categories(np.array(["b", None, "a", "?"], dtype=object)).tolist()
    ['a', 'b']
    """
    if isinstance(getattr(column, "dtype", None), pd.CategoricalDtype):
        used = np.unique(np.asarray(column.cat.codes))
        values = typed_array(column.cat.categories[used[used >= 0]].tolist())
        if not column.cat.ordered:
            values = values[sort_values(values)]
        return _drop_missing(values, missing_values)
    array = _as_array(column, name)
    if array.dtype.kind in "biu" and (low := _low_end(array)) is not None:
        tally = np.bincount((array.astype(np.int64) - low).ravel())
        values = np.flatnonzero(tally) + low
        values = values.astype(np.bool_ if array.dtype.kind == "b" else np.int64)
        return _drop_missing(values, missing_values)
    if array.dtype.kind in "biuf":
        values = np.unique(array)
        if array.dtype.kind == "f":
            values = values[~np.isnan(values)]
        return _drop_missing(typed_array(values.tolist()), missing_values)
    values = typed_array([v for v in pd.unique(pd.Series(array, dtype=object)) if not is_null(v)])
    return _drop_missing(values[sort_values(values)], missing_values)


def encode_columns(
    columns: Sequence[Any],
    categories: Sequence[NDArray[Any]],
    missing_values: Iterable[Any] | None = None,
    *,
    unknown: str = "missing",
    names: Sequence[Any] | None = None,
    notes: Notes | None = None,
) -> DenseRows:
    """Encode columns by given categories, which match by value.

    An unknown value is treated as missing with a warning, or is an error. Cells that are missing by
    the default rule are counted in ``notes``.

    Examples
    --------
    >>> rows = encode_columns([np.array([3.0, 1.0, np.nan])], [np.array([1, 3])])
    >>> rows.codes.ravel().tolist()
    [1, 0, -1]
    """
    sizes = [len(values) for values in categories]
    dtype = np.min_scalar_type(-max(sizes, default=1) - 1)
    num_rows = len(columns[0]) if len(columns) else 0
    codes = np.empty((num_rows, len(columns)), dtype, order="F")
    unseen: dict[str, tuple[int, str]] = {}
    for f, (column, values) in enumerate(zip(columns, categories, strict=True)):
        name = f"x{f}" if names is None else str(names[f])
        codes[:, f] = _encode(column, values, name)
        if (codes[:, f] >= 0).all():
            continue
        missing = _find_missing(column, missing_values)
        if notes is not None and missing_values is None:
            _count_missing(column, missing, name, notes)
        lost = np.flatnonzero((codes[:, f] < 0) & ~missing)
        if len(lost):
            example = np.asarray(column, dtype=object)[lost[0]]
            if unknown == "error":
                raise DataError(
                    f"unknown value {example!r}; handle_unknown='missing' ignores it",
                    row=int(lost[0]),
                    column=name,
                )
            unseen[name] = (len(lost), f"{example!r}{_explain_type(example, values)}")
    _warn_of_unseen(unseen, num_rows)
    # An empty column gets a category that never occurs, and is then uninformative.
    return DenseRows(codes, tuple(max(size, 1) for size in sizes))


def _explain_type(example: Any, values: NDArray[Any]) -> str:
    """Return a hint if the training data have the value in another type, such as 0 for "0"."""
    kinds = {True: "text", False: "number"}
    name, is_text = value_name(example), isinstance(example, str)
    same = [v for v in values.tolist() if value_name(v) == name and isinstance(v, str) != is_text]
    if not same:
        return ""
    return f" (training data have the {kinds[not is_text]} {same[0]!r}, this is a {kinds[is_text]})"


def _warn_of_unseen(unseen: dict[str, tuple[int, str]], num_rows: int) -> None:
    """Warn of values not seen in training, with their number and an example by column."""
    if not unseen:
        return
    shown = [
        f"column {name!r} in {number:,} of {plural(num_rows, 'row')}, for instance {example}"
        for name, (number, example) in list(unseen.items())[:4]
    ]
    more = f"; and {plural(len(unseen) - 4, 'more column')}" if len(unseen) > 4 else ""
    warn_user(
        f"values not seen in training are taken as missing: {'; '.join(shown)}{more}",
        DataWarning,
    )


def encode_sparse(matrix: Any) -> EncodedColumns:
    """Encode the rows of a sparse matrix of zeros and ones."""
    from scipy.sparse import csc_array

    columns = csc_array(matrix, copy=True)
    columns.eliminate_zeros()
    if columns.nnz and (columns.data != 1).any():
        wrong = columns.data[columns.data != 1][0]
        raise DataError(
            f"a sparse matrix must contain zeros and ones only, but contains {wrong!r}; use a "
            "dense array, or X != 0 if only non-zero entries matter"
        )
    columns.sort_indices()
    return SparseRows(columns)


def encode_sparse_by(
    matrix: Any,
    categories: Sequence[NDArray[Any]],
    missing_values: Iterable[Any] | None = None,
    *,
    unknown: str = "missing",
    names: Sequence[Any] | None = None,
) -> EncodedColumns:
    """Encode a sparse matrix by given categories."""
    if all(len(values) == 2 and values.tolist() == [0, 1] for values in categories):
        return encode_sparse(matrix)
    from scipy.sparse import csc_array

    columns = csc_array(matrix)
    dense = [columns[:, [f]].toarray().ravel() for f in range(columns.shape[1])]
    return encode_columns(dense, categories, missing_values, unknown=unknown, names=names)


def _encode(column: Any, values: NDArray[Any], name: Any) -> NDArray[Any]:
    if isinstance(getattr(column, "dtype", None), pd.CategoricalDtype):
        own = typed_array(column.cat.categories.tolist())
        places = np.append(_encode(own, values, name), -1)  # the last entry serves code -1
        return places[np.asarray(column.cat.codes)]
    array = _as_array(column, name)
    numbers = array.dtype.kind in "biu" and values.dtype.kind in "biu" and len(values)
    if numbers and (low := _low_end(values)) is not None:
        # The first and the last entry of the table are for values out of range.
        high = int(values.max())
        table = np.full(high - low + 3, -1, np.int64)
        table[values.astype(np.int64) - low + 1] = np.arange(len(values))
        return table[np.clip(array.astype(np.int64), low - 1, high + 1) - low + 1]
    if array.dtype.kind in "biuf" and values.dtype.kind in "biuf":
        return pd.Index(values.astype(np.float64)).get_indexer(pd.Index(array.astype(np.float64)))
    if array.dtype.kind != "O" or values.dtype.kind != "O":
        # Object columns of numbers or booleans with None match by value, texts match nothing.
        known = {value: place for place, value in enumerate(values.tolist())}
        return np.array([known.get(item, -1) for item in array.tolist()], np.int64)
    return pd.Index(values).get_indexer(pd.Index(array, dtype=object))


def _find_missing(column: Any, missing_values: Iterable[Any] | None) -> NDArray[np.bool_]:
    """Return a mask of the missing cells of a column."""
    array = np.asarray(column, dtype=object) if hasattr(column, "cat") else _as_array(column, None)
    lost = np.asarray(pd.isna(array))
    if missing_values is None and array.dtype.kind != "O":
        return lost
    names = _missing_names(missing_values)
    codes, values = pd.factorize(array)
    is_marked = np.array([*(_is_missing(value, names) for value in values), False], bool)
    return lost | is_marked[codes]


def _count_missing(column: Any, missing: NDArray[np.bool_], name: str, notes: Notes) -> None:
    cells = np.asarray(column, dtype=object)[missing]
    counts = Counter(cell if isinstance(cell, str) else "" for cell in cells)
    for text, number in counts.items():
        notes.count_missing(name, text, number)


def _missing_names(missing_values: Iterable[Any] | None) -> set[str] | None:
    """Return the names of listed markers; as in files, numbers match by value."""
    if missing_values is None:
        return None
    names = {value_name(value) for value in missing_values if not is_null(value)}
    return names | {value_name(number) for number in MissingRule(frozenset(names)).numbers}


def _is_missing(value: Any, names: Collection[str] | None) -> bool:
    """Return whether a value is listed as missing, or by default is a text such as "NA" or "?"."""
    if names is None:
        return isinstance(value, str) and DEFAULT_RULE.matches(value)
    return not is_null(value) and value_name(value) in names


def _drop_missing(values: NDArray[Any], missing_values: Iterable[Any] | None) -> NDArray[Any]:
    if missing_values is None and values.dtype.kind != "O":
        return values
    names = _missing_names(missing_values)
    found = values[np.array([not _is_missing(value, names) for value in values.tolist()], bool)]
    return typed_array(found.tolist()) if found.dtype.kind == "O" else found


def _as_array(column: Any, name: Any) -> NDArray[Any]:
    """Return a column as an array of its type: numbers, booleans, or objects."""
    if isinstance(column, pd.Series) and not isinstance(column.dtype, np.dtype):
        kind = getattr(column.dtype, "kind", "O")
        if kind in "biu" and not column.hasnans:
            return column.to_numpy(dtype=np.int64 if kind != "b" else np.bool_)
        if kind in "iuf":
            dtype = getattr(column.dtype, "numpy_dtype", np.float64) if kind == "f" else np.float64
            return widen_floats(column.to_numpy(dtype=dtype, na_value=np.nan))
        column = column.astype(object).to_numpy()
    array = np.asarray(column)
    if array.dtype.kind == "f":
        return widen_floats(array)
    if array.dtype.kind in "biu":
        return array
    if array.dtype.kind in "SV" or array.dtype.kind == "c":
        raise TypeError(f"column {name!r}: cells must be text or numbers, got {array.dtype}")
    return _convert_objects(array, name)


def _convert_objects(array: NDArray[Any], name: Any) -> NDArray[Any]:
    """Return an object column, converted to numbers if it contains numbers only."""
    if array.dtype.kind in "mM":  # NumPy would turn nanoseconds into integers
        array = pd.Series(array).astype(object).to_numpy()
    array = array.astype(object) if array.dtype.kind == "U" else array
    try:
        uniques = pd.unique(pd.Series(array, dtype=object))
    except TypeError as error:
        raise TypeError(
            f"column {name!r}: the argument must be made of strings or numbers: {error}"
        ) from None
    kinds = {value_type(value) for value in uniques if not is_null(value)}
    if kinds and kinds <= {"integer", "float"}:
        return pd.to_numeric(pd.Series(array)).to_numpy(np.float64)
    if any(not isinstance(v, str) and value_type(v) == "text" for v in uniques if not is_null(v)):
        places, values = pd.factorize(pd.Series(array, dtype=object))
        named = np.array([*typed_array(list(values)), None], dtype=object)
        return named[places]  # dates are converted to text
    return array


def _low_end(array: NDArray[Any]) -> int | None:
    """Return the minimum of integers in a small range, otherwise None."""
    if not array.size:
        return None
    low, high = int(array.min()), int(array.max())
    return low if high - low < MAX_SPAN else None
