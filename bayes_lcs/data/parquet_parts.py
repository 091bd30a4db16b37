"""A Parquet file in parts of about equally many rows."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from bayes_lcs.data.arrow_columns import check_type
from bayes_lcs.data.columns import Source
from bayes_lcs.data.counted_file import CountedFile, ReadCount
from bayes_lcs.data.csv_parts import even_sizes
from bayes_lcs.data.errors import one_line

__all__ = ["ParquetParts", "groups_by_part"]

_LEAST_BUFFER, _MOST_BUFFER = 1 << 14, 1 << 18
"""Bytes read at a time from one column: pyarrow asks for 16 KiB to look at the head of a page."""

_SMALL = 1 << 16
"""A file of no more bytes is read column by column: of a page that is damaged so that it seems to
hold gigabytes, pyarrow would make room for them in its buffer."""

_BATCH = 1 << 16


class ParquetParts:
    """The rows of a Parquet file in parts, each read when it is asked for.

    A file with enough row groups is read by whole groups, which can be fetched in any order.
    Of any other file the rows come as they lie, page by page.

    Parameters
    ----------
    path
        The file.
    wanted
        The columns to read.
    source
        Names the file in errors.
    num_parts
        Number of parts.
    rows_per_part
        Number of rows in a part at most, instead of ``num_parts``.
    shuffle
        Whether parts come in a random order: "auto" if there are enough row groups.
    seed
        Seeds the random order.
    count
        Where the bytes are counted that the footer takes.
    """

    def __init__(
        self,
        path: Path,
        wanted: Sequence[str],
        source: Source,
        *,
        num_parts: int,
        rows_per_part: int | None,
        shuffle: bool | str,
        seed: int,
        count: ReadCount,
    ) -> None:
        self._path, self._wanted, self._source, self._seed = path, list(wanted), source, seed
        self._metadata: Any = None
        share = path.stat().st_size // (8 * num_parts * len(self._wanted))
        self._buffer = min(max(share, _LEAST_BUFFER), _MOST_BUFFER)
        if path.stat().st_size <= _SMALL:
            self._buffer = 0
        with self._open(count, "is not a whole Parquet file (cut short?)") as file:
            self._metadata = file.metadata
            schema = file.schema_arrow
        for name in wanted:
            check_type(name, schema.field(name).type, source)
        self.num_rows: int = self._metadata.num_rows
        self.num_parts = self._checked(num_parts, rows_per_part)
        group_rows = [
            self._metadata.row_group(group).num_rows
            for group in range(self._metadata.num_row_groups)
        ]
        filled = sum(rows > 0 for rows in group_rows)
        if shuffle is True and filled < self.num_parts:
            raise source.error(
                f"parts cannot come in a random order: the file has {filled} row groups, too few "
                f"for {self.num_parts} parts; ask for {filled} parts or fewer, pass "
                "shuffle='auto', or write the file with smaller row groups"
            )
        self.is_shuffled = shuffle is not False and filled >= self.num_parts
        self._starts = np.cumsum([0, *group_rows])
        self._groups = groups_by_part(group_rows, self.num_parts) if self.is_shuffled else []

    def _checked(self, num_parts: int, rows_per_part: int | None) -> int:
        """The number of parts, if there are enough rows for it."""
        if not self.num_rows:
            raise self._source.error("there are no rows")
        if rows_per_part is not None:
            return -(-self.num_rows // rows_per_part)
        if num_parts > self.num_rows:
            raise self._source.error(
                f"there are only {self.num_rows} rows, too few for {num_parts} parts; ask for "
                f"{self.num_rows} parts or fewer"
            )
        return num_parts

    def read(self, count: ReadCount) -> Generator[tuple[int, int, Any]]:
        """Number, first row and Arrow table of each part."""
        with self._open(count, "cannot be read, the file is damaged") as file:
            yield from (
                self._shuffled(file, count) if self.is_shuffled else self._in_order(file, count)
            )

    @contextmanager
    def _open(self, count: ReadCount, fault: str) -> Iterator[Any]:
        import pyarrow as pa
        from pyarrow import parquet

        try:
            with CountedFile(self._path, count) as raw:
                yield parquet.ParquetFile(
                    pa.PythonFile(raw, mode="r"),
                    metadata=self._metadata,
                    pre_buffer=False,
                    buffer_size=self._buffer,
                    page_checksum_verification=True,
                )
        except (pa.ArrowException, OSError) as error:
            raise self._source.error(f"{fault}: {one_line(error)}") from None

    def _shuffled(self, file: Any, count: ReadCount) -> Iterator[tuple[int, int, Any]]:
        for number in self.order():
            yield number, *self._part(file, number, count)

    def order(self) -> list[int]:
        """Numbers of the parts, as they come if they are shuffled."""
        found: list[int] = np.random.default_rng(self._seed).permutation(self.num_parts).tolist()
        return found

    def __getstate__(self) -> dict[str, Any]:
        """The footer can be larger than a part: whoever it is sent to reads it."""
        return {**self.__dict__, "_metadata": None}

    def read_part(self, number: int, count: ReadCount) -> tuple[int, Any]:
        """First row and Arrow table of one part of a file that is shuffled."""
        with self._open(count, "cannot be read, the file is damaged") as file:
            return self._part(file, number, count)

    def _part(self, file: Any, number: int, count: ReadCount) -> tuple[int, Any]:
        groups = self._groups[number]
        table = file.read_row_groups(groups, columns=self._wanted, use_threads=False)
        count.num_rows += table.num_rows
        return int(self._starts[groups[0]]), table

    def _in_order(self, file: Any, count: ReadCount) -> Iterator[tuple[int, int, Any]]:
        import pyarrow as pa

        sizes = even_sizes(self.num_rows, self.num_parts)
        batches = file.iter_batches(min(sizes[0], _BATCH), columns=self._wanted, use_threads=False)
        row, held = 0, None
        for number, size in enumerate(sizes):
            tables: list[Any] = [] if held is None else [held]
            rows = sum(table.num_rows for table in tables)
            while rows < size:
                batch = next(batches, None)
                if batch is None:
                    raise self._source.error("the file is damaged: it holds too few rows")
                tables.append(pa.Table.from_batches([batch]))
                rows += batch.num_rows
                count.num_rows += batch.num_rows
            table = pa.concat_tables(tables)
            held = table.slice(size) if rows > size else None
            yield number, row, table.slice(0, size)
            row += size


def groups_by_part(group_rows: Sequence[int], parts: int) -> list[list[int]]:
    """Consecutive row groups for each part, none empty and about equally many rows in each.

    Examples
    --------
    >>> groups_by_part([10, 0, 10, 10, 30], 3)
    [[0, 2], [3], [4]]
    """
    groups = [group for group, rows in enumerate(group_rows) if rows]
    middles = np.cumsum(group_rows)[groups] - np.array(group_rows)[groups] / 2
    cuts = [0]
    for part in range(1, parts):
        near = int(np.searchsorted(middles, sum(group_rows) * part / parts))
        cuts.append(min(max(near, cuts[-1] + 1), len(groups) - parts + part))
    return [groups[start:stop] for start, stop in zip(cuts, [*cuts[1:], len(groups)], strict=True)]
