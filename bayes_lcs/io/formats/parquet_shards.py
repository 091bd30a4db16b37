"""Read a Parquet file in shards: of random row groups, as one shard, or in file order."""

from __future__ import annotations

import io
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from bayes_lcs.core.errors import one_line, plural
from bayes_lcs.io.decode import check_type
from bayes_lcs.io.formats.csv_shards import ChooseNumber, RawShard, ReadCount, deal_blocks
from bayes_lcs.io.raw_table import Source

__all__ = ["ParquetShards"]

MIN_BUFFER, MAX_BUFFER = 1 << 14, 1 << 18
"""Bytes of a column read at a time; pyarrow reads 16 KiB for the header of a page."""

SMALL_FILE = 1 << 16
"""Maximum size of a file that is read without a buffer: pyarrow would allocate the size that a
damaged page claims."""

BATCH_ROWS = 1 << 16

GROUPS_PER_SHARD = 32
"""Row groups per shard if their number is not given; fewer do not represent a sorted file."""

MIN_GROUPS = 4
"""The same for a file that is too large to be read at once."""

SAMPLED_GROUPS = 8
"""Number of row groups in which labels are counted."""

MIN_SHARDS = 16
"""Minimum number of shards of row groups; with fewer, reading could not stop early."""

MAX_CELLS = 1 << 25
"""Maximum number of cells of a file that is read at once if it has too few row groups."""


