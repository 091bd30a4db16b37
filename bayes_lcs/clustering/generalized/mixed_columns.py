"""Check and encode rows with numeric and nominal columns, for generalized clustering."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.utils.validation import validate_data

from bayes_lcs.data.rows.ordinal_encoding import encode_columns, learn_categories
from bayes_lcs.io.frames import as_frame, select_known
from bayes_lcs.io.open_tables import is_streamed
from bayes_lcs.io.options import Notes

__all__ = ["ColumnKinds", "MixedRows", "encode_mixed", "learn_kinds"]

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class MixedRows:
    """Numeric columns ``(N, P)``, and codes of nominal columns ``(N, Q)``; -1 is unknown."""

    numbers: FloatArray
    codes: NDArray[np.int64]
    num_values: tuple[int, ...]

    @property
    def num_rows(self) -> int:
        """Number of rows."""
        return len(self.numbers)

    def take(self, rows: NDArray[Any]) -> MixedRows:
        """Select rows by a mask or by indices."""
        return MixedRows(self.numbers[rows], self.codes[rows], self.num_values)

    def one_hot(self) -> FloatArray:
        """Return the numeric columns, then a column of zeros and ones for each nominal value."""
        blocks = [self.numbers]
        for f, size in enumerate(self.num_values):
            blocks.append((self.codes[:, f, None] == np.arange(size)).astype(np.float64))
        return np.hstack(blocks)


@dataclass(frozen=True)
class ColumnKinds:
    """Positions of the nominal columns, and the values of each."""

    nominal: tuple[int, ...]
    names: tuple[NDArray[Any], ...]


def _validate_frame(estimator: Any, X: Any, *, reset: bool) -> pd.DataFrame:
    names = None if reset else getattr(estimator, "feature_names_in_", None)
    X = select_known(as_frame(X, names), names)
    if isinstance(X, pd.DataFrame):
        validate_data(estimator, X, reset=reset, skip_check_array=True)
        if not len(X) or not len(X.columns):
            what = "sample" if not len(X) else "feature"
            raise ValueError(f"Found array with 0 {what}(s) while a minimum of 1 is required.")
        return X
    given = X if hasattr(X, "__array__") else np.asarray(X)
    has_text = getattr(given, "dtype", np.dtype(float)).kind in "OUS" and not _is_numeric(given)
    dtype: Any = object if has_text else "numeric"
    array = validate_data(estimator, X, reset=reset, dtype=dtype, ensure_all_finite=not has_text)
    return pd.DataFrame(array).infer_objects()


def _is_numeric(array: Any) -> bool:
    try:
        np.asarray(array).astype(np.float64)
    except (TypeError, ValueError):
        return False
    return True


def learn_kinds(
    estimator: Any, X: Any, nominal: str | Sequence[Any] = "auto"
) -> tuple[ColumnKinds, MixedRows]:
    """Find the nominal columns, those listed or all that are not numeric, and encode the rows."""
    # Missing cells of files were reported on reading.
    notes = Notes(counts_empty=not is_streamed(X))
    frame = _validate_frame(estimator, X, reset=True)
    if isinstance(nominal, str):
        places = [
            f
            for f in range(frame.shape[1])
            if not pd.api.types.is_numeric_dtype(frame.dtypes.iloc[f])
            or pd.api.types.is_bool_dtype(frame.dtypes.iloc[f])
        ]
    else:
        places = sorted(_column_index(frame, column) for column in nominal)
    names = tuple(learn_categories(frame.iloc[:, f], None, str(frame.columns[f])) for f in places)
    kinds = ColumnKinds(tuple(places), names)
    rows = _encode(frame, kinds, notes)
    notes.warn()
    return kinds, rows


def encode_mixed(estimator: Any, X: Any, kinds: ColumnKinds) -> MixedRows:
    """Encode rows with the nominal columns and values learned before."""
    return _encode(_validate_frame(estimator, X, reset=False), kinds)


def _column_index(frame: pd.DataFrame, column: Any) -> int:
    if column in frame.columns:
        return list(frame.columns).index(column)
    raise ValueError(
        f"nominal contains the column {column!r}, but X has the columns {list(frame.columns)}"
    )


def _encode(frame: pd.DataFrame, kinds: ColumnKinds, notes: Notes | None = None) -> MixedRows:
    numeric = [f for f in range(frame.shape[1]) if f not in kinds.nominal]
    numbers = np.empty((len(frame), len(numeric)))
    for place, f in enumerate(numeric):
        numbers[:, place] = pd.to_numeric(frame.iloc[:, f])
    if not np.isfinite(numbers).all():
        what = "NaN" if np.isnan(numbers).any() else "infinity"
        raise ValueError(f"Input X contains {what}.")
    columns = [frame.iloc[:, f] for f in kinds.nominal]
    if not columns:
        return MixedRows(numbers, np.empty((len(frame), 0), np.int64), ())
    names = [frame.columns[f] for f in kinds.nominal]
    table = encode_columns(columns, kinds.names, names=names, notes=notes)
    codes = np.stack([table.column(f) for f in range(len(columns))], axis=1).astype(np.int64)
    return MixedRows(numbers, codes, tuple(max(len(names), 1) for names in kinds.names))
