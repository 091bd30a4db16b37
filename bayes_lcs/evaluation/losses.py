"""Losses of predictions, per row and on average.

There are two kinds of loss, after thesis chapter 3. A loss *of decisions* is a matrix: the decision
of each row minimises the expected loss (:func:`bayes_lcs.core.decisions.decide`), and its loss is
the entry for the true label. The *log loss* evaluates the probabilities: ``-log P(true label)``.

Every mean over rows has a standard error, ``s / sqrt(N)`` with ``s`` the sample standard
deviation. It assumes independent rows and describes the variation over test rows, not over training
tables.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayes_lcs.core.decisions import asymmetric_loss, decide, zero_one_loss

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["MeanLoss", "asymmetric_loss_curve", "mean_loss", "row_losses"]

FloatArray = NDArray[np.float64]

THESIS_EXPONENTS = range(-8, 9)
"""``n`` of the losses ``L_n`` of Figure 4-8."""


class MeanLoss(NamedTuple):
    """Mean loss over rows with its standard error.

    Attributes
    ----------
    value
        Mean loss.
    standard_error
        Standard error of the mean; NaN for fewer than two rows, or if a loss is infinite.
    num_rows
        Number of rows.
    """

    value: float
    standard_error: float
    num_rows: int


def row_losses(
    probabilities: ArrayLike,
    labels: ArrayLike,
    loss: Literal["zero-one", "log"] | ArrayLike = "zero-one",
) -> FloatArray:
    """Return the loss of each row, ``(N,)``.

    Parameters
    ----------
    probabilities : (N, L)
        Predicted probability of each label.
    labels : (N,)
        Codes of the true labels; none may be missing.
    loss : {"zero-one", "log"}, or (L, D)
        ``"zero-one"``: 1 if the most probable label is wrong. ``"log"``: ``-log P(true)`` in
        nats, infinite if the probability is zero. A matrix: one row per true label and one column
        per decision; the decision minimises the expected loss.

    Examples
    --------
    >>> row_losses([[0.8, 0.2], [0.8, 0.2]], [0, 1]).tolist()
    [0.0, 1.0]
    >>> row_losses([[0.8, 0.2]], [0], [[0, 1], [8, 0]]).tolist()  # 8 * 0.2 is more than 0.8
    [1.0]
    """
    p = np.asarray(probabilities, dtype=np.float64)
    given = np.asarray(labels)
    if given.dtype.kind not in "iub":
        raise TypeError(f"labels must be integer codes of label values, got {given.dtype}")
    y = given.astype(np.int64)
    if not (np.isfinite(p) & (p >= 0)).all():
        raise ValueError("probabilities must be finite and not negative")
    if p.ndim != 2 or y.shape != p.shape[:1]:
        raise ValueError(f"probabilities of shape {p.shape} do not fit labels of shape {y.shape}")
    if ((y < 0) | (y >= p.shape[1])).any():
        raise ValueError(f"labels must be codes from 0 to {p.shape[1] - 1}, none missing")
    if isinstance(loss, str):
        if loss == "log":
            with np.errstate(divide="ignore"):
                # scikit-learn's log_loss gives the mean only, and clips probabilities of zero.
                return 0.0 - np.log(p[np.arange(len(y)), y])
        if loss != "zero-one":
            raise ValueError(f"loss must be 'zero-one', 'log' or a matrix, got {loss!r}")
        loss = zero_one_loss(p.shape[1])
    return np.asarray(loss, dtype=np.float64)[y, decide(p, loss)]


def _standard_error(values: FloatArray) -> float:
    if len(values) < 2 or not np.isfinite(values).all():
        return float("nan")
    return float(values.std(ddof=1) / np.sqrt(len(values)))


def mean_loss(
    probabilities: ArrayLike,
    labels: ArrayLike,
    loss: Literal["zero-one", "log"] | ArrayLike = "zero-one",
) -> MeanLoss:
    """Return the mean loss of rows with its standard error; see `row_losses` for the arguments.

    Examples
    --------
    >>> import bayes_lcs as bl
    >>> p = [[0.8, 0.2], [0.6, 0.4], [0.3, 0.7], [0.9, 0.1]]
    >>> bl.mean_loss(p, [0, 1, 1, 0])
    MeanLoss(value=0.25, standard_error=0.25, num_rows=4)
    >>> round(bl.mean_loss(p, [0, 1, 1, 0], "log").value, 4)
    0.4004
    """
    losses = row_losses(probabilities, labels, loss)
    value = float(losses.mean()) if len(losses) else float("nan")
    return MeanLoss(value, _standard_error(losses), len(losses))


def asymmetric_loss_curve(
    predictions: Mapping[str, ArrayLike],
    labels: ArrayLike,
    *,
    exponents: Iterable[float] = THESIS_EXPONENTS,
    relative_to: str | None = None,
) -> pd.DataFrame:
    """Return the mean loss under ``L_n`` of thesis eq. (4.16) for a range of ``n`` (Figure 4-8).

    A false positive costs 1 and a false negative ``2^n``, so the losses for small and large ``n``
    differ by factors of hundreds for any predictor. The ratio to the loss of a reference on the
    same rows is comparable. Its standard error is that of the ratio of two paired means
    ``r = mean(a) / mean(b)`` to first order (delta method), ``sd(a - r b) / (mean(b) sqrt(N))``.

    Parameters
    ----------
    predictions
        Probabilities ``(N, 2)`` of the same rows, by name of the model.
    labels : (N,)
        The true labels, 0 or 1.
    exponents
        The values of ``n``.
    relative_to
        Name of the reference model. None: the better constant decision, always 0 or always 1, on
        these rows.

    Returns
    -------
    pandas.DataFrame
        ``model``, ``exponent``, ``loss`` and its ``standard_error``, ``relative_loss`` and its
        ``relative_standard_error`` (NaN if the reference has no loss), and ``relative_to``.

    Examples
    --------
    >>> import bayes_lcs as bl
    >>> predictions = {"sharp": [[0.9, 0.1], [0.1, 0.9], [0.7, 0.3], [0.4, 0.6]]}
    >>> curve = bl.asymmetric_loss_curve(predictions, [0, 1, 1, 0], exponents=[-2, 0, 2])
    >>> curve[["exponent", "loss", "relative_loss"]].values.tolist()
    [[-2.0, 0.0625, 0.5], [0.0, 0.5, 1.0], [2.0, 0.25, 0.5]]
    """
    import pandas as pd

    if relative_to is not None and relative_to not in predictions:
        raise ValueError(f"relative_to must be one of {list(predictions)}, got {relative_to!r}")
    y = np.asarray(labels, dtype=np.int64)
    for name, probabilities in predictions.items():
        if np.shape(probabilities) != (len(y), 2):
            raise ValueError(
                f"L_n is defined for two labels: {name!r} must have shape ({len(y)}, 2), "
                f"got {np.shape(probabilities)}"
            )
    exponents = list(exponents)
    columns = ["model", "exponent", "loss", "standard_error"]
    columns += ["relative_loss", "relative_standard_error", "relative_to"]
    compared_with = "the best constant decision" if relative_to is None else relative_to
    rows = []
    for name, probabilities in predictions.items():
        for exponent in exponents:
            loss = asymmetric_loss(exponent)
            own = row_losses(probabilities, y, loss)
            if relative_to is None:
                constant = loss[y]  # (N, 2): loss of each row under always 0 and always 1
                reference = constant[:, np.argmin(constant.mean(axis=0))]
            else:
                reference = row_losses(predictions[relative_to], y, loss)
            ratio, ratio_error = _ratio_of_means(own, reference)
            mean, error = float(own.mean()), _standard_error(own)
            rows.append((name, exponent, mean, error, ratio, ratio_error, compared_with))
    return pd.DataFrame(rows, columns=columns)


def _ratio_of_means(losses: FloatArray, reference: FloatArray) -> tuple[float, float]:
    base = float(reference.mean())
    if base == 0:
        return float("nan"), float("nan")
    ratio = float(losses.mean()) / base
    return ratio, _standard_error(losses - ratio * reference) / base
