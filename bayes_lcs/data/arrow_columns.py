"""Arrow columns as columns of names, and Arrow tables as blocks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from bayes_lcs.data.columns import Block, Mark, RawColumn, Source, raw_column

__all__ = ["check_type", "column_from_arrow", "marked"]


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
    # A text file has no dictionary of its own: the one pyarrow builds for it means nothing.
    fixed = types.is_dictionary(kind) and source.line_of is None
    if not types.is_dictionary(kind):
        if types.is_string_view(kind):
            chunks = chunks.cast(pa.string())
        chunks = chunks.dictionary_encode()
    merged = chunks.combine_chunks()
    indices = merged.indices
    codes = (indices.fill_null(-1) if indices.null_count else indices).to_numpy()
    uniques = merged.dictionary
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
        if before > after.rows:
            yield Block(table.slice(max(after.rows - start, 0)), Mark(before))
