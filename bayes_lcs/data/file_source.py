"""Rows of files, Arrow data sets and Dask dataframes in a random order, read in pieces."""

from __future__ import annotations

import json
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from bayes_lcs.data.checkpoints import Arrays, Work, is_keeping, named_work
from bayes_lcs.data.column_types import ColumnTypes
from bayes_lcs.data.columns import BEGINNING, RawTable, Source
from bayes_lcs.data.number_rows import NumberReader, RowRange, finite_numbers
from bayes_lcs.data.parquet_reader import group_sizes
from bayes_lcs.data.place import START, Place
from bayes_lcs.data.raw_tables import raw_tables
from bayes_lcs.data.row_order import FirstRows, KeyStream
from bayes_lcs.data.row_source import Reading, Rows, RowSource, SourcePart
from bayes_lcs.data.selection import as_list, missing_tokens, require_column
from bayes_lcs.data.vocabulary import Vocabulary, block_numbers

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["FileSource"]


class FileSource(RowSource):
    """Pieces as one table; `bayes_lcs.data.row_source.row_source` explains the parameters."""

    def __init__(
        self,
        data: Any,
        *,
        target: str | None = None,
        features: Sequence[str] | None = None,
        ignore: Iterable[str] = (),
        kind: Literal["categories", "numbers"] = "categories",
        missing_values: Iterable[str] | Mapping[str, Iterable[str]] = ("",),
        encoding: str = "utf-8",
        delimiter: str | None = None,
        header: bool | Sequence[str] = True,
        values: Mapping[str, Sequence[str]] | None = None,
        memory: int = 1 << 28,
        seed: int = 0,
    ) -> None:
        if kind not in ("categories", "numbers"):
            raise ValueError(f"kind must be 'categories' or 'numbers', got {kind!r}")
        self.reading = Reading()
        expected = (*([] if target is None else [target]), *as_list(features or ()))
        self._tables = raw_tables(
            data, encoding=encoding, delimiter=delimiter, header=header, expected=expected
        )
        first = self._tables[0]
        for table in self._tables[1:]:
            if table.names != first.names:
                raise table.source.error(_other_columns(table, first))
        self._target, self._kind = target, kind
        self._features = _choose(first, target, features, ignore)
        self._columns = [*self._features, *([] if target is None else [target])]
        self._missing = missing_tokens(missing_values, self._columns, first)
        self._seed = seed
        # Categories are int32 codes, numbers float64; a target is always coded.
        width = 4 if kind == "categories" else 8
        self._pool_size = max(memory // (width * max(len(self._columns), 1)), 1)
        self._pool: NDArray[Any] | None = None
        self._vocabulary: dict[str, Vocabulary] = {}
        self._given = _given_values(values, self._columns, first)
        self._types = ColumnTypes()
        self._num_rows = 0
        self.place = START
        """How far the last pass has come; `number_blocks` goes on from there."""

    @property
    def num_rows(self) -> int:
        """Number of rows in all files; the first time, this takes a pass over them."""
        if self._pool is None:
            self._read(self._pool_size)
        return self._num_rows

    def needs_pass(self, stop: int) -> bool:
        """Whether the first ``stop`` rows are not in memory."""
        return self._pool is None or len(self._pool) < min(stop, self._num_rows)

    @property
    def parts(self) -> list[SourcePart]:
        """The pieces in the order in which they are read, and what each will take."""
        return [
            SourcePart(str(table.source.file), *table.cost(self._columns)) for table in self._tables
        ]

    @property
    def features(self) -> list[str]:
        """Names of the columns that are features."""
        return list(self._features)

    @property
    def categories(self) -> dict[str, tuple[str, ...]]:
        """The categories of every column that holds names, in the order of their codes."""
        _ = self.num_rows
        return self.final_values()

    def take(self, start: int, stop: int) -> Rows:
        """The rows at the places ``start`` to ``stop`` of the random order."""
        self._check_places(start, stop)
        if self.needs_pass(stop):
            self._read(stop)
        assert self._pool is not None
        return self._as_rows(self._pool[start:stop])

    def number_blocks(self, after: Place = START) -> Generator[pd.DataFrame]:
        """Pieces of the files as frames of numbers, in the order in which they lie; read once.

        With ``after``, which `place` was at the end of such a piece, those that follow it.
        """
        import pandas as pd

        before = self.reading.rows
        for source, start, block in self._blocks(after, is_all_numbers=True):
            rows = finite_numbers(block, self._columns, self._missing, source, start)
            self.reading.rows += len(rows)
            yield pd.DataFrame(rows, columns=self._columns)
        if after == START and self.reading.rows == before:
            raise self._tables[0].source.error("there are no rows")
        self.reading.passes += 1

    def row_ranges(self, size: int) -> list[list[RowRange]] | None:
        """Where the rows of blocks of one size lie; None unless all files are Parquet.

        `number_reader` reads such a block, wherever it is.
        """
        if any(table.path is None for table in self._tables):
            return None
        blocks: list[list[RowRange]] = [[]]
        room = size
        for table in self._tables:
            rows, start = table.cost(()).rows or 0, 0
            while start < rows:
                if not room:
                    blocks.append([])
                    room = size
                stop = min(start + room, rows)
                path = str(table.path.absolute()) if table.path else ""
                blocks[-1].append(RowRange(path, start, stop, rows))
                room -= stop - start
                start = stop
        return blocks if blocks[0] else []

    def row_groups(self, least: int) -> list[list[RowRange]]:
        """Whole row groups of files that all are Parquet, together at least so many rows each.

        Whoever reads some rows of a group has to unpack those before them too.
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
        """What reads the rows of `row_ranges`; it can be sent to where they are worked on."""
        return NumberReader(tuple(self._columns), {n: self._missing[n] for n in self._columns})

    def count_pass(self) -> None:
        """All files were read elsewhere."""
        parts = self.parts
        self.reading.passes += 1
        self.reading.rows += sum(part.rows or 0 for part in parts)
        self.reading.bytes += sum(part.bytes or 0 for part in parts)

    def code_blocks(self) -> Iterator[NDArray[np.int32]]:
        """Pieces of the files as codes ``(N, F)``, in the order in which they lie; read once.

        Codes are given in the order in which values are met: when all pieces have been read,
        `final_codes` says which they are in the order of `categories`.
        """
        if self._kind != "categories":
            raise ValueError("only a source of kind='categories' has codes")
        self._begin_coding()
        total = 0
        for source, start, block in self._blocks():
            total += block.num_rows
            yield self._coded(block, source, start)
        if not total:
            raise self._tables[0].source.error("there are no rows")
        self._num_rows = total
        self.reading.passes += 1
        self.reading.rows += total

    def final_codes(self) -> dict[str, NDArray[np.int32]]:
        """For each column, from codes in order of meeting to final ones; the last is for -1."""
        return {name: entry.recode() for name, entry in self._vocabulary.items()}

    def final_values(self) -> dict[str, tuple[str, ...]]:
        """For each column, its values in their final order."""
        return {name: entry.order() for name, entry in self._vocabulary.items()}

    def _begin_coding(self) -> None:
        if not self._vocabulary:
            names = self._kind == "categories"
            coded = self._columns if names else self._columns[len(self._features) :]
            self._vocabulary = {
                name: Vocabulary(name, self._missing[name], self._given.get(name)) for name in coded
            }

    def _read(self, size: int) -> None:
        """One pass over all files, keeping the first rows of the random order."""
        keys, first = KeyStream(self._seed), FirstRows(size)
        self._begin_coding()
        self._pool = None  # the old one need not lie beside the new one
        total = 0
        with self.work("reading", size) as kept:
            if kept.state is not None:
                total = self._go_on(kept.state, first)
                keys.skip(total)
            for source, start, block in self._blocks(self.place if total else START):
                own = keys.draw(block.num_rows)
                rows = self._coded(block, source, start)
                first.offer(own, rows)
                total += block.num_rows
                kept.keep(partial(self._reached, self.place, total, first.held))
            kept.end(partial(self._reached, self.place, total, first.held))
        if not total:
            raise self._tables[0].source.error("there are no rows")
        if self._num_rows and total != self._num_rows:
            raise self._tables[0].source.error(
                f"had {self._num_rows} rows in the first pass and {total} now; do not change "
                "files while they are sampled"
            )
        self.reading.passes += 1
        self.reading.rows += total
        self._num_rows = total
        self._pool = first.rows()

    def work(self, kind: str, *decisive: Any) -> Work:
        """A pass over the rows that is kept, if it can be told whether rows are the same."""
        stamps = [table.stamp for table in self._tables]
        if not is_keeping() or not all(stamps):
            return Work(None)
        missing = [(name, sorted(self._missing[name])) for name in self._columns]
        given = [(name, *values) for name, values in self._given.items()]
        rows = (stamps, self._kind, self._target, missing, given, self._seed)
        return named_work(kind, *rows, *decisive)

    def _reached(
        self, place: Place, total: int, held: list[tuple[NDArray[Any], NDArray[Any]]]
    ) -> Arrays:
        """What a pass has found so far. Names that were met later do no harm."""
        names = {name: entry.kept for name, entry in self._vocabulary.items()}
        text = json.dumps({"names": names, "types": self._types.met})
        parts = {f"keys{i}": keys for i, (keys, _) in enumerate(held)}
        parts |= {f"rows{i}": rows for i, (_, rows) in enumerate(held)}
        numbers = np.array([total, len(held), *place.numbers])
        return {"numbers": numbers, "names": np.frombuffer(text.encode(), np.uint8), **parts}

    def _go_on(self, state: Arrays, first: FirstRows) -> int:
        """Take up a pass where it was written down; the rows that it had read."""
        total, num_held, *place = state["numbers"].tolist()
        text = json.loads(state["names"].tobytes())
        for name, kept in text["names"].items():
            self._vocabulary[name].go_on(*kept)
        self._types.met = {name: tuple(kind) for name, kind in text["types"].items()}
        for i in range(num_held):
            first.offer(state[f"keys{i}"], state[f"rows{i}"])
        self.place = Place.of_numbers(place)
        return int(total)

    def _blocks(
        self, after: Place = START, *, is_all_numbers: bool = False
    ) -> Iterator[tuple[Source, int, Any]]:
        """Pieces of the files, each with where it comes from and its first row in its file."""
        size, mark = after.bytes, after.mark
        self.reading.bytes += size
        coded = {} if is_all_numbers else self._vocabulary
        numbers = {}
        if self._kind == "numbers":
            numbers = {name: self._missing[name] for name in self._columns if name not in coded}
        for number in range(after.files, len(self._tables)):
            table = self._tables[number]
            assert table.blocks is not None
            held = 0
            known = table.cost(self._columns).bytes
            for block in table.blocks(self._columns, mark, coded=coded, numbers=numbers):
                start, mark = mark.rows, block.mark
                self.place = Place(number, mark, size)
                yield table.source, start, block.table
                held += block.table.nbytes
            held = held if known is None else known
            self.reading.bytes += held
            size, mark = size + held, BEGINNING
        self.place = Place(len(self._tables), BEGINNING, size)

    def _coded(self, block: Any, source: Source, start: int) -> NDArray[Any]:
        """A piece as one array: codes of names, or numbers."""
        dtype = np.int32 if self._kind == "categories" else np.float64
        rows = np.empty((block.num_rows, len(self._columns)), dtype, order="F")
        for place, name in enumerate(self._columns):
            cells = block.column(name)
            if name in self._vocabulary:
                self._types.check(name, cells.type, source)
                rows[:, place] = self._vocabulary[name].code(cells, source, start)
            else:
                rows[:, place] = block_numbers(name, cells, self._missing[name], source, start)
        return rows

    def _as_rows(self, rows: NDArray[Any]) -> Rows:
        y = None
        if self._target is not None:
            entry = self._vocabulary[self._target]
            codes = entry.recode()[rows[:, -1].astype(np.int64)]
            y = np.array([*entry.order(), None], dtype=object)[codes]
            if (codes >= 0).all():
                y = y.astype(str)
            rows = rows[:, :-1]
        if self._kind == "numbers":
            return Rows(np.ascontiguousarray(rows), y)
        import pandas as pd

        columns = {}
        for place, name in enumerate(self._features):
            entry = self._vocabulary[name]
            codes = entry.recode()[rows[:, place]]
            columns[name] = pd.Categorical.from_codes(codes, pd.Index(list(entry.order())))
        return Rows(pd.DataFrame(columns), y)


def _given_values(
    values: Mapping[str, Sequence[str]] | None, columns: Sequence[str], first: RawTable
) -> Mapping[str, Sequence[str]]:
    """Values that were learned before; of all columns or of none, for codes are of both alike."""
    if values is None:
        return {}
    for name in columns:
        if name not in values:
            raise first.source.error("values= has no values for this column", column=name)
    return values


def _other_columns(table: RawTable, first: RawTable) -> str:
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


def _choose(
    table: RawTable, target: str | None, features: Sequence[str] | None, ignore: Iterable[str]
) -> list[str]:
    ignored = as_list(ignore)
    for name in (*as_list(features or ()), *ignored, *([] if target is None else [target])):
        require_column(table, name)
    wanted = as_list(features) if features is not None else list(table.names)
    chosen = [name for name in wanted if name != target and name not in ignored]
    if not chosen:
        raise table.source.error("no column is left to be a feature; ignore fewer columns")
    return chosen
