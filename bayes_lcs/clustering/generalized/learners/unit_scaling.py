"""Scaling of numeric columns to [0, 1], with one-hot encoding of nominal ones."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from bayes_lcs.clustering.generalized.mixed_columns import MixedRows

__all__ = ["UnitSpace"]

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class UnitSpace:
    """Minimum and range of each numeric column."""

    low: FloatArray
    width: FloatArray

    @classmethod
    def of(cls, rows: MixedRows, scale: bool = True) -> UnitSpace:
        """Fit the scaling to rows; without ``scale``, return the identity."""
        size = rows.numbers.shape[1]
        if not scale or not rows.num_rows:
            return cls(np.zeros(size), np.ones(size))
        width = np.ptp(rows.numbers, axis=0)
        width[width == 0.0] = 1.0
        return cls(rows.numbers.min(axis=0), width)

    def points(self, rows: MixedRows) -> FloatArray:
        """Convert rows to points."""
        return replace(rows, numbers=(rows.numbers - self.low) / self.width).one_hot()
