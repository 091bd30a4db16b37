"""What a mixture says about each row: block by block, in NumPy, nothing to compile.

Rows that are asked about once are not worth a plan; `bayes_lcs.inference.em` is for many passes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp

from bayes_lcs.core.mixture import MixtureParameters
from bayes_lcs.data.coded import CodedColumns, SparseRows

__all__ = ["log_density", "map_rows", "responsibilities"]

FloatArray = NDArray[np.float64]

BLOCK_ROWS = 8192
IMPOSSIBLE = -5e4
"""A log probability below this is one of zero: no row of a real fit comes near."""


class RowModel(Protocol):
    """A model that can say how probable coded rows are together with their components."""

    def log_joint(self, parameters: MixtureParameters, rows: ArrayLike) -> FloatArray:
        """``log p(x_n, z_n = k)``, ``(N, K)``."""


def log_density(joint: FloatArray) -> FloatArray:
    """``log p(x)`` of each row, from ``(N, K)``."""
    return np.asarray(logsumexp(joint, axis=1))


def responsibilities(joint: FloatArray) -> FloatArray:
    """``p(z | x)`` of each row, from ``(N, K)``; equal where a row is impossible."""
    top = joint.max(axis=1, keepdims=True)
    shares = np.exp(joint - np.where(np.isfinite(top), top, 0.0))
    shares[~np.isfinite(top[:, 0])] = 1.0
    result: FloatArray = shares / shares.sum(axis=1, keepdims=True)
    return result


def map_rows(
    model: RowModel,
    parameters: MixtureParameters,
    table: CodedColumns,
    function: Callable[[FloatArray], NDArray[Any]],
) -> NDArray[Any]:
    """``function(log p(x, z))`` of all rows; ``(rows, K)`` goes in, ``(rows, ...)`` comes out."""
    pieces = [function(joint) for joint in _joints(model, parameters, table)]
    if not pieces:
        return function(np.empty((0, parameters.num_components)))
    return np.concatenate(pieces)


def _joints(
    model: RowModel, parameters: MixtureParameters, table: CodedColumns
) -> Iterator[FloatArray]:
    if isinstance(table, SparseRows):
        yield from _sparse_joints(parameters, table)
        return
    for start in range(0, table.num_rows, BLOCK_ROWS):
        block = table.take(slice(start, start + BLOCK_ROWS))
        columns = [block.column(f) for f in range(len(table.num_values))]
        rows = np.stack(columns, axis=1) if columns else np.empty((block.num_rows, 0), np.int64)
        yield model.log_joint(parameters, rows)


def _sparse_joints(parameters: MixtureParameters, table: SparseRows) -> Iterator[FloatArray]:
    """All zeros, and the differences that ones make; logs of 0 are a low number until the end."""
    with np.errstate(divide="ignore"):
        logs = np.maximum(np.log(parameters.cells), 2.0 * IMPOSSIBLE)
        weights = np.log(parameters.weights)
    differences = logs[1::2] - logs[0::2]
    base = weights + logs[0::2].sum(axis=0)
    matrix = table.matrix.tocsr()
    for start in range(0, table.num_rows, BLOCK_ROWS):
        joint = base + matrix[start : start + BLOCK_ROWS].astype(np.float64) @ differences
        yield np.where(joint < IMPOSSIBLE, -np.inf, joint)
