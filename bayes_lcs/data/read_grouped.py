"""Read a CSV or Parquet file as a `GroupedTable`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from typing import Any

from bayes_lcs.data.build_table import build_table
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
    r"""Read grouped categorical data from a CSV or Parquet file.

    Column types follow the same rule for all kinds of input. A column of a text file is boolean,
    integer or float if every cell that is not missing has this type in canonical form; one cell
    such as ``007`` makes it text. The name of a value is its text, and numbers match by value: 1
    and 1.0 are both ``"1"``. Values and labels are sorted by size if they are numbers, and
    otherwise by their text, unless a Parquet file declares an ordered dictionary; groups are in
    order of first appearance. Any problem in the file is a `DataError` with line and column.

    A first column without a name, as written by pandas and R, is an index. It is ignored unless an
    option names it.

    Parameters
    ----------
    path
        A text file (``.csv``, ``.tsv``, ``.txt``, …, plain or gzipped) or a Parquet file.
    group
        The column with the group (user, shop, task) of each row. Rows without a group are dropped
        with a warning.
    label
        The column to predict. Missing cells are missing labels.
    features
        The feature columns, in this order; by default all other columns except ``ignore``.
    ignore
        Columns to ignore.
    missing_values
        Markers of missing values in features and label, or a mapping from column to markers (other
        columns keep the default). By default empty cells and NA, N/A, NaN, NULL and ?, in upper or
        lower case, with a note that lists them; in the group column only empty cells, because an
        identifier may be "NA". Nulls of Parquet and NaN are always missing.
    bins
        Number of quantile bins of numeric columns: ``{"age": 4}``. Numbers are binned only on
        request.
    edges
        Bin edges of numeric columns: ``{"age": [18, 65]}`` defines the bins below 18, from 18 up to
        65, and from 65 on.
    values
        All values of a column in the desired order, including values that do not occur; any other
        cell is an error.
    label_values
        The same for the label.
    categorical
        Columns to treat as categorical although they have many different numbers or look like an
        identifier; True for all.
    encoding
        Encoding of a text file.
    delimiter
        Separator of the cells of a text file. By default it is detected in the header: comma,
        semicolon, tab or bar.
    header
        Whether a text file has a header. False names the columns ``column_1``, ``column_2``, …; a
        list provides the names for a file without a header.

    Warns
    -----
    DataWarning
        If rows without a group are dropped.
    DataNote
        If markers are treated as missing, or an index column is ignored.

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
    return build_table(
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
