"""Arrow columns as columns of names, and Arrow tables as blocks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayes_lcs.data.columns import Block, Mark, RawColumn, Source, parse_number, raw_column

__all__ = [
    "check_type",
    "column_from_arrow",
    "is_text",
    "marked",
    "plain_numbers",
    "text_numbers",
    "without",
]


def check_type(name: str, kind: Any, source: Source) -> None:
    """Refuse a column whose cells are no single values of text."""
    import pyarrow.types as types

    if types.is_dictionary(kind):
        kind = kind.value_type
    if types.is_nested(kind):
        raise source.error(
            f"holds nested cells ({kind}); flatten them into columns of single values, or leave "
            f"the column out with ignore=[{name!r}]",
            column=name,
        )
    if types.is_binary(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind):
        raise source.error(
            f"holds bytes ({kind}), not text; store it as strings, or leave it out with "
            f"ignore=[{name!r}]",
            column=name,
        )


def is_text(kind: Any) -> bool:
    """Whether an Arrow type is one of plain text."""
    import pyarrow.types as types

    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def column_from_arrow(name: str, chunks: Any, source: Source) -> RawColumn:
    """Dictionary-code an Arrow column. A dictionary in a Parquet file keeps order and all values.

    Examples
    --------
    >>> import pyarrow as pa
    >>> column = column_from_arrow("x", pa.chunked_array([["b", None], ["a", "b"]]), Source())
    >>> column.names, column.codes.tolist()
    (('b', 'a'), [0, -1, 1, 0])
    """
    import pyarrow as pa
    import pyarrow.types as types

    kind = chunks.type
    if types.is_null(kind):
        return RawColumn(name, np.full(len(chunks), -1, np.int32), ())
    fixed = types.is_dictionary(kind) and source.lists_values(name)
    if not types.is_dictionary(kind):
        if types.is_string_view(kind):
            chunks = chunks.cast(pa.string())
        chunks = chunks.dictionary_encode()
    merged = chunks.combine_chunks()
    indices = merged.indices
    codes = (indices.fill_null(-1) if indices.null_count else indices).to_numpy()
    uniques = merged.dictionary
    if len(codes) and not -1 <= codes.min() <= codes.max() < len(uniques):
        raise source.error(
            "holds values that its dictionary lacks; the file is damaged", column=name
        )
    if types.is_floating(uniques.type):
        # NumPy scalars print 0.1 in single precision as it was meant.
        return raw_column(name, codes, list(uniques.to_numpy(zero_copy_only=False)), fixed=fixed)
    try:
        values = uniques.to_pylist()
    except UnicodeDecodeError as error:
        raise source.error(f"holds bytes that are no text: {error}", column=name) from None
    return raw_column(name, codes, values, fixed=fixed)


def marked(tables: Iterable[Any], after: Mark, before: int = 0) -> Iterator[Block]:
    """Tables of which the first begins at row ``before``, without the rows up to a mark.

    Examples
    --------
    >>> import pyarrow as pa
    >>> tables = [pa.table({"x": [0, 1, 2]}), pa.table({"x": [3]})]
    >>> [(block.table["x"].to_pylist(), block.mark.rows) for block in marked(tables, Mark(1))]
    [([1, 2], 3), ([3], 4)]
    """
    for table in tables:
        start, before = before, before + table.num_rows
        if before > after.rows or start >= after.rows:  # an empty table has a type all the same
            yield Block(table.slice(max(after.rows - start, 0)), Mark(before))


def text_numbers(cells: Any) -> NDArray[np.float64] | None:
    """The numbers that cells of text spell, NaN for null, or None if some cell spells none.

    Examples
    --------
    >>> import pyarrow as pa
    >>> text_numbers(pa.chunked_array([["1e3", " 7", None]])).tolist()
    [1000.0, 7.0, nan]
    >>> text_numbers(pa.chunked_array([["1", "NaN"]])) is None
    True
    """
    numbers = plain_numbers(cells)
    if numbers is not None:
        is_spelled = np.count_nonzero(np.isnan(numbers)) == cells.null_count
        return numbers if is_spelled else None
    # Python knows more ways to write a number than pyarrow does.
    column = cells.dictionary_encode().combine_chunks()
    known = []
    for text in column.dictionary.to_pylist():
        number = parse_number(text)
        if number is None:
            return None
        known.append(number)
    return np.array([*known, np.nan])[column.indices.fill_null(-1).to_numpy()]


def plain_numbers(cells: Any) -> NDArray[np.float64] | None:
    """The same if all cells are written in the plainest way, at once; a cell ``nan`` is NaN."""
    import pyarrow as pa
    import pyarrow.compute as pc

    for trim in (None, pc.ascii_trim_whitespace):
        try:
            text = cells if trim is None else trim(cells)
            return np.asarray(text.cast(pa.float64()).to_numpy(), np.float64)
        except pa.ArrowInvalid:
            continue
    return None


def without(cells: Any, missing: frozenset[str]) -> Any:
    """Cells of text with null for those that mean "missing"."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.types as types

    if types.is_string_view(cells.type):
        cells = cells.cast(pa.string())
    for token in missing:
        hits = pc.equal(cells, token)
        if pc.any(hits).as_py():
            cells = pc.if_else(hits, None, cells)
    return cells
