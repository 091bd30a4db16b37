"""Between pandas frames and tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from bayes_lcs.data.columns import RawColumn, RawTable, Source, raw_column
from bayes_lcs.data.errors import DataError
from bayes_lcs.data.table import GroupedTable

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["frame_from_table", "raw_from_frame", "raw_from_table"]


def raw_from_frame(frame: pd.DataFrame) -> RawTable:
    """The columns of a pandas frame, by name; names that are not strings are taken as text."""
    import pandas as pd

    if not isinstance(frame, pd.DataFrame):
        raise DataError(f"expected a pandas DataFrame, got {type(frame).__name__}")
    names = tuple(str(name) for name in frame.columns)
    for position, name in enumerate(names):
        if name in names[:position]:
            raise DataError("the frame has two columns of this name; rename one", column=name)

    def read(wanted: Sequence[str]) -> dict[str, RawColumn]:
        return {name: _factorise(name, frame.iloc[:, names.index(name)]) for name in wanted}

    return RawTable(names, Source(), read)


def _factorise(name: str, series: pd.Series[Any]) -> RawColumn:
    import pandas as pd

    if isinstance(series.dtype, pd.CategoricalDtype):
        codes = np.asarray(series.cat.codes)
        return raw_column(name, codes, series.cat.categories.tolist(), fixed=True)
    try:
        codes, uniques = pd.factorize(series)
    except TypeError as error:
        raise DataError(f"cells must be single values: {error}", column=name) from None
    if getattr(uniques.dtype, "kind", "O") == "f":
        # NumPy scalars print 0.1 in single precision as it was meant; pandas would widen them.
        return raw_column(name, codes, list(np.asarray(uniques)))
    return raw_column(name, codes, list(uniques))


def raw_from_table(table: GroupedTable) -> RawTable:
    """The columns of a table, by name, as if they had come from a file."""
    offset = table.num_groups
    groups = np.where(table.groups >= 0, table.groups, table.new_groups + offset)
    columns = {
        table.group_name: RawColumn(
            table.group_name,
            groups.astype(np.int32),
            table.group_names + table.new_group_names,
            fixed=True,
        ),
        table.label_name: RawColumn(table.label_name, table.labels, table.label_values, fixed=True),
    }
    for feature, name in enumerate(table.feature_names):
        columns[name] = RawColumn(
            name,
            table.features[:, feature],
            table.values[feature],
            fixed=True,
            edges=table.edges[feature],
        )
    return RawTable(tuple(columns), Source(), lambda wanted: {n: columns[n] for n in wanted})


def frame_from_table(table: GroupedTable, *, categorical: bool = False) -> pd.DataFrame:
    """A frame of names: the group, the features, the label; missing is None.

    Examples
    --------
    >>> table = GroupedTable.from_arrays([["a"], [None]], ["n", "y"], ["u", "v"])
    >>> print(frame_from_table(table).to_string(index=False))
    group feature_0 label
        u         a     n
        v      None     y
    """
    import pandas as pd

    raw = raw_from_table(table)
    columns = raw.read([table.group_name, *table.feature_names, table.label_name])
    series = {}
    for name, column in columns.items():
        if categorical:
            series[name] = pd.Series(
                pd.Categorical.from_codes(column.codes, pd.Index(list(column.names)))
            )
        else:
            names = np.array([*column.names, None], dtype=object)
            series[name] = pd.Series(names[column.codes], dtype=object)
    return pd.DataFrame(series, columns=list(columns))
