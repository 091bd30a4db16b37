"""Benefits (payoffs) of decisions under each true label, the same for all rows or per row.

A benefit is an array ``b[x, true, decided]``. The expected benefit of deciding ``l`` for a row
``x`` is ``e(l | x) = sum_y p(y | x) b[x, y, l]`` (Fan et al. 2003, eq. 1).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayes_lcs.core.errors import DataError
from bayes_lcs.io.column_types import value_name, value_type

__all__ = [
    "benefit_columns",
    "build_benefits",
    "check_benefit_labels",
    "expected_benefits",
    "explain_label",
    "find_invalid_amount",
    "unknown_labels",
]

FloatArray = NDArray[np.float64]


def build_benefits(benefit: Any, X: Any, classes: Sequence[Any]) -> FloatArray:
    """Return the benefits of rows, ``(N, L, L)``, or ``(1, L, L)`` if they are the same for all.

    Parameters
    ----------
    benefit
        - None: 1 for the right label, which is accuracy;
        - a matrix: a row for each true label, a column for each decision, in the order of
          ``classes``;
        - a mapping from pairs (true label, decision) to numbers, names of columns, pairs of a
          column and a number to be added to it, or functions of the rows; the benefit of other
          pairs is 0; labels match by value: 1, 1.0 and True are the same;
        - a function of the rows and the classes that returns the array.
    X
        The rows: a frame if columns are named.
    classes
        All labels in order.

    Examples
    --------
    Detecting a fraud saves the amount less the cost of an investigation, which is 90.

    >>> rows = pd.DataFrame({"amount": [50.0, 400.0]})
    >>> spec = {("fraud", "fraud"): ("amount", -90), ("honest", "fraud"): -90}
    >>> build_benefits(spec, rows, ["fraud", "honest"])[:, :, 0].tolist()
    [[-40.0, -90.0], [310.0, -90.0]]
    """
    num = len(classes)
    if benefit is None:
        return np.eye(num)[None]
    if isinstance(benefit, Mapping):
        found = _from_pairs(benefit, X, list(classes))
    elif callable(benefit):
        found = np.asarray(benefit(X, list(classes)), np.float64)
    else:
        found = np.asarray(benefit, np.float64)
    if found.ndim == 2:
        found = found[None]
    rows = len(X)
    if found.shape not in {(1, num, num), (rows, num, num)}:
        raise ValueError(
            f"benefit must have a row for each true label and a column for each decision, "
            f"({num}, {num}) for the labels {list(classes)!r:.200}, or one such matrix for each "
            f"row of X; got the shape {found.shape}"
        )
    _check_finite(found)
    return found


def unknown_labels(benefit: Any, classes: Sequence[Any]) -> list[Any]:
    """Return the labels of a mapping that are not among the classes.

    Examples
    --------
    >>> unknown_labels({(1, 1): 5.0, ("1", 0): -1.0}, [0, 1])
    ['1']
    """
    named = [label for pair in _pairs(benefit) for label in pair]
    return list(dict.fromkeys(label for label in named if label not in classes))


def check_benefit_labels(benefit: Any, classes: Sequence[Any]) -> None:
    """Raise an error if a mapping names a label that is not among the classes."""
    unknown = unknown_labels(benefit, classes)
    if unknown:
        raise ValueError(
            f"benefit names {unknown[0]!r}, which is not a label: "
            + explain_label(unknown[0], classes)
        )


def explain_label(label: Any, classes: Sequence[Any]) -> str:
    """Return a hint on how to write a label that is not among the classes.

    Examples
    --------
    >>> explain_label("1", [0, 1])
    "the labels are 0, 1; they are integers: write 1, not '1'"
    """
    shown = ", ".join(repr(one) for one in list(classes)[:12]) + (
        ", …" if len(classes) > 12 else ""
    )
    meant = [one for one in classes if value_name(one).lower() == value_name(label).lower()]
    if not meant:
        return f"the labels are {shown}"
    kind = {"boolean": "true or false", "integer": "integers", "float": "numbers"}
    own = kind.get(value_type(meant[0]), "text")
    return f"the labels are {shown}; they are {own}: write {meant[0]!r}, not {label!r}"


def _pairs(benefit: Any) -> list[tuple[Any, Any]]:
    pairs = list(benefit) if isinstance(benefit, Mapping) else []
    for pair in pairs:
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise ValueError(f"keys of benefit are pairs (true label, decision); got {pair!r}")
    return pairs


def benefit_columns(benefit: Any) -> list[str]:
    """Return the columns that a benefit names; those that functions use are unknown."""
    if not isinstance(benefit, Mapping):
        return []
    names = [value[0] if isinstance(value, tuple) else value for value in benefit.values()]
    return list(dict.fromkeys(name for name in names if isinstance(name, str)))


def expected_benefits(probabilities: FloatArray, benefits: FloatArray) -> FloatArray:
    """``(..., N, L)`` and ``(N or 1, L, L)`` to the expected benefit of each decision."""
    return np.einsum(
        "...ny,nyl->...nl",
        probabilities,
        np.broadcast_to(benefits, (probabilities.shape[-2], *benefits.shape[1:])),
    )


def _from_pairs(benefit: Mapping[Any, Any], X: Any, classes: list[Any]) -> FloatArray:
    found = np.zeros((len(X), len(classes), len(classes)))
    varies = False
    for pair in _pairs(benefit):
        value = benefit[pair]
        # A label that was not seen yet cannot be decided for; the scan reports it.
        if any(label not in classes for label in pair):
            continue
        varies = varies or not np.isscalar(value) or isinstance(value, str)
        place = (slice(None), classes.index(pair[0]), classes.index(pair[1]))
        found[place] = _amounts(value, X)
    return found if varies else found[:1] if len(found) else found


def _amounts(value: Any, X: Any) -> Any:
    if isinstance(value, tuple):
        column, added = value
        return _column(column, X) + float(added)
    if isinstance(value, str):
        return _column(value, X)
    if callable(value):
        own: Callable[[Any], Any] = value
        return np.asarray(own(X), np.float64)
    return float(value)


def _column(name: str, X: Any) -> FloatArray:
    if not isinstance(X, pd.DataFrame) or name not in X.columns:
        has = list(X.columns) if isinstance(X, pd.DataFrame) else "no names"
        raise ValueError(f"benefit names a column {name!r}, but the rows have {has!r:.200}")
    row, message = find_invalid_amount(X, name)
    if message:
        raise DataError(message, row=row, column=name)
    return pd.to_numeric(X[name]).to_numpy(np.float64)


def find_invalid_amount(X: pd.DataFrame, name: str) -> tuple[int, str]:
    """Return the first row without a finite number and a message, or -1 and an empty message."""
    amounts = pd.to_numeric(X[name], errors="coerce").to_numpy(np.float64)
    wrong = np.flatnonzero(~np.isfinite(amounts))
    if not len(wrong):
        return -1, ""
    cell = X[name].iloc[wrong[0]]
    return int(wrong[0]), (
        f"the benefit needs a number here, got {cell!r}; fill it in or remove the row"
    )


def _check_finite(benefits: FloatArray) -> None:
    wrong = np.argwhere(~np.isfinite(benefits))
    if len(wrong):
        row = f" in row {wrong[0][0]}" if len(benefits) > 1 else ""
        raise ValueError(f"benefits must be finite, got {benefits[tuple(wrong[0])]}{row}")
