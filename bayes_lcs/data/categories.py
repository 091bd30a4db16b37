"""Columns of anything to integer codes, in bulk: what values there are, and which one a cell has.

Unlike `GroupedTable`, which names every value by a text, this keeps the values themselves, so that
rows can be given back as they came; and it goes over columns of integers without sorting them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayes_lcs.data.coded import CodedColumns, DenseRows, SparseRows
from bayes_lcs.data.errors import DataError

__all__ = ["code_rows", "code_sparse", "learn_categories"]

WIDEST_TALLY = 1 << 16
"""Integers within such a span are counted, not sorted."""


def learn_categories(
    column: Any, missing_values: Sequence[Any] = (), name: str | None = None
) -> NDArray[Any]:
    """The values of a column, sorted where they can be; None, NaN and ``missing_values`` are none.

    Examples
    --------
    >>> learn_categories(np.array([3, 1, 3])).tolist()
    [1, 3]
    >>> learn_categories(np.array(["b", None, "a"], dtype=object)).tolist()
    ['a', 'b']
    """
    if isinstance(getattr(column, "dtype", None), pd.CategoricalDtype):
        values = np.asarray(column.cat.categories, dtype=object)
        return _without(values, missing_values)
    array = _plain(column)
    if array.dtype.kind in "biu" and (low := _low_end(array)) is not None:
        tally = np.bincount((array.astype(np.int64) - low).ravel())
        return _without((np.flatnonzero(tally) + low).astype(array.dtype), missing_values)
    if array.dtype.kind in "biuf":
        values = np.unique(array)
        return _without(
            values[~np.isnan(values)] if array.dtype.kind == "f" else values, missing_values
        )
    try:
        values = np.asarray(pd.unique(pd.Series(array, dtype=object)), dtype=object)
    except TypeError as error:
        raise TypeError(
            f"column {name!r}: the argument must be made of strings or numbers: {error}"
        ) from None
    values = values[~pd.isna(values)]
    try:
        values = np.sort(values)
    except TypeError:  # numbers beside strings
        values = np.array(sorted(values, key=lambda v: (type(v).__name__, str(v))), dtype=object)
    return _without(values, missing_values)


def code_rows(
    columns: Sequence[Any],
    categories: Sequence[NDArray[Any]],
    missing_values: Sequence[Any] = (),
    *,
    unknown: str = "missing",
    names: Sequence[str] | None = None,
) -> DenseRows:
    """Code columns by given categories; a value that is not among them is missing, or an error.

    Examples
    --------
    >>> rows = code_rows([np.array([3, 1, 7])], [np.array([1, 3])])
    >>> rows.codes.ravel().tolist()
    [1, 0, -1]
    """
    sizes = [len(values) for values in categories]
    dtype = np.min_scalar_type(-max(sizes, default=1) - 1)
    num_rows = len(columns[0]) if len(columns) else 0
    codes = np.empty((num_rows, len(columns)), dtype, order="F")
    for f, (column, values) in enumerate(zip(columns, categories, strict=True)):
        codes[:, f] = _code(column, values)
        if unknown == "error":
            lost = (codes[:, f] < 0) & ~_missing(column, missing_values)
            if lost.any():
                row = int(np.flatnonzero(lost)[0])
                raise DataError(
                    f"unknown value {_plain(column)[row]!r}; handle_unknown='missing' skips it",
                    row=row,
                    column=f"x{f}" if names is None else str(names[f]),
                )
    # A column without a single value has one that never occurs, and then tells nothing.
    return DenseRows(codes, tuple(max(size, 1) for size in sizes))


def code_sparse(matrix: Any) -> CodedColumns:
    """Rows of a sparse matrix of zeros and ones."""
    from scipy.sparse import csc_array

    columns = csc_array(matrix, copy=True)
    columns.eliminate_zeros()
    if columns.nnz and (columns.data != 1).any():
        wrong = columns.data[columns.data != 1][0]
        raise DataError(
            f"a sparse matrix must hold zeros and ones, but it holds {wrong!r}; give a dense one, "
            "or X != 0 if only that matters"
        )
    columns.sort_indices()
    return SparseRows(columns)


def _code(column: Any, values: NDArray[Any]) -> NDArray[Any]:
    if isinstance(getattr(column, "dtype", None), pd.CategoricalDtype):
        column = column.astype(object)
    array = _plain(column)
    numbers = array.dtype.kind in "biu" and values.dtype.kind in "biu" and len(values)
    if numbers and (low := _low_end(values)) is not None:
        # Both ends of the table are for what lies outside.
        high = int(values.max())
        table = np.full(high - low + 3, -1, np.int64)
        table[values.astype(np.int64) - low + 1] = np.arange(len(values))
        return table[np.clip(array.astype(np.int64), low - 1, high + 1) - low + 1]
    try:
        return pd.Index(values).get_indexer(pd.Index(array))
    except TypeError as error:
        raise TypeError(f"the argument must be made of strings or numbers: {error}") from None


def _missing(column: Any, missing_values: Sequence[Any]) -> NDArray[np.bool_]:
    array = _plain(column)
    lost = np.asarray(pd.isna(array))
    for value in missing_values:
        lost = lost | (array == value)
    return lost


def _plain(column: Any) -> NDArray[Any]:
    if isinstance(column, pd.Series) and not isinstance(column.dtype, np.dtype):
        kind = getattr(column.dtype, "kind", "O")
        if kind in "biu" and not column.hasnans:
            return column.to_numpy(dtype=np.int64 if kind != "b" else np.bool_)
        return column.to_numpy(dtype=np.float64 if kind == "f" else object, na_value=np.nan)
    return np.asarray(column)


def _low_end(array: NDArray[Any]) -> int | None:
    """The smallest of integers that lie close together, else None."""
    if not array.size:
        return None
    low, high = int(array.min()), int(array.max())
    return low if high - low < WIDEST_TALLY else None


def _without(values: NDArray[Any], missing_values: Sequence[Any]) -> NDArray[Any]:
    for value in missing_values:
        values = values[np.array([v != value for v in values.tolist()], bool)]
    return values
