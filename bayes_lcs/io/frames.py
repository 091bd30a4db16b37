"""Read rows of any source as a pandas frame with typed columns."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bayes_lcs.core.errors import DataError, plural
from bayes_lcs.io.column_types import (
    ColumnType,
    arrow_type,
    convert_cells,
    infer_cell_type,
    merge_types,
    value_name,
    widen_floats,
)
from bayes_lcs.io.decode import (
    count_nulls,
    decode_column,
    encode_texts,
    null_listed,
    null_missing,
)
from bayes_lcs.io.open_tables import is_streamed, open_tables
from bayes_lcs.io.options import (
    DEFAULT_CSV,
    CsvOptions,
    MissingRule,
    MissingValues,
    Notes,
    is_index_name,
    missing_rules,
    select_columns,
)
from bayes_lcs.io.raw_table import Source

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "as_frame",
    "numeric_rows",
    "read_frame",
    "select_known",
    "set_index_aside",
]


def as_frame(
    X: Any, columns: Sequence[str] | None = None, missing_values: MissingValues = None
) -> Any:
    """Return rows as a pandas frame if they have column names, otherwise unchanged.

    Paths of CSV and Parquet files, Arrow tables and polars frames become pandas frames; a first
    column without a name is an index and is dropped with a note. Arrays, lists and sparse matrices
    have no names and are returned unchanged. Only the ``columns`` that a fitted estimator needs are
    read from a file.

    Examples
    --------
    >>> import pyarrow as pa
    >>> as_frame(pa.table({"x": [1, None], "y": ["a", "b"]})).dtypes.astype(str).tolist()
    ['float64', 'object']
    """
    if is_streamed(X):
        return read_frame(X, columns=columns, missing_values=missing_values)
    return X if columns is not None else set_index_aside(X)


def set_index_aside(X: Any, keep: Iterable[Any] = ()) -> Any:
    """Drop the first column of a pandas frame if it has no name, with a note.

    Examples
    --------
    >>> import pandas as pd, warnings
    >>> frame = pd.DataFrame({"Unnamed: 0": [0, 1], "x": [1, 2]})
    >>> with warnings.catch_warnings(record=True):
    ...     list(set_index_aside(frame).columns)
    ['x']
    """
    is_frame = hasattr(X, "iloc") and hasattr(X, "columns") and X.shape[1] > 1
    if not is_frame or not is_index_name(X.columns[0]) or X.columns[0] in list(keep):
        return X
    Notes(index=str(X.columns[0])).warn()
    return X.iloc[:, 1:]


def select_known(X: Any, names: Sequence[Any] | None) -> Any:
    """Drop columns of a frame that are not features of a fitted estimator, such as a label."""
    if names is None or not len(names) or not hasattr(X, "iloc"):
        return X
    has_more = len(X.columns) > len(names) and set(names) <= set(X.columns)
    return X[list(names)] if has_more else X


def numeric_rows(X: Any, names: Sequence[Any] | None = None) -> Any:
    """Return numeric rows: the numeric columns of a frame or file, with a note about the others.

    ``names`` are the features of a fitted estimator, empty if it was fitted to an array; None
    selects the numeric columns.

    Examples
    --------
    >>> import pandas as pd
    >>> list(numeric_rows(pd.DataFrame({"x": [1.5], "town": ["Ulm"]}), names=["x"]).columns)
    ['x']
    """
    import pandas as pd

    known = names if names is not None and len(names) else None
    given = X
    X = select_known(as_frame(X, known), known)
    if names is not None or not isinstance(X, pd.DataFrame):
        return X
    others = [name for name in X.columns if not pd.api.types.is_numeric_dtype(X[name])]
    if X.shape[1] and len(others) == len(X.columns):
        raise DataError("there is no numeric column: encode categories first, or use a mixture")
    if others:
        Notes(set_aside=[str(name) for name in others]).warn()
        X = X.drop(columns=others)
    missing = X.isna().to_numpy()
    if missing.any():
        places = np.flatnonzero(missing.any(axis=0))
        name, *others = [str(X.columns[place]) for place in places]
        also = f" (nor in columns {', '.join(map(repr, others))})" if others else ""
        tables = open_tables(given) if is_streamed(given) else []
        source = tables[0].source if len(tables) == 1 else Source()
        raise source.error(
            f"there is no number in {int(missing[:, places[0]].sum()):,} of "
            f"{plural(len(X), 'row')}{also}; fill them in, or leave the rows or the columns out",
            row=int(np.argmax(missing[:, places[0]])),
            column=name,
        )
    return X


def read_frame(
    data: Any,
    *,
    columns: Sequence[str] | None = None,
    features: Iterable[Any] | None = None,
    ignore: Iterable[Any] = (),
    text: Collection[str] = (),
    missing_values: MissingValues = None,
    options: CsvOptions = DEFAULT_CSV,
) -> pd.DataFrame:
    r"""Read rows into a pandas frame; the type of each column follows the rule of the package.

    Parameters
    ----------
    data
        Paths, Arrow tables or data sets, polars frames, Dask dataframes.
    columns
        Columns to read if they exist, instead of those that ``features`` and ``ignore`` select.
    text
        Columns to read as text without type inference.
    missing_values, options
        Markers of missing values, as in `bayes_lcs.read_grouped`, and the format of text files.

    Examples
    --------
    >>> import tempfile, warnings
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "t.csv")
    ...     _ = path.write_text("a,b,c\n1,007,x\n2,1,NA\n")
    ...     with warnings.catch_warnings(record=True):
    ...         frame = read_frame(path)
    >>> frame.dtypes.astype(str).tolist(), frame["c"].tolist()
    (['int64', 'object', 'object'], ['x', None])
    """
    import pandas as pd

    expected = [] if columns is None else [str(name) for name in columns]
    tables = open_tables(data, options, expected)
    first = tables[0]
    for table in tables[1:]:
        if set(table.names) != set(first.names):
            raise table.source.error(
                f"has other columns than {first.source.file}; all files must have the same columns"
            )
    if columns is None:
        wanted = select_columns(
            first.names, first.source.error, features=features, ignore=ignore, index=first.index
        )
    else:
        wanted = [name for name in map(str, columns) if name in first.names]
    is_noted = columns is None and first.index is not None and first.index not in wanted
    notes = Notes(first.source.file, first.index if is_noted else None)
    notes.counts_empty = columns is None  # otherwise these are rows to predict
    rules = missing_rules(missing_values, wanted, first.names, first.source.error)
    cells = {name: _Cells(name, rules[name], notes, name in text) for name in wanted}
    rows = 0
    for table in tables:
        for batch in table.batches(wanted):
            for name, own in cells.items():
                own.add(batch.column(name), table.source)
            rows += batch.num_rows
    if not rows:
        only = ", only a header" if first.source.is_text else ""
        raise first.source.error(f"there are no rows{only}")
    notes.warn()
    return pd.DataFrame({name: own.finish() for name, own in cells.items()}, copy=False)


class _Cells:
    """Cells of a column, collected batch by batch."""

    def __init__(self, name: str, rule: MissingRule, notes: Notes, is_text: bool = False) -> None:
        self._name, self._rule = name, rule
        self._notes = notes if rule.tokens is None else Notes()
        self._type: ColumnType | None = "text" if is_text else None
        self._batches: list[Any] = []
        self._order: dict[Any, int] = {}

    def add(self, cells: Any, source: Source) -> None:
        """Add the cells of a batch; the type of the column follows from all batches."""
        kind = arrow_type(cells.type)
        is_ordered = getattr(cells.type, "ordered", False)
        if source.is_text or kind == "text" or is_ordered:
            column = decode_column(self._name, cells, source)
            if is_ordered:
                for value in column.values.tolist():
                    self._order.setdefault(value, len(self._order))
        if source.is_text or kind == "text":
            cells, counts = null_missing(encode_texts(column).cast("string"), self._rule)
            for text, number in counts.items():
                self._notes.count_missing(self._name, text, number)
            self._notes.count_missing(self._name, "", cells.null_count - sum(counts.values()))
            kind = infer_cell_type(cells) if source.is_text else kind
        else:
            self._notes.count_missing(self._name, "", count_nulls(cells))
            cells = null_listed(cells, self._rule)
        self._type = merge_types(self._type, kind)
        self._batches.append(cells)

    def finish(self) -> Any:
        """Return the column as an array, or as an ordered Categorical if it is declared as one."""
        import pandas as pd

        arrays = [self._convert(cells) for cells in self._batches]
        self._batches = []
        if len({array.dtype for array in arrays}) > 1 and self._type == "float":
            arrays = [widen_floats(array) for array in arrays]
        array = np.concatenate(arrays) if len(arrays) != 1 else arrays[0]
        if not self._order:
            return array
        found = pd.Categorical(array, categories=list(self._order), ordered=True)
        # Another file may have values that are not in the declared order.
        return found if np.array_equal(found.isna(), pd.isna(array)) else array

    def _convert(self, cells: Any) -> NDArray[Any]:
        import pyarrow as pa
        import pyarrow.types as types

        if types.is_string(cells.type) or types.is_large_string(cells.type):
            array = convert_cells(cells, self._type)
            if self._type != "float":
                return array
            # A cell such as "-9.0" is missing, too, where -9 is listed.
            return np.asarray(
                null_listed(pa.array(array), self._rule).to_numpy(zero_copy_only=False)
            )
        if self._type == "text":  # numbers in one file, text in another
            items = [None if item is None else value_name(item) for item in cells.to_pylist()]
            return np.array(items, dtype=object)
        if types.is_dictionary(cells.type):
            cells = cells.cast(cells.type.value_type)
        is_short = types.is_float32(cells.type) or types.is_float16(cells.type)
        if is_short and self._type == "float":  # widening would change 0.1, as a category
            return np.asarray(cells.to_numpy())
        if self._type == "float" or (self._type == "integer" and cells.null_count):
            cells = cells.cast(pa.float64(), safe=False)
        return np.asarray(cells.to_numpy())
