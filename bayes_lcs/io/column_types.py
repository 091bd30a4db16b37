"""Infer column types, with the same rules for every kind of input.

A column is boolean, integer, float or text. Arrow, Parquet, pandas and polars columns have declared
types. A CSV column is boolean, integer or float if every cell that is not missing has this type in
canonical form; a single cell such as ``007`` or ``+1`` makes the column text, because such a cell
is an identifier and not a number. Dates and times are text in ISO form, decimals are floats.

Numbers match by value: 1 and 1.0 are the same category, since pandas converts integers to floats in
columns with missing cells.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import timedelta
from functools import cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from bayes_lcs.core.errors import DataError

__all__ = [
    "ColumnType",
    "arrow_type",
    "convert_cells",
    "convert_texts",
    "infer_cell_type",
    "infer_text_type",
    "is_null",
    "merge_types",
    "parse_cells",
    "parse_number",
    "sort_values",
    "typed_array",
    "value_name",
    "value_type",
    "widen_floats",
]

ColumnType = Literal["boolean", "integer", "float", "text"]

_INTEGER = re.compile(r"\s*-?(0|[1-9][0-9]*)\s*", re.ASCII)
_FLOAT = re.compile(
    r"\s*-?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?\s*|\s*-?inf(inity)?\s*",
    re.IGNORECASE | re.ASCII,
)
_BOOLEANS = {"true": True, "false": False}
_INT64 = np.iinfo(np.int64)
_DTYPES: dict[ColumnType, Any] = {
    "boolean": np.bool_,
    "integer": np.int64,
    "float": np.float64,
    "text": object,
}


def infer_text_type(texts: Iterable[str]) -> ColumnType | None:
    """Return the type of a CSV column, given its distinct cells that are not missing.

    Returns None if there are no cells.

    Examples
    --------
    >>> infer_text_type(["1", "20"]), infer_text_type(["1", "2.50"]), infer_text_type(["1", "007"])
    ('integer', 'float', 'text')
    >>> infer_text_type(["True", "false"]), infer_text_type(["yes", "1"]), infer_text_type([])
    ('boolean', 'text', None)
    """
    found: ColumnType | None = None
    for text in texts:
        found = merge_types(found, _text_type(text))
        if found == "text":
            return "text"
    return found


def _text_type(text: str) -> ColumnType:
    if _INTEGER.fullmatch(text):
        # An integer of more than 64 bits is an identifier, not a quantity.
        return "integer" if _INT64.min <= int(text) <= _INT64.max else "text"
    if _FLOAT.fullmatch(text):
        return "float"
    return "boolean" if text.strip().lower() in _BOOLEANS else "text"


def merge_types(first: ColumnType | None, second: ColumnType | None) -> ColumnType | None:
    """Return the type of a column with cells of two types; None means no cells.

    Examples
    --------
    >>> merge_types("integer", "float"), merge_types("boolean", "integer")
    ('float', 'text')
    """
    if first is None or second is None or first == second:
        return second if first is None else first
    return "float" if {first, second} == {"integer", "float"} else "text"


def convert_texts(texts: Sequence[str], kind: ColumnType | None) -> NDArray[Any]:
    """Convert CSV cells to values of the type returned by `infer_text_type`.

    Examples
    --------
    >>> convert_texts(["1", "2.50"], "float").tolist(), convert_texts(["TRUE"], "boolean").tolist()
    ([1.0, 2.5], [True])
    """
    if kind == "integer":
        return np.array([int(text) for text in texts], np.int64)
    if kind == "float":
        return np.array([float(text) for text in texts], np.float64)
    if kind == "boolean":
        return np.array([_BOOLEANS[text.strip().lower()] for text in texts], np.bool_)
    return np.array(list(texts), dtype=object)


def infer_cell_type(cells: Any) -> ColumnType | None:
    """Return the type of a CSV column, given an Arrow array of its cells with null for missing.

    The rule is that of `infer_text_type`, without a Python object per cell.

    Examples
    --------
    >>> import pyarrow as pa
    >>> infer_cell_type(pa.array(["1", None, "2.5"])), infer_cell_type(pa.array(["1", "+1"]))
    ('float', 'text')
    """
    return parse_cells(cells)[0]


def parse_cells(cells: Any) -> tuple[ColumnType | None, Any]:
    """Return the type of a CSV column, and its cells as Arrow numbers if they are numbers.

    ``cells`` is an Arrow array of text, or a `pyarrow.DictionaryArray` of distinct texts.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if isinstance(cells, pa.DictionaryArray):
        kind, numbers = parse_cells(cells.dictionary)
        return kind, None if numbers is None else numbers.take(cells.indices)
    known = cells.drop_null() if cells.null_count else cells
    if not len(known):
        return None, None
    kind = _text_type(known[0].as_py())  # the first cell determines the type of most columns
    if kind == "text":
        return "text", None
    kinds = {"integer": (pa.int64(), pa.float64()), "float": (pa.float64(),)}.get(kind, ())
    texts = cells
    numbers = _cast(texts, kinds)
    if numbers is None and kinds:
        texts = pc.ascii_trim_whitespace(cells)
        numbers = _cast(texts, kinds)
    if numbers is None:
        return infer_text_type(pc.unique(known).to_pylist()), None
    if _has_identifier(texts):
        return "text", None
    if pa.types.is_integer(numbers.type):
        return "integer", numbers
    # Arrow reads nan as a number, and integers of more than 64 bits as floats.
    if pc.any(pc.is_nan(numbers)).as_py():
        return "text", None
    sizes = pc.binary_length(texts)
    if (pc.max(sizes).as_py() or 0) > 18:
        long = texts.filter(pc.greater(sizes, 18))
        has_point = pc.match_substring_regex(long, "[.eE]")
        if infer_text_type(pc.unique(long.filter(pc.invert(has_point))).to_pylist()) == "text":
            return "text", None
    return "float", numbers


