"""Decode Arrow columns to codes and distinct values, or to numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayes_lcs.io.column_types import (
    arrow_type,
    convert_texts,
    infer_text_type,
    parse_number,
    typed_array,
    widen_floats,
)
from bayes_lcs.io.options import MARKERS, MAX_MARKER, MissingRule
from bayes_lcs.io.raw_table import RawColumn, Source

__all__ = [
    "check_type",
    "count_nulls",
    "decode_column",
    "decode_numbers",
    "encode_texts",
    "is_text_type",
    "null_listed",
    "null_missing",
]


def check_type(name: str, kind: Any, source: Source) -> None:
    """Raise an error for a column whose cells are not single values."""
    import pyarrow.types as types

    if types.is_dictionary(kind):
        kind = kind.value_type
    if types.is_nested(kind):
        raise source.error(
            f"has nested cells ({kind}); flatten them into columns of single values, or leave "
            f"the column out with ignore=[{name!r}]",
            column=name,
        )
    if types.is_binary(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind):
        raise source.error(
            f"has cells of bytes ({kind}), not text; store it as strings, or leave it out with "
            f"ignore=[{name!r}]",
            column=name,
        )


def is_text_type(kind: Any) -> bool:
    """Return whether an Arrow type is plain text."""
    import pyarrow.types as types

    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def decode_column(name: str, cells: Any, source: Source) -> RawColumn:
    """Return codes and distinct values of an Arrow column, in any order.

    Markers of missing cells are still values here. Dictionary values that do not occur are
    included; the caller drops them.

    Examples
    --------
    >>> import pyarrow as pa
    >>> column = decode_column("x", pa.chunked_array([["b", None], ["a", "b"]]), Source())
    >>> column.values.tolist(), column.codes.tolist()
    (['b', 'a'], [0, -1, 1, 0])
    """
    import pyarrow as pa
    import pyarrow.types as types

    kind = cells.type
    if types.is_null(kind):
        return RawColumn(name, np.full(len(cells), -1, np.int32), np.empty(0, dtype=object))
    is_ordered = types.is_dictionary(kind) and kind.ordered
    if not types.is_dictionary(kind):
        if types.is_string_view(kind):
            cells = cells.cast(pa.string())
        cells = cells.dictionary_encode()
    merged = cells.combine_chunks() if isinstance(cells, pa.ChunkedArray) else cells
    indices = merged.indices
    codes = (indices.fill_null(-1) if indices.null_count else indices).to_numpy()
    values = merged.dictionary
    if len(codes) and not -1 <= codes.min() <= codes.max() < len(values):
        raise source.error("has codes outside its dictionary; the file is damaged", column=name)
    uniques = _values(name, values, source)
    codes = codes.astype(np.int32, copy=False)
    if values.null_count or uniques.dtype.kind == "f":
        # Nulls in a dictionary and NaN are missing cells, not values.
        is_missing = np.asarray(values.is_null().to_numpy(zero_copy_only=False))
        if uniques.dtype.kind == "f":
            is_missing = is_missing | np.isnan(uniques)
        if is_missing.any():
            recode = np.append(np.where(is_missing, -1, np.cumsum(~is_missing) - 1), -1)
            codes, uniques = recode[codes].astype(np.int32), uniques[~is_missing]
    return RawColumn(name, codes, uniques, is_ordered)


def _values(name: str, values: Any, source: Source) -> NDArray[Any]:
    """Return the distinct values as an array of the column's type; nulls are placeholders."""
    import pyarrow as pa
    import pyarrow.types as types

    kind = arrow_type(values.type)
    if kind == "integer":
        if types.is_uint64(values.type):
            return typed_array([0 if v is None else v for v in values.to_pylist()])
        return np.asarray(values.fill_null(0).cast(pa.int64()).to_numpy(zero_copy_only=False))
    if kind == "float":
        if not types.is_floating(values.type):  # a decimal
            values = values.cast(pa.float64())
        return widen_floats(values.to_numpy(zero_copy_only=False))
    if kind == "boolean":
        return np.asarray(values.fill_null(False).to_numpy(zero_copy_only=False), np.bool_)
    try:
        items = values.to_pylist()
    except UnicodeDecodeError as error:
        raise source.error(f"has bytes that are not text: {error}", column=name) from None
    except (ValueError, ImportError):  # dates that Python cannot represent
        items = values.cast(pa.string()).to_pylist()
    if is_text_type(values.type):  # all values are strings
        return np.array(["" if item is None else item for item in items], dtype=object)
    return typed_array(["" if item is None else item for item in items])


def encode_texts(column: RawColumn) -> Any:
    """Return a decoded column as an Arrow dictionary of texts, with null for missing cells."""
    import pyarrow as pa

    codes = pa.array(column.codes, mask=column.codes < 0)
    return pa.DictionaryArray.from_arrays(codes, pa.array(list(column.names), pa.string()))


