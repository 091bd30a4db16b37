"""Rows of an array, a frame or a sparse matrix in a random order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from bayes_lcs.data.categories import learn_categories
from bayes_lcs.data.errors import DataError
from bayes_lcs.data.frames import raw_from_frame
from bayes_lcs.data.row_order import random_order
from bayes_lcs.data.row_source import Reading, Rows, RowSource, SourcePart
from bayes_lcs.data.selection import as_list, require_column

__all__ = ["MemorySource"]


class MemorySource(RowSource):
    """Data in memory; `bayes_lcs.data.row_source.row_source` explains the parameters.

    A frame's columns of text become Categorical once, for all rows, so that every sample knows
    all categories.
    """

    def __init__(
        self,
        data: Any,
        y: Any = None,
        *,
        target: str | None = None,
        features: Sequence[str] | None = None,
        ignore: Iterable[str] = (),
        seed: int = 0,
    ) -> None:
        self.reading = Reading()
        if hasattr(data, "iloc"):
            data, y = _from_frame(data, y, target, features, ignore)
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
        """All of it in one piece."""
        data = self._data
        if hasattr(data, "memory_usage"):
            size = int(data.memory_usage(index=False, deep=True).sum())
        else:
            size = int((data.data if hasattr(data, "tocsr") else data).nbytes)
        return [SourcePart("memory", self.num_rows, size)]

    def needs_pass(self, stop: int) -> bool:  # noqa: ARG002
        """Nothing needs to be read."""
        return False

    def values(self, missing: Sequence[Any] = ()) -> list[Any] | None:
        """The values of each column over all rows; of a sparse matrix they are 0 and 1."""
        data = self._data
        if hasattr(data, "tocsr"):
            return None
        columns = range(data.shape[1])
        if hasattr(data, "iloc"):
            return [learn_categories(data.iloc[:, j], missing, data.columns[j]) for j in columns]
        return [learn_categories(data[:, j], missing) for j in columns]

    def take(self, start: int, stop: int) -> Rows:
        """The rows at the places ``start`` to ``stop`` of the random order."""
        self._check_places(start, stop)
        places = self._order[start:stop]
        data = self._data
        X = data.iloc[places] if hasattr(data, "iloc") else data[places]
        return Rows(X, None if self._target is None else self._target[places])


def _from_frame(
    frame: Any,
    y: Any,
    target: str | None,
    features: Sequence[str] | None,
    ignore: Iterable[str],
) -> tuple[Any, Any]:
    raw = raw_from_frame(frame)
    ignored = as_list(ignore)
    for name in (*as_list(features or ()), *ignored, *([] if target is None else [target])):
        require_column(raw, name)
    if target is not None:
        if y is not None:
            raise DataError("give either y= or target=, not both")
        y = frame.iloc[:, raw.names.index(target)]
    wanted = as_list(features) if features is not None else list(raw.names)
    places = [raw.names.index(n) for n in wanted if n != target and n not in ignored]
    if not places:
        raise DataError("no column is left to be a feature")
    chosen = frame.iloc[:, places]
    kinds = {name: str(kind) for name, kind in chosen.dtypes.items()}
    text = [name for name, kind in kinds.items() if kind.startswith(("object", "str"))]
    return chosen.astype(dict.fromkeys(text, "category")) if text else chosen, y
