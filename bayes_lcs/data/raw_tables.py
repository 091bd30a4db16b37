"""What lies in pieces, as raw tables in a fixed order: files, Arrow data sets, Dask dataframes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from bayes_lcs.data.arrow_columns import check_type, marked
from bayes_lcs.data.column_reading import read_columns
from bayes_lcs.data.column_types import ColumnTypes
from bayes_lcs.data.columns import (
    BEGINNING,
    Block,
    Cost,
    Mark,
    RawColumn,
    RawTable,
    Source,
    file_stamp,
)
from bayes_lcs.data.errors import DataError, one_line
from bayes_lcs.data.parquet_reader import footer_cost
from bayes_lcs.data.reader import raw_from_file

__all__ = ["lies_in_pieces", "raw_tables"]

_SUFFIXES = (".csv", ".tsv", ".txt", ".data", ".parquet", ".pq")
_BLOCK_ROWS = 1 << 16


def lies_in_pieces(data: Any) -> bool:
    """Whether data is read piece by piece, and not an array or a frame in memory.

    Examples
    --------
    >>> lies_in_pieces("visits.parquet"), lies_in_pieces([[0, 1], [1, 1]])
    (True, False)
    """
    if isinstance(data, list | tuple):
        return bool(data) and all(isinstance(item, str | PathLike) for item in data)
    return isinstance(data, str | PathLike) or _is_arrow(data) or _is_dask(data)


def raw_tables(
    data: Any,
    *,
    encoding: str = "utf-8",
    delimiter: str | None = None,
    header: bool | Sequence[str] = True,
    expected: Sequence[str] = (),
) -> list[RawTable]:
    """The pieces of some data, in the order in which they are read.

    Parameters
    ----------
    data
        The path of a CSV or Parquet file or of a folder of them, several paths, a
        ``pyarrow.dataset.Dataset`` or ``pyarrow.Table``, or a Dask dataframe.
    encoding, delimiter, header, expected
        Of text files, as in `bayes_lcs.data.reader.raw_from_file`.
    """
    if _is_arrow(data):
        return _of_dataset(data)
    if _is_dask(data):
        return _of_dask(data)
    given = data if isinstance(data, list | tuple) else [data]
    files = [file for path in given for file in _files(Path(path).expanduser())]
    return [
        raw_from_file(
            file, encoding=encoding, delimiter=delimiter, header=header, expected=expected
        )
        for file in files
    ]


def _files(path: Path) -> list[Path]:
    """The file, or the tables of a folder in the order of their names."""
    if not path.is_dir():
        return [path]
    found = sorted(
        file
        for file in path.iterdir()
        if file.is_file()
        and not file.name.startswith((".", "_"))
        and file.name.removesuffix(".gz").lower().endswith(_SUFFIXES)
    )
    if not found:
        raise DataError("the folder holds no CSV or Parquet file", file=str(path))
    return found


# Arrow --------------------------------------------------------------------------------------------


def _is_arrow(data: Any) -> bool:
    # Told by name: what was never imported need not be imported to know that this is none of it.
    own = type(data).__module__.startswith("pyarrow.")
    return own and (hasattr(data, "get_fragments") or hasattr(data, "to_batches"))


def _of_dataset(data: Any) -> list[RawTable]:
    import pyarrow.dataset as ds

    dataset = data if hasattr(data, "get_fragments") else ds.dataset(data)
    # What the whole is said to hold; pieces that hold something else are not cast to it.
    types = ColumnTypes()
    for field in dataset.schema:
        types.check(field.name, field.type, Source("the schema of the data set"))
    names = dataset.schema.names
    for position, name in enumerate(names):
        if name in names[:position]:
            raise DataError("two columns have this name; rename one", column=name)
    pieces = list(dataset.get_fragments())
    if not pieces:
        raise DataError("the data set holds no files")
    return [_of_fragment(dataset, piece, i, types) for i, piece in enumerate(pieces)]


def _of_fragment(dataset: Any, fragment: Any, number: int, types: ColumnTypes) -> RawTable:
    import pyarrow as pa
    import pyarrow.dataset as ds

    path = getattr(fragment, "path", None)
    source = Source(path or f"piece {number} of the data set")
    in_folder = set(ds.get_partition_keys(fragment.partition_expression))

    def tables(wanted: Sequence[str]) -> Iterator[Any]:
        try:
            own = fragment.physical_schema
            for name in wanted:
                check_type(name, dataset.schema.field(name).type, source)
                if name in own.names:
                    types.check(name, own.field(name).type, source)
                elif name not in in_folder:
                    raise source.error(
                        "there is no such column here, but in the schema of the data set; all "
                        "files must have the same columns",
                        column=name,
                    )
            scanner = fragment.scanner(
                schema=dataset.schema, columns=list(wanted), batch_size=_BLOCK_ROWS
            )
            for batch in scanner.to_batches():
                yield pa.Table.from_batches([batch])
        except (pa.ArrowException, OSError) as error:
            raise source.error(f"cannot be read, the file is damaged: {one_line(error)}") from None

    def cost(_: Sequence[str]) -> Cost:
        if isinstance(fragment, ds.ParquetFileFragment):
            return footer_cost(lambda: fragment.metadata, source)
        size = Path(path).stat().st_size if path and Path(path).is_file() else None
        return Cost(None if path else fragment.count_rows(), size)

    stamp = ""
    if path and Path(path).is_file():
        stamp = f"{file_stamp(Path(path))}, {dataset.schema}, {fragment.partition_expression}"
    return _table(dataset.schema.names, source, tables, cost, stamp)


# Dask ---------------------------------------------------------------------------------------------


def _is_dask(data: Any) -> bool:
    return type(data).__module__.startswith("dask") and hasattr(data, "npartitions")


def _of_dask(frame: Any) -> list[RawTable]:
    if not hasattr(frame, "columns"):
        raise DataError(f"of Dask's collections only dataframes are tables, not {type(frame)}")
    for name in frame.columns:
        if not isinstance(name, str):
            raise DataError(f"names of columns must be text, got {name!r}")
    size = frame.npartitions
    return [_of_partition(frame, number, size) for number in range(size)]


def _of_partition(frame: Any, number: int, size: int) -> RawTable:
    import pyarrow as pa

    source = Source(f"partition {number} of {size}")

    def tables(wanted: Sequence[str]) -> Iterator[Any]:
        part = frame[list(wanted)].partitions[number].compute()
        try:
            table = pa.Table.from_pandas(part, preserve_index=False)
        except (pa.ArrowException, TypeError) as error:
            raise source.error(f"holds cells of several kinds: {one_line(error)}") from None
        for name in wanted:
            check_type(name, table.schema.field(name).type, source)
        yield table

    return _table(frame.columns, source, tables, lambda _: Cost(None, None))


def _table(names: Any, source: Source, tables: Any, cost: Any, stamp: str = "") -> RawTable:
    def blocks(wanted: Sequence[str], after: Mark = BEGINNING, /, **_: Any) -> Iterator[Block]:
        return marked(tables(wanted), after)

    def read(wanted: Sequence[str]) -> dict[str, RawColumn]:
        return read_columns(blocks, source, wanted, stamp)

    return RawTable(tuple(names), source, read, blocks, cost, stamp=stamp)
