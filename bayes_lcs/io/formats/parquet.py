"""Read Parquet files batch by batch."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bayes_lcs.core.errors import one_line
from bayes_lcs.io.decode import check_type, is_text_type
from bayes_lcs.io.options import drop_stored_index
from bayes_lcs.io.raw_table import RawTable, SizeEstimate, Source, file_stamp
from bayes_lcs.runtime.progress import reading_bar

__all__ = ["footer_size", "iter_rows", "open_parquet_table", "open_streaming"]

BATCH_ROWS = 1 << 16

MAX_DICTIONARY = 1000
"""Maximum size of dictionaries; columns with more values are encoded batch by batch."""

BUFFER_BYTES = 1 << 18
"""Number of bytes of a column that are read at a time."""


def open_parquet_table(path: Path) -> RawTable:
    """Open a Parquet file as a raw table, without an unnamed pandas index stored in it."""
    import pyarrow as pa
    from pyarrow import parquet

    source = Source(path.name)
    try:
        schema = parquet.read_schema(path)
        names = drop_stored_index(schema.names)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise source.error(f"is not a complete Parquet file: {one_line(error)}") from None
    for position, name in enumerate(names):
        if name in names[:position]:
            raise source.error("two columns have this name; rename one of them", column=name)
        if "\x00" in name:
            raise source.error("the name contains a NUL byte; the file is damaged", column=name)

    def batches(
        columns: Sequence[str], /, *, encoded: Collection[str] = (), **_: Any
    ) -> Iterator[Any]:
        for name in columns:
            check_type(name, schema.field(name).type, source)
        # Most text columns are stored as dictionaries, which need not be decoded to text.
        as_codes = {n for n in columns if n in encoded and is_text_type(schema.field(n).type)}
        skip_rows, is_whole = 0, False
        while not is_whole:
            is_whole = True
            for table in _stream(path, columns, skip_rows, as_codes, source):
                large = _large_dictionaries(table, as_codes)
                if large:
                    as_codes, is_whole = as_codes - large, False
                    break
                skip_rows += table.num_rows
                yield table

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
            tick(skip_rows)
            for table in _merge_small(batch for _, batch in iter_rows(file, columns, skip_rows)):
                yield table
                tick(table.num_rows)
    except (pa.ArrowException, OSError) as error:
        raise source.error(f"cannot be read, the file is damaged: {one_line(error)}") from None


def iter_rows(
    file: Any, columns: Sequence[str], start: int = 0, stop: int = sys.maxsize
) -> Iterator[tuple[int, Any]]:
    """Yield the rows from ``start`` to ``stop`` in record batches, each with its first row.

    Row groups without such rows are not read.
    """
    about = file.metadata
    ends = np.cumsum([0, *(about.row_group(i).num_rows for i in range(about.num_row_groups))])
    groups = np.flatnonzero((ends[1:] > start) & (ends[:-1] < stop)).tolist()
    first = int(ends[groups[0]]) if groups else 0
    for batch in file.iter_batches(BATCH_ROWS, groups, list(columns)):
        low, high = max(start - first, 0), min(stop - first, batch.num_rows)
        if low < high or not batch.num_rows:  # an empty batch still has column types
            yield first + low, batch.slice(low, high - low)
        first += batch.num_rows
        if first >= stop:
            return


def _large_dictionaries(table: Any, encoded: Collection[str]) -> set[str]:
    """Return columns with a large dictionary, which would be repeated in every batch."""
    return {
        name
        for name in encoded
        if any(len(chunk.dictionary) > MAX_DICTIONARY for chunk in table.column(name).chunks)
    }


def open_streaming(path: str | Path, encoded: Collection[str] = ()) -> Any:
    """Open a Parquet file for streaming, so that row groups are never completely in memory.

    Columns in ``encoded`` are read as dictionaries.
    """
    from pyarrow import parquet

    return parquet.ParquetFile(
        path,
        read_dictionary=list(encoded),
        pre_buffer=False,
        buffer_size=BUFFER_BYTES,
        page_checksum_verification=True,
    )


def _merge_small(batches: Iterable[Any]) -> Iterator[Any]:
    """Merge small batches, since dictionary batches end with their row groups."""
    import pyarrow as pa

    buffer: list[Any] = []
    rows = 0
    for batch in batches:
        buffer.append(batch)
        rows += batch.num_rows
        if rows > BATCH_ROWS // 2:
            yield pa.Table.from_batches(buffer)
            buffer, rows = [], 0
    if buffer:
        yield pa.Table.from_batches(buffer)


def footer_size(footer: Callable[[], Any], source: Source) -> SizeEstimate:
    """Return the rows and uncompressed bytes of a Parquet file from its footer.

    Columns are not inspected one by one, since pyarrow crashes if the footer is damaged.
    """
    import pyarrow as pa

    try:
        about = footer()
        groups = [about.row_group(place) for place in range(about.num_row_groups)]
    except (pa.ArrowException, OSError) as error:
        raise source.error(f"cannot be read, the file is damaged: {one_line(error)}") from None
    sizes = tuple(group.num_rows for group in groups)
    return SizeEstimate(sum(sizes), sum(group.total_byte_size for group in groups), sizes)
