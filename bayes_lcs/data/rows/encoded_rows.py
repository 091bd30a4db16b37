"""Rows as integer codes: dense, or a sparse matrix of zeros and ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

__all__ = ["DenseRows", "EncodedColumns", "SparseRows"]

IntArray = NDArray[np.int64]


class EncodedColumns(Protocol):
    """Rows of codes, read column by column."""

    @property
    def num_rows(self) -> int:
        """Number of rows."""

    @property
    def num_values(self) -> tuple[int, ...]:
        """Number of values of each column."""

    def column(self, feature: int) -> NDArray[Any]:
        """Return the codes of a column, ``(N,)``; -1 is missing."""

    def ones(self, feature: int) -> NDArray[Any] | None:
        """Return the rows of a 0/1 column that hold a one; None if that is not known."""

    def take(self, rows: Any) -> EncodedColumns:
        """Return some of the rows."""


@dataclass(frozen=True)
class DenseRows:
    """An array of codes ``(N, F)``, -1 where a cell is missing; column-major.

    Examples
    --------
    >>> rows = DenseRows(np.array([[0, 1], [-1, 0]]), (1, 2))
    >>> rows.num_rows, rows.column(0).tolist()
    (2, [0, -1])
    """

    codes: NDArray[Any]
    num_values: tuple[int, ...]

    @property
    def num_rows(self) -> int:
        """Number of rows."""
        return int(self.codes.shape[0])

    def column(self, feature: int) -> NDArray[Any]:
        """Return the codes of a column, ``(N,)``; -1 is missing."""
        return self.codes[:, feature]

    def ones(self, feature: int) -> NDArray[Any] | None:  # noqa: ARG002 - the protocol's
        """Return None: finding them would take a search."""
        return None

    def take(self, rows: Any) -> DenseRows:
        """Return some of the rows."""
        return DenseRows(np.asfortranarray(self.codes[rows]), self.num_values)


@dataclass(frozen=True)
class SparseRows:
    """A sparse matrix of zeros and ones, by columns: each column has two values, none missing.

    Examples
    --------
    >>> from scipy.sparse import csc_array
    >>> rows = SparseRows(csc_array(np.eye(3)))
    >>> rows.num_values, rows.ones(1).tolist(), rows.column(1).tolist()
    ((2, 2, 2), [1], [0, 1, 0])
    """

    matrix: Any

    @property
    def num_rows(self) -> int:
        """Number of rows."""
        return int(self.matrix.shape[0])

    @property
    def num_values(self) -> tuple[int, ...]:
        """Zero and one, in every column."""
        return (2,) * int(self.matrix.shape[1])

    def column(self, feature: int) -> NDArray[Any]:
        """Return the codes of a column, ``(N,)``."""
        codes = np.zeros(self.num_rows, np.int8)
        codes[self.ones(feature)] = 1
        return codes

    def ones(self, feature: int) -> NDArray[Any]:
        """Return the rows of a column that hold a one."""
        start, stop = self.matrix.indptr[feature : feature + 2]
        return np.asarray(self.matrix.indices[start:stop])

    def take(self, rows: Any) -> SparseRows:
        """Return some of the rows."""
        return SparseRows(self.matrix[rows])
