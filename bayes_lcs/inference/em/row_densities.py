"""Log densities and responsibilities of rows, batch by batch, without compilation.

A row layout pays for many passes, as in EM; these functions make one pass. A batch of rows is a
sparse matrix of zeros and ones, whose log probabilities are a sparse matrix product of SciPy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.special import logsumexp

from bayes_lcs.core.model_protocols import MixtureParameters
from bayes_lcs.core.schema import Schema
from bayes_lcs.data.rows.encoded_rows import EncodedColumns, SparseRows

__all__ = ["log_density", "map_rows", "responsibilities"]

FloatArray = NDArray[np.float64]

BLOCK_ROWS = 8192
IMPOSSIBLE = -5e4
"""Log probabilities below this are those of probability zero; no possible row comes near."""


def log_density(joint: FloatArray) -> FloatArray:
    """Return ``log p(x)`` of each row, from ``log p(x, z)``, ``(N, K)``."""
    return np.asarray(logsumexp(joint, axis=1))


def responsibilities(joint: FloatArray) -> FloatArray:
    """Return ``p(z | x)`` of each row, from ``log p(x, z)``; uniform if a row is impossible."""
    top = joint.max(axis=1, keepdims=True)
    shares = np.exp(joint - np.where(np.isfinite(top), top, 0.0))
    shares[~np.isfinite(top[:, 0])] = 1.0
    result: FloatArray = shares / shares.sum(axis=1, keepdims=True)
    return result


def map_rows(
    parameters: MixtureParameters,
    table: EncodedColumns,
    function: Callable[[FloatArray], NDArray[Any]],
) -> NDArray[Any]:
    """Apply a function from ``log p(x, z)``, ``(N, K)``, to ``(N, ...)`` batch by batch."""
    if isinstance(table, SparseRows):
        joints = _sparse_joints(parameters, table)
    else:
        joints = _dense_joints(parameters, table)
    pieces = [function(joint) for joint in joints]
    if not pieces:
        return function(np.empty((0, parameters.num_components)))
    return np.concatenate(pieces)


def _dense_joints(parameters: MixtureParameters, table: EncodedColumns) -> Iterator[FloatArray]:
    """Yield ``log p(x, z)`` of batches; missing cells select an extra row of zeros."""
    with np.errstate(divide="ignore"):
        logs = np.vstack([np.log(parameters.cells), np.zeros((1, parameters.num_components))])
        weights = np.log(parameters.weights)
    offsets = Schema(1, table.num_values).offsets
    for start in range(0, table.num_rows, BLOCK_ROWS):
        block = table.take(slice(start, start + BLOCK_ROWS))
        cells = np.empty((block.num_rows, len(table.num_values)), np.int32)
        for f, offset in enumerate(offsets[:-1]):
            codes = block.column(f)
            cells[:, f] = np.where(codes >= 0, codes + offset, len(logs) - 1)
        ends = np.arange(len(cells) + 1) * cells.shape[1]
        ones = csr_array((np.ones(cells.size), cells.ravel(), ends), (len(cells), len(logs)))
        yield weights + ones @ logs


def _sparse_joints(parameters: MixtureParameters, table: SparseRows) -> Iterator[FloatArray]:
    """Yield ``log p(x, z)`` of batches: that of a row of zeros plus the differences of its ones.

    Logs of zero are replaced by a low number, because differences of infinities are NaN.
    """
    with np.errstate(divide="ignore"):
        logs = np.maximum(np.log(parameters.cells), 2.0 * IMPOSSIBLE)
        weights = np.log(parameters.weights)
    differences = logs[1::2] - logs[0::2]
    base = weights + logs[0::2].sum(axis=0)
    matrix = table.matrix.tocsr()
    for start in range(0, table.num_rows, BLOCK_ROWS):
        joint = base + matrix[start : start + BLOCK_ROWS].astype(np.float64) @ differences
        yield np.where(joint < IMPOSSIBLE, -np.inf, joint)
