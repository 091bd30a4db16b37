"""Read a labelled table from a file in disjoint shards, so that reading can stop early."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from bayes_lcs.core.errors import DataError, one_line
from bayes_lcs.io.column_types import (
    ColumnType,
    arrow_type,
    convert_cells,
    infer_text_type,
    merge_types,
    parse_cells,
    parse_number,
)
from bayes_lcs.io.decode import (
    count_nulls,
    decode_column,
    decode_numbers,
    encode_texts,
    null_listed,
    null_missing,
)
from bayes_lcs.io.formats.csv import read_format
from bayes_lcs.io.formats.csv_shards import (
    SMALL_FILE,
    CannotSeek,
    ChooseNumber,
    CsvShards,
    RawShard,
    ReadCount,
    can_seek,
)
from bayes_lcs.io.formats.parquet_shards import ParquetShards
from bayes_lcs.io.open_tables import open_file
from bayes_lcs.io.options import (
    DEFAULT_CSV,
    CsvOptions,
    MissingRule,
    MissingValues,
    Notes,
    as_list,
    check_option,
    missing_rules,
    select_columns,
)
from bayes_lcs.io.raw_table import Source

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "CannotSeek",
    "ChooseNumber",
    "ColumnTypeChanged",
    "FileShards",
    "ReadCount",
    "Shard",
    "ShardReader",
]

MAX_BYTES_AT_ONCE = 1 << 26
"""Maximum size of a file without random access to its rows that is read at once."""

SMALL_STREAM = 1 << 24
"""Maximum size of a file without seeking that is read at once without trying."""


@dataclass(frozen=True)
class Shard:
    """Labelled rows of a part of a file.

    Parameters
    ----------
    number
        Number of the shard, counted from 0.
    frame
        Features: float64 columns with NaN for missing cells, and text columns with None.
    labels
        The labels, in the type of their column.
    first_row
        Number of the first row, counted from 0 without the header, in the file or, if shards are
        in random order, in reading order.
    rows
        Number of each row in the shard, counted with unlabelled rows; None if all have a label.
    blocks
        For each row the number of its block of a CSV file or row group of a Parquet file; None if
        the rows were not read in blocks.
    """

    number: int
    frame: pd.DataFrame
    labels: NDArray[Any]
    first_row: int
    rows: NDArray[np.int64] | None = None
    blocks: NDArray[np.int64] | None = None


class HasRows(Protocol):
    """Protocol of rows with their numbers in the file."""

    @property
    def first_row(self) -> int: ...
    @property
    def rows(self) -> NDArray[np.int64] | None: ...


class ColumnTypeChanged(Exception):
    """A later shard has text in columns that were numeric or empty in the first shard.

    ``columns`` maps each of them to the `DataError` with the position of such a cell.
    """

    def __init__(self, columns: Mapping[str, DataError]) -> None:
        super().__init__(", ".join(columns))
        self.columns = dict(columns)


class _Column(NamedTuple):
    """Cells of a column of a shard, their type, and text cells parsed as numbers."""

    cells: Any
    kind: ColumnType | None
    numbers: Any = None


@dataclass
class _ShardDecoder:
    """Decoder from Arrow tables to features and labels, with the same types for all shards.

    The type of a CSV column is that of its cells in the first shard, unless it is in ``text``.
    """

    features: Sequence[str]
    label: str
    rules: Mapping[str, MissingRule]
    text: Collection[str]
    source: Source
    types: dict[str, ColumnType | None] = field(default_factory=dict)

    def decode(self, raw: RawShard, count: ReadCount) -> Shard:
        """Return a shard with its features and labels."""
        import pandas as pd

        number, first_row, table, blocks = raw
        found = {name: self._read(name, table, first_row, count) for name in self._columns}
        self._merge_types(found, first_row)
        columns: dict[str, Any] = {}
        for name in self.features:
            values = self._feature(name, found.pop(name), first_row)
            is_text = values.dtype == object  # without the dtype, pandas 3 would convert text
            columns[name] = pd.Series(values, dtype=object, copy=False) if is_text else values
        frame = pd.DataFrame(columns, copy=False)
        labels, is_known = self._labels(found[self.label], first_row)
        if is_known.all():
            return Shard(number, frame, labels, first_row, blocks=blocks)
        rows = np.flatnonzero(is_known)
        count.unlabelled += len(is_known) - len(rows)
        frame = frame.iloc[rows].reset_index(drop=True)
        blocks = None if blocks is None else blocks[rows]
        return Shard(number, frame, labels, first_row, rows, blocks)

    @property
    def _columns(self) -> list[str]:
        return [*self.features, self.label]

    def _read(self, name: str, table: Any, start: int, count: ReadCount) -> _Column:
        """Return a column with nulls for missing cells, and its type in this shard."""
        import pyarrow as pa

        cells = table.column(name)
        kind = arrow_type(cells.type)
        rule, is_csv = self.rules[name], self.source.is_text
        notes = count.notes if rule.tokens is None else Notes()
        if not is_csv and kind != "text" and name not in self.text:
            notes.count_missing(name, "", count_nulls(cells))
            return _Column(null_listed(cells, rule), kind)
        is_text = name in self.text or not is_csv
        try:
            if is_csv:
                texts = cells.combine_chunks()
                if not is_text and not rule.tokens:
                    kind, numbers = parse_cells(texts)
                    if numbers is not None:  # a number is never a default marker
                        return _Column(texts, kind, numbers)
                # Texts repeat: process the distinct ones only.
                texts = texts.dictionary_encode()
            else:
                texts = encode_texts(decode_column(name, cells, self.source))
        except (UnicodeDecodeError, pa.ArrowException) as error:
            fault = f"has bytes that are not text: {one_line(error)}"
            raise self.source.error(fault, column=name) from None
        if not is_csv:
            self._check_nul(name, texts, start)
        texts, markers = null_missing(texts, rule)
        for text, number in markers.items():
            notes.count_missing(name, text, number)
        notes.count_missing(name, "", texts.indices.null_count - sum(markers.values()))
        if is_text:
            return _Column(texts, "text")
        kind, numbers = parse_cells(texts)
        return _Column(texts, kind, None if numbers is None else null_listed(numbers, rule))

    def _check_nul(self, name: str, texts: Any, start: int) -> None:
        import pyarrow.compute as pc

        code = pc.index(pc.match_substring(texts.dictionary, "\x00"), True).as_py()
        row = pc.index(texts.indices, code).as_py()
        if row >= 0:
            fault = "the cell contains a NUL byte; the file is damaged or not a text file"
            raise self.source.error(fault, row=start + row, column=name)

    def _merge_types(self, found: Mapping[str, _Column], start: int) -> None:
        """Merge the types of this shard into the known types; raise if a column became text."""
        changed: dict[str, DataError] = {}
        for name, (cells, kind, _) in found.items():
            is_first, known = name not in self.types, self.types.get(name)
            merged = merge_types(known, kind)
            if merged == "text" != known and not is_first:
                changed[name] = self._find_change(name, cells, known, start)
            self.types[name] = merged
        if changed:
            raise ColumnTypeChanged(changed)

    def _find_change(
        self, name: str, cells: Any, known: ColumnType | None, start: int
    ) -> DataError:
        """Return an error with the position of the first cell that does not fit the known type."""
        was = {None: "empty cells", "boolean": "true and false"}.get(known, "numbers")
        for row, text in enumerate(cells.to_pylist(), start=start):
            known = merge_types(known, None if text is None else infer_text_type([text]))
            if known == "text":
                message = f"holds {text!r}, but only {was} in the parts before"
                return self.source.error(message, row=row, column=name)
        raise AssertionError("the type of a column changes in one of its cells")

    def _feature(self, name: str, column: _Column, start: int) -> NDArray[Any]:
        """Return float64 numbers, or text with None for missing cells."""
        import pyarrow as pa

        if self.types[name] == "text":
            return convert_cells(column.cells, "text")
        if not self.source.is_text:
            numbers = decode_numbers(name, column.cells, self.rules[name], self.source, start)
            return self._mask_listed(name, numbers, column.cells.type)
        if column.kind == "boolean":
            return convert_cells(column.cells, "boolean").astype(np.float64)
        if column.numbers is None:
            return np.full(len(column.cells), np.nan)
        wide = column.numbers.cast(pa.float64(), safe=False)
        return np.asarray(wide.to_numpy(zero_copy_only=False))

    def _mask_listed(
        self, name: str, numbers: NDArray[np.float64], kind: Any
    ) -> NDArray[np.float64]:
        """Replace numbers that ``missing_values`` lists by NaN."""
        import pyarrow.types as types

        tokens = self.rules[name].tokens or ()
        marks = np.array([n for n in map(parse_number, tokens) if n is not None], np.float64)
        if types.is_float32(kind):
            marks = marks.astype(np.float32).astype(np.float64)
        if types.is_boolean(kind) or not np.isin(numbers, marks).any():
            return numbers
        return np.where(np.isin(numbers, marks), np.nan, numbers)

    def _labels(self, found: _Column, start: int) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """Return the known labels, and a mask of the rows with a label."""
        cells, kind = found.cells, self.types[self.label]
        if self.source.is_text:
            is_known = np.asarray(cells.is_valid().to_numpy(zero_copy_only=False))
            if kind == found.kind and found.numbers is not None:
                labels = np.asarray(found.numbers.drop_null().to_numpy(zero_copy_only=False))
            else:
                labels = convert_cells(cells.drop_null(), kind)
        else:
            column = decode_column(self.label, cells, self.source)
            tokens = self.rules[self.label].tokens or ()
            is_mark = np.array([name in tokens for name in column.names] + [True])
            is_known = ~is_mark[column.codes]  # the last entry serves code -1
            labels = column.values[column.codes[is_known]]
        if labels.dtype.kind == "f" and not np.all(labels == np.floor(labels)):
            place = int(np.flatnonzero(labels != np.floor(labels))[0])
            raise self.source.error(
                f"the label {labels[place]} is not an integer: the column is a measurement, not a "
                "class; bin it, or store it as text",
                row=start + int(np.flatnonzero(is_known)[place]),
                column=self.label,
            )
        return labels, is_known


@dataclass(frozen=True)
class ShardReader:
    """Reader of shards of a Parquet file in any order, which can be sent to workers."""

    shards: ParquetShards
    decoder: _ShardDecoder
    source: Source

    def read(self, number: int, count: ReadCount) -> Shard:
        """Read one shard and count its rows and bytes."""
        return self.decoder.decode(self.shards.read_shard(number, count), count)

    def error(self, part: HasRows, row: int, column: str | None, message: str) -> DataError:
        """Return the error for a cell, with file, column and row."""
        return _cell_error(self.source, part, row, column, message)


def _cell_error(
    source: Source, part: HasRows, row: int, column: str | None, message: str
) -> DataError:
    row = row if part.rows is None else int(part.rows[row])
    return source.error(message, row=part.first_row + row, column=column)


class FileShards:
    r"""Shards of the rows of a CSV or Parquet file, which are read on demand.

    Shards are disjoint and together are the whole file. A shard is read when it is requested.
    Errors in its rows are a `DataError` with line and column; errors in unread rows are not
    detected.

    If possible, shards are scattered over the file and in random order: a plain CSV file is divided
    into small blocks of bytes, a Parquet file into row groups, and each shard consists of blocks
    from everywhere in the file. Given the first shard, all orders of the others are equally likely.
    A small file, or a Parquet file with too few row groups, is read at once and is one shard
    (``is_whole``). A large gzipped file is read in its own order, as is any file with
    ``shuffle=False``: then the shards of a CSV file have about equally many bytes, or equally many
    rows if it has less than 256 KiB. Parquet files are read in whole pages, and at least 16 KiB of
    each column.

    A line break within quotes is distinguished from the end of a row by the quotes and cells that
    follow. If that fails, iteration raises `CannotSeek`: start again with ``at_once=True``.

    The type of a CSV column is that of its cells in the first shard. If a later shard has other
    cells, iteration raises `ColumnTypeChanged`: start again with these columns in ``text``.

    Parameters
    ----------
    path
        A text file, plain or gzipped, or a Parquet file.
    label
        The column to predict. Rows without a label are dropped and counted.
    features
        The feature columns, in this order; by default all others except ``ignore``.
    ignore
        Columns to ignore.
    num_shards
        Number of shards, or a function that returns it for a number of rows and of distinct labels;
        those of a CSV file are estimated from its first shard.
    rows_per_shard
        Number of rows per shard, instead of ``num_shards``: the maximum for a Parquet file, and
        approximate for a CSV file, whose number of rows is estimated.
    missing_values
        Markers of missing values, as in `bayes_lcs.read_grouped`.
    categorical
        Features to read as text although they contain numbers; True for all.
    text
        Columns to read as text, which may include the label.
    options
        Format of a text file.
    shuffle
        True requires a random order, False the order of the file; "auto" shuffles if possible.
    seed
        Seed of the random order.
    extra_rows
        Additional rows of the first scattered shard of a CSV file, which is at most twice as large
        as others.
    at_once
        Read a CSV file at once if it has at most 64 MiB, and in order if it has more.
    count
        Counts of earlier reading to continue.

    Attributes
    ----------
    feature_names
        Names of the feature columns.
    other_names
        Columns of the file that are not features.
    is_shuffled
        Whether shards are in random order.
    is_whole
        Whether the file is read at once as one shard in its own order.
    num_rows
        Number of rows of a Parquet file, otherwise None.
    file_bytes
        Size of the file.
    count
        Rows and bytes read so far, in all passes, and rows without a label. A few rows may belong
        to a later shard. Bytes that are read again to find the ends of records are counted once.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "people.csv")
    ...     _ = path.write_text("age,town,buys\n31,Ulm,0\n,Bonn,1\n45,Ulm,1\n")
    ...     shards = FileShards(path, label="buys", num_shards=2, shuffle=False)
    ...     first = next(iter(shards))
    ...     print(shards.error(first, 1, "age", "is too young"))
    people.csv, line 3, column 'age': is too young
    >>> first.frame["age"].tolist(), first.frame["town"].tolist(), first.labels.tolist()
    ([31.0, nan], ['Ulm', 'Bonn'], [0, 1])
    >>> shards.text_columns
    ['town']
    """

    def __init__(
        self,
        path: str | PathLike[str],
        *,
        label: str,
        features: Sequence[str] | None = None,
        ignore: Iterable[str] = (),
        num_shards: int | ChooseNumber = 64,
        rows_per_shard: int | None = None,
        missing_values: MissingValues = None,
        categorical: bool | Iterable[str] = (),
        text: Iterable[str] = (),
        options: CsvOptions = DEFAULT_CSV,
        shuffle: bool | str = "auto",
        seed: int = 0,
        extra_rows: int = 0,
        at_once: bool = False,
        count: ReadCount | None = None,
    ) -> None:
        _check_parameters(num_shards, rows_per_shard, shuffle)
        path, label = Path(path).expanduser(), str(label)
        expected = (label, *map(str, as_list(features or ())))
        table = open_file(path, options, expected)
        source = self._source = table.source
        self.feature_names = select_columns(
            table.names,
            source.error,
            features=features,
            ignore=ignore,
            roles={"label": label},
            index=table.index,
        )
        self.other_names = [name for name in table.names if name not in self.feature_names]
        self.file_bytes = path.stat().st_size
        self.count = count or ReadCount()
        self.count.notes.file = source.file
        if table.index in self.other_names and table.index != label:
            self.count.notes.index = table.index
        columns = [*self.feature_names, label]
        self._shards: CsvShards | ParquetShards
        self.is_whole = False
        if source.is_text:
            form = read_format(path, options, expected)
            seekable = can_seek(form) and not at_once
            most = SMALL_FILE if seekable else MAX_BYTES_AT_ONCE if at_once else SMALL_STREAM
            small = self.file_bytes <= most
            self.is_whole = small and shuffle is not False
            if shuffle is True and not small and not seekable:
                why, remedy = "a gzipped file has no random access", "unpack it"
                if not form.is_packed:
                    why, remedy = "its encoding allows no random access", "write it as UTF-8"
                raise source.error(
                    f"parts cannot be read in random order: {why}; {remedy}, store it as Parquet, "
                    "or pass shuffle=False if its rows are in random order"
                )
            if self.is_whole:
                num_shards, rows_per_shard = 1, None
            self._shards = CsvShards(
                form,
                columns,
                label,
                num_shards,
                rows_per_shard,
                is_shuffled=seekable and shuffle is not False and not self.is_whole,
                extra_rows=extra_rows,
                seed=seed,
            )
        else:
            self._shards = ParquetShards(
                path,
                columns,
                label,
                source,
                num_shards=num_shards,
                rows_per_shard=rows_per_shard,
                shuffle=shuffle,
                seed=seed,
                count=self.count,
            )
            self.is_whole = self._shards.is_whole
        source = self._source = self._shards.source
        self._decoder = _ShardDecoder(
            self.feature_names,
            label,
            missing_rules(missing_values, columns, table.names, source.error),
            {*_list_categorical(categorical, self.feature_names, source), *text},
            source,
        )
        self.is_shuffled: bool = self._shards.is_shuffled
        self.num_rows: int | None = self._shards.num_rows

    @property
    def num_shards(self) -> int:
        """Number of shards; 0 before the first one if it is estimated from a CSV file."""
        return self._shards.num_shards

    @property
    def text_columns(self) -> list[str]:
        """Text features; known after the first shard."""
        types = self._decoder.types
        return [name for name in self.feature_names if types.get(name) == "text"]

    def reader(self) -> ShardReader | None:
        """Return a reader of any shard, or None if shards can only be read in sequence."""
        if not isinstance(self._shards, ParquetShards) or not self.is_shuffled:
            return None
        return ShardReader(self._shards, self._decoder, self._source)

    def __iter__(self) -> Iterator[Shard]:
        is_empty = True
        with closing(self._shards.read(self.count)) as found:
            for raw in found:
                # Empty shards must not determine the types of the columns.
                shard = self._decoder.decode(raw, self.count) if raw.table.num_rows else None
                if shard is not None and len(shard.labels):
                    is_empty = False
                    yield shard
                else:
                    self.count.num_empty += 1
        if is_empty:
            raise self._source.error(
                "the label is missing in every row", column=self._decoder.label
            )

    def error(self, part: HasRows, row: int, column: str | None, message: str) -> DataError:
        """Return the error for a cell, with file, column, and line or row."""
        return _cell_error(self._source, part, row, column, message)


def _check_parameters(
    num_shards: int | ChooseNumber, rows_per_shard: int | None, shuffle: bool | str
) -> None:
    if isinstance(num_shards, int) and num_shards < 1:
        raise ValueError(f"num_shards must be at least 1, got {num_shards}")
    if rows_per_shard is not None and rows_per_shard < 1:
        raise ValueError(f"rows_per_shard must be at least 1, got {rows_per_shard}")
    if shuffle not in (True, False, "auto"):
        raise ValueError(f"shuffle must be True, False or 'auto', got {shuffle!r}")


def _list_categorical(
    categorical: bool | Iterable[str], features: Sequence[str], source: Source
) -> list[str]:
    """Return the features to read as text."""
    if isinstance(categorical, bool):
        return list(features) if categorical else []
    named = [str(name) for name in as_list(categorical)]
    check_option("categorical", named, features, source.error)
    return named
