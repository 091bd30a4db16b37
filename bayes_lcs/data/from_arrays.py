"""Build tables from NumPy arrays of codes or of values."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayes_lcs.core.errors import DataError
from bayes_lcs.data.build_table import array_type, build_table, name_values
from bayes_lcs.data.column_source import ColumnSource, encode_objects
from bayes_lcs.data.grouped_table import GroupedTable
from bayes_lcs.io.column_types import ColumnType, is_null
from bayes_lcs.io.options import GROUP_RULE, MissingRule, MissingValues, Notes
from bayes_lcs.io.raw_table import RawColumn, Source

__all__ = ["table_from_arrays"]


def table_from_arrays(
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
    """Encode arrays; see `GroupedTable.from_arrays` for the parameters."""
    matrix = _as_array(features)
    if matrix.ndim != 2:
        raise DataError(f"features must have two axes, rows and features, got {matrix.ndim}")
    rows, width = matrix.shape
    names = _names_or(feature_names, width, "feature_")
    label_array = None if labels is None else _as_array(labels)
    group_array = np.zeros(rows, np.int64) if groups is None else _as_array(groups)
    for what, array in (("labels", label_array), ("groups", group_array)):
        if array is not None and array.shape != (rows,):
            raise DataError(f"{what} must have shape ({rows},) like the rows, got {array.shape}")
    if groups is None:
        group_names, num_groups = group_names or ("all",), 1

    if num_values is None:
        if label_values is None and num_labels is not None:
            label_values = range(num_labels)
        if groups is None:
            group_array = np.full(rows, group_names[0] if group_names else "all", dtype=object)
        elif group_names is not None:
            raise DataError(
                "group_names= requires num_values=; otherwise the entries of groups are the names"
            )
        columns = dict(zip(names, matrix.T, strict=True))
        columns[label_name] = np.full(rows, None) if label_array is None else label_array
        columns[group_name] = group_array
        if len(columns) != width + 2:
            raise DataError("feature, label and group names must be distinct")

        def read(
            wanted: Sequence[str],
            rules: Mapping[str, MissingRule],
            notes: Notes,
            as_text: Collection[str] = (),  # noqa: ARG001 - arrays have types
        ) -> dict[str, RawColumn]:
            return {name: _encode(name, columns[name], rules[name], notes) for name in wanted}

        return build_table(
            ColumnSource(tuple(columns), Source(), read),
            group=group_name,
            label=label_name,
            features=names,
            missing_values=missing_values,
            values=None if values is None else dict(zip(names, values, strict=True)),
            label_values=label_values,
            categorical=categorical,
            noted=[label_name] if label_array is None else (),
        )

    sizes = [num_values] * width if isinstance(num_values, int | np.integer) else list(num_values)
    if len(sizes) != width:
        raise DataError(f"num_values has {len(sizes)} entries for {width} features")
    if values is not None and [len(entry) for entry in values] != sizes:
        raise DataError(f"values must have {sizes} names per feature, as in num_values")
    label_codes, label_names, label_type = _codes_or_names(
        np.full(rows, -1) if label_array is None else label_array,
        label_name,
        num_labels,
        label_values,
        "num_labels= or label_values=",
        MissingRule(),
    )
    group_codes, named_groups, group_type = _codes_or_names(
        group_array,
        group_name,
        num_groups,
        group_names,
        "num_groups= or group_names=",
        GROUP_RULE,
    )
    has_group = group_codes >= 0
    named = [
        name_values(range(size) if values is None else values[f]) for f, size in enumerate(sizes)
    ]
    table = GroupedTable(
        features=_fill(matrix)[has_group],
        labels=label_codes[has_group],
        groups=group_codes[has_group],
        feature_names=names,
        values=tuple(own for own, _ in named),
        label_name=label_name,
        label_values=label_names,
        group_name=group_name,
        group_names=named_groups,
        value_types=tuple(kind for _, kind in named),
        label_type=label_type,
        group_type=group_type,
    )
    Notes(dropped=int(rows - has_group.sum())).warn()
    return table


def _as_array(given: ArrayLike) -> NDArray[Any]:
    """Convert to an array that keeps None and NaN in lists of text, and masked arrays."""
    if hasattr(given, "__array__"):
        return given if isinstance(given, np.ma.MaskedArray) else np.asarray(given)
    array = np.array(given, dtype=object)
    plain = np.asarray(given)
    return plain if plain.dtype.kind in "biuf" and plain.shape == array.shape else array


def _names_or(names: Sequence[str] | None, size: int, prefix: str = "") -> tuple[str, ...]:
    if names is None:
        return tuple(f"{prefix}{number}" for number in range(size))
    if len(names) != size:
        raise DataError(f"{len(names)} names were given for {size}")
    return tuple(names)


def _fill(array: NDArray[Any]) -> NDArray[Any]:
    """Return codes with -1 for masked entries."""
    if array.dtype == bool:
        array = array.astype(np.int8)
    return array.filled(-1) if isinstance(array, np.ma.MaskedArray) else array


def _codes_or_names(
    array: NDArray[Any],
    what: str,
    size: int | None,
    names: Sequence[Any] | None,
    how: str,
    rule: MissingRule,
) -> tuple[NDArray[Any], tuple[str, ...], ColumnType]:
    """Return integer codes unchanged, or encode text in order of first appearance."""
    if array.dtype.kind in "biu":
        codes = _fill(array)
        if size is None:
            size = len(names) if names is not None else int(codes.max(initial=-1)) + 1
        if size < 1:
            raise DataError(
                f"all entries are missing; set the number of values with {how}", column=what
            )
        if names is not None and len(names) != size:
            raise DataError(f"{len(names)} names were given for {size}")
        return codes, *name_values(range(size) if names is None else names)
    notes = Notes()
    column = _encode(what, array, rule, notes)
    notes.warn()
    own = array_type(column.values) or "text"
    if names is None:
        return column.codes, column.names, own
    texts, kind = name_values(names, own)
    known = {name: code for code, name in enumerate(texts)}
    for code, name in enumerate(column.names):
        if name not in known:
            raise DataError(f"unknown name {name!r}", row=column.first_row(code), column=what)
    recode = np.array([*(known[name] for name in column.names), -1], dtype=np.int32)
    return recode[column.codes], texts, kind


def _encode(name: str, array: NDArray[Any], rule: MissingRule, notes: Notes) -> RawColumn:
    """Encode an array in order of appearance."""
    mask = np.ma.getmaskarray(array)
    plain = np.ma.getdata(array)
    if plain.dtype.kind == "O":
        known: dict[Any, int] = {}
        codes = np.full(plain.shape, -1, np.int64)
        for row, value in enumerate(plain.tolist()):
            if not mask[row] and not is_null(value):
                try:
                    codes[row] = known.setdefault((type(value), value), len(known))
                except TypeError:
                    raise DataError(
                        f"a cell holds {type(value).__name__}, not a single value",
                        row=row,
                        column=name,
                    ) from None
        return encode_objects(name, codes, [value for _, value in known], rule, notes)
    uniques, codes = np.unique(plain, return_inverse=True)
    return encode_objects(name, np.where(mask, -1, codes), uniques, rule, notes)
