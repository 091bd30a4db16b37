"""Rows in a random order, from memory or from files larger than memory.

A `RowSource` puts the rows of its data into one random order (`bayes_lcs.io.random_order`) and
returns any stretch of it. The beginning can be held out and samples of growing size taken after it:
they are random and nested, and none holds a row of the hold-out.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayes_lcs.core.errors import DataError
from bayes_lcs.io.category_encoder import CategoryEncoder
from bayes_lcs.io.column_types import arrow_type, infer_cell_type
from bayes_lcs.io.decode import decode_numbers, null_missing
from bayes_lcs.io.formats.parquet import group_sizes
from bayes_lcs.io.formats.parquet_ranges import NumberReader, RowRange, finite_numbers
from bayes_lcs.io.frames import set_index_aside
from bayes_lcs.io.open_tables import is_streamed, open_tables
from bayes_lcs.io.options import (
    CsvOptions,
    MissingValues,
    Notes,
    as_list,
    check_option,
    missing_rules,
    select_columns,
)
from bayes_lcs.io.ordinal_encoding import check_measurements, learn_categories
from bayes_lcs.io.random_order import BottomK, KeyStream, random_order
from bayes_lcs.io.raw_table import RawTable, Source

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "ArraySampler",
    "FileSampler",
    "ReadCount",
    "RowSource",
    "Rows",
    "SourcePart",
    "number_blocks",
    "row_source",
]


class Rows(NamedTuple):
    """Some rows: features ``X`` and, of a source that has one, the target ``y``."""

    X: Any
    y: Any = None


@dataclass
class ReadCount:
    """Passes over all files, rows and bytes that were read so far."""

    passes: int = 0
    rows: int = 0
    bytes: int = 0


class SourcePart(NamedTuple):
    """One table of a source: its name, and its rows and bytes as far as they are known."""

    name: str
    rows: int | None
    bytes: int | None


class RowSource(ABC):
    """Rows in a random order that is fixed by a seed."""

    reading: ReadCount

    @property
    @abstractmethod
    def parts(self) -> list[SourcePart]:
        """The tables in the order in which they are read, with their sizes."""

    @property
    @abstractmethod
    def num_rows(self) -> int:
        """Number of rows in all."""

    @abstractmethod
    def take(self, start: int, stop: int) -> Rows:
        """Return the rows at the places ``start`` to ``stop`` of the random order."""

    @abstractmethod
    def needs_pass(self, stop: int) -> bool:
        """Return whether files must be read before the first ``stop`` rows can be taken."""

    @abstractmethod
    def values(
        self, missing: Iterable[Any] | None = None, categorical: Any = None
    ) -> list[NDArray[Any]] | None:
        """Return the values of each column over all rows; None if they need not be known.

        Columns of measurements are refused unless ``categorical`` names them or is True.
        """

    def _check_places(self, start: int, stop: int) -> None:
        if not 0 <= start <= stop <= self.num_rows:
            raise DataError(
                f"rows {start} to {stop} were asked for, but there are only {self.num_rows}"
            )


def row_source(
    data: Any,
    y: Any = None,
    *,
    target: str | None = None,
    features: Iterable[Any] | None = None,
    ignore: Iterable[Any] = (),
    kind: Literal["categories", "numbers"] = "categories",
    categorical: bool | Iterable[Any] = (),
    missing_values: MissingValues = None,
    encoding: str = "utf-8",
    delimiter: str | None = None,
    header: bool | Sequence[str] = True,
    values: Mapping[str, Sequence[Any]] | None = None,
    memory: int = 1 << 28,
    seed: int = 0,
) -> RowSource:
    r"""Return rows in a random order, from memory, files, Arrow data sets or Dask dataframes.

    Files are read batch by batch and never held in memory as a whole: one pass counts the rows,
    finds the type and the categories of every column, and keeps the rows that come first in the
    random order, as many as ``memory`` holds. Asking for more rows takes another pass. Categories
    are those of all rows, so that no later sample holds a new one.

    Parameters
    ----------
    data
        A NumPy array, a pandas frame, a SciPy sparse matrix; or what is read in batches: the path
        of a CSV or Parquet file, or of a folder of such files (in the order of their names),
        several paths, a polars frame, a ``pyarrow.Table`` or ``pyarrow.dataset.Dataset``, a Dask
        dataframe (a partition at a time).
    y
        The target of an array, one entry a row.
    target
        The target column of a frame or file, which then is not a feature.
    features, ignore
        The columns to use, or those to leave out, of a frame or file.
    kind : {"categories", "numbers"}
        How columns of files are read: as Categorical columns of a frame whose categories have the
        column's type, or as an array of floats with NaN for missing cells. ``"numbers"`` takes the
        numeric columns and names the others in a note, unless ``features`` says which to take. Data
        in memory keeps its types, but text columns of a frame become Categorical.
    categorical
        Columns that are categories although they hold many numbers that are not whole; True for
        all. Without it such a column of a file is refused.
    missing_values
        Texts that mean "missing", as in `bayes_lcs.read_grouped`.
    encoding, delimiter, header
        Of text files, as in `bayes_lcs.read_grouped`.
    values
        The values of every column of a file, in the order of their codes, as another source has
        them in ``categories``; any other value is then an error.
    memory
        Bytes of file rows to keep between samples.
    seed
        Seed of the random order. The same rows in the same order, from whatever kind of source,
        give the same samples.

    Examples
    --------
    >>> import numpy as np
    >>> source = row_source(np.arange(10).reshape(-1, 1), seed=1)
    >>> small, large = source.take(0, 3).X, source.take(0, 6).X
    >>> np.array_equal(small, large[:3])
    True
    """
    if isinstance(data, RowSource):
        return data
    if is_streamed(data):
        if y is not None:
            raise DataError("y= is for arrays; name the target column of a file with target=")
        return FileSampler(
            data,
            target=target,
            features=features,
            ignore=ignore,
            kind=kind,
            categorical=categorical,
            missing_values=missing_values,
            options=CsvOptions(encoding, delimiter, header),
            values=values,
            memory=memory,
            seed=seed,
        )
    return ArraySampler(data, y, target=target, features=features, ignore=ignore, seed=seed)


# Data in memory -----------------------------------------------------------------------------------


class ArraySampler(RowSource):
    """Rows of an array, a frame or a sparse matrix; `row_source` explains the parameters."""

    def __init__(
        self,
        data: Any,
        y: Any = None,
        *,
        target: str | None = None,
        features: Iterable[Any] | None = None,
        ignore: Iterable[Any] = (),
        seed: int = 0,
    ) -> None:
        self.reading = ReadCount()
        if hasattr(data, "iloc"):
            data, y = _split_frame(data, y, target, features, ignore)
        elif target is not None or features is not None or as_list(ignore):
            raise DataError("target=, features= and ignore= name columns of a frame or a file")
        elif hasattr(data, "tocsr"):
            data = data.tocsr()
        else:
            data = np.asarray(data)
            if data.ndim != 2:
                raise DataError(f"data must have two dimensions, rows and columns; got {data.ndim}")
        self._data = data
        self._target = None if y is None else np.asarray(y)
        if self._target is not None and len(self._target) != data.shape[0]:
            raise DataError(f"y has {len(self._target)} entries for {data.shape[0]} rows")
        self._order = random_order(int(data.shape[0]), seed)

    @property
    def num_rows(self) -> int:
        """Number of rows in all."""
        return len(self._order)

    @property
    def parts(self) -> list[SourcePart]:
        """The data as one part."""
        data = self._data
        if hasattr(data, "memory_usage"):
            size = int(data.memory_usage(index=False, deep=True).sum())
        else:
            size = int((data.data if hasattr(data, "tocsr") else data).nbytes)
        return [SourcePart("memory", self.num_rows, size)]

    def needs_pass(self, stop: int) -> bool:  # noqa: ARG002
        """Return False: nothing is read."""
        return False

    def values(
        self, missing: Iterable[Any] | None = None, categorical: Any = None
    ) -> list[NDArray[Any]] | None:
        """Return the values of each column over all rows; None for a sparse matrix of 0 and 1."""
        data = self._data
        if hasattr(data, "tocsr"):
            return None
        if hasattr(data, "iloc"):
            columns = {str(name): data.iloc[:, j] for j, name in enumerate(data.columns)}
        else:
            columns = {f"x{j}": data[:, j] for j in range(data.shape[1])}
        values = {name: learn_categories(cells, missing, name) for name, cells in columns.items()}
        declared = {str(name) for name in as_list(categorical or ())}
        if categorical is not True:
            check_measurements({n: own for n, own in values.items() if n not in declared})
        return list(values.values())

    def take(self, start: int, stop: int) -> Rows:
        """Return the rows at the places ``start`` to ``stop`` of the random order."""
        self._check_places(start, stop)
        places = self._order[start:stop]
        data = self._data
        X = data.iloc[places] if hasattr(data, "iloc") else data[places]
        return Rows(X, None if self._target is None else self._target[places])


def _split_frame(
    frame: Any, y: Any, target: Any, features: Iterable[Any] | None, ignore: Iterable[Any]
) -> tuple[Any, Any]:
    """Return the features and the target of a pandas frame."""
    if frame.columns.has_duplicates:
        twice = frame.columns[frame.columns.duplicated()][0]
        raise DataError("the frame has two columns of this name; rename one", column=str(twice))
    keep = [*as_list(features or ()), *([] if target is None else [target])]
    frame = set_index_aside(frame, keep)
    names = [str(name) for name in frame.columns]
    roles = {"target": None if target is None else str(target)}
    chosen = select_columns(names, Source().error, features=features, ignore=ignore, roles=roles)
    if target is not None:
        if y is not None:
            raise DataError("give either y= or target=, not both")
        y = frame.iloc[:, names.index(str(target))]
    rows = frame.iloc[:, [names.index(name) for name in chosen]]
    kinds = {name: str(kind) for name, kind in rows.dtypes.items()}
    text = [name for name, kind in kinds.items() if kind.startswith(("object", "str"))]
    return rows.astype(dict.fromkeys(text, "category")) if text else rows, y


# Files --------------------------------------------------------------------------------------------


class FileSampler(RowSource):
    """Rows of tables that are read in batches; `row_source` explains the parameters."""

    def __init__(
        self,
        data: Any,
        *,
        target: str | None = None,
        features: Iterable[Any] | None = None,
        ignore: Iterable[Any] = (),
        kind: Literal["categories", "numbers"] = "categories",
        categorical: bool | Iterable[Any] = (),
        missing_values: MissingValues = None,
        options: CsvOptions | None = None,
        values: Mapping[str, Sequence[Any]] | None = None,
        memory: int = 1 << 28,
        seed: int = 0,
    ) -> None:
        if kind not in ("categories", "numbers"):
            raise ValueError(f"kind must be 'categories' or 'numbers', got {kind!r}")
        self.reading = ReadCount()
        expected = [str(name) for name in as_list(features or ())]
        expected += [] if target is None else [str(target)]
        self._tables = open_tables(data, options or CsvOptions(), expected)
        first = self._tables[0]
        for table in self._tables[1:]:
            if table.names != first.names:
                raise table.source.error(_describe_other_columns(table, first))
        self._target = None if target is None else str(target)
        self._kind = kind
        self._features = select_columns(
            first.names,
            first.source.error,
            features=features,
            ignore=ignore,
            roles={"target": self._target},
            index=first.index,
        )
        columns = [*self._features, *([] if self._target is None else [self._target])]
        self._rules = missing_rules(missing_values, columns, first.names, first.source.error)
        is_index_unused = first.index is not None and first.index not in columns
        self._notes = Notes(first.source.file, first.index if is_index_unused else None)
        if kind == "numbers" and features is None:
            self._features = self._find_numeric()
        self._columns = [*self._features, *([] if self._target is None else [self._target])]
        self._categorical = (
            set(self._features)
            if categorical is True
            else {str(name) for name in as_list(categorical or ())}
        )
        check_option("categorical", self._categorical, self._features, first.source.error)
        self._seed = seed
        # Categories are int32 codes, numbers float64; a target is always encoded.
        width = 4 if kind == "categories" else 8
        self._pool_size = max(memory // (width * max(len(self._columns), 1)), 1)
        self._pool: NDArray[Any] | None = None
        self._encoders: dict[str, CategoryEncoder] = {}
        self._given = _check_given(values, self._columns, first)
        self._num_rows = 0

    def _find_numeric(self) -> list[str]:
        """Return the numeric feature columns, and note the others."""
        types: dict[str, Any] = dict.fromkeys(self._features)
        first = self._tables[0]
        batch = first.read_head(self._features)
        if batch is None or first.size().rows == 0:
            raise first.source.error("there are no rows")
        for name in self._features:
            cells = batch.column(name)
            if first.source.is_text:
                types[name] = infer_cell_type(null_missing(cells, self._rules[name])[0])
            else:
                types[name] = arrow_type(cells.type)
        numeric = [name for name in self._features if types[name] not in ("text", None)]
        if not numeric:
            raise first.source.error(
                "no column holds numbers: encode categories first, or use a mixture"
            )
        self._notes.set_aside = [name for name in self._features if name not in numeric]
        return numeric

    @property
    def num_rows(self) -> int:
        """Number of rows in all files; the first time, this takes a pass over them."""
        if self._pool is None:
            self._read(self._pool_size)
        return self._num_rows

    def needs_pass(self, stop: int) -> bool:
        """Return whether the first ``stop`` rows are not in memory."""
        return self._pool is None or len(self._pool) < min(stop, self._num_rows)

    @property
    def parts(self) -> list[SourcePart]:
        """The tables in the order in which they are read, with their sizes."""
        return [SourcePart(str(table.source.file), *table.size()) for table in self._tables]

    @property
    def features(self) -> list[str]:
        """Names of the feature columns."""
        return list(self._features)

    @property
    def categories(self) -> dict[str, NDArray[Any]]:
        """The typed categories of every encoded column, in the order of their codes."""
        _ = self.num_rows
        return self.final_values()

    def values(
        self,
        missing: Iterable[Any] | None = None,  # noqa: ARG002
        categorical: Any = None,  # noqa: ARG002
    ) -> list[NDArray[Any]] | None:
        """Return the categories of each feature over all rows; None for numbers."""
        if self._kind == "numbers":
            return None
        return [self.categories[name] for name in self._features]

    @property
    def cache_key(self) -> tuple[Any, ...] | None:
        """Key that changes with the rows; None if changes cannot be noticed."""
        stamps = [table.stamp for table in self._tables]
        if not all(stamps):
            return None
        rules = [(name, str(self._rules[name])) for name in self._columns]
        given = [(name, *map(str, values)) for name, values in self._given.items()]
        return (stamps, self._kind, self._target, rules, given, self._seed)

    def take(self, start: int, stop: int) -> Rows:
        """Return the rows at the places ``start`` to ``stop`` of the random order."""
        self._check_places(start, stop)
        if self.needs_pass(stop):
            self._read(stop)
        assert self._pool is not None
        return self._as_rows(self._pool[start:stop])

    def number_blocks(self, skip_rows: int = 0) -> Generator[pd.DataFrame]:
        """Yield the rows as frames of numbers, in the order of the files.

        Parameters
        ----------
        skip_rows
            Rows to leave out at the beginning, which an earlier pass has used.
        """
        import pandas as pd

        total = 0
        for source, start, batch in self._batches(is_numeric=True):
            dropped = max(min(skip_rows - total, batch.num_rows), 0)
            total += batch.num_rows
            if dropped == batch.num_rows:
                continue
            rows = finite_numbers(
                batch.slice(dropped), self._columns, self._rules, source, start + dropped
            )
            self.reading.rows += len(rows)
            yield pd.DataFrame(rows, columns=self._columns)
        if not total:
            raise self._tables[0].source.error("there are no rows")
        self.reading.passes += 1
        self._notes.warn()

    def row_ranges(self, size: int) -> list[list[RowRange]] | None:
        """Return the file ranges of batches of one size; None unless all files are Parquet.

        `number_reader` reads such a batch, on whatever worker.
        """
        if any(table.path is None for table in self._tables):
            return None
        batches: list[list[RowRange]] = [[]]
        room = size
        for table in self._tables:
            rows, start = table.size().rows or 0, 0
            while start < rows:
                if not room:
                    batches.append([])
                    room = size
                stop = min(start + room, rows)
                path = str(table.path.absolute()) if table.path else ""
                batches[-1].append(RowRange(path, start, stop, rows))
                room -= stop - start
                start = stop
        return batches if batches[0] else []

    def row_groups(self, least: int) -> list[list[RowRange]]:
        """Return whole row groups of Parquet files, joined to at least ``least`` rows each.

        Reading some rows of a group unpacks all rows before them, too.
        """
        from pyarrow import parquet

        units: list[list[RowRange]] = []
        room = 0
        for table in self._tables:
            assert table.path is not None
            path = table.path.absolute()
            sizes = group_sizes(partial(parquet.read_metadata, path), table.source)
            start, file_rows = 0, sum(sizes)
            for size in filter(None, sizes):
                if room <= 0:
                    units.append([])
                    room = least
                units[-1].append(RowRange(str(path), start, start + size, file_rows))
                start, room = start + size, room - size
        return units

    @property
    def number_reader(self) -> NumberReader:
        """Reader of `row_ranges`, which can be sent to a worker."""
        return NumberReader(tuple(self._columns), {n: self._rules[n] for n in self._columns})

    def count_pass(self) -> None:
        """Count a pass that workers have made, and give the notes."""
        parts = self.parts
        self.reading.passes += 1
        self.reading.rows += sum(part.rows or 0 for part in parts)
        self.reading.bytes += sum(part.bytes or 0 for part in parts)
        self._notes.warn()

    def code_blocks(self) -> Iterator[NDArray[np.int32]]:
        """Yield the rows as codes ``(N, F)``, in the order of the files.

        Codes are in order of appearance: `final_codes` maps them to places in `categories` when
        all batches have been read.
        """
        if self._kind != "categories":
            raise ValueError("only a source of kind='categories' has codes")
        self._make_encoders()
        total = 0
        for source, start, batch in self._batches():
            total += batch.num_rows
            yield self._encode(batch, source, start)
        self._finish_pass(total)

    def final_codes(self) -> dict[str, NDArray[np.int32]]:
        """Return, for each column, the map from codes to places; the last entry is for -1."""
        return {name: encoder.finish().recode for name, encoder in self._encoders.items()}

    def final_values(self) -> dict[str, NDArray[Any]]:
        """Return, for each column, its values in their final order."""
        return {name: encoder.finish().values for name, encoder in self._encoders.items()}

    def _make_encoders(self) -> None:
        if not self._encoders:
            is_all = self._kind == "categories"
            encoded = self._columns if is_all else self._columns[len(self._features) :]
            self._encoders = {
                name: CategoryEncoder(
                    name, self._rules[name], self._given.get(name), notes=self._notes
                )
                for name in encoded
            }

    def _read(self, size: int) -> None:
        """Read all files, keeping the first rows of the random order."""
        keys, first = KeyStream(self._seed), BottomK(size)
        self._make_encoders()
        self._pool = None  # the old pool and the new one are not in memory together
        total = 0
        for source, start, batch in self._batches():
            first.update(keys.draw(batch.num_rows), self._encode(batch, source, start))
            total += batch.num_rows
        self._finish_pass(total)
        self._pool = first.rows()

    def _finish_pass(self, total: int) -> None:
        source = self._tables[0].source
        if not total:
            raise source.error("there are no rows")
        if self._num_rows and total != self._num_rows:
            raise source.error(
                f"had {self._num_rows} rows in the first pass and {total} now; do not change "
                "files while they are sampled"
            )
        if self._kind == "categories":
            undeclared = set(self._features) - self._categorical - set(self._given)
            values = self.final_values()
            check_measurements(
                {name: values[name] for name in self._features if name in undeclared}, source.error
            )
        is_first = not self._num_rows
        self._num_rows = total
        self.reading.passes += 1
        self.reading.rows += total
        if is_first:  # every pass counts the same markers
            self._notes.warn()

    def _batches(self, *, is_numeric: bool = False) -> Iterator[tuple[Source, int, Any]]:
        """Yield batches of all files, each with its source and its first row in its file."""
        encoded = {} if is_numeric else self._encoders
        numeric = {}
        if self._kind == "numbers":
            numeric = {name: self._rules[name] for name in self._columns if name not in encoded}
        for table in self._tables:
            row, size, known = 0, 0, table.size().bytes
            for batch in table.batches(self._columns, encoded=list(encoded), numeric=numeric):
                yield table.source, row, batch
                row += batch.num_rows
                size += batch.nbytes
            self.reading.bytes += size if known is None else known

    def _encode(self, batch: Any, source: Source, start: int) -> NDArray[Any]:
        """Return a batch as one array of codes, or of numbers and the codes of the target."""
        dtype = np.int32 if self._kind == "categories" else np.float64
        rows = np.empty((batch.num_rows, len(self._columns)), dtype, order="F")
        for place, name in enumerate(self._columns):
            cells = batch.column(name)
            if name in self._encoders:
                rows[:, place] = self._encoders[name].encode(cells, source, start)
                if name == self._target and (rows[:, place] < 0).any():
                    raise source.error(
                        "the target is missing; fill the cell or remove the row",
                        row=start + int(np.argmax(rows[:, place] < 0)),
                        column=name,
                    )
            else:
                rows[:, place] = decode_numbers(name, cells, self._rules[name], source, start)
        return rows

    def _as_rows(self, rows: NDArray[Any]) -> Rows:
        import pandas as pd

        y = None
        if self._target is not None:
            values, recode = self._encoders[self._target].finish()
            y = values[recode[rows[:, -1].astype(np.int64)]]
            rows = rows[:, :-1]
        if self._kind == "numbers":
            return Rows(np.ascontiguousarray(rows), y)
        columns = {}
        for place, name in enumerate(self._features):
            values, recode = self._encoders[name].finish()
            columns[name] = pd.Categorical.from_codes(recode[rows[:, place]], pd.Index(values))
        return Rows(pd.DataFrame(columns), y)


def number_blocks(
    path: Any,
    *,
    features: Iterable[Any] | None = None,
    ignore: Iterable[Any] = (),
    missing_values: MissingValues = None,
    encoding: str = "utf-8",
    delimiter: str | None = None,
    header: bool | Sequence[str] = True,
) -> Generator[pd.DataFrame]:
    r"""Yield frames of numbers, for online clusterers and coreset streams.

    Parameters
    ----------
    path
        A CSV or Parquet file, or a folder of them with the same columns.
    features, ignore
        Columns to read, by default all numeric ones, and columns to leave out.
    missing_values, encoding, delimiter, header
        As in `bayes_lcs.read_grouped`.

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
    source = FileSampler(
        path,
        features=features,
        ignore=ignore,
        kind="numbers",
        missing_values=missing_values,
        options=CsvOptions(encoding, delimiter, header),
    )
    return source.number_blocks()


def _check_given(
    values: Mapping[str, Sequence[Any]] | None, columns: Sequence[str], first: RawTable
) -> Mapping[str, Sequence[Any]]:
    """Return values that were learned before; they must cover all columns."""
    if values is None:
        return {}
    for name in columns:
        if name not in values:
            raise first.source.error("values= has no values for this column", column=name)
    return values


def _describe_other_columns(table: RawTable, first: RawTable) -> str:
    lacking = [name for name in first.names if name not in table.names]
    more = [name for name in table.names if name not in first.names]
    what = "the columns are in another order"
    if lacking:
        what = f"there is no column {lacking[0]!r}"
    elif more:
        what = f"there is a column {more[0]!r} more"
    return (
        f"has other columns than {first.source.file}: {what}; all files of a folder must have the "
        "same columns in the same order"
    )
