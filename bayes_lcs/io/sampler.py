"""Sample rows of files larger than memory in random order.

A `RowSource` defines one random order of its rows (`bayes_lcs.io.random_order`) and returns any
range of it. The first rows can be held out, and samples of increasing size drawn after them: these
are random and nested, and contain no held-out row.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayes_lcs.core.errors import DataError, plural
from bayes_lcs.io.category_encoder import Categories, CategoryEncoder, check_measurements
from bayes_lcs.io.column_types import ColumnType, arrow_type, infer_cell_type
from bayes_lcs.io.decode import decode_numbers, null_missing
from bayes_lcs.io.formats.parquet_ranges import NumberReader, RowRange, finite_numbers
from bayes_lcs.io.open_tables import open_tables
from bayes_lcs.io.options import (
    DEFAULT_CSV,
    CsvOptions,
    MissingValues,
    Notes,
    as_list,
    check_option,
    missing_rules,
    select_columns,
)
from bayes_lcs.io.random_order import BottomK, KeyStream
from bayes_lcs.io.raw_table import RawTable, Source

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["FileSampler", "ReadCount", "RowSource", "Rows", "SourcePart", "number_blocks"]


class Rows(NamedTuple):
    """Rows: features ``X`` and, if the source has one, the target ``y``."""

    X: Any
    y: Any = None


@dataclass
class ReadCount:
    """Number of passes over all files, and of rows and bytes read so far."""

    passes: int = 0
    rows: int = 0
    bytes: int = 0


class SourcePart(NamedTuple):
    """Name of a table of a source, and its rows and bytes if they are known."""

    name: str
    rows: int | None
    bytes: int | None


class RowSource(ABC):
    """Rows in a random order that is fixed by a seed."""

    reading: ReadCount

    @property
    @abstractmethod
    def parts(self) -> list[SourcePart]:
        """Tables with their sizes, in the order of reading."""

    @property
    @abstractmethod
    def num_rows(self) -> int:
        """Number of rows in all."""

    @abstractmethod
    def take(self, start: int, stop: int) -> Rows:
        """Return the rows ``start`` to ``stop`` of the random order."""

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
                f"rows {start} to {stop} were requested, but there are only {self.num_rows}"
            )


class FileSampler(RowSource):
    """Rows of tables that are read in batches; see `bayes_lcs.row_source` for the parameters."""

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
        options: CsvOptions = DEFAULT_CSV,
        values: Mapping[str, Sequence[Any]] | None = None,
        memory: int = 1 << 28,
        seed: int = 0,
    ) -> None:
        if kind not in ("categories", "numbers"):
            raise ValueError(f"kind must be 'categories' or 'numbers', got {kind!r}")
        self.reading = ReadCount()
        self._target = None if target is None else str(target)
        targets = [] if self._target is None else [self._target]
        expected = [*map(str, as_list(features or ())), *targets]
        self._tables = open_tables(data, options, expected)
        first = self._tables[0]
        error = first.source.error
        for table in self._tables[1:]:
            if table.names != first.names:
                raise table.source.error(_describe_other_columns(table, first))
        self._kind, self._seed = kind, seed
        self._features = select_columns(
            first.names,
            error,
            features=features,
            ignore=ignore,
            roles={"target": self._target},
            index=first.index,
        )
        columns = [*self._features, *targets]
        self._rules = missing_rules(missing_values, columns, first.names, error)
        self._notes = Notes(first.source.file, None if first.index in columns else first.index)
        if kind == "numbers" and features is None:
            self._features = self._find_numeric()
        self._columns = [*self._features, *targets]
        named = self._features if categorical is True else as_list(categorical or ())
        self._categorical = {str(name) for name in named}
        check_option("categorical", self._categorical, self._features, error)
        self._given = values or {}
        for name in self._columns:
            if values is not None and name not in values:
                raise error("values= lacks this column; add its values", column=name)
        # Categories are int32 codes, numbers float64; a target is always encoded.
        self._dtype = np.dtype(np.int32 if kind == "categories" else np.float64)
        self._pool_size = max(memory // (self._dtype.itemsize * max(len(self._columns), 1)), 1)
        self._pool: NDArray[Any] | None = None
        self._num_rows = 0
        self._encoders = {
            name: CategoryEncoder(name, self._rules[name], self._given.get(name), notes=self._notes)
            for name in (self._columns if kind == "categories" else targets)
        }

    def _find_numeric(self) -> list[str]:
        """Return the numeric feature columns, and note the others."""
        first = self._tables[0]
        batch = first.read_head(self._features)
        if batch is None or first.size().rows == 0:
            raise first.source.error("there are no rows")
        kinds = self._find_types(batch)
        numeric: list[str] = []
        for name in self._features:
            (self._notes.set_aside if kinds[name] in ("text", None) else numeric).append(name)
        if not numeric:
            raise first.source.error(
                "there is no numeric column: encode categories first, or use a mixture"
            )
        return numeric

    def _find_types(self, head: Any) -> dict[str, ColumnType | None]:
        """Return the type of each feature, from the first batch in which it is not missing."""
        is_text = self._tables[0].source.is_text
        kinds: dict[str, ColumnType | None] = {}
        for name in self._features:
            cells = head.column(name)
            kinds[name] = self._infer_type(name, cells) if is_text else arrow_type(cells.type)
        empty = [name for name, kind in kinds.items() if kind is None]
        for table in self._tables if is_text else ():
            for batch in table.batches(empty) if empty else ():
                for name in empty:
                    kinds[name] = self._infer_type(name, batch.column(name))
                empty = [name for name in empty if kinds[name] is None]
                if not empty:
                    break
        return kinds

    def _infer_type(self, name: str, cells: Any) -> ColumnType | None:
        return infer_cell_type(null_missing(cells, self._rules[name])[0])

    @property
    def num_rows(self) -> int:
        """Number of rows in all files; the first access takes a pass over them."""
        if self._pool is None:
            self._read(self._pool_size)
        return self._num_rows

    def needs_pass(self, stop: int) -> bool:
        """Return whether the first ``stop`` rows are not in memory."""
        return self._pool is None or len(self._pool) < min(stop, self._num_rows)

    @property
    def parts(self) -> list[SourcePart]:
        """Tables with their sizes, in the order of reading."""
        return [SourcePart(str(table.source.file), *table.size()[:2]) for table in self._tables]

    @property
    def features(self) -> list[str]:
        """Names of the feature columns."""
        return list(self._features)

    @property
    def categories(self) -> dict[str, NDArray[Any]]:
        """Typed categories of every encoded column, in the order of their codes."""
        _ = self.num_rows
        return {name: values for name, (values, _) in self.final_categories().items()}

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
        """Key that changes with the rows; None if changes cannot be detected."""
        stamps = [table.stamp for table in self._tables]
        if not all(stamps):
            return None
        rules = [(name, str(self._rules[name])) for name in self._columns]
        given = [(name, *map(str, values)) for name, values in self._given.items()]
        return (stamps, self._kind, self._target, rules, given, self._seed)

    def take(self, start: int, stop: int) -> Rows:
        """Return the rows ``start`` to ``stop`` of the random order."""
        self._check_places(start, stop)
        if self.needs_pass(stop):
            self._read(stop)
        assert self._pool is not None
        return self._as_rows(self._pool[start:stop])

    def number_blocks(self, skip_rows: int = 0) -> Generator[pd.DataFrame]:
        """Yield the rows as frames of numbers, in the order of the files.

        The first ``skip_rows`` rows, which were used before, are skipped.
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

    def row_ranges(self, size: int, *, by_group: bool = False) -> list[list[RowRange]] | None:
        """Return the file ranges of batches of one size; None unless all files are Parquet.

        `number_reader` reads such a batch on any worker. With ``by_group`` batches consist of whole
        row groups and have at least ``size`` rows: reading some rows of a group decompresses all
        rows before them, too.
        """
        batches: list[list[RowRange]] = []
        room = 0
        for table in self._tables:
            if table.path is None:
                return None
            path, groups = str(table.path.absolute()), table.size().groups
            start, rows = 0, sum(groups)
            for end in np.cumsum(groups).tolist() if by_group else [rows]:
                while start < end:
                    if room <= 0:
                        batches.append([])
                        room = size
                    stop = end if by_group else min(start + room, end)
                    batches[-1].append(RowRange(path, start, stop, rows))
                    start, room = stop, room - (stop - start)
        return batches

    @property
    def number_reader(self) -> NumberReader:
        """Reader of `row_ranges`, which can be sent to a worker."""
        return NumberReader(tuple(self._columns), {n: self._rules[n] for n in self._columns})

    def count_pass(self) -> None:
        """Count a pass made by workers, and issue the notes."""
        parts = self.parts
        self.reading.passes += 1
        self.reading.rows += sum(part.rows or 0 for part in parts)
        self.reading.bytes += sum(part.bytes or 0 for part in parts)
        self._notes.warn()

    def code_blocks(self) -> Iterator[NDArray[np.int32]]:
        """Yield the rows as codes ``(N, F)``, in the order of the files.

        Codes are in order of appearance; after the last batch, `final_categories` maps them to the
        final codes.
        """
        if self._kind != "categories":
            raise ValueError("codes require a source with kind='categories'")
        yield from self._encoded_batches()

    def final_categories(self) -> dict[str, Categories]:
        """Return the values of each encoded column, and the map from codes to final codes."""
        return {name: encoder.finish() for name, encoder in self._encoders.items()}

    def _read(self, size: int) -> None:
        """Read all files and store the first rows of the random order."""
        keys, first = KeyStream(self._seed), BottomK(size)
        self._pool = None  # the old pool and the new one are not in memory together
        for rows in self._encoded_batches():
            first.update(keys.draw(len(rows)), rows)
        self._pool = first.rows()

    def _encoded_batches(self) -> Iterator[NDArray[Any]]:
        """Yield all rows as codes or numbers, with checks of the whole data at the end."""
        total, first = 0, self._tables[0].source
        for source, start, batch in self._batches():
            total += batch.num_rows
            yield self._encode(batch, source, start)
        if not total:
            raise first.error("there are no rows")
        if self._num_rows and total != self._num_rows:
            raise first.error(
                f"had {plural(self._num_rows, 'row')} in the first pass and {total} now; do not "
                "change files while they are sampled"
            )
        if self._kind == "categories":
            values = {name: self._encoders[name].finish().values for name in self._features}
            check_measurements(values, {*self._categorical, *self._given}, first.error)
        is_first = not self._num_rows
        self._num_rows = total
        self.reading.passes += 1
        self.reading.rows += total
        if is_first:  # every pass counts the same cells
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
        rows = np.empty((batch.num_rows, len(self._columns)), self._dtype, order="F")
        for place, name in enumerate(self._columns):
            cells = batch.column(name)
            if name not in self._encoders:
                rows[:, place] = decode_numbers(name, cells, self._rules[name], source, start)
                continue
            rows[:, place] = self._encoders[name].encode(cells, source, start)
            if name == self._target and (rows[:, place] < 0).any():
                raise source.error(
                    "the target is missing; fill in the cell or remove the row",
                    row=start + int(np.argmax(rows[:, place] < 0)),
                    column=name,
                )
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
        Columns to read, by default all numeric ones, and columns to ignore.
    missing_values, encoding, delimiter, header
        As in `bayes_lcs.read_grouped`.

    Yields
    ------
    DataFrame
        Some thousand rows. A cell that is not a number is an error with file, line and column.

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


def _describe_other_columns(table: RawTable, first: RawTable) -> str:
    lacking = [name for name in first.names if name not in table.names]
    more = [name for name in table.names if name not in first.names]
    what = "the columns are in another order"
    if lacking:
        what = f"there is no column {lacking[0]!r}"
    elif more:
        what = f"there is an additional column {more[0]!r}"
    return (
        f"has other columns than {first.source.file}: {what}; all files of a folder must have the "
        "same columns in the same order"
    )
