"""Convert tables to columns and to pandas frames."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bayes_lcs.data.column_source import ColumnSource
from bayes_lcs.data.grouped_table import GroupedTable
from bayes_lcs.io.options import Notes
from bayes_lcs.io.raw_table import RawColumn, Source

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["columns_from_table", "frame_from_table"]


def columns_from_table(table: GroupedTable) -> ColumnSource:
    """Return the columns of a table like those of a file; values are their names."""
    offset = table.num_groups
    groups = np.where(table.groups >= 0, table.groups, table.new_groups + offset)
    columns = {
        table.group_name: _column(
            table.group_name, groups.astype(np.int32), table.group_names + table.new_group_names
        ),
        table.label_name: _column(table.label_name, table.labels, table.label_values),
    }
    for feature, name in enumerate(table.feature_names):
        columns[name] = _column(
            name, table.features[:, feature], table.values[feature], table.edges[feature]
        )

    def read(names: Sequence[str], *_: Any) -> dict[str, RawColumn]:
        return {name: columns[name] for name in names}

    return ColumnSource(tuple(columns), Source(), read)


def _column(
    name: str, codes: NDArray[np.int32], names: tuple[str, ...], edges: tuple[float, ...] = ()
) -> RawColumn:
    return RawColumn(name, codes, np.array(names, dtype=object), True, edges)


def frame_from_table(table: GroupedTable, *, categorical: bool = False) -> pd.DataFrame:
    """Return a frame of names: group, features, label; missing cells are None.

    With ``categorical`` the columns are ordered Categoricals, which preserve the order of values.

    Examples
    --------
    >>> table = GroupedTable.from_arrays([["a"], [None]], ["n", "y"], ["u", "v"])
    >>> print(frame_from_table(table).to_string(index=False))
    group feature_0 label
        u         a     n
        v      None     y
    """
    import pandas as pd

    wanted = [table.group_name, *table.feature_names, table.label_name]
    columns = columns_from_table(table).read(wanted, {}, Notes(), ())
    series = {}
    for name, column in columns.items():
        if categorical:
            series[name] = pd.Series(
                pd.Categorical.from_codes(column.codes, pd.Index(list(column.names)), ordered=True)
            )
        else:
            names = np.array([*column.names, None], dtype=object)
            series[name] = pd.Series(names[column.codes], dtype=object)
    return pd.DataFrame(series, columns=list(columns))
