"""`GroupedTable`: categorical rows, each with a group and a label.

All values are stored as integer codes together with their names, so that models use arrays and
users see names. Tables are immutable: every method returns a new one.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayes_lcs.core.errors import DataError
from bayes_lcs.core.escape import visible
from bayes_lcs.core.schema import Schema
from bayes_lcs.data.validation import (
    as_codes,
    check_names,
    check_per_feature,
    check_type,
    row_indices,
)
from bayes_lcs.io.column_types import ColumnType, convert_texts, is_null, value_name
from bayes_lcs.io.options import MissingValues

if TYPE_CHECKING:
    import pandas as pd

    from bayes_lcs.core.counts import GroupCounts

__all__ = ["GroupedTable", "describe", "require_table", "sha256"]

_TYPES = ("value_types", "label_type", "group_type")
"""Fields that are ignored when tables are compared."""


@dataclass(frozen=True, eq=False, repr=False)
class GroupedTable:
    """Integer-coded categorical data in groups: ``N`` rows, ``F`` features, ``U`` groups.

    Usually created by `from_frame`, `from_arrays` or `bayes_lcs.read_grouped`. Two tables are equal
    if all codes and names are equal; the arrays are read-only.

    Parameters
    ----------
    features
        Codes of the feature values, shape ``(N, F)``, int32; -1 is missing.
    labels
        Codes of the labels, shape ``(N,)``, int32; -1 is missing.
    groups
        Codes of the groups, shape ``(N,)``, int32. -1 occurs only in tables created by `encode`
        and denotes a group that the encoding table does not have.
    feature_names, values
        Name of each feature, and the names of its values in code order.
    label_name, label_values
        Name of the label column, and the names of the labels in code order.
    group_name, group_names
        Name of the group column, and the names of the groups in code order.
    edges
        For each feature the increasing bin edges of its numbers; empty for a feature that is not
        binned (see `bayes_lcs.data.binning`).
    missing_values
        For each feature the markers of missing values besides None and NaN; None is the default
        (see `bayes_lcs.read_grouped`).
    label_missing_values, group_missing_values
        The same for the label and the group column.
    new_group_names, new_groups
        In a table created by `encode`: the names of unknown groups, and for each row its index
        into them, -1 if the group is known.
    value_types, label_type, group_type
        Type of each feature, of the label and of the groups: ``"boolean"``, ``"integer"``,
        ``"float"`` or ``"text"``. Numbers match by value, so that tables with different types can
        be equal.

    Examples
    --------
    >>> table = GroupedTable.from_arrays(
    ...     [["red", "big"], ["blue", "big"], ["red", None]],
    ...     labels=["no", "yes", "no"], groups=["ann", "ann", "bob"],
    ...     feature_names=["colour", "size"],
    ... )
    >>> table
    GroupedTable(3 rows, 2 groups by 'group', 2 features, label 'label' with 2 values)
    >>> table.features.tolist()
    [[1, 0], [0, 0], [1, -1]]
    >>> table.values
    (('blue', 'red'), ('big',))
    """

    features: NDArray[np.int32]
    labels: NDArray[np.int32]
    groups: NDArray[np.int32]
    feature_names: tuple[str, ...]
    values: tuple[tuple[str, ...], ...]
    label_name: str
    label_values: tuple[str, ...]
    group_name: str
    group_names: tuple[str, ...]
    edges: tuple[tuple[float, ...], ...] = ()
    missing_values: tuple[tuple[str, ...] | None, ...] = ()
    label_missing_values: tuple[str, ...] | None = None
    group_missing_values: tuple[str, ...] | None = ("",)
    new_group_names: tuple[str, ...] = ()
    new_groups: NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, np.int32))
    value_types: tuple[ColumnType, ...] = ()
    label_type: ColumnType = "text"
    group_type: ColumnType = "text"

    def __post_init__(self) -> None:
        put = object.__setattr__
        for name in ("feature_names", "label_values", "group_names", "new_group_names"):
            put(self, name, check_names(getattr(self, name), name))
        for name in ("label_missing_values", "group_missing_values"):
            cells = getattr(self, name)
            put(self, name, None if cells is None else tuple(cells))
        put(self, "missing_values", self.missing_values or (None,) * self.num_features)
        put(self, "value_types", tuple(self.value_types) or ("text",) * self.num_features)
        if len(self.value_types) != self.num_features:
            raise DataError(
                f"value_types has {len(self.value_types)} entries for {self.num_features} features"
            )
        for name in ("values", "edges", "missing_values"):
            put(self, name, check_per_feature(getattr(self, name), name, self.num_features))
        for feature, names in zip(self.feature_names, self.values, strict=True):
            if not check_names(names, "values", column=feature):
                raise DataError("a feature needs at least one value", column=feature)
        for kind, names, column in (
            *zip(self.value_types, self.values, self.feature_names, strict=True),
            (self.label_type, self.label_values, self.label_name),
            (self.group_type, (), self.group_name),
        ):
            check_type(kind, names, column)
        check_names((*self.feature_names, self.label_name, self.group_name), "column names")
        if not self.label_values:
            raise DataError("there must be at least one label value", column=self.label_name)
        rows = np.shape(self.features)[:1]
        if np.size(self.new_groups) == 0:
            put(self, "new_groups", np.full(rows, -1, np.int32))
        for name, sizes, shape, columns in (
            ("features", self.num_values, (*rows, self.num_features), self.feature_names),
            ("labels", len(self.label_values), rows, ()),
            ("groups", len(self.group_names), rows, ()),
            ("new_groups", len(self.new_group_names), rows, ()),
        ):
            codes = as_codes(getattr(self, name), sizes, name, shape=shape, columns=columns)
            put(self, name, codes)
        wrong = np.flatnonzero((self.groups < 0) == (self.new_groups < 0))
        if wrong.size:
            raise DataError(
                "a row must belong to one group, known or new",
                row=int(wrong[0]),
                column=self.group_name,
            )

    # Construction ----------------------------------------------------------------------------

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        group: Any,
        label: Any,
        features: Sequence[Any] | None = None,
        ignore: Iterable[Any] = (),
        missing_values: MissingValues = None,
        bins: Mapping[Any, int] | None = None,
        edges: Mapping[Any, Sequence[float]] | None = None,
        values: Mapping[Any, Sequence[Any]] | None = None,
        label_values: Sequence[Any] | None = None,
        categorical: bool | Iterable[Any] = (),
    ) -> GroupedTable:
        """Encode a pandas, polars or Arrow frame, with the options of `bayes_lcs.read_grouped`.

        None, NaN, NA and nulls are always missing. The name of a value is its text: 3 and 3.0 are
        both ``"3"``, True is ``"True"``. Values that do not occur are dropped, including categories
        of a Categorical, unless ``values`` or ``label_values`` declare them. An ordered Categorical
        keeps its order. Column names may be integers; they are displayed as text, and options
        accept both forms.

        Examples
        --------
        >>> import pandas as pd
        >>> frame = pd.DataFrame({"who": ["ann", "bob"], "size": [2, 10], "buys": ["no", "yes"]})
        >>> GroupedTable.from_frame(frame, group="who", label="buys").values
        (('2', '10'),)
        """
        from bayes_lcs.data.build_table import build_table
        from bayes_lcs.data.column_source import open_columns

        if isinstance(frame, str | PathLike):
            raise DataError("expected a frame, got a path; read files with bl.read_grouped")
        return build_table(
            open_columns(frame),
            group=group,
            label=label,
            features=features,
            ignore=ignore,
            missing_values=missing_values,
            bins=bins,
            edges=edges,
            values=values,
            label_values=label_values,
            categorical=categorical,
        )

    @classmethod
    def from_arrays(
        cls,
        features: ArrayLike,
        labels: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        *,
        num_values: int | Sequence[int] | None = None,
        num_labels: int | None = None,
        num_groups: int | None = None,
        feature_names: Sequence[str] | None = None,
        values: Sequence[Sequence[Any]] | None = None,
        label_name: str = "label",
        label_values: Sequence[Any] | None = None,
        group_name: str = "group",
        group_names: Sequence[Any] | None = None,
        missing_values: MissingValues = None,
        categorical: bool | Iterable[str] = (),
    ) -> GroupedTable:
        """Encode NumPy arrays of codes or of values.

        With ``num_values`` the features **are codes**: integers from 0, with -1 for missing.
        Integer labels and groups are then codes, too; their number is ``num_labels`` and
        ``num_groups``, or follows from the largest code. Without ``num_values`` every distinct
        entry **is a value**: -1 is the value ``"-1"``, and None, NaN and the entries of
        ``missing_values`` are missing, by default as in `bayes_lcs.read_grouped`. Masked entries of
        a `numpy.ma` array are missing in both cases. Rows without a group are dropped with a
        warning. Without ``groups`` there is one group; without ``labels`` all labels are missing,
        and ``label_values`` or ``num_labels`` declares them.

        Examples
        --------
        >>> GroupedTable.from_arrays([[0, 1], [2, -1]], [0, 1], [0, 0], num_values=(3, 2)).schema
        Schema(num_labels=2, num_values=(3, 2))
        """
        from bayes_lcs.data.from_arrays import table_from_arrays

        return table_from_arrays(
            features,
            labels,
            groups,
            num_values=num_values,
            num_labels=num_labels,
            num_groups=num_groups,
            feature_names=feature_names,
            values=values,
            label_name=label_name,
            label_values=label_values,
            group_name=group_name,
            group_names=group_names,
            missing_values=missing_values,
            categorical=categorical,
        )

    # Shape -----------------------------------------------------------------------------------

    @property
    def num_rows(self) -> int:
        """Number of rows ``N``."""
        return int(self.features.shape[0])

    @property
    def num_groups(self) -> int:
        """Number of groups ``U``, including those without rows."""
        return len(self.group_names)

    @property
    def num_features(self) -> int:
        """Number of features ``F``."""
        return len(self.feature_names)

    @property
    def num_labels(self) -> int:
        """Number of label values ``L``."""
        return len(self.label_values)

    @property
    def typed_label_values(self) -> NDArray[Any]:
        """Labels in code order as values of their type: ints, floats, booleans or text."""
        return convert_texts(self.label_values, self.label_type)

    @property
    def num_values(self) -> tuple[int, ...]:
        """Number of values of each feature."""
        return tuple(len(names) for names in self.values)

    @property
    def schema(self) -> Schema:
        """Numbers of labels and values, as used by the models."""
        return Schema(self.num_labels, self.num_values)

    @property
    def has_missing_labels(self) -> bool:
        """True if any label is missing."""
        return bool((self.labels < 0).any())

    @property
    def group_sizes(self) -> NDArray[np.int64]:
        """Number of rows of each group, shape ``(U,)``."""
        known = self.groups[self.groups >= 0]
        return np.bincount(known, minlength=self.num_groups).astype(np.int64)

    # Selections and variants -----------------------------------------------------------------

    def take(self, rows: ArrayLike | slice) -> GroupedTable:
        """Return some rows (row numbers, mask or slice), with all names and groups."""
        index = row_indices(rows, self.num_rows)
        return replace(
            self,
            features=self.features[index],
            labels=self.labels[index],
            groups=self.groups[index],
            new_groups=self.new_groups[index],
        )

    def labelled(self) -> GroupedTable:
        """Return the rows with a label, with all groups, including those without such rows."""
        return self.take(self.labels >= 0)

    def unlabelled(self) -> GroupedTable:
        """Return the rows without a label, with all groups."""
        return self.take(self.labels < 0)

    def select_groups(self, groups: Sequence[Any]) -> GroupedTable:
        """Return the rows of some groups, given by names or codes; other groups are removed."""
        chosen = self.group_codes(groups)
        recode = np.full(self.num_groups + 1, -1, np.int32)  # the last entry serves code -1
        recode[chosen] = np.arange(len(chosen))
        kept = self.take(recode[self.groups] >= 0)
        names = tuple(self.group_names[code] for code in chosen)
        return replace(kept, groups=recode[kept.groups], group_names=names)

    def group_codes(self, groups: Sequence[Any]) -> list[int]:
        """Return the codes of groups given by names or codes; unknown groups are an error.

        Integers are codes. Names may also be given as booleans or floats.
        """
        known = {name: code for code, name in enumerate(self.group_names)}
        chosen = []
        for group in [groups] if isinstance(groups, str) else groups:
            is_code = isinstance(group, int | np.integer) and not isinstance(group, bool)
            code = int(group) if is_code else known.get(value_name(group), -1)
            if not 0 <= code < self.num_groups:
                raise DataError(f"there is no group {group!r}", column=self.group_name)
            chosen.append(code)
        return chosen

    def label_code(self, label: Any) -> int:
        """Return the code of a label, given as a value or as its name.

        Examples
        --------
        >>> table = GroupedTable.from_arrays([["a"], ["b"]], [5, 7])
        >>> table.label_code(7), table.label_code("7"), table.typed_label_values.tolist()
        (1, 1, [5, 7])
        """
        name = value_name(label)
        if name not in self.label_values:
            raise DataError(
                f"there is no label {label!r}; there are {list(self.label_values)}",
                column=self.label_name,
            )
        return self.label_values.index(name)

    def with_labels(self, labels: ArrayLike) -> GroupedTable:
        """Return the same rows with other labels: codes, or values with None for missing.

        Arrays of integers are codes; other arrays contain labels or their names.
        """
        array = np.asarray(labels)
        if array.dtype.kind in "iu":
            return replace(self, labels=array)
        known = {name: code for code, name in enumerate(self.label_values)}
        codes = np.full(array.shape, -1, np.int32)
        for row, label in enumerate(array.tolist()):
            if not is_null(label):
                name = value_name(label)
                if name not in known:
                    raise DataError(f"unknown label {label!r}", row=row, column=self.label_name)
                codes[row] = known[name]
        return replace(self, labels=codes)

    def mask_labels(self, rows: ArrayLike | slice) -> GroupedTable:
        """Return the same table with missing labels in the given rows."""
        labels = self.labels.copy()
        labels[row_indices(rows, self.num_rows)] = -1
        return replace(self, labels=labels)

    def require_rows(self) -> None:
        """Raise an error if the table stores counts only; do nothing here."""

    def counts(self) -> GroupCounts:
        """Return the counts of each value with each label in each group, of labelled rows."""
        from bayes_lcs.core.counts import count_rows

        return count_rows(self.schema, self.num_groups, self.groups, self.labels, self.features)

    def encode(
        self,
        rows: Any,
        *,
        unseen: Literal["missing", "error"] = "missing",
        encoding: str = "utf-8",
        delimiter: str | None = None,
    ) -> GroupedTable:
        """Encode new rows with the codes of this table.

        Rows are a pandas, polars or Arrow frame, another table, or the path of a file. The label
        column is optional. An unknown group has code -1, and its name is in ``new_group_names``. An
        unknown feature value is treated as missing with a warning, or is an error with
        ``unseen="error"``; an unknown label is always an error. See
        `bayes_lcs.data.encode_new_rows.encode_rows`.
        """
        from bayes_lcs.data.encode_new_rows import encode_rows

        return encode_rows(self, rows, unseen=unseen, encoding=encoding, delimiter=delimiter)

    # Text ------------------------------------------------------------------------------------

    def row_group_names(self) -> list[str]:
        """Return the group name of each row, known or new."""
        return [
            self.group_names[known] if known >= 0 else self.new_group_names[new]
            for known, new in zip(self.groups.tolist(), self.new_groups.tolist(), strict=True)
        ]

    def to_frame(self, *, categorical: bool = False) -> pd.DataFrame:
        """Return the rows as names: group, features, label; missing cells are None.

        With ``categorical`` the columns are ordered Categoricals that include unused values.
        """
        from bayes_lcs.data.to_frames import frame_from_table

        return frame_from_table(self, categorical=categorical)

    def describe(self) -> str:
        """Return a summary of groups, labels, features and missing cells."""
        return describe(self)

    def content_hash(self) -> str:
        """Return the sha256 of codes and names, which is the same on every machine."""
        return self._sha256

    @cached_property
    def _sha256(self) -> str:

        return sha256(self)

    def __repr__(self) -> str:
        missing = int((self.labels < 0).sum())
        return (
            f"GroupedTable({self.num_rows} rows, {self.num_groups} groups by {self.group_name!r}, "
            f"{self.num_features} features, label {self.label_name!r} with {self.num_labels} values"
            f"{f', {missing} labels missing' if missing else ''})"
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, GroupedTable):
            return NotImplemented
        names = [field.name for field in fields(self) if field.name not in _TYPES]
        pairs = ((getattr(self, name), getattr(other, name)) for name in names)
        return all(np.array_equal(a, b) if isinstance(a, np.ndarray) else a == b for a, b in pairs)

    def __hash__(self) -> int:
        return hash(self._sha256)


def require_table(data: object) -> None:
    """Raise an error with advice if data is not a grouped table."""
    if not isinstance(data, GroupedTable):
        raise TypeError(
            f"data must be a GroupedTable, got {type(data).__name__}; create one with "
            "bl.read_grouped(path, group=, label=) or bl.GroupedTable.from_frame(frame, group=, "
            "label=)"
        )


_SHOWN = 6
_MAX_LENGTH = 60


def describe(table: GroupedTable) -> str:
    """Return a summary of groups, labels and features in a few lines of text.

    Examples
    --------
    >>> from bayes_lcs.data.grouped_table import GroupedTable
    >>> print(describe(GroupedTable.from_arrays([["a"], [None]], ["n", "y"], ["u", "u"])))
    2 rows in 1 group ('group'): 2 rows each
    label 'label': n 1, y 1
    1 feature:
      'feature_0'  1 value, 1 missing: a 1
    """
    sizes = table.group_sizes
    if not sizes.size:
        spread = "no group"
    elif sizes.min() == sizes.max():
        spread = f"{sizes[0]} rows each"
    else:
        spread = f"{sizes.min()} to {sizes.max()} rows, median {np.median(sizes):g}"
    groups = _count_noun(table.num_groups, "group")
    lines = [f"{_count_noun(table.num_rows, 'row')} in {groups} ({table.group_name!r}): {spread}"]
    if table.new_group_names:
        lines.append(
            f"{_count_noun(len(table.new_group_names), 'group')} not in the training table"
        )
    unlabelled = int((table.labels < 0).sum())
    lines.append(
        f"label {table.label_name!r}{f', {unlabelled} missing' if unlabelled else ''}: "
        f"{_tally(table.labels, table.label_values)}"
    )
    lines.append(f"{_count_noun(table.num_features, 'feature')}:")
    quoted = [repr(_truncate(name)) for name in table.feature_names]
    width = max(map(len, quoted), default=0)
    for feature, (name, values) in enumerate(zip(quoted, table.values, strict=True)):
        codes = table.features[:, feature]
        missing = int((codes < 0).sum())
        lines.append(
            f"  {name:<{width}}  {_count_noun(len(values), 'value')}"
            f"{f', {missing} missing' if missing else ''}: {_tally(codes, values)}"
        )
    return "\n".join(lines)


def _truncate(name: str) -> str:
    return name if len(name) <= _MAX_LENGTH else name[: _MAX_LENGTH - 1] + "…"


def _count_noun(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _tally(codes: np.ndarray, names: tuple[str, ...]) -> str:
    counts = np.bincount(codes[codes >= 0], minlength=len(names))
    shown = [
        f"{visible(name, _MAX_LENGTH)} {count}" for name, count in zip(names, counts, strict=True)
    ][:_SHOWN]
    rest = len(names) - len(shown)
    return ", ".join(shown) + (f", … {rest} more" if rest else "")


def sha256(table: GroupedTable) -> str:
    """Return the sha256 of codes and names, with a fixed byte order for all machines."""
    names = [
        table.feature_names,
        table.values,
        table.label_name,
        table.label_values,
        table.group_name,
        table.group_names,
        table.new_group_names,
        table.features.shape,
    ]
    digest = hashlib.sha256(json.dumps(names, separators=(",", ":")).encode("ascii"))
    for codes in (table.features, table.labels, table.groups, table.new_groups):
        digest.update(np.ascontiguousarray(codes, dtype="<i4").tobytes())
    return digest.hexdigest()
