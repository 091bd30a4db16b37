"""Parquet files and Arrow columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bayes_lcs.data.columns import Cost, RawColumn, RawTable, Source, raw_column
from bayes_lcs.data.errors import one_line
from bayes_lcs.data.read_progress import reading_bar

__all__ = ["check_nul", "check_type", "column_from_arrow", "footer_cost", "raw_from_parquet"]

_BLOCK_ROWS = 1 << 16


def raw_from_parquet(path: Path) -> RawTable:
    """The columns of a Parquet file. An unnamed pandas index stored with it is left out."""
    import pyarrow as pa
    from pyarrow import parquet

    source = Source(path.name)
    try:
        schema = parquet.read_schema(path)
        names = tuple(name for name in schema.names if not name.startswith("__index_level_"))
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise source.error(f"is not a whole Parquet file (cut short?): {one_line(error)}") from None
    for position, name in enumerate(names):
        if name in names[:position]:
            raise source.error("two columns have this name; rename one", column=name)
        if "\x00" in name:
            raise source.error("the name holds a NUL byte; the file is damaged", column=name)

    def read(wanted: Sequence[str]) -> dict[str, RawColumn]:
        for name in wanted:
            check_type(name, schema.field(name).type, source)
        try:
            table = parquet.read_table(path, columns=list(wanted))
        except (pa.ArrowException, OSError) as error:
            raise source.error(f"cannot be read, the file is damaged: {one_line(error)}") from None
        return {
            name: check_nul(column_from_arrow(name, table.column(name), source), source)
            for name in wanted
        }

    def blocks(wanted: Sequence[str]) -> Iterator[Any]:
        for name in wanted:
            check_type(name, schema.field(name).type, source)
        try:
            with (
                parquet.ParquetFile(path) as file,
                reading_bar(path, file.metadata.num_rows) as tick,
            ):
                for batch in file.iter_batches(_BLOCK_ROWS, columns=list(wanted)):
                    yield pa.Table.from_batches([batch])
                    tick(batch.num_rows)
        except (pa.ArrowException, OSError) as error:
            raise source.error(f"cannot be read, the file is damaged: {one_line(error)}") from None

    def cost(_: Sequence[str]) -> Cost:
        return footer_cost(lambda: parquet.read_metadata(path), source)

    return RawTable(names, source, read, blocks, cost, path)


def footer_cost(footer: Callable[[], Any], source: Source) -> Cost:
    """Rows of a Parquet file, and bytes of all its columns unpacked, as its footer tells them.

    Columns are not looked at one by one: where the footer is damaged, pyarrow ends the process.
    """
    import pyarrow as pa

    try:
        about = footer()
        groups = [about.row_group(place) for place in range(about.num_row_groups)]
    except (pa.ArrowException, OSError) as error:
        raise source.error(f"cannot be read, the file is damaged: {one_line(error)}") from None
    return Cost(about.num_rows, sum(group.total_byte_size for group in groups))


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
    codes = merged.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    uniques = merged.dictionary
    if types.is_floating(uniques.type):
        # NumPy scalars print 0.1 in single precision as it was meant.
        return raw_column(name, codes, list(uniques.to_numpy(zero_copy_only=False)), fixed=fixed)
    try:
        values = uniques.to_pylist()
    except UnicodeDecodeError as error:
        raise source.error(f"holds bytes that are no text: {error}", column=name) from None
    return raw_column(name, codes, values, fixed=fixed)


def check_nul(column: RawColumn, source: Source) -> RawColumn:
    """The column, if no cell holds a NUL byte, which no result file could hold."""
    for code, text in enumerate(column.names):
        if "\x00" in text:
            raise source.error(
                "the cell holds a NUL byte; the file is damaged or not a text file",
                row=column.first_row(code),
                column=column.name,
            )
    return column
