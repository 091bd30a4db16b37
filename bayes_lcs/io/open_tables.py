"""Open files, folders, frames and data sets as raw tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from bayes_lcs.core.errors import DataError, one_line
from bayes_lcs.io.decode import check_type
from bayes_lcs.io.formats.csv import open_csv_table
from bayes_lcs.io.formats.parquet import footer_size, open_parquet_table
from bayes_lcs.io.options import DEFAULT_CSV, CsvOptions, drop_stored_index
from bayes_lcs.io.raw_table import RawTable, SizeEstimate, Source, file_stamp

__all__ = ["as_path", "is_arrow_frame", "is_streamed", "open_file", "open_tables"]

_NOT_TABLES = {
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
"""First bytes of other file types, with advice."""

_MAGIC_LENGTH = 10
_SUFFIXES = (".csv", ".tsv", ".txt", ".data", ".parquet", ".pq")
_BATCH_ROWS = 1 << 16


def is_streamed(data: Any) -> bool:
    """Return whether data are read batch by batch, unlike arrays and pandas frames.

    Examples
    --------
    >>> is_streamed("visits.parquet"), is_streamed([[0, 1], [1, 1]])
    (True, False)
    """
    if isinstance(data, list | tuple):
        return bool(data) and all(isinstance(item, str | PathLike) for item in data)
    return isinstance(data, str | PathLike) or is_arrow_frame(data) or _is_dask(data)


def open_tables(
    data: Any, options: CsvOptions = DEFAULT_CSV, expected: Sequence[str] = ()
) -> list[RawTable]:
    """Open the tables of some data, in the order of reading.

    Data are the path of a CSV or Parquet file or of a folder of them, several paths, a
    ``pyarrow.dataset.Dataset`` or ``pyarrow.Table``, a polars frame, or a Dask dataframe. The
    ``expected`` columns help to detect the delimiter of text files.
    """
    if _is_dask(data):
        if not hasattr(data, "columns"):
            raise DataError(f"expected a Dask dataframe, got the collection {type(data)}")
        return [_open_partition(data, number) for number in range(data.npartitions)]
    if is_arrow_frame(data):
        return _open_dataset(data)
    given = data if isinstance(data, list | tuple) else [data]
    files = [file for path in given for file in _list_files(as_path(path))]
    return [open_file(file, options, expected) for file in files]


def open_file(
    path: str | PathLike[str], options: CsvOptions = DEFAULT_CSV, expected: Sequence[str] = ()
) -> RawTable:
    """Open a CSV or Parquet file; its type is detected from its first bytes."""
    path = as_path(path)
    if path.is_dir():
        raise DataError("is a directory; pass the path of one file", file=str(path))
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
        return open_parquet_table(path)
    for beginning, advice in _NOT_TABLES.items():
        if magic.lower().startswith(beginning.lower()):
            raise DataError(advice, file=path.name)
    return open_csv_table(path, options, expected)


def as_path(given: Any) -> Path:
    """Return a path, or raise an error with advice for rows in memory."""
    if not isinstance(given, str | PathLike):
        raise TypeError(
            f"expected the path of a file, got {type(given).__name__}; use fit or "
            "GroupedTable.from_frame for rows in memory"
        )
    return Path(given).expanduser()


def _list_files(path: Path) -> list[Path]:
    """Return the file, or the tables of a folder in the order of their names."""
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
        raise DataError("the folder contains no CSV or Parquet file", file=str(path))
    return found


# Arrow and polars ---------------------------------------------------------------------------------


def is_arrow_frame(data: Any) -> bool:
    """Return whether data is an Arrow table or data set, or a polars frame.

    Module names are compared, so that optional libraries are not imported.
    """
    module = type(data).__module__
    if module.startswith("polars."):
        # In this order, since accessing the columns of a lazy frame issues a warning.
        return hasattr(data, "collect") or hasattr(data, "columns")
    own = module.startswith("pyarrow.")
    return own and (hasattr(data, "get_fragments") or hasattr(data, "to_batches"))


def _open_dataset(data: Any) -> list[RawTable]:
    import pyarrow.dataset as ds

    if hasattr(data, "collect"):  # a lazy polars frame
        data = data.collect()
    if hasattr(data, "to_arrow"):
        data = data.to_arrow()
    dataset = data if hasattr(data, "get_fragments") else ds.dataset(data)
    names = dataset.schema.names
    for position, name in enumerate(names):
        if name in names[:position]:
            raise DataError("two columns have this name; rename one of them", column=name)
    fragments = list(dataset.get_fragments())
    if not fragments:
        raise DataError("the data set contains no files")
    return [_open_fragment(dataset, piece, i) for i, piece in enumerate(fragments)]


def _open_fragment(dataset: Any, fragment: Any, number: int) -> RawTable:
    import pyarrow as pa
    import pyarrow.dataset as ds

    path: Any = getattr(fragment, "path", None)
    source = Source(path or (f"fragment {number} of the data set" if number else None))
    in_folder = set(ds.get_partition_keys(fragment.partition_expression))

    def batches(wanted: Sequence[str], /, **_: Any) -> Iterator[Any]:
        try:
            own = fragment.physical_schema
            for name in wanted:
                check_type(name, dataset.schema.field(name).type, source)
                if name not in own.names and name not in in_folder:
                    raise source.error(
                        "this column of the data set does not exist in this file; all files must "
                        "have the same columns",
                        column=name,
                    )
            # Fragments are read with their own types: casts to the schema may lose values.
            fields = [(own if n in own.names else dataset.schema).field(n) for n in wanted]
            for batch in fragment.to_batches(
                pa.schema(fields), list(wanted), batch_size=_BATCH_ROWS
            ):
                yield pa.Table.from_batches([batch])
        except (pa.ArrowException, OSError) as error:
            raise source.error(f"cannot be read, the file is damaged: {one_line(error)}") from None

    def size() -> SizeEstimate:
        if isinstance(fragment, ds.ParquetFileFragment):
            return footer_size(lambda: fragment.metadata, source)
        known = Path(path).stat().st_size if is_file else None
        return SizeEstimate(None if path else fragment.count_rows(), known)

    is_file = bool(path) and Path(path).is_file()
    stamp = ""
    if is_file:
        stamp = f"{file_stamp(Path(path))}, {dataset.schema}, {fragment.partition_expression}"
    return RawTable(drop_stored_index(dataset.schema.names), source, batches, size, stamp=stamp)


# Dask ---------------------------------------------------------------------------------------------


def _is_dask(data: Any) -> bool:
    return type(data).__module__.startswith("dask") and hasattr(data, "npartitions")


def _open_partition(frame: Any, number: int) -> RawTable:
    import pyarrow as pa

    source = Source(f"partition {number} of {frame.npartitions}")
    columns = {str(name): name for name in frame.columns}

    def batches(wanted: Sequence[str], /, **_: Any) -> Iterator[Any]:
        part = frame[[columns[name] for name in wanted]].partitions[number].compute()
        part.columns = list(wanted)
        try:
            table = pa.Table.from_pandas(part, preserve_index=False)
        except (pa.ArrowException, TypeError) as error:
            raise source.error(f"has cells of several types: {one_line(error)}") from None
        for name in wanted:
            check_type(name, table.schema.field(name).type, source)
        yield table

    return RawTable(tuple(columns), source, batches)
