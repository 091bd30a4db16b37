"""Estimate the size of a table from its first rows and its footer, before it is read."""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

from bayes_lcs.io.formats.csv import BLOCK_BYTES
from bayes_lcs.io.formats.parquet import open_streaming

__all__ = ["Extent", "table_extent"]

READ_AHEAD_BYTES = 4 * BLOCK_BYTES
"""Bytes of text in memory while a file is read."""

SAMPLE_BYTES, SAMPLE_ROWS = 1 << 20, 1000
"""Sample size for estimating the size of a row: bytes of text, and rows of a Parquet file."""


@dataclass(frozen=True)
class Extent:
    """Estimated size of a table.

    Attributes
    ----------
    rows, columns
        Number of rows and columns of all files together.
    cell_bytes
        Bytes of all cells in memory after decoding.
    piece_bytes
        Bytes of the cells that are decoded at a time: some mebibytes of text, or the largest row
        group.
    is_text
        Whether a file is text (CSV) and not Parquet.
    file_bytes
        Bytes on disk.
    """

    rows: int
    columns: int
    cell_bytes: int
    piece_bytes: int
    is_text: bool
    file_bytes: int = 0

    @property
    def cells(self) -> int:
        """Number of cells, rows times columns."""
        return self.rows * self.columns

    @property
    def piece_cells(self) -> float:
        """Number of cells that are decoded at a time."""
        return self.cells * self.piece_bytes / max(self.cell_bytes, 1)


def table_extent(path: str | PathLike[str], ignore: Iterable[str] = ()) -> Extent:
    r"""Estimate the size of a file, or of all files of a folder; zero for files without a table.

    Parameters
    ----------
    path
        A CSV or Parquet file, plain or gzipped, or a folder of them.
    ignore
        Columns that will not be read.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "a.csv").write_text("a,b\n" + "1,2\n" * 99)
    ...     extent = table_extent(Path(folder, "a.csv"))
    >>> extent.rows, extent.columns
    (100, 2)
    """
    path = Path(path)
    files = [file for file in path.iterdir() if file.is_file()] if path.is_dir() else [path]
    found = [_file_extent(file, len(set(ignore))) for file in files]
    return Extent(
        sum(one.rows for one in found),
        max((one.columns for one in found), default=0),
        sum(one.cell_bytes for one in found),
        max((one.piece_bytes for one in found), default=0),
        any(one.is_text for one in found),
        sum(file.stat().st_size for file in files),
    )


def _file_extent(file: Path, ignored: int) -> Extent:
    import pyarrow as pa

    try:
        with file.open("rb") as stream:
            start = stream.read(SAMPLE_BYTES)
        if start.startswith(b"PAR1"):
            return _parquet_extent(file, ignored)
        return _text_extent(start, file.stat().st_size, ignored)
    except (OSError, zlib.error, pa.ArrowException):
        return Extent(0, 0, 0, 0, False)  # reading the file will raise the error


def _text_extent(text: bytes, size: int, ignored: int) -> Extent:
    if text.startswith(b"\x1f\x8b"):
        unpacker = zlib.decompressobj(wbits=31)
        packed = len(text)
        text = unpacker.decompress(text, SAMPLE_BYTES)
        packed -= len(unpacker.unconsumed_tail) + len(unpacker.unused_data)
        size = size * len(text) // max(packed, 1)
    lines = max(text.count(b"\n"), text.count(b"\r"), 1)
    header = text.splitlines()[0] if text else b""
    columns = 1 + max(header.count(mark) for mark in (b",", b";", b"\t", b"|"))
    kept = max(columns - ignored, 1)
    rows = max(size * lines // max(len(text), 1), 1)
    piece = min(size, READ_AHEAD_BYTES)
    return Extent(rows, kept, size * kept // columns, piece * kept // columns, True)


def _parquet_extent(file: Path, ignored: int) -> Extent:
    with open_streaming(file) as table:
        about = table.metadata
        first = next(table.iter_batches(SAMPLE_ROWS), None)
    kept = max(about.num_columns - ignored, 1)
    row_bytes = 0.0
    if first is not None:
        row_bytes = first.nbytes / max(first.num_rows, 1) * kept / max(about.num_columns, 1)
    largest = max((about.row_group(i).num_rows for i in range(about.num_row_groups)), default=0)
    return Extent(
        about.num_rows, kept, int(about.num_rows * row_bytes), int(largest * row_bytes), False
    )
