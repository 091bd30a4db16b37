"""Encode new rows, for prediction, with the codes of the training table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from bayes_lcs.core.errors import DataError, DataWarning, plural, warn_user
from bayes_lcs.data.binning import bin_column
from bayes_lcs.data.build_table import encode_column, rule_beside
from bayes_lcs.data.column_source import open_columns
from bayes_lcs.data.grouped_table import GroupedTable
from bayes_lcs.data.to_frames import columns_from_table
from bayes_lcs.io.options import GROUP_RULE, CsvOptions, MissingRule, Notes, require_column
from bayes_lcs.io.raw_table import RawColumn, Source

__all__ = ["encode_rows"]

MAX_EXAMPLES = 3
"""Maximum number of unknown values per column in a warning."""

MAX_COLUMNS = 8
"""Maximum number of columns in a warning."""


def encode_rows(
    table: GroupedTable,
    rows: Any,
    *,
    unseen: Literal["missing", "error"] = "missing",
    encoding: str = "utf-8",
    delimiter: str | None = None,
) -> GroupedTable:
    """Encode rows with the codes of ``table``.

    Parameters
    ----------
    table
        The table that defines names, bins and missing cells.
    rows
        A pandas, polars or Arrow frame, another table, or the path of a CSV or Parquet file, with
        the features and the group column. The label column is optional; without it all labels are
        missing. A row without a group is an error.
    unseen
        Treatment of feature values that ``table`` does not have: ``"missing"`` treats them as
        missing, with a `DataWarning` that counts them; ``"error"`` raises an error with row and
        column. An unknown label is always an error, since a score that silently drops rows would be
        wrong.
    encoding, delimiter
        Options for text files, as in `bayes_lcs.read_grouped`.

    Returns
    -------
    GroupedTable
        Names and codes are those of ``table``. Unknown groups have code -1; their names are in
        ``new_group_names``, and ``new_groups`` has the index of each row into them.

    Examples
    --------
    >>> import pandas as pd
    >>> table = GroupedTable.from_arrays([["a"], ["b"]], ["n", "y"], ["u", "v"])
    >>> rows = pd.DataFrame({"feature_0": ["b", None], "group": ["v", "w"]})
    >>> coded = encode_rows(table, rows)
    >>> coded.features.tolist(), coded.groups.tolist(), coded.new_group_names
    ([[1], [-1]], [1, -1], ('w',))
    """
    if unseen not in ("missing", "error"):
        raise DataError(f"unseen must be 'missing' or 'error', got {unseen!r}")
    if isinstance(rows, GroupedTable):
        columns = columns_from_table(rows)
    else:
        expected = (*table.feature_names, table.group_name)
        columns = open_columns(rows, CsvOptions(encoding, delimiter), expected)
    source = columns.source
    has_label = table.label_name in columns.names
    wanted = [*table.feature_names, table.group_name]
    for name in wanted:
        require_column(name, columns.names, source.error)
    wanted += [table.label_name] if has_label else []
    notes = Notes(source.file, counts_empty=False)
    found = columns.read(wanted, _missing_rules(table), notes, _text_columns(table))

    group_column = found[table.group_name]
    without_group = np.flatnonzero(group_column.codes < 0)
    if without_group.size:
        raise source.error(
            "the row has no group; fill the cell or remove the row",
            row=int(without_group[0]),
            column=table.group_name,
        )
    new: Counter[str] = Counter()
    groups, _, _ = encode_column(
        group_column, source, table.group_names, kind=table.group_type, unseen=new
    )
    new_names, new_groups = _code_new_groups(group_column, new)

    unknown: dict[str, Counter[str]] = {name: Counter() for name in table.feature_names}
    features = np.empty((groups.size, table.num_features), np.int32)
    for feature, name in enumerate(table.feature_names):
        counted = unknown[name] if unseen == "missing" else None
        features[:, feature] = _code_feature(table, feature, found[name], source, counted)
    labels = np.full(groups.size, -1, np.int32)
    if has_label:
        labels, _, _ = encode_column(
            found[table.label_name], source, table.label_values, kind=table.label_type
        )
    notes.warn()
    _warn_of_unknown(unknown, source.file)
    return GroupedTable(
        features=features,
        labels=labels,
        groups=groups,
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
        new_group_names=new_names,
        new_groups=new_groups,
        value_types=table.value_types,
        label_type=table.label_type,
        group_type=table.group_type,
    )


def _missing_rules(table: GroupedTable) -> dict[str, MissingRule]:
    """Return the rules for missing cells, by column, of the table."""
    kept = dict(zip(table.feature_names, table.missing_values, strict=True))
    kept[table.label_name] = table.label_missing_values
    rules = {
        name: MissingRule(None if cells is None else frozenset(cells))
        for name, cells in kept.items()
    }
    for name, values in zip(table.feature_names, table.values, strict=True):
        rules[name] = rule_beside(rules[name], values)
    rules[table.label_name] = rule_beside(rules[table.label_name], table.label_values)
    cells = table.group_missing_values
    rules[table.group_name] = GROUP_RULE if cells is None else MissingRule(frozenset(cells))
    return rules


def _text_columns(table: GroupedTable) -> list[str]:
    """Return the text columns of the table; their cells are text in a new file, too."""
    features = zip(table.feature_names, table.value_types, table.edges, strict=True)
    found = [name for name, kind, edges in features if kind == "text" and not edges]
    found += [table.label_name] if table.label_type == "text" else []
    return found + ([table.group_name] if table.group_type == "text" else [])


def _code_new_groups(
    column: RawColumn, new: Counter[str]
) -> tuple[tuple[str, ...], NDArray[np.int32]]:
    """Return the unknown groups in order of appearance, and their codes."""
    known: dict[str, int] = {}
    recode = np.full(len(column.values) + 1, -1, np.int32)
    for code in column.order_of_appearance() if new else ():
        name = column.names[code]
        if name in new:
            recode[code] = known.setdefault(name, len(known))
    return tuple(known), recode[column.codes]


def _code_feature(
    table: GroupedTable,
    feature: int,
    column: RawColumn,
    source: Source,
    unknown: Counter[str] | None,
) -> NDArray[np.int32]:
    edges = table.edges[feature]
    if column.edges and column.edges != edges:
        raise source.error(
            f"is binned at {list(column.edges)}, but the training table at {list(edges)}; bin both "
            "tables with the same edges=",
            column=column.name,
        )
    if edges and not column.edges:
        return bin_column(column, edges, source)
    kind = table.value_types[feature]
    codes, _, _ = encode_column(column, source, table.values[feature], kind=kind, unseen=unknown)
    return codes


def _warn_of_unknown(unknown: Mapping[str, Counter[str]], file: str | None) -> None:
    """Warn of unknown values, with their number and examples by column."""
    shown = []
    for name, cells in unknown.items():
        if cells:
            some = ", ".join(map(repr, list(cells)[:MAX_EXAMPLES])) + (
                ", …" if len(cells) > MAX_EXAMPLES else ""
            )
            shown.append(f"column {name!r} {plural(cells.total(), 'cell')} ({some})")
    if shown:
        rest = len(shown) - MAX_COLUMNS
        more = f"; {plural(rest, 'more column')}" if rest > 0 else ""
        warn_user(
            f"{file + ': ' if file else ''}values not seen in training are taken as missing: "
            f"{'; '.join(shown[:MAX_COLUMNS])}{more}",
            DataWarning,
        )
