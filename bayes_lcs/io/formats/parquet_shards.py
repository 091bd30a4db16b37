"""A Parquet file in shards: by row groups in a random order, or row by row as it lies."""

from __future__ import annotations

import io
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from bayes_lcs.core.errors import one_line
from bayes_lcs.io.decode import check_type
from bayes_lcs.io.formats.csv_shards import ReadCount
from bayes_lcs.io.raw_table import Source

__all__ = ["ParquetShards", "divide_groups"]

MIN_BUFFER, MAX_BUFFER = 1 << 14, 1 << 18
"""Bytes of a column read at a time: pyarrow asks for 16 KiB to read the header of a page."""

SMALL_FILE = 1 << 16
"""A file of no more bytes is read without a buffer: a damaged page that claims gigabytes would make
pyarrow reserve them."""

BATCH_ROWS = 1 << 16


class ParquetShards:
    """The rows of a Parquet file in shards, each read when it is asked for.

    A file with enough row groups is read by whole groups, in any order. The rows of any other file
    come as they lie, page by page.

    ``rows_per_shard`` is the largest number of rows of a shard, instead of ``num_shards``;
    ``shuffle`` is "auto" for a random order if there are enough row groups; ``count`` counts the
    bytes of the footer.
    """

    def __init__(
        self,
        path: Path,
        columns: Sequence[str],
        source: Source,
        *,
        num_shards: int,
        rows_per_shard: int | None,
        shuffle: bool | str,
        seed: int,
        count: ReadCount,
    ) -> None:
        self._path, self._columns, self._source, self._seed = path, list(columns), source, seed
        self._metadata: Any = None
        size = path.stat().st_size
        share = size // (8 * num_shards * len(self._columns))
        self._buffer = 0 if size <= SMALL_FILE else min(max(share, MIN_BUFFER), MAX_BUFFER)
        with self._open(count, "is not a whole Parquet file (cut short?)") as file:
            self._metadata = file.metadata
            self.schema = file.schema_arrow
        for name in columns:
            check_type(name, self.schema.field(name).type, source)
        self.num_rows: int = self._metadata.num_rows
        self.num_shards = self._check_number(num_shards, rows_per_shard)
        groups = range(self._metadata.num_row_groups)
        group_rows = [self._metadata.row_group(group).num_rows for group in groups]
        filled = sum(rows > 0 for rows in group_rows)
        if shuffle is True and filled < self.num_shards:
            raise source.error(
                f"parts cannot come in a random order: the file has {filled} row groups, too few "
                f"for {self.num_shards} parts; ask for {filled} parts or fewer, pass "
                "shuffle='auto', or write the file with smaller row groups"
            )
        self.is_shuffled = shuffle is not False and filled >= self.num_shards
        self._starts = np.cumsum([0, *group_rows])
        self._groups = divide_groups(group_rows, self.num_shards) if self.is_shuffled else []

    def _check_number(self, num_shards: int, rows_per_shard: int | None) -> int:
        if not self.num_rows:
            raise self._source.error("there are no rows")
        if rows_per_shard is not None:
            return -(-self.num_rows // rows_per_shard)
        if num_shards > self.num_rows:
            raise self._source.error(
                f"there are only {self.num_rows} rows, too few for {num_shards} parts; ask for "
                f"{self.num_rows} parts or fewer"
            )
        return num_shards

    def read(self, count: ReadCount) -> Generator[tuple[int, int, Any]]:
        """Yield number, first row and Arrow table of each shard."""
        with self._open(count, "cannot be read, the file is damaged") as file:
            if not self.is_shuffled:
                yield from self._read_in_order(file, count)
                return
            for number in self.order():
                yield number, *self._read_groups(file, number, count)

    def read_shard(self, number: int, count: ReadCount) -> tuple[int, Any]:
        """Return first row and Arrow table of one shard of a shuffled file."""
        with self._open(count, "cannot be read, the file is damaged") as file:
            return self._read_groups(file, number, count)

    def order(self) -> list[int]:
        """Return the numbers of the shards in their random order."""
        found: list[int] = np.random.default_rng(self._seed).permutation(self.num_shards).tolist()
        return found

    def __getstate__(self) -> dict[str, Any]:
        """Leave the footer out: it can be larger than a shard, and a worker reads it again."""
        return {**self.__dict__, "_metadata": None}

    @contextmanager
    def _open(self, count: ReadCount, fault: str) -> Iterator[Any]:
        import pyarrow as pa
        from pyarrow import parquet

        try:
            with _CountedFile(self._path, count) as raw:
                yield parquet.ParquetFile(
                    pa.PythonFile(raw, mode="r"),
                    metadata=self._metadata,
                    pre_buffer=False,
                    buffer_size=self._buffer,
                    page_checksum_verification=True,
                )
        except (pa.ArrowException, OSError) as error:
            raise self._source.error(f"{fault}: {one_line(error)}") from None

    def _read_groups(self, file: Any, number: int, count: ReadCount) -> tuple[int, Any]:
        groups = self._groups[number]
        table = file.read_row_groups(groups, columns=self._columns, use_threads=False)
        count.num_rows += table.num_rows
        return int(self._starts[groups[0]]), table

    def _read_in_order(self, file: Any, count: ReadCount) -> Iterator[tuple[int, int, Any]]:
        import pyarrow as pa

        size, larger = divmod(self.num_rows, self.num_shards)
        batches = file.iter_batches(
            min(size + 1, BATCH_ROWS), columns=self._columns, use_threads=False
        )
        row, held = 0, pa.table({})
        for number in range(self.num_shards):
            rows = size + (number < larger)
            tables, found = [held] if held.num_rows else [], held.num_rows
            while found < rows:
                batch = next(batches, None)
                if batch is None:
                    raise self._source.error("the file is damaged: it holds too few rows")
                tables.append(pa.Table.from_batches([batch]))
                found += batch.num_rows
                count.num_rows += batch.num_rows
            whole = pa.concat_tables(tables)
            held = whole.slice(rows)
            yield number, row, whole.slice(0, rows)
            row += rows


def divide_groups(group_rows: Sequence[int], num_shards: int) -> list[list[int]]:
    """Return consecutive row groups for each shard, none empty, with about equally many rows.

    Examples
    --------
    >>> divide_groups([10, 0, 10, 10, 30], 3)
    [[0, 2], [3], [4]]
    """
    groups = [group for group, rows in enumerate(group_rows) if rows]
    middles = np.cumsum(group_rows)[groups] - np.array(group_rows)[groups] / 2
    cuts = [0]
    for shard in range(1, num_shards):
        near = int(np.searchsorted(middles, sum(group_rows) * shard / num_shards))
        cuts.append(min(max(near, cuts[-1] + 1), len(groups) - num_shards + shard))
    return [groups[start:stop] for start, stop in zip(cuts, [*cuts[1:], len(groups)], strict=True)]


class _CountedFile(io.FileIO):
    """A file without a buffer that counts the bytes that are read from it."""

    def __init__(self, path: Path, count: ReadCount) -> None:
        super().__init__(path, "rb")
        self._count = count

    def read(self, size: int | None = -1, /) -> Any:
        """Return up to ``size`` bytes, empty at the end of the file."""
        content = super().read(-1 if size is None else size)
        self._count.num_bytes += len(content or b"")
        return content

    def readinto(self, buffer: Any, /) -> Any:
        """Fill a buffer and return the number of bytes."""
        size = super().readinto(buffer)
        self._count.num_bytes += size or 0
        return size
