"""From the raw columns of any source to a `GroupedTable`: the one place where names get codes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from bayes_lcs.data.binning import (
    bin_column,
    bin_names,
    check_edges,
    column_numbers,
    quantile_edges,
)
from bayes_lcs.data.columns import (
    RawColumn,
    RawTable,
    Source,
    natural_order,
    parse_number,
    value_name,
)
from bayes_lcs.data.errors import DataError
from bayes_lcs.data.selection import as_list, check_option, find_columns, missing_tokens
from bayes_lcs.data.table import GroupedTable

__all__ = [
    "assemble",
    "check_category",
    "check_groups_present",
    "check_label_names",
    "code_column",
]

MANY_VALUES = 20
"""Up to so many different values a column is never suspected of holding numbers or identifiers."""

MANY_NUMBERS = 100
"""A column with more different numbers than this is taken for a quantity in any table."""

NUMBERS_PER_ROW = 0.001
"""So is one with more than `MANY_VALUES`, if there is a different number per thousand rows."""


def assemble(
    raw: RawTable,
    *,
    group: str,
    label: str,
    features: Sequence[str] | None = None,
    ignore: Iterable[str] = (),
    missing_values: Iterable[str] | Mapping[str, Iterable[str]] = ("",),
    bins: Mapping[str, int] | None = None,
    edges: Mapping[str, Sequence[float]] | None = None,
    values: Mapping[str, Sequence[str]] | None = None,
    label_values: Sequence[str] | None = None,
    categorical: bool | Iterable[str] = (),
) -> GroupedTable:
    """Code raw columns; `bayes_lcs.read_grouped` explains the parameters."""
    source = raw.source
    chosen = find_columns(raw, group, label, features, ignore)
    bins, edges, values = dict(bins or {}), dict(edges or {}), dict(values or {})
    forced = set(chosen) if categorical is True else set(as_list(categorical or ()))
    for option, named in (("bins", bins), ("edges", edges), ("values", values)):
        check_option(option, named, chosen, source)
    if categorical is not True:
        check_option("categorical", forced, chosen, source)
    for name in chosen:
        asked = [o for o, d in (("bins", bins), ("edges", edges), ("values", values)) if name in d]
        if len(asked) > 1:
            raise source.error(f"asked for both {asked[0]}= and {asked[1]}=", column=name)
    tokens = missing_tokens(missing_values, (*chosen, label, group), raw)
    columns = raw.read([*chosen, label, group])
    if columns[group].codes.size == 0:
        raise source.error("there are no rows")

    group_codes, group_names = _code_groups(columns[group], tokens[group], source)
    label_codes, labels = code_column(
        columns[label], tokens[label], source, vocabulary=label_values
    )
    _check_labels(columns[label], label_codes, labels, label_values, source)
    coded, all_names, all_edges = [], [], []
    for name in chosen:
        column, missing = columns[name], tokens[name]
        if name in bins or name in edges:
            cut = _edges_of(column, missing, bins.get(name), edges.get(name), source)
            codes, names = bin_column(column, missing, cut, source), bin_names(cut)
        else:
            cut = ()
            codes, names = code_column(column, missing, source, vocabulary=values.get(name))
            if name not in forced and name not in values and not column.fixed:
                check_category(name, names, codes.size, source)
        if not names:
            raise source.error(
                f"every cell is missing; leave the column out with ignore=[{name!r}]", column=name
            )
        coded.append(codes)
        all_names.append(names)
        all_edges.append(cut)
    return GroupedTable(
        features=np.stack(coded, axis=1),
        labels=label_codes,
        groups=group_codes,
        feature_names=tuple(chosen),
        values=tuple(all_names),
        label_name=label,
        label_values=labels,
        group_name=group,
        group_names=group_names,
        edges=tuple(all_edges),
        missing_values=tuple(tuple(sorted(tokens[name])) for name in chosen),
        label_missing_values=tuple(sorted(tokens[label])),
        group_missing_values=tuple(sorted(tokens[group])),
    )


def code_column(
    column: RawColumn,
    missing: frozenset[str],
    source: Source,
    *,
    vocabulary: Sequence[str] | None = None,
    unseen: str = "error",
) -> tuple[NDArray[np.int32], tuple[str, ...]]:
    """Codes of a column and the names they stand for, in natural order or as the source says.

    With a ``vocabulary`` the names are those, in that order; a cell outside it is an error that
    names the row, or missing if ``unseen`` is ``"missing"``.

    Examples
    --------
    >>> sizes = RawColumn("size", np.array([0, 1, 2, 0]), ("10", "2", "?"))
    >>> codes, names = code_column(sizes, frozenset("?"), Source())
    >>> codes.tolist(), names
    ([1, 0, -1, 1], ('2', '10'))
    """
    used = np.bincount(column.codes[column.codes >= 0], minlength=len(column.names)) > 0
    if vocabulary is not None:
        names = tuple(value_name(value) for value in as_list(vocabulary))
    elif column.fixed:
        names = tuple(name for name in column.names if name not in missing)
    else:
        present = (name for name, seen in zip(column.names, used, strict=True) if seen)
        names = tuple(natural_order(name for name in present if name not in missing))
    known = {name: code for code, name in enumerate(names)}
    recode = np.full(len(column.names) + 1, -1, np.int32)  # the last entry serves code -1
    for code, name in enumerate(column.names):
        if name in missing or not used[code]:
            continue
        recode[code] = known.get(name, -1)
        if name not in known and unseen == "error":
            some = ", ".join(map(repr, names[:8])) + (", …" if len(names) > 8 else "")
            raise source.error(
                f"{name!r} is not one of the known values {some}; correct the cell, or list it in "
                "missing_values=",
                row=column.first_row(code),
                column=column.name,
            )
    return recode[column.codes], names


def check_groups_present(column: RawColumn, missing: frozenset[str], source: Source) -> None:
    """Raise an error naming the first row without a group."""
    absent = [code for code, name in enumerate(column.names) if name in missing]
    rows = np.flatnonzero((column.codes < 0) | np.isin(column.codes, absent))
    if rows.size:
        raise source.error(
            "the row has no group; fill the cell or remove the row",
            row=int(rows[0]),
            column=column.name,
        )


def _code_groups(
    column: RawColumn, missing: frozenset[str], source: Source
) -> tuple[NDArray[np.int32], tuple[str, ...]]:
    """Groups in order of first appearance, or of the categories; empty ones are dropped."""
    check_groups_present(column, missing, source)
    first = np.full(len(column.names), column.codes.size)
    first[column.codes[::-1]] = np.arange(column.codes.size)[::-1]  # the last write wins
    order = np.arange(first.size) if column.fixed else np.argsort(first, kind="stable")
    order = order[first[order] < column.codes.size]
    recode = np.full(first.size, -1, np.int32)
    recode[order] = np.arange(order.size)
    return recode[column.codes], tuple(column.names[code] for code in order)


def _check_labels(
    column: RawColumn,
    codes: NDArray[np.int32],
    names: tuple[str, ...],
    given: Sequence[str] | None,
    source: Source,
) -> None:
    if given is not None:
        return
    if (codes < 0).all():
        raise source.error(
            "every label is missing; is it the right column? If so, pass label_values=",
            column=column.name,
        )
    check_label_names(column.name, names, codes.size, source, is_listed=column.fixed)


def check_label_names(
    column: str, names: tuple[str, ...], num_rows: int, source: Source, is_listed: bool = False
) -> None:
    """Refuse labels that tell nothing apart, or too much, unless the source lists them."""
    if len(names) < 2:
        raise source.error(
            f"the label has only one value, {names[0]!r}, so there is nothing to tell apart; is "
            "it the right column? If so, pass label_values= with all its values",
            column=column,
        )
    if not is_listed and (_are_quantities(names, num_rows) or _are_identifiers(names, num_rows)):
        raise source.error(
            f"the label has {len(names)} different values, but should name a few kinds; is it the "
            "right column? If so, pass label_values= with all its values",
            column=column,
        )


def _edges_of(
    column: RawColumn,
    missing: frozenset[str],
    num_bins: int | None,
    edges: Sequence[float] | None,
    source: Source,
) -> tuple[float, ...]:
    try:
        if edges is not None:
            return check_edges(edges)
        assert num_bins is not None
        numbers = column_numbers(column, missing, source)
        counts = np.bincount(column.codes[column.codes >= 0], minlength=numbers.size)
        return quantile_edges(numbers, num_bins, counts)
    except DataError as error:
        if error.column is not None:
            raise
        raise source.error(error.message, column=column.name) from None


def _are_quantities(names: tuple[str, ...], num_rows: int) -> bool:
    """Whether there are so many numbers among the values that they look measured or counted."""
    many = len(names) > MANY_VALUES
    suspicious = len(names) > MANY_NUMBERS or len(names) > NUMBERS_PER_ROW * num_rows
    return many and suspicious and all(parse_number(name) is not None for name in names)


def _are_identifiers(names: tuple[str, ...], num_rows: int) -> bool:
    """Whether there are more values than can be learnt about."""
    return len(names) > MANY_VALUES and len(names) > num_rows / 2


def check_category(name: str, names: tuple[str, ...], num_rows: int, source: Source) -> None:
    """Refuse columns that look like quantities or identifiers unless they were asked for."""
    if _are_quantities(names, num_rows):
        raise source.error(
            f"holds {len(names)} different numbers; say how to bin them with bins={{{name!r}: 4}} "
            f"or edges={{{name!r}: [...]}}, leave the column out with ignore=[{name!r}], or take "
            f"each number for a name with categorical=[{name!r}]",
            column=name,
        )
    if _are_identifiers(names, num_rows):
        raise source.error(
            f"has {len(names)} different values in {num_rows} rows and looks like an identifier; "
            f"leave it out with ignore=[{name!r}], or keep it with categorical=[{name!r}]",
            column=name,
        )
