"""Rows in a random order, from memory or from files larger than it.

A `RowSource` puts the rows of its data into one random order (`bayes_lcs.data.row_order`) and hands
over any stretch of it. The beginning can be held out and samples of growing size taken after it:
they are random, they contain each other, and none holds a row of the hold-out.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any, Literal, NamedTuple

from bayes_lcs.data.errors import DataError

__all__ = ["Reading", "RowSource", "Rows", "row_source"]


class Rows(NamedTuple):
    """Some rows: features ``X`` and, of a source that has one, the target ``y``."""

    X: Any
    y: Any = None


@dataclass
class Reading:
    """What was read from files so far: passes over all of them, and rows."""

    passes: int = 0
    rows: int = 0


class RowSource(ABC):
    """Rows in a random order that is fixed by a seed."""

    reading: Reading

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
    memory: int = 1 << 28,
    seed: int = 0,
) -> RowSource:
    r"""Rows in a random order, from an array, a frame, or CSV and Parquet files.

    Files are read in pieces and never lie in memory as a whole: one pass learns the number of rows
    and the categories of every column, and keeps the rows that come first in the random order, as
    many as ``memory`` holds. Asking for more rows than that takes another pass. Categories are
    those of the whole file, in one coding: no later sample meets a new one.

    Parameters
    ----------
    data
        A NumPy array, a pandas frame, a SciPy sparse matrix; or the path of a CSV or Parquet
        file, or of a folder of such files (read in the order of their names, as one table).
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
    if isinstance(data, str | PathLike):
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
            memory=memory,
            seed=seed,
        )
    from bayes_lcs.data.memory_source import MemorySource

    return MemorySource(data, y, target=target, features=features, ignore=ignore, seed=seed)
