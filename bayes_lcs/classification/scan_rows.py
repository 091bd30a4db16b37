"""Rows for an ensemble: arrays of numbers, or frames in which some columns hold names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.utils import assert_all_finite, check_consistent_length
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d, validate_data

from bayes_lcs.data.columns import is_missing, value_name

__all__ = ["RowKinds", "known_rows", "labelled_rows", "take_rows"]


@dataclass(frozen=True)
class RowKinds:
    """Whether rows come as a frame, and which of its columns hold names."""

    is_frame: bool
    names: tuple[str, ...] = ()

    @classmethod
    def of(cls, X: Any) -> RowKinds:
        """Columns of a frame that are not numbers are names."""
        if not isinstance(X, pd.DataFrame):
            return cls(False)
        return cls(True, tuple(c for c in X.columns if X[c].dtype.kind not in "biuf"))


def labelled_rows(
    estimator: Any, X: Any, y: Any, allow_nan: bool
) -> tuple[Any, NDArray[Any], RowKinds]:
    """Rows and labels to learn from, checked as scikit-learn does."""
    if isinstance(X, pd.DataFrame) and X.columns.has_duplicates:
        twice = X.columns[X.columns.duplicated()][0]
        raise ValueError(f"X has two columns named {twice!r}; rename one")
    kinds = RowKinds.of(X)
    if not kinds.names:
        finite: Any = "allow-nan" if allow_nan else True
        checked, y = validate_data(estimator, X, y, ensure_all_finite=finite, reset=True)
        y = np.asarray(y)
    else:
        y = column_or_1d(y, warn=True)
        if y.dtype.kind == "f":
            assert_all_finite(y, input_name="y")
        check_consistent_length(X, y)
        checked = _frame(estimator, X, kinds, allow_nan, reset=True)
    check_classification_targets(y)
    return (checked if kinds.names or not kinds.is_frame else X), y, kinds


def known_rows(estimator: Any, X: Any, kinds: RowKinds, allow_nan: bool) -> Any:
    """Rows to predict for, of the kinds that were learned from."""
    if kinds.names and not isinstance(X, pd.DataFrame):
        raise ValueError(
            f"X must be a DataFrame: the classifier was fitted to columns of names such as "
            f"{kinds.names[0]!r}"
        )
    if kinds.names:
        return _frame(estimator, X, kinds, allow_nan, reset=False)
    finite: Any = "allow-nan" if allow_nan else True
    checked = validate_data(estimator, X, ensure_all_finite=finite, reset=False)
    if isinstance(X, pd.DataFrame) and kinds.is_frame:
        return X
    if kinds.is_frame:
        return pd.DataFrame(checked, columns=list(estimator.feature_names_in_))
    return checked


def take_rows(X: Any, rows: Any) -> Any:
    """Some rows of an array or a frame."""
    return X.iloc[rows] if isinstance(X, pd.DataFrame) else X[rows]


def _frame(
    estimator: Any, X: pd.DataFrame, kinds: RowKinds, allow_nan: bool, *, reset: bool
) -> pd.DataFrame:
    if not len(X):
        raise ValueError("Found array with 0 sample(s) while a minimum of 1 is required.")
    validate_data(estimator, X, reset=reset, skip_check_array=True)
    columns = {}
    for name in X.columns:
        if name in kinds.names:
            columns[name] = _text(X[name])
            continue
        numbers = pd.to_numeric(X[name]).to_numpy(np.float64)
        if np.isinf(numbers).any() or (not allow_nan and np.isnan(numbers).any()):
            raise ValueError(f"Input X contains NaN or infinity in column {name!r}.")
        columns[name] = numbers
    return pd.DataFrame(columns, index=X.index)


def _text(column: pd.Series) -> NDArray[Any]:
    codes, values = pd.factorize(column)
    names = [None if is_missing(value) else value_name(value) for value in values]
    return np.array([*names, None], dtype=object)[codes]
