"""Sample rows of arrays and frames in random order; for files see `bayes_lcs.io.sampler`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from bayes_lcs.core.errors import DataError
from bayes_lcs.data.rows.ordinal_encoding import learn_categories
from bayes_lcs.io.category_encoder import check_measurements
from bayes_lcs.io.frames import set_index_aside
from bayes_lcs.io.open_tables import is_streamed
from bayes_lcs.io.options import CsvOptions, MissingValues, as_list, select_columns
from bayes_lcs.io.random_order import random_order
from bayes_lcs.io.raw_table import Source
from bayes_lcs.io.sampler import FileSampler, ReadCount, Rows, RowSource, SourcePart

__all__ = ["ArraySampler", "row_source"]


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

    Files are read batch by batch and never completely in memory: one pass counts the rows, finds
    the type and the categories of every column, and stores the first rows of the random order, as
    many as fit into ``memory``. More rows require another pass. Categories are those of all rows,
    so that later samples have no new ones.

    Parameters
    ----------
    data
        A NumPy array, a pandas frame, a SciPy sparse matrix; or data that are read in batches: the
        path of a CSV or Parquet file, or of a folder of such files (in the order of their names),
        several paths, a polars frame, a ``pyarrow.Table`` or ``pyarrow.dataset.Dataset``, a Dask
        dataframe (partition by partition).
    y
        The target of an array, one entry per row.
    target
        The target column of a frame or file, which is then not a feature.
    features, ignore
        The columns of a frame or file to use, or to ignore.
    kind : {"categories", "numbers"}
        Representation of the columns of files: Categorical columns of a frame whose categories have
        the type of the column, or an array of floats with NaN for missing cells. ``"numbers"`` uses
        the numeric columns and lists the others in a note, unless ``features`` selects columns.
        Data in memory keep their types, but text columns of a frame become Categorical.
    categorical
        Columns to treat as categories although they have many non-integer numbers; True for all.
        Without it such a column of a file is an error.
    missing_values
        Markers of missing values, as in `bayes_lcs.read_grouped`.
    encoding, delimiter, header
        Options for text files, as in `bayes_lcs.read_grouped`.
    values
        The values of every column of a file in the order of their codes, such as ``categories`` of
        another source; any other value is an error.
    memory
        Bytes of file rows to store between samples.
    seed
        Seed of the random order. The same rows in the same order give the same samples, whatever
        the kind of source.

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
            raise DataError("y= is for arrays; set the target column of a file with target=")
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


class ArraySampler(RowSource):
    """Rows of an array, a frame or a sparse matrix; see `row_source` for the parameters."""

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
            raise DataError(
                "target=, features= and ignore= require a frame or a file with column names"
            )
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
        """Name, rows and bytes of the data, as one part."""
        data = self._data
        if hasattr(data, "memory_usage"):
            size = int(data.memory_usage(index=False, deep=True).sum())
        else:
            size = int((data.data if hasattr(data, "tocsr") else data).nbytes)
        return [SourcePart("memory", self.num_rows, size)]

    def needs_pass(self, stop: int) -> bool:  # noqa: ARG002
        """Return False: all rows are in memory."""
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
        check_measurements(values, categorical)
        return list(values.values())

    def take(self, start: int, stop: int) -> Rows:
        """Return the rows ``start`` to ``stop`` of the random order."""
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
        raise DataError(
            "the frame has two columns with this name; rename one of them", column=str(twice)
        )
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
