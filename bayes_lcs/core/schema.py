"""Shape of a categorical table: number of labels, and number of values of each feature.

Features have different numbers of values, so counts are stored *flat*: the values of all features
are on one axis of ``num_cells`` cells, one feature after another, without padding. A table with one
feature of 1,000 values and fifty binary ones has 1,100 cells instead of 51,000.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Schema"]


@dataclass(frozen=True)
class Schema:
    """Number of labels ``L`` and number of values ``V_f`` of each feature ``f``.

    Examples
    --------
    >>> schema = Schema(num_labels=2, num_values=(3, 2))
    >>> schema.num_features, schema.num_cells
    (2, 5)
    >>> schema.cell_feature.tolist()
    [0, 0, 0, 1, 1]
    """

    num_labels: int
    num_values: tuple[int, ...]

    def __init__(self, num_labels: int, num_values: Sequence[int]) -> None:
        object.__setattr__(self, "num_labels", int(num_labels))
        object.__setattr__(self, "num_values", tuple(int(v) for v in num_values))
        if self.num_labels < 1:
            raise ValueError(f"num_labels must be at least 1, got {num_labels}")
        for feature, values in enumerate(self.num_values):
            if values < 1:
                raise ValueError(f"feature {feature} must have at least 1 value, got {values}")

    @property
    def num_features(self) -> int:
        """Number of features ``F``."""
        return len(self.num_values)

    @property
    def num_cells(self) -> int:
        """Total number of feature values ``C``, the length of the flat cell axis."""
        return sum(self.num_values)

    @cached_property
    def offsets(self) -> NDArray[np.int64]:
        """First cell of each feature, with ``C`` appended; shape ``(F + 1,)``."""
        return np.concatenate([[0], np.cumsum(self.num_values, dtype=np.int64)]).astype(np.int64)

    @cached_property
    def cell_feature(self) -> NDArray[np.int64]:
        """Feature of each cell; shape ``(C,)``."""
        return np.repeat(np.arange(self.num_features), self.num_values)

    def cells_of(self, feature: int) -> slice:
        """Return the slice of the cell axis that holds the values of a feature."""
        return slice(int(self.offsets[feature]), int(self.offsets[feature + 1]))

    def sum_values(self, cells: NDArray[Any]) -> NDArray[Any]:
        """Sum the last axis over the values of each feature: ``(..., C)`` to ``(..., F)``."""
        if self.num_features == 0:
            return np.zeros((*cells.shape[:-1], 0), dtype=cells.dtype)
        return np.add.reduceat(cells, self.offsets[:-1], axis=-1)
