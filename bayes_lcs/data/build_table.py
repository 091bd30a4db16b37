"""Build a `GroupedTable` from the columns of any source; the only place that assigns codes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayes_lcs.core.errors import DataError
from bayes_lcs.data.binning import (
    bin_column,
    bin_names,
    check_edges,
    column_numbers,
    quantile_edges,
)
from bayes_lcs.data.column_source import ColumnSource
from bayes_lcs.data.grouped_table import GroupedTable
from bayes_lcs.io.column_types import (
    ColumnType,
    convert_texts,
    infer_text_type,
    merge_types,
    sort_values,
    typed_array,
    value_name,
)
from bayes_lcs.io.options import (
    GROUP_RULE,
    MissingRule,
    MissingValues,
    Notes,
    as_list,
    check_option,
    is_index_name,
    missing_rules,
    select_columns,
)
from bayes_lcs.io.raw_table import RawColumn, Source

__all__ = [
    "GroupedColumns",
    "array_type",
    "build_table",
    "check_categories",
    "check_label_names",
    "encode_column",
    "name_values",
    "rule_beside",
]

MAX_CATEGORY_NUMBERS = 20
"""A column with at most this many values is never taken for a quantity or an identifier."""

MAX_NUMBERS = 100
"""A column with more distinct numbers than this is taken for a quantity in any table."""

NUMBERS_PER_ROW = 0.001
"""So is a column with more than `MAX_CATEGORY_NUMBERS` and one distinct number per 1,000 rows."""

MAX_FRACTIONS = 12
"""So is a column with more distinct numbers than this, if some are not integers."""


class GroupedColumns:
    """Columns of a grouped table with their roles and their rules for missing cells.

    Attributes
    ----------
    group, label, features
        Names of the columns.
    rules
        Rule for missing cells of each column.
    forced
        Features that are declared as categorical.
    notes
        Assumptions that are reported to the user.
    """

    def __init__(
        self,
        columns: ColumnSource,
        group: Any,
        label: Any,
        features: Iterable[Any] | None,
        ignore: Iterable[Any],
        missing_values: MissingValues,
        categorical: bool | Iterable[Any],
        named: Mapping[str, Iterable[str]],
    ) -> None:
        error = columns.source.error
        self.group, self.label = str(group), str(label)
        marked = [] if categorical is True else [str(name) for name in as_list(categorical or ())]
        options: dict[str, Iterable[str]] = {**named, "categorical": marked}
        roles = {"group": self.group, "label": self.label}
        # An index is data if any option names it.
        asked = {*roles.values(), *(name for names in options.values() for name in names)}
        index = None if columns.index in asked else columns.index
        self.features = select_columns(
            columns.names, error, features=features, ignore=ignore, roles=roles, index=index
        )
        for option, names in options.items():
            check_option(option, names, self.features, error)
        self.forced = set(self.features) if categorical is True else set(marked)
        self.rules = missing_rules(missing_values, self.all, columns.names, error, group=self.group)
        if not isinstance(missing_values, Mapping):  # a list is about features and label
            self.rules[self.group] = GROUP_RULE
        # No note about the index if the user lists the features or ignores the index.
        is_known = features is not None or any(map(is_index_name, as_list(ignore)))
        self.notes = Notes(columns.source.file, None if is_known else index)

    @property
    def all(self) -> list[str]:
        """All columns in the order of reading."""
        return [*self.features, self.label, self.group]

    def markers(self) -> dict[str, Any]:
        """Return the markers of missing values as fields of a `GroupedTable`."""
        tokens = {
            name: None if rule.tokens is None else tuple(sorted(rule.tokens))
            for name, rule in self.rules.items()
        }
        return {
            "missing_values": tuple(tokens[name] for name in self.features),
            "label_missing_values": tokens[self.label],
            "group_missing_values": tokens[self.group],
        }


def build_table(
    columns: ColumnSource,
    *,
    group: Any,
    label: Any,
    features: Iterable[Any] | None = None,
    ignore: Iterable[Any] = (),
    missing_values: MissingValues = None,
    bins: Mapping[Any, int] | None = None,
    edges: Mapping[Any, Sequence[float]] | None = None,
    values: Mapping[Any, Sequence[Any]] | None = None,
    label_values: Sequence[Any] | None = None,
    categorical: bool | Iterable[Any] = (),
    noted: Collection[str] = (),
) -> GroupedTable:
    """Encode the columns of a source; see `bayes_lcs.read_grouped` for the parameters.

    Missing cells of the columns ``noted`` are not reported again.
    """
    source = columns.source
    named: dict[str, dict[str, Any]] = {
        option: {str(name): entry for name, entry in (given or {}).items()}
        for option, given in (("bins", bins), ("edges", edges), ("values", values))
    }
    bins, edges, values = (named[option] for option in ("bins", "edges", "values"))
    chosen = GroupedColumns(
        columns, group, label, features, ignore, missing_values, categorical, named
    )
    for name in chosen.features:
        asked = [option for option, given in named.items() if name in given]
        if len(asked) > 1:
            raise source.error(
                f"is in both {asked[0]}= and {asked[1]}=; use one of them", column=name
            )
    chosen.notes.noted = noted
    group, label = chosen.group, chosen.label
    declared = dict(values) if label_values is None else {**values, label: label_values}
    rules = {name: rule_beside(rule, declared.get(name, ())) for name, rule in chosen.rules.items()}
    as_text = [name for name, given in declared.items() if _are_texts(given)]
    found = columns.read(chosen.all, rules, chosen.notes, as_text)
    rows = found[group].codes >= 0
    if rows.size == 0:
        raise source.error("there are no rows")
    if not rows.any():
        raise source.error("no row has a group; is it the right column?", column=group)
    chosen.notes.dropped = int(rows.size - rows.sum())
    if chosen.notes.dropped:
        # Rows are dropped at the end, so that row numbers in errors are right.
        found = {name: _without_rows(column, rows) for name, column in found.items()}
    num_rows = int(rows.sum())

    group_codes, group_names = _code_groups(found[group])
    label_codes, labels, label_type = encode_column(found[label], source, label_values)
    _check_labels(found[label], label_codes, labels, label_type, label_values, num_rows, source)
    coded, all_names, all_edges = [], [], []
    types: list[ColumnType] = []
    judged: dict[str, tuple[tuple[str, ...], ColumnType]] = {}
    for name in chosen.features:
        column = found[name]
        kind: ColumnType = "text"
        if name in bins or name in edges:
            cut = _find_edges(column, bins.get(name), edges.get(name), source)
            codes, names = bin_column(column, cut, source), bin_names(cut)
        else:
            cut = ()
            codes, names, kind = encode_column(column, source, values.get(name))
            is_declared = name in chosen.forced or name in values or column.is_ordered
            if not is_declared or not names:
                judged[name] = names, kind
        coded.append(codes[rows])
        all_names.append(names)
        all_edges.append(cut)
        types.append(kind)
    check_categories(judged, num_rows, source)
    chosen.notes.warn()
    return GroupedTable(
        features=np.stack(coded, axis=1),
        labels=label_codes[rows],
        groups=group_codes[rows],
        feature_names=tuple(chosen.features),
        values=tuple(all_names),
        label_name=label,
        label_values=labels,
        group_name=group,
        group_names=group_names,
        edges=tuple(all_edges),
        value_types=tuple(types),
        label_type=label_type,
        group_type=array_type(found[group].values) or "text",
        **chosen.markers(),
    )


def array_type(values: NDArray[Any]) -> ColumnType | None:
    """Return the column type of distinct values; None if there are none.

    Examples
    --------
    >>> array_type(np.array([1, 2])), array_type(np.array(["a"], dtype=object))
    ('integer', 'text')
    """
    kinds: dict[str, ColumnType] = {"b": "boolean", "i": "integer", "f": "float"}
    return kinds.get(values.dtype.kind, "text") if len(values) else None


def rule_beside(rule: MissingRule, values: Iterable[Any]) -> MissingRule:
    """Return a rule that does not treat declared values as missing, unless the user lists them.

    Examples
    --------
    >>> [rule_beside(MissingRule(), ["NA", "EU"]).matches(text) for text in ("NA", "?")]
    [False, True]
    """
    names = {value_name(value) for value in as_list(values)}
    if rule.tokens is not None or not any(map(rule.matches, names)):
        return rule
    return MissingRule(frozenset(rule.spellings or ()) - names)


def _are_texts(given: Sequence[Any]) -> bool:
    """Return whether declared values are texts and not numbers."""
    items = as_list(given)
    return all(isinstance(item, str) for item in items) and infer_text_type(items) == "text"


def name_values(
    given: Sequence[Any], kind: ColumnType | None = None
) -> tuple[tuple[str, ...], ColumnType]:
    """Return the names of declared values, and their type merged with that of the cells.

    Texts that represent numbers are numbers if the cells are.

    Examples
    --------
    >>> name_values(["1.0", "2.50"], "float"), name_values(["1.0"], "text"), name_values([0, 1])
    ((('1', '2.5'), 'float'), (('1.0',), 'text'), (('0', '1'), 'integer'))
    """
    items = as_list(given)
    spelled = infer_text_type(items) if all(isinstance(item, str) for item in items) else None
    if spelled not in (None, "text") and kind not in (None, "text"):
        items = convert_texts(items, spelled).tolist()
    own = array_type(typed_array(items)) or "text"
    return tuple(value_name(item) for item in items), merge_types(own, kind) or "text"


def encode_column(
    column: RawColumn,
    source: Source,
    vocabulary: Sequence[Any] | None = None,
    *,
    kind: ColumnType | None = None,
    unseen: Counter[str] | None = None,
) -> tuple[NDArray[np.int32], tuple[str, ...], ColumnType]:
    """Return the codes of a column, the names of the values, and their type.

    Names are in the order of the values: numbers by size, text sorted, or the order of an ordered
    Categorical. Values that do not occur are dropped.

    Parameters
    ----------
    column
        The column.
    source
        Origin of the rows, for errors.
    vocabulary
        All values in the desired order. Any other cell is an error with its row.
    kind
        Type of the vocabulary, if it consists of names.
    unseen
        Counter of cells outside the vocabulary, which are then treated as missing.

    Examples
    --------
    >>> sizes = RawColumn("size", np.array([0, 1, -1, 0]), np.array([10, 2]))
    >>> codes, names, kind = encode_column(sizes, Source())
    >>> codes.tolist(), names, kind
    ([1, 0, -1, 1], ('2', '10'), 'integer')
    """
    own = array_type(column.values)
    numbers = np.bincount(column.codes + 1, minlength=len(column.values) + 1)[1:]
    used = np.flatnonzero(numbers)
    if vocabulary is None:
        if not column.is_ordered:
            used = used[sort_values(column.values[used])]
        names = tuple(dict.fromkeys(column.names[code] for code in used))
        kind = own or "text"
    elif kind is None:
        names, kind = name_values(vocabulary, own)
    else:
        names = tuple(vocabulary)
    known = {name: code for code, name in enumerate(names)}
    recode = np.full(len(column.values) + 1, -1, np.int32)  # the last entry serves code -1
    for code in used.tolist():
        name = column.names[code]
        found = known.get(name)
        if found is None and own == "text" and kind != "text":
            found = known.get(_spelled_name(name))
        if found is not None:
            recode[code] = found
        elif unseen is not None:
            unseen[name] += int(numbers[code])
        else:
            some = ", ".join(map(repr, names[:8])) + (", …" if len(names) > 8 else "")
            raise source.error(
                f"{name!r} is not one of the known values {some}; correct the cell or list it in "
                "missing_values=",
                row=column.first_row(code),
                column=column.name,
            )
    if np.array_equal(recode[:-1], np.arange(len(column.values))):
        return column.codes, names, kind  # already in their final order
    return recode[column.codes], names, kind


def _spelled_name(text: str) -> str:
    """Return the name of the number or boolean that a text represents, or the text itself."""
    kind = infer_text_type([text])
    return text if kind == "text" else value_name(convert_texts([text], kind)[0].item())


def _without_rows(column: RawColumn, rows: NDArray[np.bool_]) -> RawColumn:
    """Set the cells of all other rows to missing."""
    codes = np.where(rows, column.codes, np.int32(-1))
    return RawColumn(column.name, codes, column.values, column.is_ordered, column.edges)


def _code_groups(column: RawColumn) -> tuple[NDArray[np.int32], tuple[str, ...]]:
    """Return codes and names of groups, by first appearance or in a declared order."""
    order = column.order_of_appearance()
    known: dict[str, int] = {}
    recode = np.full(len(column.values) + 1, -1, np.int32)
    for code in sorted(order) if column.is_ordered else order:
        recode[code] = known.setdefault(column.names[code], len(known))
    return recode[column.codes], tuple(known)


def _check_labels(
    column: RawColumn,
    codes: NDArray[np.int32],
    names: tuple[str, ...],
    kind: ColumnType,
    declared: Sequence[Any] | None,
    num_rows: int,
    source: Source,
) -> None:
    if declared is not None:
        return
    if (codes < 0).all():
        raise source.error(
            "every label is missing; is it the right column? If so, pass label_values=",
            column=column.name,
        )
    check_label_names(column.name, names, kind, num_rows, source, is_listed=column.is_ordered)


def check_label_names(
    column: str,
    names: tuple[str, ...],
    kind: ColumnType,
    num_rows: int,
    source: Source,
    is_listed: bool = False,
) -> None:
    """Raise an error for a label with one value or too many values, unless they are declared."""
    if len(names) < 2:
        raise source.error(
            f"the label has only one value, {names[0]!r}, so there is nothing to tell apart; is "
            "it the right column? If so, pass label_values= with all its values",
            column=column,
        )
    many = _are_quantities(names, kind, num_rows) or _are_identifiers(names, num_rows)
    if not is_listed and many:
        raise source.error(
            f"the label has {len(names)} different values, but should name a few kinds; is it the "
            "right column? If so, pass label_values= with all its values",
            column=column,
        )


def _find_edges(
    column: RawColumn, num_bins: int | None, edges: Sequence[float] | None, source: Source
) -> tuple[float, ...]:
    try:
        if edges is not None:
            return check_edges(edges)
        assert num_bins is not None
        numbers = column_numbers(column, source)
        counts = np.bincount(column.codes[column.codes >= 0], minlength=numbers.size)
        return quantile_edges(numbers, num_bins, counts)
    except DataError as error:
        if error.column is not None:
            raise
        raise source.error(error.message, column=column.name) from None


def _are_quantities(names: tuple[str, ...], kind: ColumnType, num_rows: int) -> bool:
    """Return whether a column has so many distinct numbers that it is probably a quantity."""
    if kind not in ("integer", "float"):
        return False
    if len(names) > MAX_FRACTIONS and not all(float(name).is_integer() for name in names):
        return True
    many = len(names) > MAX_CATEGORY_NUMBERS
    return many and (len(names) > MAX_NUMBERS or len(names) > NUMBERS_PER_ROW * num_rows)


def _are_identifiers(names: tuple[str, ...], num_rows: int) -> bool:
    """Return whether a column has too many distinct values to be a category."""
    return len(names) > MAX_CATEGORY_NUMBERS and len(names) > num_rows / 2


def check_categories(
    columns: Mapping[str, tuple[tuple[str, ...], ColumnType]], num_rows: int, source: Source
) -> None:
    """Raise one error for all columns that are empty or probably quantities or identifiers.

    ``columns`` maps each column to the names and the type of its values.
    """
    empty = [c for c, (names, _) in columns.items() if not names]
    numbers = [c for c, own in columns.items() if _are_quantities(*own, num_rows)]
    others = [c for c, own in columns.items() if _are_identifiers(own[0], num_rows)]
    refused = [c for c in columns if c in empty or c in numbers or c in others]
    if not refused:
        return
    first = refused[0]
    count = len(columns[first][0])
    if first in empty:
        message = f"every cell is missing; ignore the column with ignore=[{first!r}]"
    elif first in numbers:
        message = (
            f"holds {count} different numbers; say how to bin them with bins={{{first!r}: 4}} or "
            f"edges={{{first!r}: [...]}}, ignore the column with ignore=[{first!r}], or treat "
            f"each number as a category with categorical=[{first!r}]"
        )
    else:
        message = (
            f"has {count} different values in {num_rows} rows and looks like an identifier; leave "
            f"it out with ignore=[{first!r}], or keep it with categorical=[{first!r}]"
        )
    if len(refused) > 1:
        rest = [
            f"{c!r} ({len(columns[c][0])} {'numbers' if c in numbers else 'values'})"
            for c in refused[1:]
        ]
        message += f". Also refused: {', '.join(rest)}. To leave out all: ignore={refused!r}"
    raise source.error(message, column=first)
