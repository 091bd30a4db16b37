"""`read_grouped`: a CSV or Parquet file becomes a `GroupedTable`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from typing import Any

from bayes_lcs.data.build_table import assemble
from bayes_lcs.data.column_source import open_file_columns
from bayes_lcs.data.grouped_table import GroupedTable
from bayes_lcs.io.options import CsvOptions, MissingValues, as_list

__all__ = ["read_grouped"]


def read_grouped(
    path: str | PathLike[str],
    *,
    group: str,
    label: str,
    features: Sequence[str] | None = None,
    ignore: Iterable[str] = (),
    missing_values: MissingValues = None,
    bins: Mapping[str, int] | None = None,
    edges: Mapping[str, Sequence[float]] | None = None,
    values: Mapping[str, Sequence[Any]] | None = None,
    label_values: Sequence[Any] | None = None,
    categorical: bool | Iterable[str] = (),
    encoding: str = "utf-8",
    delimiter: str | None = None,
    header: bool | Sequence[str] = True,
) -> GroupedTable:
    r"""Read categorical data in groups from a CSV or Parquet file.

    The type of each column follows one rule for all kinds of input. A column of a text file is
    boolean, integer or float if every cell that is not missing is one in canonical form; one cell
    such as ``007`` makes it text. Values are named by their text, and numbers match by value: 1 and
    1.0 are both ``"1"``. Values and labels are coded by size if they are numbers, else in the order
    of their text, unless a Parquet file declares an ordered dictionary; groups are coded in order
    of first appearance. Whatever is wrong with the file is a `DataError` that names line and
    column.

    A first column without a name, as pandas and R write it, is an index. It is not used unless an
    option names it.

    Parameters
    ----------
    path
        A text file (``.csv``, ``.tsv``, ``.txt``, …, plain or gzipped) or a Parquet file.
    group
        The column that says to which group (user, shop, task) a row belongs. Rows without a group
        are left out with a warning.
    label
        The column to be predicted. Missing cells are missing labels.
    features
        The columns to predict from, in this order; all others but ``ignore``, unless given.
    ignore
        Columns to leave out.
    missing_values
        Cells that mean "missing" in features and label, or a mapping from column to cells (columns
        not in it keep the default). By default empty cells and the markers NA, N/A, NaN, NULL
        and ?, in any case, with a note that says where; in the group column only empty cells,
        because an identifier may be called "NA". Parquet's nulls and NaN are always missing.
    bins
        Number of quantile bins for columns of numbers: ``{"age": 4}``. Numbers are never binned
        unless asked for.
    edges
        Bin edges for columns of numbers: ``{"age": [18, 65]}`` makes the bins below 18, from 18
        up to 65, and 65 and more.
    values
        All values of a column in the order wanted, also values that do not occur; any other cell
        is then an error.
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

    Warns
    -----
    DataWarning
        If rows without a group are left out.
    DataNote
        If markers are taken as missing, or an index column is not used.

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
    columns = open_file_columns(
        path,
        CsvOptions(encoding, delimiter, header),
        expected=[str(name) for name in (group, label, *as_list(features or ()))],
    )
    return assemble(
        columns,
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
