"""Columns of any source: files, pandas, polars and Arrow frames, arrays, and other tables.

Every source provides dictionary-encoded columns of typed values, so that the rules for names,
missing cells and bins are implemented once, in `bayes_lcs.data.build_table`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bayes_lcs.core.errors import DataError, one_line
from bayes_lcs.io.category_encoder import read_columns
from bayes_lcs.io.column_types import is_null, typed_array, value_name, widen_floats
from bayes_lcs.io.open_tables import is_arrow_frame, open_file, open_tables
from bayes_lcs.io.options import (
    DEFAULT_CSV,
    INDEX_NAME,
    CsvOptions,
    MissingRule,
    Notes,
    is_index_name,
)
from bayes_lcs.io.raw_table import RawColumn, RawTable, Source

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["ColumnSource", "encode_objects", "open_columns", "open_file_columns"]

_SHORT_FLOATS = {
    "float16": np.float16,
    "halffloat[pyarrow]": np.float16,
    "float32": np.float32,
    "float[pyarrow]": np.float32,
}

ReadColumns = Callable[
    [Sequence[str], Mapping[str, MissingRule], Notes, Collection[str]], dict[str, RawColumn]
]


@dataclass(frozen=True)
class ColumnSource:
    """Columns of a source.

    Parameters
    ----------
    names
        Column names.
    source
        Origin of the rows, for errors.
    read
        ``read(columns, rules, notes, as_text)`` returns columns, as `read_columns` does.
    index
        Name of the first column if it is an index.
    """

    names: tuple[str, ...]
    source: Source
    read: ReadColumns
    index: str | None = None


def open_columns(
    data: Any, options: CsvOptions = DEFAULT_CSV, expected: Sequence[str] = ()
) -> ColumnSource:
    """Return the columns of a file or of a pandas, polars, Arrow or Dask frame.

    Examples
    --------
    >>> import pyarrow as pa
    >>> open_columns(pa.table({"x": [1, 2]})).names
    ('x',)
    """
    if isinstance(data, str | PathLike):
        return open_file_columns(data, options, expected)
    if hasattr(data, "npartitions") and hasattr(data, "compute"):
        data = data.compute()
    if is_arrow_frame(data):
        return _from_raw_table(_open_arrow(data))
    return _open_frame(data)


def open_file_columns(
    path: str | PathLike[str], options: CsvOptions, expected: Sequence[str] = ()
) -> ColumnSource:
    """Return the columns of a CSV or Parquet file."""
    return _from_raw_table(open_file(path, options, expected))


def _from_raw_table(table: RawTable) -> ColumnSource:
    return ColumnSource(table.names, table.source, partial(read_columns, table), table.index)


def _open_arrow(data: Any) -> RawTable:
    import pyarrow as pa

    tables = open_tables(data)
    if len(tables) == 1:
        return tables[0]
    try:  # files of a data set, as one table
        return open_tables(data.to_table())[0]
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"the data set cannot be read: {one_line(error)}") from None


def _open_frame(frame: Any) -> ColumnSource:
    """Return the columns of a pandas frame; names that are not strings are converted to text."""
    import pandas as pd

    if not isinstance(frame, pd.DataFrame):
        raise DataError(
            f"expected a pandas, polars or Arrow frame, got {type(frame).__name__}; for arrays "
            "use GroupedTable.from_arrays"
        )
    names = [str(name) for name in frame.columns]
    if len(names) > 1 and is_index_name(frame.columns[0]):
        names[0] = INDEX_NAME
    for position, name in enumerate(names):
        if name in names[:position]:
            raise DataError("the frame has two columns of this name; rename one", column=name)

    def read(
        columns: Sequence[str],
        rules: Mapping[str, MissingRule],
        notes: Notes,
        as_text: Collection[str] = (),  # noqa: ARG001 - a frame's columns have types
    ) -> dict[str, RawColumn]:
        return {
            name: _read_series(name, frame.iloc[:, names.index(name)], rules[name], notes)
            for name in columns
        }

    index = names[0] if names and names[0] == INDEX_NAME and len(names) > 1 else None
    return ColumnSource(tuple(names), Source(), read, index)


def _read_series(name: str, series: pd.Series[Any], rule: MissingRule, notes: Notes) -> RawColumn:
    import pandas as pd

    if isinstance(series.dtype, pd.CategoricalDtype):
        codes, values = np.asarray(series.cat.codes), series.cat.categories
        return encode_objects(
            name, codes, values, rule, notes, is_ordered=bool(series.dtype.ordered)
        )
    try:
        codes, uniques = pd.factorize(series)
    except TypeError as error:
        raise DataError(f"cells must be single values: {error}", column=name) from None
    return encode_objects(name, codes, uniques, rule, notes)


def encode_objects(
    name: str,
    codes: NDArray[Any],
    uniques: Any,
    rule: MissingRule,
    notes: Notes,
    *,
    is_ordered: bool = False,
) -> RawColumn:
    """Return a column from codes into objects of any simple type, nulls allowed.

    Examples
    --------
    >>> codes = np.array([0, 1, 2, -1, 3])
    >>> column = encode_objects("size", codes, [1, "?", None, 2.0], MissingRule(), Notes())
    >>> column.values.tolist(), column.codes.tolist()
    ([1.0, 2.0], [0, -1, -1, -1, 1])
    """
    short = _SHORT_FLOATS.get(str(getattr(uniques, "dtype", "")).lower())
    items = list(uniques) if short is None else widen_floats(np.asarray(uniques, short)).tolist()
    kept: list[Any] = []
    recode = np.full(len(items) + 1, -1, np.int32)  # the last entry serves code -1
    try:
        for code, item in enumerate(items):
            text = "" if is_null(item) else item
            if isinstance(text, str) and (is_null(item) or rule.matches(text)):
                if rule.tokens is None:
                    notes.count_missing(name, text, int(np.count_nonzero(codes == code)))
                continue
            if rule.tokens and rule.matches(value_name(item)):
                continue
            recode[code] = len(kept)
            kept.append(item)
        values = typed_array(kept)
        if rule.tokens is None:
            notes.count_missing(name, "", int(np.count_nonzero(np.asarray(codes) < 0)))
    except DataError as error:
        raise DataError(error.message, column=name) from None
    return RawColumn(name, recode[codes], values, is_ordered)
