"""Rows in a random order, from memory or from files larger than it.

A `RowSource` puts the rows of its data into one random order (`bayes_lcs.data.row_order`) and hands
over any stretch of it. The beginning can be held out and samples of growing size taken after it:
they are random, they contain each other, and none holds a row of the hold-out.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from bayes_lcs.data.errors import DataError

__all__ = ["Reading", "RowSource", "Rows", "SourcePart", "row_source"]


class Rows(NamedTuple):
    """Some rows: features ``X`` and, of a source that has one, the target ``y``."""

    X: Any
    y: Any = None


@dataclass
class Reading:
    """What was read in pieces so far: passes over all of them, rows, and bytes.

    Bytes are those of text files, and of the columns of Parquet files that were read; of what lies
    in memory or comes from Dask, those of the cells.
    """

    passes: int = 0
    rows: int = 0
    bytes: int = 0


class SourcePart(NamedTuple):
    """A piece of a source: its name, and its rows and bytes as far as they are known unread."""

    name: str
    rows: int | None
    bytes: int | None


class RowSource(ABC):
    """Rows in a random order that is fixed by a seed."""

    reading: Reading

    @property
    @abstractmethod
    def parts(self) -> list[SourcePart]:
        """The pieces in the order in which they are read, and what each will take."""

    @property
    @abstractmethod
    def num_rows(self) -> int:
        """Number of rows in all."""

    @abstractmethod
    def take(self, start: int, stop: int) -> Rows:
        """The rows at the places ``start`` to ``stop`` of the random order."""

    @abstractmethod
    def needs_pass(self, stop: int) -> bool:
        """Whether a pass over files is needed before the first ``stop`` rows can be taken."""

    def values(self, missing: Sequence[Any] = ()) -> list[Any] | None:  # noqa: ARG002
        """The values of each column over all rows; None if its samples carry them along."""
        return None

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
) -> RowSource:
    r"""Rows in a random order, from memory, files, Arrow data sets or Dask dataframes.

    Files are read in pieces and never lie in memory as a whole: one pass learns the number of rows
    and the categories of every column, and keeps the rows that come first in the random order, as
    many as ``memory`` holds. Asking for more rows than that takes another pass. Categories are
    those of the whole file, in one coding: no later sample meets a new one.

    Parameters
    ----------
    data
        A NumPy array, a pandas frame, a SciPy sparse matrix; or what is read in pieces, as one
        table: the path of a CSV or Parquet file, or of a folder of such files (in the order of
        their names), several paths, a ``pyarrow.dataset.Dataset`` or ``pyarrow.Table``, a Dask
        dataframe (a partition at a time).
    y
        The target of an array, one entry a row.
    target
        The target column of a frame or file, which then is not a feature.
    features, ignore
        The columns to use, or those to leave out, of a frame or file.
    kind : {"categories", "numbers"}
        What the cells of files are: names, which become Categorical columns of a frame, or
        numbers, which become an array of floats with NaN for missing. Data in memory stays as it
        is, but for columns of text in a frame, which become Categorical.
    missing_values
        Cells of files that mean "missing", as in `bayes_lcs.read_grouped`.
    encoding, delimiter, header
        Of text files, as in `bayes_lcs.read_grouped`.
    values
        The values of every column of a file, in the order of their codes, as another source of the
        same kind has them in ``categories``; any other value is then an error.
    memory
        Bytes of file rows to keep between samples.
    seed
        Of the random order. The same rows in the same order, from whatever kind of source, give
        the same samples.

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
    from bayes_lcs.data.raw_tables import lies_in_pieces

    if lies_in_pieces(data):
        if y is not None:
            raise DataError("y= is for arrays; name the target column of a file with target=")
        from bayes_lcs.data.file_source import FileSource

        return FileSource(
            data,
            target=target,
            features=features,
            ignore=ignore,
            kind=kind,
            missing_values=missing_values,
            encoding=encoding,
            delimiter=delimiter,
            header=header,
            values=values,
            memory=memory,
            seed=seed,
        )
    from bayes_lcs.data.memory_source import MemorySource

    return MemorySource(data, y, target=target, features=features, ignore=ignore, seed=seed)
