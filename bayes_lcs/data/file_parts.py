"""A labelled table read from one file in disjoint parts, so that reading can stop early."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from numpy.typing import NDArray

from bayes_lcs.data.columns import RawTable, Source
from bayes_lcs.data.counted_file import ReadCount
from bayes_lcs.data.csv_parts import CsvParts
from bayes_lcs.data.csv_pieces import CsvFormat
from bayes_lcs.data.csv_scan import is_packed, read_header
from bayes_lcs.data.errors import DataError
from bayes_lcs.data.parquet_parts import ParquetParts
from bayes_lcs.data.part_columns import PartColumns
from bayes_lcs.data.reader import raw_from_file
from bayes_lcs.data.selection import as_list, check_option, missing_tokens, require_column

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["FileParts", "Part", "PartReader"]


@dataclass(frozen=True)
class Part:
    """Consecutive rows of a file.

    Parameters
    ----------
    number
        The place of the part in the file, counted from 0.
    frame
        The features: columns of numbers, NaN where they are missing, and columns of text, None
        where it is missing.
    labels
        The labels, none of them missing: text from a CSV file; from a Parquet file text as well,
        if the column holds text or a dictionary, else its numbers, truth values or dates.
    first_row
        The row of the file at which the part starts, counted from 0 without the header.
    """

    number: int
    frame: pd.DataFrame
    labels: NDArray
    first_row: int


class _Placed(Protocol):
    """Whatever knows at which row of the file it starts."""

    @property
    def first_row(self) -> int: ...


@dataclass(frozen=True)
class PartReader:
    """Reads parts of a Parquet file in any order."""

    parts: ParquetParts
    columns: PartColumns
    source: Source

    def read(self, number: int, count: ReadCount) -> Part:
        """One part; what it takes is counted."""
        first_row, table = self.parts.read_part(number, count)
        labels = self.columns.labels(table, first_row)
        return Part(number, self.columns.frame(table, first_row), labels, first_row)

    def error(self, part: _Placed, row_in_part: int, column: str | None, message: str) -> DataError:
        """The error for one cell, which names the file, the column and the row."""
        return self.source.error(message, row=part.first_row + row_in_part, column=column)


class FileParts:
    r"""The rows of one CSV or Parquet file in parts, of which no more is read than is asked for.

    Parts are disjoint and make up the whole file. They come in the order in which they lie, but
    for a Parquet file of at least as many row groups as parts: its parts are made of whole row
    groups and come in a random order. A part is read when the iterator gets there. What is wrong
    with its rows is a `DataError` that names line and column; what is wrong with rows that were
    not read is never noticed.

    The parts of a CSV file hold about equally many bytes, since nobody knows its number of rows.
    Up to an eighth of a part, and at least as many rows as there are parts to come, are read in
    advance, and a file of less than 64 KiB is read at once and cut into equally many rows. Of a
    Parquet file whole pages are read, and 16 KiB of each column at least: stopping saves nothing
    within one page.

    Whether a CSV column holds numbers or names is told from the first part: numbers if all its
    cells are, missing ones aside. A Parquet column tells it by its type.

    Parameters
    ----------
    path
        A text file, plain or gzipped, or a Parquet file.
    label
        The column to be predicted. No cell of it may be missing.
    features
        The columns to predict from, in this order; all others but ``ignore``, unless given.
    ignore
        Columns to leave out.
    num_parts
        Number of parts.
    rows_per_part
        Number of rows in a part, instead of ``num_parts``: at most so many of a Parquet file. The
        first part of a CSV file has exactly so many; the bytes they take tell how many parts
        there are, and later parts go by bytes.
    missing_values
        Cells that mean "missing", for all columns, or a mapping from column to cells. Parquet's
        nulls and NaN are always missing.
    categorical
        Columns to be taken as names although they hold numbers; True for all.
    encoding, delimiter, header
        Of a text file; see `bayes_lcs.read_grouped`.
    shuffle
        True insists on a random order, False on the order of the file; "auto" shuffles if that
        is possible.
    seed
        Seeds the random order.

    Attributes
    ----------
    feature_names
        The columns of the features.
    is_shuffled
        Whether parts come in a random order.
    num_rows
        Rows of the whole file, if its footer tells, else None.
    file_bytes
        Size of the file.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "people.csv")
    ...     _ = path.write_text("age,town,buys\n31,Ulm,no\n,Bonn,yes\n45,Ulm,yes\n")
    ...     parts = FileParts(path, label="buys", num_parts=2)
    ...     first = next(iter(parts))
    ...     print(parts.error(first, 1, "age", "is too young"))
    people.csv, line 3, column 'age': is too young
    >>> first.frame["age"].tolist(), first.frame["town"].tolist(), first.labels.tolist()
    ([31.0, nan], ['Ulm', 'Bonn'], ['no', 'yes'])
    >>> parts.name_columns
    ['town']
    """

    def __init__(
        self,
        path: str | PathLike[str],
        *,
        label: str,
        features: Sequence[str] | None = None,
        ignore: Iterable[str] = (),
        num_parts: int = 64,
        rows_per_part: int | None = None,
        missing_values: Iterable[str] | Mapping[str, Iterable[str]] = ("",),
        categorical: bool | Iterable[str] = (),
        encoding: str = "utf-8",
        delimiter: str | None = None,
        header: bool | Sequence[str] = True,
        shuffle: bool | str = "auto",
        seed: int = 0,
    ) -> None:
        _check_options(num_parts, rows_per_part, shuffle)
        path = Path(path).expanduser()
        expected = (label, *as_list(features or ()))
        raw = raw_from_file(
            path, encoding=encoding, delimiter=delimiter, header=header, expected=expected
        )
        self.feature_names = _choose(raw, label, features, ignore)
        self.file_bytes = path.stat().st_size
        self._count = ReadCount()
        self._source = raw.source
        wanted = (*self.feature_names, label)
        is_csv = raw.source.line_of is not None
        self._columns = PartColumns(
            self.feature_names,
            label,
            missing=missing_tokens(missing_values, wanted, raw),
            categorical=_named(categorical, self.feature_names, raw.source),
            source=raw.source,
            is_text=is_csv,
        )
        self._parts: CsvParts | ParquetParts
        if is_csv:
            if shuffle is True:
                raise raw.source.error(
                    "parts cannot come in a random order: a CSV file is read from its beginning "
                    "to its end; pass shuffle=False if its rows lie in a random order anyway, or "
                    f"store it as Parquet with at least {num_parts} row groups"
                )
            form = _csv_format(path, raw, wanted, encoding, delimiter, header is True, expected)
            self._parts = CsvParts(form, num_parts, rows_per_part)
        else:
            self._parts = ParquetParts(
                path,
                wanted,
                raw.source,
                num_parts=num_parts,
                rows_per_part=rows_per_part,
                shuffle=shuffle,
                seed=seed,
                count=self._count,
            )
        self.is_shuffled: bool = self._parts.is_shuffled
        self.num_rows: int | None = self._parts.num_rows

    @property
    def num_parts(self) -> int:
        """Number of parts; with ``rows_per_part``, that of a CSV file is 0 before the first."""
        return self._parts.num_parts

    @property
    def name_columns(self) -> list[str]:
        """The features that hold names; known after the first part."""
        return self._columns.name_columns

    @property
    def rows_read(self) -> int:
        """Rows that were read so far, in all passes; a few may belong to a part to come."""
        return self._count.num_rows

    @property
    def bytes_read(self) -> int:
        """Bytes of the file that were read so far, in all passes.

        Counted where the file is read. Not counted is the look at the first lines, or at the
        names of Parquet columns, that making this object takes.
        """
        return self._count.num_bytes

    def reader(self) -> PartReader | None:
        """What reads any part, wherever it is sent; None if parts only come one after the other."""
        if not isinstance(self._parts, ParquetParts) or not self.is_shuffled:
            return None
        return PartReader(self._parts, self._columns, self._source)

    def count_more(self, num_rows: int, num_bytes: int) -> None:
        """Something was read elsewhere."""
        self._count.num_rows += num_rows
        self._count.num_bytes += num_bytes

    def __iter__(self) -> Iterator[Part]:
        with closing(self._parts.read(self._count)) as tables:
            for number, first_row, table in tables:
                labels = self._columns.labels(table, first_row)
                yield Part(number, self._columns.frame(table, first_row), labels, first_row)

    def error(self, part: _Placed, row_in_part: int, column: str | None, message: str) -> DataError:
        """The error for one cell, which names the file, the column and the line or row."""
        return self._source.error(message, row=part.first_row + row_in_part, column=column)


def _check_options(num_parts: int, rows_per_part: int | None, shuffle: bool | str) -> None:
    if num_parts < 1:
        raise ValueError(f"num_parts must be at least 1, got {num_parts}")
    if rows_per_part is not None and rows_per_part < 1:
        raise ValueError(f"rows_per_part must be at least 1, got {rows_per_part}")
    if shuffle not in (True, False, "auto"):
        raise ValueError(f"shuffle must be True, False or 'auto', got {shuffle!r}")


def _choose(
    raw: RawTable, label: str, features: Sequence[str] | None, ignore: Iterable[str]
) -> list[str]:
    """The feature columns, after checking that every column named is there and used once."""
    ignored = as_list(ignore)
    given = None if features is None else as_list(features)
    for name in (label, *(given or ()), *ignored):
        require_column(raw, name)
    chosen = [name for name in given or raw.names if name not in ignored]
    if given is None:
        chosen = [name for name in chosen if name != label]
    if label in chosen:
        raise raw.source.error("the label column cannot be a feature too", column=label)
    for name in chosen:
        if chosen.count(name) > 1:
            raise raw.source.error("named twice in features=", column=name)
    if not chosen:
        raise raw.source.error("no column is left to be a feature")
    return chosen


def _named(categorical: bool | Iterable[str], features: Sequence[str], source: Source) -> list[str]:
    """The features that are to be taken as names."""
    if isinstance(categorical, bool):
        return list(features) if categorical else []
    named = as_list(categorical)
    check_option("categorical", named, features, source)
    return named


def _csv_format(
    path: Path,
    raw: RawTable,
    wanted: tuple[str, ...],
    encoding: str,
    delimiter: str | None,
    has_header: bool,
    expected: Sequence[str],
) -> CsvFormat:
    if delimiter is None and path.name.removesuffix(".gz").endswith(".tsv"):
        delimiter = "\t"
    delimiter, _, _ = read_header(path, encoding, delimiter, expected)
    packed = is_packed(path)
    return CsvFormat(path, encoding, delimiter, raw.names, wanted, has_header, packed, raw.source)
