"""Numbers of CSV and Parquet files, piece by piece, in the order in which they lie."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from os import PathLike
from typing import TYPE_CHECKING

from bayes_lcs.data.file_source import FileSource

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["number_blocks"]


def number_blocks(
    path: str | PathLike[str],
    *,
    features: Sequence[str] | None = None,
    ignore: Iterable[str] = (),
    encoding: str = "utf-8",
    delimiter: str | None = None,
    header: bool | Sequence[str] = True,
) -> Generator[pd.DataFrame]:
    r"""Frames of numbers, for whatever goes over rows once: streams, online clusterers.

    Parameters
    ----------
    path
        A CSV or Parquet file, or a folder of them with the same columns.
    features, ignore
        Columns to read, all by default, and columns to leave out.
    encoding, delimiter, header
        Of CSV files; see :func:`bayes_lcs.row_source`.

    Yields
    ------
    DataFrame
        Some thousand rows. A cell that is no number is an error that names file, line and column.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import bayes_lcs as bl
    >>> stream = bl.CoresetStream(k=1, size=10, random_state=0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "rows.csv").write_text("a,b\n1,2\n3,4\n")
    ...     for block in bl.number_blocks(f"{folder}/rows.csv"):
    ...         stream.push(block)
    >>> stream.num_rows
    2
    """
    source = FileSource(
        path,
        features=features,
        ignore=ignore,
        kind="numbers",
        encoding=encoding,
        delimiter=delimiter,
        header=header,
    )
    return source.number_blocks()
