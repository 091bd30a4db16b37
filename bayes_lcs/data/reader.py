"""`read_grouped`: a CSV or Parquet file becomes a `GroupedTable`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path

from bayes_lcs.data.assemble import assemble
from bayes_lcs.data.columns import RawTable
from bayes_lcs.data.csv_reader import raw_from_csv
from bayes_lcs.data.errors import DataError
from bayes_lcs.data.parquet_reader import raw_from_parquet
from bayes_lcs.data.table import GroupedTable

__all__ = ["raw_from_file", "read_grouped"]

_NO_TABLES = {
    b"PK\x03\x04": "is a zip or Excel file; unpack it or save the sheet as CSV",
    b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1": "is an old Excel file; save the sheet as CSV",
    b"\x89HDF\r\n\x1a\n": "is a netCDF or HDF5 file; save its table as CSV or Parquet",
    b"\x89PNG\r\n\x1a\n": "is a picture, not a table",
    b"%PDF-": "is a PDF file, not a table; save the table as CSV",
    b"\xfd7zXZ\x00": "is packed with xz; unpack it first (gzip is read as it is)",
    b"\x28\xb5\x2f\xfd": "is packed with zstd; unpack it first (gzip is read as it is)",
    b"BZh91AY&SY": "is packed with bzip2; unpack it first (gzip is read as it is)",
    b"<!doctype": "is a web page, not a table; did a download fail?",
    b"<html": "is a web page, not a table; did a download fail?",
}
"""How files begin that are taken for tables by mistake."""

_MAGIC_LENGTH = 10


def read_grouped(
    path: str | PathLike[str],
    *,
    group: str,
    label: str,
    features: Sequence[str] | None = None,
    ignore: Iterable[str] = (),
    missing_values: Iterable[str] | Mapping[str, Iterable[str]] = ("",),
    bins: Mapping[str, int] | None = None,
    edges: Mapping[str, Sequence[float]] | None = None,
    values: Mapping[str, Sequence[str]] | None = None,
    label_values: Sequence[str] | None = None,
    categorical: bool | Iterable[str] = (),
    encoding: str = "utf-8",
    delimiter: str | None = None,
    header: bool | Sequence[str] = True,
) -> GroupedTable:
    r"""Read categorical data in groups from a CSV or Parquet file.

    The cells of a text file are names and nothing else: ``007`` and ``NA`` stay what they are,
    and only cells listed in ``missing_values`` are missing. Values and labels are coded in the
    order of their numbers if all are numbers, else of their text; groups in order of first
    appearance. Whatever is wrong with the file is a `DataError` that names line and column.

    Parameters
    ----------
    path
        A text file (``.csv``, ``.tsv``, ``.txt``, …, plain or gzipped) or a Parquet file.
    group
        The column that says to which group (user, shop, task) a row belongs. No cell of it may
        be missing.
    label
        The column to be predicted. Missing cells are missing labels.
    features
        The columns to predict from, in this order; all others but ``ignore``, unless given.
    ignore
        Columns to leave out.
    missing_values
        Cells that mean "missing", for all columns, or a mapping from column to cells (columns
        not in it keep the default, the empty cell). Parquet's nulls and NaN are always missing.
    bins
        Number of quantile bins for columns of numbers: ``{"age": 4}``. Numbers are never binned
        unless asked for.
    edges
        Bin edges for columns of numbers: ``{"age": [18, 65]}`` makes the bins below 18, from 18
        up to 65, and 65 and more.
    values
        All values of a column in the order wanted; any other cell is then an error.
    label_values
        The same for the label.
    categorical
        Columns to be taken as names although they hold many different numbers or look like an
        identifier; True for all.
    encoding
        Encoding of a text file.
    delimiter
        What separates the cells of a text file. Unless given, it is told from the header: a
        comma, semicolon, tab or bar.
    header
        Whether a text file begins with a line of column names. False names the columns
        ``column_1``, ``column_2``, …; a list gives the names of a file without such a line.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "meetings.csv")
    ...     _ = path.write_text("user,hour,decision\nann,9,yes\nann,10,no\nbob,,yes\n")
    ...     table = read_grouped(path, group="user", label="decision")
    >>> table.values, table.features.tolist()
    ((('9', '10'),), [[0], [1], [-1]])
    """
    raw = raw_from_file(
        path,
        encoding=encoding,
        delimiter=delimiter,
        header=header,
        expected=(group, label, *(features or ())),
    )
    return assemble(
        raw,
        group=group,
        label=label,
        features=features,
        ignore=ignore,
        missing_values=missing_values,
        bins=bins,
        edges=edges,
        values=values,
        label_values=label_values,
        categorical=categorical,
    )


def raw_from_file(
    path: str | PathLike[str],
    *,
    encoding: str = "utf-8",
    delimiter: str | None = None,
    header: bool | Sequence[str] = True,
    expected: Sequence[str] = (),
) -> RawTable:
    """The columns of a file, whose kind its first bytes tell."""
    path = Path(path).expanduser()
    if path.is_dir():
        raise DataError("is a directory; give the path of one file", file=str(path))
    try:
        with path.open("rb") as stream:
            magic = stream.read(_MAGIC_LENGTH)
    except FileNotFoundError:
        raise DataError("there is no such file", file=str(path)) from None
    except OSError as error:
        raise DataError(f"cannot be opened: {error.strerror}", file=str(path)) from None
    if not magic:
        raise DataError("the file is empty", file=path.name)
    if magic.startswith(b"PAR1") or path.suffix.lower() in (".parquet", ".pq"):
        return raw_from_parquet(path)
    for beginning, advice in _NO_TABLES.items():
        if magic.lower().startswith(beginning.lower()):
            raise DataError(advice, file=path.name)
    return raw_from_csv(
        path, encoding=encoding, delimiter=delimiter, header=header, expected=expected
    )
