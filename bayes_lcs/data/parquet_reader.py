"""Parquet files."""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from bayes_lcs.data.ahead import one_ahead
from bayes_lcs.data.arrow_columns import check_type, is_text, marked
from bayes_lcs.data.column_reading import read_columns
from bayes_lcs.data.columns import (
    BEGINNING,
    Block,
    Cost,
    Mark,
    RawColumn,
    RawTable,
    Source,
    file_stamp,
)
from bayes_lcs.data.errors import one_line
from bayes_lcs.data.read_progress import reading_bar

__all__ = ["footer_cost", "group_sizes", "open_streaming", "raw_from_parquet"]

_BLOCK_ROWS = 1 << 16

_MOST_CODED = 1000
"""Columns of more values than this are read as text, and coded piece by piece."""

_BUFFER = 1 << 18
"""Bytes of a column that are read at a time."""


def raw_from_parquet(path: Path) -> RawTable:
    """The columns of a Parquet file. An unnamed pandas index stored with it is left out."""
    import pyarrow as pa
    from pyarrow import parquet

    source, stamp = Source(path.name), file_stamp(path)
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
    plain = frozenset(name for name in names if is_text(schema.field(name).type))
    source = Source(path.name, plain=plain)

    def read(wanted: Sequence[str]) -> dict[str, RawColumn]:
        return read_columns(blocks, source, wanted, stamp)

    def blocks(
        wanted: Sequence[str],
        after: Mark = BEGINNING,
        /,
        *,
        coded: Collection[str] = (),
        numbers: Any = None,  # noqa: ARG001 - they are numbers here, or are not
    ) -> Iterator[Block]:
        for name in wanted:
            check_type(name, schema.field(name).type, source)
        # Most columns of text lie there as codes; names would be made to be coded again.
        as_codes = plain.intersection(coded)
        is_over = False
        while not is_over:
            large: set[str] = set()
            with closing(some(wanted, after, as_codes)) as found:
                for block in found:
                    large = _large_dictionaries(block.table, as_codes)
                    if large:
                        break
                    yield block
                    after = block.mark
            is_over, as_codes = not large, as_codes - large

    def some(wanted: Sequence[str], after: Mark, as_codes: frozenset[str]) -> Generator[Block]:
        try:
            with (
                open_streaming(path, as_codes) as file,
                reading_bar(path, file.metadata.num_rows) as tick,
            ):
                before, groups = _groups_after(file.metadata, after.rows)
                tick(before)
                batches = file.iter_batches(_BLOCK_ROWS, groups, list(wanted))
                with closing(one_ahead(_tables(batches))) as tables:
                    for block in marked(tables, after, before):
                        yield block
                        tick(block.table.num_rows)
        except (pa.ArrowException, OSError) as error:
            raise source.error(f"cannot be read, the file is damaged: {one_line(error)}") from None

    def cost(_: Sequence[str]) -> Cost:
        return footer_cost(lambda: parquet.read_metadata(path), source)

    return RawTable(names, source, read, blocks, cost, path, stamp)


def _large_dictionaries(table: Any, coded: Collection[str]) -> set[str]:
    """Columns of which a row group has many values: all of them would come with every piece."""
    return {
        name
        for name in table.column_names
        if name in coded
        and any(len(part.dictionary) > _MOST_CODED for part in table.column(name).chunks)
    }


def open_streaming(path: str | Path, coded: Collection[str] = ()) -> Any:
    """A Parquet file to go through; pyarrow would hold whole row groups, of any size, in memory.

    Columns that are ``coded`` come as dictionaries.
    """
    from pyarrow import parquet

    return parquet.ParquetFile(
        path,
        read_dictionary=list(coded),
        pre_buffer=False,
        buffer_size=_BUFFER,
        page_checksum_verification=True,
    )


def group_sizes(footer: Callable[[], Any], source: Source) -> list[int]:
    """Rows of the row groups of a Parquet file."""
    return [group.num_rows for group in _row_groups(footer, source)]


def _groups_after(about: Any, rows: int) -> tuple[int, list[int]]:
    """The row groups from that which holds the row after so many, and the rows before them."""
    before, group = 0, 0
    while group < about.num_row_groups and before + about.row_group(group).num_rows <= rows:
        before += about.row_group(group).num_rows
        group += 1
    return before, list(range(group, about.num_row_groups))


def _tables(batches: Iterable[Any]) -> Iterator[Any]:
    """Batches together until they have many rows: dictionaries end with their row groups."""
    import pyarrow as pa

    waiting: list[Any] = []
    rows = 0
    for batch in batches:
        waiting.append(batch)
        rows += batch.num_rows
        if rows > _BLOCK_ROWS // 2:
            yield pa.Table.from_batches(waiting)
            waiting, rows = [], 0
    if waiting:
        yield pa.Table.from_batches(waiting)


def footer_cost(footer: Callable[[], Any], source: Source) -> Cost:
    """Rows of a Parquet file, and bytes of all its columns unpacked, as its footer tells them.

    Columns are not looked at one by one: where the footer is damaged, pyarrow ends the process.
    """
    groups = _row_groups(footer, source)
    return Cost(sum(g.num_rows for g in groups), sum(g.total_byte_size for g in groups))


def _row_groups(footer: Callable[[], Any], source: Source) -> list[Any]:
    import pyarrow as pa

    try:
        about = footer()
        return [about.row_group(place) for place in range(about.num_row_groups)]
    except (pa.ArrowException, OSError) as error:
        raise source.error(f"cannot be read, the file is damaged: {one_line(error)}") from None
