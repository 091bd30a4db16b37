"""Rows as integer codes: a dense array, or a sparse matrix of zeros and ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

__all__ = ["DenseRows", "EncodedColumns", "SparseRows"]

IntArray = NDArray[np.int64]


class EncodedColumns(Protocol):
    """Protocol of encoded rows that are accessed by column."""

    @property
    def num_rows(self) -> int:
        """Number of rows."""

    @property
    def num_values(self) -> tuple[int, ...]:
        """Number of values of each column."""

    def column(self, feature: int) -> NDArray[Any]:
        """Return the codes of a column, ``(N,)``; -1 is missing."""

    def ones(self, feature: int) -> NDArray[Any] | None:
        """Return the rows with a one in a 0/1 column; None if they are not indexed."""

    def take(self, rows: Any) -> EncodedColumns:
        """Return some of the rows."""


@dataclass(frozen=True)
class DenseRows:
    """Column-major array of codes ``(N, F)``; -1 is missing.

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
        """Return None: they are not indexed."""
        return None

    def take(self, rows: Any) -> DenseRows:
        """Return some of the rows."""
        return DenseRows(np.asfortranarray(self.codes[rows]), self.num_values)


@dataclass(frozen=True)
class SparseRows:
    """Sparse matrix of zeros and ones, by columns, without missing cells.

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
        """Number of values of each column: two, zero and one."""
        return (2,) * int(self.matrix.shape[1])

    def column(self, feature: int) -> NDArray[Any]:
        """Return the codes of a column, ``(N,)``."""
        codes = np.zeros(self.num_rows, np.int8)
        codes[self.ones(feature)] = 1
        return codes

    def ones(self, feature: int) -> NDArray[Any]:
        """Return the rows with a one in a column."""
        start, stop = self.matrix.indptr[feature : feature + 2]
        return np.asarray(self.matrix.indices[start:stop])

    def take(self, rows: Any) -> SparseRows:
        """Return some of the rows."""
        return SparseRows(self.matrix[rows])
