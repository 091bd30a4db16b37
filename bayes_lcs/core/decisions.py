"""Decisions that minimise the expected loss of each row."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["asymmetric_loss", "binary_threshold", "decide", "expected_losses", "zero_one_loss"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


def zero_one_loss(num_labels: int) -> FloatArray:
    """Return the loss matrix with loss 1 for every wrong label."""
    return 1.0 - np.eye(num_labels)


def asymmetric_loss(exponent: float) -> FloatArray:
    """Return ``L_n`` of thesis eq. (4.16): a false positive costs 1, a false negative ``2^n``.

    Rows are the true label (0 negative, 1 positive), columns the decision.

    Examples
    --------
    >>> asymmetric_loss(2).tolist()
    [[0.0, 1.0], [4.0, 0.0]]
    """
    return np.array([[0.0, 1.0], [2.0**exponent, 0.0]])


def binary_threshold(loss: ArrayLike) -> float:
    """Return the probability above which label 1 is decided, ``D1 / (D0 + D1)``, eq. (3.1).

    ``D1`` is the loss of a false positive minus that of a true negative, ``D0`` that of a false
    negative minus that of a true positive.

    Examples
    --------
    >>> binary_threshold([[0, 1], [4, 0]])
    0.2
    """
    matrix = _as_loss(loss, 2)
    over, under = matrix[0, 1] - matrix[0, 0], matrix[1, 0] - matrix[1, 1]
    if over <= 0 or under <= 0:
        raise ValueError("a wrong decision must cost more than the right one, for either label")
    return float(over / (over + under))


def _as_loss(loss: ArrayLike, num_labels: int) -> FloatArray:
    matrix = np.asarray(loss, dtype=np.float64)
    if matrix.ndim != 2 or matrix.shape[0] != num_labels or matrix.shape[1] < 1:
        raise ValueError(
            f"a loss must have one row for each of the {num_labels} true labels and one column "
            f"for each decision; got shape {matrix.shape}"
        )
    if not np.isfinite(matrix).all():
        raise ValueError("losses must be finite")
    return matrix


def expected_losses(probabilities: ArrayLike, loss: ArrayLike) -> FloatArray:
    """Return the expected loss of each decision: ``(N, L)`` and ``(L, D)`` to ``(N, D)``."""
    p = np.asarray(probabilities, dtype=np.float64)
    return p @ _as_loss(loss, p.shape[1])


def decide(probabilities: ArrayLike, loss: ArrayLike | None = None) -> IntArray:
    """Return the decision of least expected loss of each row; by default the most probable label.

    Examples
    --------
    >>> decide([[0.7, 0.3]], loss=asymmetric_loss(2)).tolist()  # 0.3 is above 1/5
    [1]
    """
    p = np.asarray(probabilities, dtype=np.float64)
    matrix = zero_one_loss(p.shape[1]) if loss is None else loss
    return np.argmin(expected_losses(p, matrix), axis=1)