class ParquetShards:
    """Shards of the rows of a Parquet file, which are read on demand.

    Neighbouring row groups are dealt to different shards at random. A file with too few row groups
    is one shard, ``is_whole``, if it has at most `MAX_CELLS` cells, and is otherwise read in file
    order, page by page.

    ``num_shards`` is a number, or a function that returns it for the number of rows and of distinct
    labels; ``rows_per_shard`` is the maximum number of rows per shard, instead of ``num_shards``;
    ``shuffle`` is "auto" for a random order if possible; ``count`` counts the bytes of the
    footer.
    """

    def __init__(
        self,
        path: Path,
        columns: Sequence[str],
        label: str,
        source: Source,
        *,
        num_shards: int | ChooseNumber,
        rows_per_shard: int | None,
        shuffle: bool | str,
        seed: int,
        count: ReadCount,
    ) -> None:
        self._path, self._columns, self._source, self._seed = path, list(columns), source, seed
        self._metadata: Any = None
        size = path.stat().st_size
        share = size // (8 * (num_shards if isinstance(num_shards, int) else 64) * len(columns))
        self._buffer = 0 if size <= SMALL_FILE else min(max(share, MIN_BUFFER), MAX_BUFFER)
        with self._open(count, "is not a complete Parquet file") as file:
            self._metadata = file.metadata
            self.schema = file.schema_arrow
        for name in columns:
            check_type(name, self.schema.field(name).type, source)
        self.num_rows: int = self._metadata.num_rows
        if not self.num_rows:
            raise source.error("there are no rows")
        groups = range(self._metadata.num_row_groups)
        rows = np.array([self._metadata.row_group(group).num_rows for group in groups])
        self._starts, filled = np.cumsum([0, *rows]), np.flatnonzero(rows)
        self.num_shards = self._number(num_shards, rows_per_shard, label, filled, count)
        enough = len(filled) >= self.num_shards > 1
        is_small = self.num_rows * len(self._columns) <= MAX_CELLS
        if not isinstance(num_shards, int) and rows_per_shard is None and self.num_shards > 1:
            # Shards of many groups are similar even if each group has only one label.
            per_shard = GROUPS_PER_SHARD if is_small else MIN_GROUPS
            fewer = min(self.num_shards, len(filled) // per_shard)
            enough = fewer >= MIN_SHARDS
            self.num_shards = fewer if enough and shuffle is not False else self.num_shards
        self.is_shuffled = shuffle is not False and enough
        self.is_whole = shuffle is not False and not enough and is_small
        if shuffle is True and not self.is_shuffled and not self.is_whole:
            raise source.error(
                f"parts cannot be read in random order: the file has "
                f"{plural(len(filled), 'row group')}, too few for {self.num_shards} parts, and is "
                f"too large to be read at once; ask for {plural(len(filled), 'part')} or fewer, "
                "pass shuffle='auto', or write the file with smaller row groups"
            )
        if self.is_whole:
            self.num_shards = 1
        dealt = deal_blocks(filled, self.num_shards, np.random.default_rng(seed)) if enough else ()
        self._groups = [np.sort(groups).tolist() for groups in dealt]
        self._shard_starts = np.cumsum([0, *(int(rows[own].sum()) for own in self._groups)])
        self.source = replace(source, row_of=self._row_of if self.is_shuffled else None)

    def _number(
        self,
        num_shards: int | ChooseNumber,
        rows_per_shard: int | None,
        label: str,
        filled: Any,
        count: ReadCount,
    ) -> int:
        if rows_per_shard is not None:
            return -(-self.num_rows // rows_per_shard)
        if not isinstance(num_shards, int):
            if num_shards(self.num_rows, 1) == 1:
                return 1
            rng = np.random.default_rng(self._seed)
            some = np.sort(rng.permutation(filled)[:SAMPLED_GROUPS]).tolist()
            with self._open(count, "cannot be read, the file is damaged") as file:
                labels = file.read_row_groups(some, columns=[label], use_threads=False)
            return num_shards(self.num_rows, len(labels.column(0).unique()))
        if num_shards > self.num_rows:
            raise self._source.error(
                f"only {plural(self.num_rows, 'row')}, too few for {num_shards} parts; ask for "
                f"{plural(self.num_rows, 'part')} or fewer"
            )
        return num_shards

    def read(self, count: ReadCount) -> Generator[RawShard]:
        """Yield the shards."""
        with self._open(count, "cannot be read, the file is damaged") as file:
            if not self.is_shuffled:
                yield from self._read_in_order(file, count)
                return
            for number in range(self.num_shards):
                yield self._read_groups(file, number, count)

    def read_shard(self, number: int, count: ReadCount) -> RawShard:
        """Return one shard of a shuffled file."""
        with self._open(count, "cannot be read, the file is damaged") as file:
            return self._read_groups(file, number, count)

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without the footer, which can be large and is read again by workers."""
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

    def _row_of(self, row: int) -> int:
        """Return the number in the file of a row that is counted in reading order."""
        number = int(np.searchsorted(self._shard_starts, row, side="right")) - 1
        row -= int(self._shard_starts[number])
        for group in self._groups[number]:
            start, stop = (int(edge) for edge in self._starts[group : group + 2])
            if row < stop - start:
                return start + row
            row -= stop - start
        raise AssertionError("a shard has as many rows as its row groups")

    def _read_groups(self, file: Any, number: int, count: ReadCount) -> RawShard:
        groups = self._groups[number]
        table = file.read_row_groups(groups, columns=self._columns, use_threads=False)
        count.num_rows += table.num_rows
        blocks = np.repeat(groups, np.diff(self._starts)[groups])
        return RawShard(number, int(self._shard_starts[number]), table, blocks)

    def _read_in_order(self, file: Any, count: ReadCount) -> Iterator[RawShard]:
        import pyarrow as pa

        size, larger = divmod(self.num_rows, self.num_shards)
        batches = file.iter_batches(
            min(size + 1, BATCH_ROWS), columns=self._columns, use_threads=False
        )
        row, buffer = 0, pa.table({})
        for number in range(self.num_shards):
            rows = size + (number < larger)
            tables, found = [buffer] if buffer.num_rows else [], buffer.num_rows
            while found < rows:
                batch = next(batches, None)
                if batch is None:
                    raise self._source.error("the file is damaged: it has too few rows")
                tables.append(pa.Table.from_batches([batch]))
                found += batch.num_rows
                count.num_rows += batch.num_rows
            whole = pa.concat_tables(tables)
            buffer = whole.slice(rows)
            yield RawShard(number, row, whole.slice(0, rows))
            row += rows


class _CountedFile(io.FileIO):
    """Unbuffered file that counts the bytes that are read from it."""

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
