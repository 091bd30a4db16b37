"""How large a table is, told from its first rows and its footer, before it is read."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import IO, Any

from bayes_lcs.io.formats.csv import BLOCK_BYTES
from bayes_lcs.io.formats.parquet import open_streaming

__all__ = ["Extent", "table_extent"]

READ_AHEAD_BYTES = 4 * BLOCK_BYTES
"""Text that is in memory at once while a file is read."""

SAMPLE_BYTES = 1 << 20
"""Text that is looked at."""
SAMPLE_ROWS = 1000
"""Rows of a Parquet file that are looked at."""


@dataclass(frozen=True)
class Extent:
    """About how large a table is.

    Attributes
    ----------
    rows, columns
        Of all its files together; the rows of text are estimated from the first of them.
    cell_bytes
        All cells as they lie in memory once they are decoded: text as text, numbers as numbers.
    piece_bytes
        The same for what is decoded together where the table is read in pieces: some mebibytes of
        text, or the largest row group.
    is_text
        Whether it is text (CSV), and not Parquet.
    file_bytes
        On disk.
    """

    rows: int
    columns: int
    cell_bytes: int
    piece_bytes: int
    is_text: bool
    file_bytes: int = 0

    @property
    def cells(self) -> int:
        """Rows times columns."""
        return self.rows * self.columns

    @property
    def piece_cells(self) -> float:
        """Cells of a piece."""
        return self.cells * self.piece_bytes / max(self.cell_bytes, 1)


MOST_PACKED = 1032
"""Bytes that one byte of a gzip file can stand for."""


def table_extent(path: str | PathLike[str], ignore: Iterable[str] = ()) -> Extent:
    r"""The extent of a file, or of all files of a folder; nothing for what is no table.

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
    files = sorted(file for file in path.iterdir() if file.is_file()) if path.is_dir() else [path]
    ignored = len(set(ignore))
    found = [_extent(file, ignored) for file in files]
    return Extent(
        sum(one.rows for one in found),
        max((one.columns for one in found), default=0),
        sum(one.cell_bytes for one in found),
        max((one.piece_bytes for one in found), default=0),
        any(one.is_text for one in found),
        sum(file.stat().st_size for file in files),
    )


def _extent(file: Path, ignored: int) -> Extent:
    try:
        with file.open("rb") as stream:
            if stream.read(4) == b"PAR1":
                return _of_parquet(file, ignored)
            stream.seek(0)
            return _of_text(stream, file.stat().st_size, ignored)
    except OSError:
        return Extent(0, 0, 0, 0, False)  # said where the file is read


def _of_text(stream: IO[bytes], size: int, ignored: int) -> Extent:
    import gzip
    import zlib

    packed = stream.read(2) == b"\x1f\x8b"
    stream.seek(0)
    if not packed:
        text = stream.read(SAMPLE_BYTES)
    else:
        try:
            text = gzip.GzipFile(fileobj=stream).read(SAMPLE_BYTES)
        except (OSError, EOFError, zlib.error):
            text = b""
        if not text:
            return Extent(0, 0, 0, 0, True)  # said where the file is read
        swollen = size * len(text) // max(stream.tell(), 1)
        # The end of a gzip file tells how much was packed, but for whole 4 GiB.
        stream.seek(-4, 2)
        told = int.from_bytes(stream.read(4), "little")
        # What is damaged may tell anything, but nothing is packed tighter than this.
        told = min(told, MOST_PACKED * size)
        size = max(told, swollen if swollen >> 32 else 0, len(text))
    lines = max(text.count(b"\n"), text.count(b"\r"), 1)
    first = text.splitlines()[0] if text else b""
    columns = 1 + max(first.count(mark) for mark in (b",", b";", b"\t", b"|"))
    kept = max(columns - ignored, 1)
    cells = size * kept // columns
    piece = min(size, READ_AHEAD_BYTES) * kept // columns
    return Extent(max(size * lines // max(len(text), 1), 1), kept, cells, piece, True)


def _of_parquet(file: Path, ignored: int) -> Extent:
    import pyarrow as pa

    try:
        with open_streaming(file) as table:
            about: Any = table.metadata
            first = next(table.iter_batches(SAMPLE_ROWS), None)
    except (pa.ArrowException, OSError):
        return Extent(0, 0, 0, 0, False)  # said where the file is read
    columns = max(about.num_columns, 1)
    kept = max(columns - ignored, 1)
    width = 0.0 if first is None else first.nbytes / max(first.num_rows, 1) * kept / columns
    groups = [about.row_group(place).num_rows for place in range(about.num_row_groups)]
    largest = max(groups, default=0)
    return Extent(about.num_rows, kept, int(about.num_rows * width), int(largest * width), False)