def _has_identifier(cells: Any) -> bool:
    """Return whether a cell is an identifier that Arrow parses as a number, like ``007``."""
    import pyarrow as pa

    if isinstance(cells, pa.ChunkedArray):
        return any(_has_identifier(chunk) for chunk in cells.chunks)
    _, offsets, text = cells.buffers()
    if text is None or not text.size:
        return False
    # The first two bytes of every cell index a table: Arrow would copy each cell to slice it.
    wide = pa.types.is_large_string(cells.type)
    every_end: NDArray[Any] = np.frombuffer(offsets, np.int64 if wide else np.int32)
    ends = every_end[cells.offset : cells.offset + len(cells) + 1].astype(np.intp)
    letters: NDArray[np.uint8] = np.frombuffer(text, np.uint8)
    begin = ends[:-1]
    pairs = letters.take(begin, mode="clip").astype(np.uint16)
    pairs <<= 8
    pairs |= letters.take(begin + 1, mode="clip")
    suspects = np.flatnonzero(_identifier_prefixes().take(pairs))
    if not len(suspects):
        return False
    begin, sizes = begin[suspects], np.diff(ends)[suspects]
    # The second byte of a cell with one letter belongs to the next cell.
    begin, sizes = begin[sizes > 1], sizes[sizes > 1]
    is_negative = letters[begin] == ord("-")
    third = letters.take(begin + 2, mode="clip")
    is_digit = (third >= ord("0")) & (third <= ord("9")) & (sizes > 2)
    return bool((~is_negative | is_digit).any())


@cache
def _identifier_prefixes() -> NDArray[np.bool_]:
    """Return a mask of byte pairs that begin an identifier: ``+``, ``0`` and a digit, ``-0``."""
    table = np.zeros((256, 256), bool)
    table[ord("+")] = True
    table[ord("0"), ord("0") : ord("9") + 1] = True
    table[ord("-"), ord("0")] = True
    return table.ravel()


def _cast(cells: Any, kinds: tuple[Any, ...]) -> Any:
    """Cast the cells to the first type that fits all of them; return None if there is none."""
    import pyarrow as pa

    for kind in kinds:
        with suppress(pa.ArrowInvalid):
            return cells.cast(kind)
    return None


