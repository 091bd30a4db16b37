"""Parquet files, read batch by batch."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from bayes_lcs.core.errors import one_line
from bayes_lcs.core.progress import reading_bar
from bayes_lcs.io.decode import check_type, is_text_type
from bayes_lcs.io.options import MissingRule
from bayes_lcs.io.raw_table import NO_RULES, RawTable, SizeEstimate, Source, file_stamp

__all__ = ["footer_size", "group_sizes", "open_parquet_table", "open_streaming", "skip_batches"]

BATCH_ROWS = 1 << 16

MAX_DICTIONARY = 1000
"""Columns of more values than this are read as text, and encoded batch by batch."""

BUFFER_BYTES = 1 << 18
"""Bytes of a column that are read at a time."""


def open_parquet_table(path: Path) -> RawTable:
    """Return the columns of a Parquet file. An unnamed pandas index stored with it is left out."""
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

    def batches(
        columns: Sequence[str],
        /,
        *,
        encoded: Collection[str] = (),
        numeric: Mapping[str, MissingRule] = NO_RULES,  # noqa: ARG001 - the file has types
    ) -> Iterator[Any]:
        for name in columns:
            check_type(name, schema.field(name).type, source)
        # Most text columns are stored as codes; texts would only be made to be encoded again.
        as_codes = frozenset(name for name in encoded if is_text_type(schema.field(name).type))
        skip_rows = 0
        while True:
            large: set[str] = set()
            for table in _stream(path, columns, skip_rows, as_codes, source):
                large = _large_dictionaries(table, as_codes)
                if large:
                    break
                skip_rows += table.num_rows
                yield table
            if not large:
                return
            as_codes -= large

    def size() -> SizeEstimate:
        return footer_size(lambda: parquet.read_metadata(path), source)

    def head(columns: Sequence[str]) -> Any:
        return pa.schema([schema.field(name) for name in columns]).empty_table()

    return RawTable(names, source, batches, size, path, file_stamp(path), head)


def _stream(
    path: Path, columns: Sequence[str], skip_rows: int, as_codes: Collection[str], source: Source
) -> Iterator[Any]:
    import pyarrow as pa

    try:
        with (
            open_streaming(path, as_codes) as file,
            reading_bar(path, file.metadata.num_rows) as tick,
        ):
            before, groups = _groups_after(file.metadata, skip_rows)
            tick(before)
            batches = file.iter_batches(BATCH_ROWS, groups, list(columns))
            for table in skip_batches(_merge_small(batches), skip_rows - before):
                yield table
                tick(table.num_rows)
    except (pa.ArrowException, OSError) as error:
        raise source.error(f"cannot be read, the file is damaged: {one_line(error)}") from None


def skip_batches(tables: Iterable[Any], rows: int) -> Iterator[Any]:
    """Yield tables without their first rows.

    Examples
    --------
    >>> import pyarrow as pa
    >>> tables = [pa.table({"x": [0, 1, 2]}), pa.table({"x": [3]})]
    >>> [table["x"].to_pylist() for table in skip_batches(tables, 1)]
    [[1, 2], [3]]
    """
    for table in tables:
        dropped = min(rows, table.num_rows)
        rows -= dropped
        if table.num_rows > dropped or not table.num_rows:  # an empty table has types all the same
            yield table.slice(dropped)


def _large_dictionaries(table: Any, encoded: Collection[str]) -> set[str]:
    """Return columns of which a row group has many values: all of them come with every batch."""
    return {
        name
        for name in table.column_names
        if name in encoded
        and any(len(chunk.dictionary) > MAX_DICTIONARY for chunk in table.column(name).chunks)
    }


def open_streaming(path: str | Path, encoded: Collection[str] = ()) -> Any:
    """Open a Parquet file so that row groups of any size are never in memory as a whole.

    Columns that are ``encoded`` come as dictionaries.
    """
    from pyarrow import parquet

    return parquet.ParquetFile(
        path,
        read_dictionary=list(encoded),
        pre_buffer=False,
        buffer_size=BUFFER_BYTES,
        page_checksum_verification=True,
    )


def group_sizes(footer: Callable[[], Any], source: Source) -> list[int]:
    """Return the number of rows of each row group of a Parquet file."""
    return [group.num_rows for group in _row_groups(footer, source)]


def _groups_after(about: Any, rows: int) -> tuple[int, list[int]]:
    """Return the rows before, and the numbers of, the row groups that hold rows after ``rows``."""
    before, group = 0, 0
    while group < about.num_row_groups and before + about.row_group(group).num_rows <= rows:
        before += about.row_group(group).num_rows
        group += 1
    return before, list(range(group, about.num_row_groups))


def _merge_small(batches: Iterable[Any]) -> Iterator[Any]:
    """Join batches until they have many rows: dictionaries end with their row groups."""
    import pyarrow as pa

    held: list[Any] = []
    rows = 0
    for batch in batches:
        held.append(batch)
        rows += batch.num_rows
        if rows > BATCH_ROWS // 2:
            yield pa.Table.from_batches(held)
            held, rows = [], 0
    if held:
        yield pa.Table.from_batches(held)


def footer_size(footer: Callable[[], Any], source: Source) -> SizeEstimate:
    """Return rows, and bytes of all columns unpacked, as the footer of a Parquet file tells them.

    Columns are not looked at one by one: a damaged footer then makes pyarrow end the process.
    """
    groups = _row_groups(footer, source)
    return SizeEstimate(sum(g.num_rows for g in groups), sum(g.total_byte_size for g in groups))


def _row_groups(footer: Callable[[], Any], source: Source) -> list[Any]:
    import pyarrow as pa

    try:
        about = footer()
        return [about.row_group(place) for place in range(about.num_row_groups)]
    except (pa.ArrowException, OSError) as error:
        raise source.error(f"cannot be read, the file is damaged: {one_line(error)}") from None
