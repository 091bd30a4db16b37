"""From the raw columns of any source to a `GroupedTable`: the one place where names get codes."""

from __future__ import annotations

import difflib
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
    is_missing,
    natural_order,
    parse_number,
    value_name,
)
from bayes_lcs.data.errors import DataError
from bayes_lcs.data.table import GroupedTable

__all__ = ["assemble", "code_column", "find_columns", "missing_tokens"]

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
    forced = set(chosen) if categorical is True else set(_strings(categorical or ()))
    for option, named in (("bins", bins), ("edges", edges), ("values", values)):
        _check_option(option, named, chosen, source)
    if categorical is not True:
        _check_option("categorical", forced, chosen, source)
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
                _check_category(name, names, codes.size, source)
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


def find_columns(
    raw: RawTable,
    group: str,
    label: str,
    features: Sequence[str] | None,
    ignore: Iterable[str] = (),
) -> list[str]:
    """The feature columns, after checking that every column named is there and used once."""
    if group == label:
        raise raw.source.error("one column cannot be both group and label", column=group)
    ignored = _strings(ignore)
    for name in (group, label, *_strings(features or ()), *ignored):
        require_column(raw, name)
    if features is None:
        chosen = [name for name in raw.names if name not in (group, label, *ignored)]
    else:
        chosen = [name for name in _strings(features) if name not in ignored]
        for name in chosen:
            if name in (group, label):
                what = "group" if name == group else "label"
                raise raw.source.error(f"the {what} column cannot be a feature too", column=name)
            if chosen.count(name) > 1:
                raise raw.source.error("named twice in features=", column=name)
    if not chosen:
        raise raw.source.error("no column is left to be a feature")
    return chosen


def require_column(raw: RawTable, name: str) -> None:
    """Raise an error that suggests similar names if a column is not there."""
    if name not in raw.names:
        close = difflib.get_close_matches(name, raw.names, n=3, cutoff=0.6)
        folded = [other for other in raw.names if other.strip().lower() == name.strip().lower()]
        hint = list(dict.fromkeys(folded + close))
        some = ", ".join(map(repr, raw.names[:12])) + (", …" if len(raw.names) > 12 else "")
        raise raw.source.error(
            "there is no such column; "
            + (f"did you mean {' or '.join(map(repr, hint))}?" if hint else f"there are {some}")
            + (" (is the delimiter right? pass delimiter=)" if len(raw.names) == 1 else ""),
            column=name,
        )


def missing_tokens(
    given: Iterable[str] | Mapping[str, Iterable[str]], columns: Sequence[str], raw: RawTable
) -> dict[str, frozenset[str]]:
    """The cells that mean "missing" in each column; None and NaN need not be listed."""
    if isinstance(given, Mapping):
        for name in given:
            require_column(raw, name)
        per_column = {name: given.get(name, ("",)) for name in columns}
    else:
        tokens = tuple(_strings(given))
        per_column = dict.fromkeys(columns, tokens)
    return {
        name: frozenset(value_name(t) for t in _strings(tokens) if not is_missing(t))
        for name, tokens in per_column.items()
    }


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
        names = tuple(value_name(value) for value in _strings(vocabulary))
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
    if len(names) < 2:
        raise source.error(
            f"the label has only one value, {names[0]!r}, so there is nothing to tell apart; is "
            "it the right column? If so, pass label_values= with all its values",
            column=column.name,
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


def _check_category(name: str, values: tuple[str, ...], num_rows: int, source: Source) -> None:
    """Refuse columns that look like quantities or identifiers unless they were asked for."""
    many = len(values)
    if many <= MANY_VALUES:
        return
    if many > MANY_NUMBERS or many > NUMBERS_PER_ROW * num_rows:
        if all(parse_number(value) is not None for value in values):
            raise source.error(
                f"holds {many} different numbers; say how to bin them with "
                f"bins={{{name!r}: 4}} or edges={{{name!r}: [...]}}, leave the column out with "
                f"ignore=[{name!r}], or take each number for a name with categorical=[{name!r}]",
                column=name,
            )
    if many > num_rows / 2:
        raise source.error(
            f"has {many} different values in {num_rows} rows and looks like an identifier; leave "
            f"it out with ignore=[{name!r}], or keep it with categorical=[{name!r}]",
            column=name,
        )


def _check_option(
    option: str, named: Iterable[str], features: Sequence[str], source: Source
) -> None:
    for name in named:
        if name not in features:
            raise source.error(f"{option}= names a column that is not a feature", column=name)


def _strings(given: Iterable[str]) -> list[str]:
    """A list of names from a sequence, or from one name."""
    return [given] if isinstance(given, str) else list(given)