def convert_cells(cells: Any, kind: ColumnType | None) -> NDArray[Any]:
    """Convert an Arrow array of CSV cells to values of a type that fits them.

    Integers with missing cells become floats, as in pandas; booleans and texts become objects with
    None for missing cells.

    Examples
    --------
    >>> import pyarrow as pa
    >>> convert_cells(pa.array(["1", None]), "integer").tolist()
    [1.0, nan]
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if isinstance(cells, pa.DictionaryArray):
        if kind == "text":
            texts = np.array([*convert_cells(cells.dictionary, "text"), None], dtype=object)
            return texts[cells.indices.fill_null(-1).to_numpy()]
        cells = cells.cast(pa.string())
    if kind in ("integer", "float"):
        trimmed = pc.ascii_trim_whitespace(cells)
        whole = kind == "integer" and not cells.null_count
        found = trimmed.cast(pa.int64() if whole else pa.float64())
        return np.asarray(found.to_numpy(zero_copy_only=False))
    if kind == "boolean":
        flags = pc.equal(pc.utf8_lower(pc.utf8_trim_whitespace(cells)), "true")
        return np.asarray(flags.to_numpy(zero_copy_only=False))
    return np.asarray(cells.to_numpy(zero_copy_only=False), dtype=object)


def arrow_type(kind: Any) -> ColumnType | None:
    """Return the column type of an Arrow type; None for a column of nulls.

    A dictionary has the type of its values.

    Examples
    --------
    >>> import pyarrow as pa
    >>> arrow_type(pa.int8()), arrow_type(pa.dictionary(pa.int8(), pa.string()))
    ('integer', 'text')
    """
    import pyarrow.types as types

    if types.is_dictionary(kind):
        kind = kind.value_type
    if types.is_null(kind):
        return None
    if types.is_integer(kind):
        return "integer"
    if types.is_floating(kind) or types.is_decimal(kind):
        return "float"
    return "boolean" if types.is_boolean(kind) else "text"


def value_type(value: Any) -> ColumnType:
    """Return the column type of one Python or NumPy value.

    Examples
    --------
    >>> [value_type(value) for value in (True, 3, 3.5, "3")]
    ['boolean', 'integer', 'float', 'text']
    """
    if isinstance(value, bool | np.bool_):
        return "boolean"
    if isinstance(value, int | np.integer):
        return "integer" if _INT64.min <= int(value) <= _INT64.max else "text"
    if isinstance(value, float | np.floating) or type(value).__name__ == "Decimal":
        return "float"
    return "text"


def typed_array(values: Sequence[Any]) -> NDArray[Any]:
    """Return distinct values as an array of their common type.

    Values of several types, which only pandas object columns and lists can hold, stay Python
    objects: True, 1 and "1" are three values of such a column.

    Examples
    --------
    >>> typed_array([1, 2.5]).dtype, typed_array(["a"]).dtype, typed_array([True, "a"]).tolist()
    (dtype('float64'), dtype('O'), [True, 'a'])
    """
    kinds = {value_type(value) for value in values}
    kind: ColumnType | None = None
    for one in kinds:
        kind = merge_types(kind, one)
    if kind == "text" or kind is None:
        array = np.empty(len(values), dtype=object)
        array[:] = [value_name(value) if value_type(value) == "text" else value for value in values]
        return array
    return np.array(values, dtype=_DTYPES[kind])


def sort_values(values: NDArray[Any]) -> NDArray[np.int64]:
    """Return the order of distinct values: numbers by size, text by its characters.

    Values of several types are sorted by type first.

    Examples
    --------
    >>> sort_values(np.array([10, 2])).tolist()
    [1, 0]
    """
    if values.dtype.kind != "O":
        return np.argsort(values, kind="stable")
    items = values.tolist()
    keys = [(str(value_type(item) == "text"), value_type(item), value_name(item)) for item in items]
    return np.array(sorted(range(len(items)), key=keys.__getitem__), np.int64)


def widen_floats(numbers: NDArray[Any]) -> NDArray[np.float64]:
    """Return numbers in double precision; those in single precision keep their decimal form.

    0.1 in single precision becomes 0.1, not the nearest double to its bits.

    Examples
    --------
    >>> widen_floats(np.array([0.1, 0.5], np.float32)).tolist()
    [0.1, 0.5]
    """
    if numbers.dtype.itemsize >= np.dtype(np.float64).itemsize:
        return numbers.astype(np.float64, copy=False)
    uniques, inverse = np.unique(numbers, return_inverse=True)
    return np.array([float(str(number)) for number in uniques], np.float64)[inverse]


def is_null(value: Any) -> bool:
    """Return whether a Python object is a null: None, NaN, NaT or pandas.NA.

    Examples
    --------
    >>> [is_null(value) for value in (None, float("nan"), "", 0)]
    [True, True, False, False]
    """
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, float | np.floating) and math.isnan(value)


def value_name(value: Any) -> str:
    """Return the name of a value; integers have no decimal point.

    Examples
    --------
    >>> [value_name(value) for value in ("007", 7, 7.0, 0.5, True)]
    ['007', '7', '7', '0.5', 'True']
    >>> value_name(np.datetime64("2024-03-01T00:00", "ns")), value_name(timedelta(days=2))
    ('2024-03-01', '2 days')
    """
    if isinstance(value, str):
        return str(value)
    if isinstance(value, float | np.floating) and math.isfinite(value) and value == int(value):
        return str(int(value))
    if isinstance(value, bytes | bytearray | list | dict | set | tuple | np.ndarray):
        raise DataError(f"a cell holds {type(value).__name__} {value!r:.40}, not a single value")
    if isinstance(value, np.datetime64 | np.timedelta64 | timedelta):
        import pandas as pd

        # NumPy's own conversion turns nanoseconds into plain integers.
        value = pd.Series([value]).iloc[0]
    # The name of a date at midnight is the date alone, as pandas writes it to a CSV file.
    return str(value).removesuffix(" 00:00:00") if hasattr(value, "isoformat") else str(value)


def parse_number(text: str) -> float | None:
    """Parse a number; return None for other texts and for NaN.

    This is for columns that the user declares as numeric, so ``007`` and ``+1`` are accepted.

    Examples
    --------
    >>> [parse_number(text) for text in ("1e3", " 7", "1_000", "NaN", "12 kg")]
    [1000.0, 7.0, None, None, None]
    """
    if "_" in text:  # Python's digit grouping is not used in data files
        return None
    try:
        number = float(text)
    except ValueError:
        return None
    return None if math.isnan(number) else number
