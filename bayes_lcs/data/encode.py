"""New rows, for prediction, in the codes of a table that a model was fitted to."""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING, Literal

import numpy as np

from bayes_lcs.data.assemble import check_groups_present, code_column
from bayes_lcs.data.binning import bin_column
from bayes_lcs.data.columns import RawColumn, RawTable
from bayes_lcs.data.errors import DataError
from bayes_lcs.data.frames import raw_from_frame, raw_from_table
from bayes_lcs.data.selection import require_column
from bayes_lcs.data.table import GroupedTable

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["encode_rows"]


def encode_rows(
    table: GroupedTable,
    rows: pd.DataFrame | GroupedTable | str | PathLike[str],
    *,
    unseen: Literal["missing", "error"] = "missing",
    encoding: str = "utf-8",
    delimiter: str | None = None,
) -> GroupedTable:
    """Code rows as ``table`` is coded.

    Parameters
    ----------
    table
        The table whose names, bins and missing cells hold.
    rows
        A pandas frame, another table, or the path of a CSV or Parquet file, with the features
        and the group column. The label column may be absent: then every label is missing.
    unseen
        What to do with a feature value that ``table`` does not know: ``"missing"`` leaves it out
        of account, as a model must that has never seen it; ``"error"`` names its row and column.
        A label that ``table`` does not know is an error always, since a score that silently
        leaves out rows is wrong.
    encoding, delimiter
        How to read a file, as in `bayes_lcs.read_grouped`.

    Returns
    -------
    GroupedTable
        Names and codes are those of ``table``; groups it does not know have code -1, and their
        names are in ``new_group_names`` with ``new_groups`` the index of each row into them.

    Examples
    --------
    >>> import pandas as pd
    >>> table = GroupedTable.from_arrays([["a"], ["b"]], ["n", "y"], ["u", "v"])
    >>> rows = pd.DataFrame({"feature_0": ["b", "c"], "group": ["v", "w"]})
    >>> coded = encode_rows(table, rows)
    >>> coded.features.tolist(), coded.groups.tolist(), coded.new_group_names
    ([[1], [-1]], [1, -1], ('w',))
    """
    if unseen not in ("missing", "error"):
        raise DataError(f"unseen must be 'missing' or 'error', got {unseen!r}")
    raw = _raw(table, rows, encoding, delimiter)
    has_label = table.label_name in raw.names
    for name in (*table.feature_names, table.group_name):
        require_column(raw, name)
    wanted = [*table.feature_names, table.group_name]
    columns = raw.read([*wanted, table.label_name] if has_label else wanted)

    groups = columns[table.group_name]
    check_groups_present(groups, frozenset(table.group_missing_values), raw.source)
    known = {name: code for code, name in enumerate(table.group_names)}
    used = np.bincount(groups.codes, minlength=len(groups.names)) > 0
    new: dict[str, int] = {}
    recode = np.full((2, len(groups.names)), -1, np.int32)
    for code in np.flatnonzero(used):
        name = groups.names[code]
        if name in known:
            recode[0, code] = known[name]
        else:
            recode[1, code] = new.setdefault(name, len(new))

    num_rows = groups.codes.size
    features = np.empty((num_rows, table.num_features), np.int32)
    for feature, name in enumerate(table.feature_names):
        features[:, feature] = _code_feature(table, feature, columns[name], raw, unseen)
    labels = np.full(num_rows, -1, np.int32)
    if has_label:
        labels, _ = code_column(
            columns[table.label_name],
            frozenset(table.label_missing_values),
            raw.source,
            vocabulary=table.label_values,
        )
    return GroupedTable(
        features=features,
        labels=labels,
        groups=recode[0][groups.codes],
        feature_names=table.feature_names,
        values=table.values,
        label_name=table.label_name,
        label_values=table.label_values,
        group_name=table.group_name,
        group_names=table.group_names,
        edges=table.edges,
        missing_values=table.missing_values,
        label_missing_values=table.label_missing_values,
        group_missing_values=table.group_missing_values,
        new_group_names=tuple(new),
        new_groups=recode[1][groups.codes],
    )


def _raw(
    table: GroupedTable,
    rows: pd.DataFrame | GroupedTable | str | PathLike[str],
    encoding: str,
    delimiter: str | None,
) -> RawTable:
    if isinstance(rows, GroupedTable):
        return raw_from_table(rows)
    if isinstance(rows, str | PathLike):
        from bayes_lcs.data.reader import raw_from_file

        expected = (*table.feature_names, table.group_name)
        return raw_from_file(rows, encoding=encoding, delimiter=delimiter, expected=expected)
    return raw_from_frame(rows)


def _code_feature(
    table: GroupedTable, feature: int, column: RawColumn, raw: RawTable, unseen: str
) -> np.ndarray:
    missing = frozenset(table.missing_values[feature])
    edges = table.edges[feature]
    if column.edges and column.edges != edges:
        raise raw.source.error(
            f"is binned at {list(column.edges)}, but must be at {list(edges)}; bin both tables "
            "with the same edges=",
            column=column.name,
        )
    if edges and not column.edges:
        return bin_column(column, missing, edges, raw.source)
    codes, _ = code_column(
        column, missing, raw.source, vocabulary=table.values[feature], unseen=unseen
    )
    return codes
