"""Check and encode the rows given to a clusterer of categorical rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.utils.validation import _check_sample_weight, _num_samples, validate_data

from bayes_lcs.core.errors import DataError
from bayes_lcs.data.rows.encoded_rows import EncodedColumns
from bayes_lcs.data.rows.ordinal_encoding import (
    encode_columns,
    encode_sparse,
    encode_sparse_by,
    learn_categories,
)
from bayes_lcs.io.category_encoder import check_measurements
from bayes_lcs.io.frames import as_frame, select_known
from bayes_lcs.io.open_tables import is_streamed
from bayes_lcs.io.options import Notes, add_empty_cell, as_list

__all__ = ["WeightedRows", "encode_input", "inverse_transform"]

FloatArray = NDArray[np.float64]
Categories = list[NDArray[Any]]


class WeightedRows(NamedTuple):
    """Encoded rows and their weights, all positive; None stands for ones."""

    table: EncodedColumns
    weights: FloatArray | None

    @property
    def total(self) -> float:
        """Sum of the weights."""
        return float(self.table.num_rows if self.weights is None else self.weights.sum())


def encode_input(
    estimator: Any,
    X: Any,
    sample_weight: Any,
    *,
    known: Categories | None,
    more: Categories | None = None,
) -> tuple[WeightedRows, Categories]:
    """Return the encoded rows with positive weight, and the categories of the columns.

    Parameters
    ----------
    estimator
        Estimator with ``categories``, ``categorical``, ``missing_values`` and ``handle_unknown``.
        Its column names are set when the categories are learned.
    known
        Categories of the columns, or None to learn them.
    more
        Categories to include among those learned, even if they do not occur.
    """
    reset = known is None
    # Missing cells of files were reported on reading.
    notes = Notes() if reset and not is_streamed(X) else None
    if not issparse(X):
        names = None if reset else getattr(estimator, "feature_names_in_", None)
        given = add_empty_cell(estimator.missing_values)
        X = select_known(as_frame(X, names, given), names)
    weights = None
    if sample_weight is not None:
        rows = np.empty((_num_samples(X), 1))
        weights = _check_sample_weight(
            sample_weight, rows, dtype=np.float64, ensure_non_negative=True
        )
    missing = add_empty_cell(estimator.missing_values)
    unknown = estimator.handle_unknown
    if issparse(X):
        matrix = validate_data(estimator, X, reset=reset, accept_sparse="csr", dtype=None)
        if weights is not None:
            matrix, weights = _drop_zero_weights(matrix, weights)
        if known is not None:
            table = encode_sparse_by(matrix, known, missing, unknown=unknown)
            return WeightedRows(table, weights), known
        values = np.array([0, 1], np.int64)
        return WeightedRows(encode_sparse(matrix), weights), [values] * matrix.shape[1]
    columns, names = _validate_columns(estimator, X, reset=reset)
    if weights is not None:
        columns, weights = _drop_zero_weight_columns(columns, weights)
    if known is None:
        if not isinstance(estimator.categories, str):
            known = _check_categories(estimator.categories, len(columns))
        else:
            unknown = "missing"
            known = [
                learn_categories(column, missing, name)
                for column, name in zip(columns, names, strict=True)
            ]
            _check_measurements(known, names, estimator.categorical)
            if more is not None:
                known = [_union(old, new) for old, new in zip(more, known, strict=True)]
    encoded = encode_columns(columns, known, missing, unknown=unknown, names=names, notes=notes)
    if notes is not None:
        notes.warn()
    return WeightedRows(encoded, weights), known


def _check_measurements(values: Categories, names: Sequence[Any], categorical: Any) -> None:
    """Raise an error for a column of measurements that was not declared categorical."""
    if categorical is True:
        return
    declared = {str(name) for name in as_list(categorical or ())}
    for name in declared:
        if name not in map(str, names):
            raise DataError("categorical= names a column that X does not have", column=name)
    check_measurements(dict(zip(map(str, names), values, strict=True)), declared)


def inverse_transform(rows: NDArray[np.int64], categories: Categories) -> NDArray[Any]:
    """Decode rows of codes to rows of values.

    Examples
    --------
    >>> categories = [np.array([3, 7]), np.array(["a"], dtype=object)]
    >>> inverse_transform(np.array([[1, 0]]), categories).tolist()
    [[7, 'a']]
    """
    numbers = all(values.dtype.kind in "biuf" for values in categories)
    dtype = np.result_type(*categories) if numbers and categories else np.dtype(object)
    result = np.empty(rows.shape, dtype)
    for f, values in enumerate(categories):
        result[:, f] = values[rows[:, f]] if len(values) else np.nan
    return result


def _validate_columns(estimator: Any, X: Any, *, reset: bool) -> tuple[list[Any], list[str]]:
    if isinstance(X, pd.DataFrame):
        if X.columns.has_duplicates:
            twice = X.columns[X.columns.duplicated()][0]
            raise ValueError(f"X has two columns named {twice!r}; rename one")
        validate_data(estimator, X, reset=reset, skip_check_array=True)
        if not len(X) or not len(X.columns):
            what = "sample" if not len(X) else "feature"
            raise ValueError(f"Found array with 0 {what}(s) while a minimum of 1 is required.")
        return [X.iloc[:, f] for f in range(X.shape[1])], [str(name) for name in X.columns]
    # NumPy would turn None and NaN in a list with strings into strings.
    dtype = None if hasattr(X, "__array__") else object
    array = validate_data(estimator, X, reset=reset, dtype=dtype, ensure_all_finite=False)
    names = [f"x{f}" for f in range(array.shape[1])]
    columns = [array[:, f] for f in range(array.shape[1])]
    return columns, names


def _drop_zero_weights(matrix: Any, weights: FloatArray) -> tuple[Any, FloatArray]:
    positive = np.flatnonzero(weights > 0)
    return (
        (matrix, weights)
        if len(positive) == len(weights)
        else (matrix[positive], weights[positive])
    )


def _drop_zero_weight_columns(
    columns: list[Any], weights: FloatArray
) -> tuple[list[Any], FloatArray]:
    positive = weights > 0
    if positive.all():
        return columns, weights
    return [column[positive] for column in columns], weights[positive]


def _check_categories(categories: Any, num_columns: int) -> Categories:
    if len(categories) != num_columns:
        raise ValueError(f"categories lists {len(categories)} columns, but X has {num_columns}")
    known = []
    for f, values in enumerate(categories):
        array = np.asarray(values)
        if array.dtype.kind not in "biuf":
            array = np.asarray(values, dtype=object)
        if array.ndim != 1 or len(pd.unique(array)) != len(array):
            raise ValueError(f"categories of column {f} must be a list of distinct values")
        known.append(array)
    return known


def _union(old: NDArray[Any], new: NDArray[Any]) -> NDArray[Any]:
    """Append to the old values the new ones that are not among them."""
    fresh = new[pd.Index(old).get_indexer(pd.Index(new)) < 0]
    return np.concatenate([old, fresh]) if len(fresh) else old
