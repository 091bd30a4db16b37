"""What predictions cost once the labels are known, row by row and on average.

Two kinds of loss, after thesis chapter 3. A loss *of decisions* is a matrix: each row is decided
as :func:`bayes_lcs.core.decisions.decide` does, at the least expected loss, and pays the
entry of its true label. The *log loss* judges the probabilities themselves: ``-log P(true label)``.

Every mean over rows has a standard error, ``s / sqrt(N)`` with ``s`` the sample standard
deviation. It treats rows as independent: it says how far the mean would move with other rows, and
not with another training table.
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
    """A loss averaged over rows.

    Attributes
    ----------
    value
        Mean loss of a row.
    standard_error
        Of the mean over rows; NaN for fewer than two rows, or where a row lost infinitely much.
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
    """The loss of each row, ``(N,)``.

    Parameters
    ----------
    probabilities : (N, L)
        Predicted probability of each label.
    labels : (N,)
        The true labels as codes, none missing.
    loss : {"zero-one", "log"}, or (L, D)
        ``"zero-one"``: 1 where the most probable label is wrong. ``"log"``: ``-log P(true)`` in
        nats, infinite where that is zero. A matrix: rows are the true label, columns the
        decisions; the decision of least expected loss is taken.

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
        raise TypeError(f"labels are integer codes of label values, got {given.dtype}")
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
    """The mean loss of rows with its standard error; the arguments are those of `row_losses`.

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
    """Mean loss under ``L_n`` of thesis eq. (4.16) for a range of ``n``, as in Figure 4-8.

    A false positive costs 1 and a false negative ``2^n``, so that the losses of the two ends
    differ by factors of hundreds for any predictor; the ratio to the loss of a reference on the
    same rows is what can be compared. Its standard error is that of the ratio of two paired means
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
        Name of the model that the others are compared with. None: the best decision that is the
        same for every row, always 0 or always 1, whichever costs less on these rows.

    Returns
    -------
    pandas.DataFrame
        ``model``, ``exponent``, ``loss`` and its ``standard_error``, ``relative_loss`` and its
        ``relative_standard_error`` (NaN where the reference loses nothing), and ``relative_to``.

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
        raise ValueError(f"relative_to={relative_to!r} is none of {list(predictions)}")
    y = np.asarray(labels, dtype=np.int64)
    for name, probabilities in predictions.items():
        if np.shape(probabilities) != (len(y), 2):
            raise ValueError(
                f"L_n is about two labels: {name!r} must have shape ({len(y)}, 2), "
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
                constant = loss[y]  # (N, 2): what always 0 and always 1 would cost each row
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