def count_nulls(cells: Any) -> int:
    """Count nulls and NaN in an Arrow column.

    Examples
    --------
    >>> import pyarrow as pa
    >>> count_nulls(pa.array([1.0, None, float("nan")]))
    2
    """
    import pyarrow.compute as pc
    import pyarrow.types as types

    if types.is_dictionary(cells.type):
        cells = cells.cast(cells.type.value_type)
    number: int = cells.null_count
    if types.is_floating(cells.type):
        number += pc.sum(pc.is_nan(cells)).as_py() or 0
    return number


def null_missing(cells: Any, rule: MissingRule) -> tuple[Any, dict[str, int]]:
    """Replace markers of missing cells by null, and count them by text.

    ``cells`` is an Arrow array of text, or a `pyarrow.DictionaryArray` of distinct texts.
    """
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.types as types

    if isinstance(cells, pa.DictionaryArray):
        return _null_missing_values(cells, rule)
    if types.is_string_view(cells.type) or types.is_dictionary(cells.type):
        cells = cells.cast(pa.string())
    if rule.tokens is None:
        # Only short cells can be markers: others need not be trimmed.
        short = pc.less_equal(pc.binary_length(cells), MAX_MARKER)
        if not pc.any(short).as_py():
            return cells, {}
        plain = pc.ascii_lower(pc.ascii_trim_whitespace(cells.filter(short)))
        if not pc.any(pc.is_in(plain, pa.array(MARKERS, plain.type))).as_py():
            return cells, {}
        marked = [text for text in pc.unique(cells.filter(short)).to_pylist() if text is not None]
        marked = [text for text in marked if rule.matches(text)]
    else:
        marked = sorted(rule.tokens)
    hits = pc.is_in(cells, pa.array(marked, cells.type))
    found = pc.value_counts(cells.filter(hits))
    counts = {entry["values"].as_py(): entry["counts"].as_py() for entry in found}
    return (pc.if_else(hits, None, cells) if counts else cells), counts


def null_listed(cells: Any, rule: MissingRule) -> Any:
    """Replace numbers that are listed as missing by null; they match by value.

    Examples
    --------
    >>> import pyarrow as pa
    >>> null_listed(pa.array([-9.0, 1.5]), MissingRule(frozenset({"-9"}))).to_pylist()
    [None, 1.5]
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    listed = pa.array(rule.numbers, pa.float64())
    if not len(listed) or arrow_type(cells.type) not in ("integer", "float"):
        return cells
    if pa.types.is_dictionary(cells.type):
        cells = cells.cast(cells.type.value_type)
    hits = pc.is_in(cells.cast(listed.type, safe=False), listed)
    return pc.if_else(hits, pa.scalar(None, cells.type), cells)


def _null_missing_values(cells: Any, rule: MissingRule) -> tuple[Any, dict[str, int]]:
    """Apply `null_missing` to the distinct texts of a dictionary and to its codes."""
    import pyarrow as pa

    texts = cells.dictionary
    known, found = null_missing(texts, rule)
    if not found:
        return cells, {}
    # The last entry serves code -1, a null cell.
    is_missing = np.append(known.is_null().to_numpy(zero_copy_only=False), True)
    codes = cells.indices.fill_null(-1).to_numpy()
    tallies = np.bincount(codes[codes >= 0], minlength=len(texts))
    marked = np.flatnonzero(is_missing[:-1])
    counts = {texts[int(code)].as_py(): int(tallies[code]) for code in marked}
    indices = pa.array(codes, mask=is_missing[codes])
    return pa.DictionaryArray.from_arrays(indices, known), counts


def decode_numbers(
    name: str, cells: Any, rule: MissingRule, source: Source, start: int
) -> NDArray[np.float64]:
    """Return the cells of a batch as numbers, with NaN for missing cells.

    A cell that is not a number is an error with its row, counted from ``start``.

    Examples
    --------
    >>> import pyarrow as pa
    >>> decode_numbers("x", pa.chunked_array([["1e3", "?"]]), MissingRule(), Source(), 0).tolist()
    [1000.0, nan]
    """
    import pyarrow as pa

    if arrow_type(cells.type) in ("integer", "float", "boolean", None):
        import pyarrow.types as types

        cells = null_listed(cells, rule)
        if types.is_dictionary(cells.type):
            cells = cells.cast(cells.type.value_type)
        if types.is_boolean(cells.type):
            cells = cells.cast(pa.int8())
        return np.asarray(cells.cast(pa.float64(), safe=False).to_numpy(), np.float64)
    column = decode_column(name, cells, source)
    table = np.full(len(column.values) + 1, np.nan)  # the last entry serves code -1
    known = [text for text in column.names if not rule.matches(text)]
    if infer_text_type(known) == "boolean":  # 0 and 1, as in Parquet
        known_numbers = dict(zip(known, convert_texts(known, "boolean").tolist(), strict=True))
        table[:-1] = [known_numbers.get(text, np.nan) for text in column.names]
        return table[column.codes]
    for code, text in enumerate(column.names):
        number = np.nan if rule.matches(text) else parse_number(text)
        if number is None:
            row = column.first_row(code)
            raise source.error(
                f"{text!r} is not a number; correct the cell, leave the column out with "
                f"ignore=[{name!r}], or list it in missing_values=",
                row=None if row is None else start + row,
                column=name,
            )
        table[code] = number
    return table[column.codes]
