"""Validate the rows and labels for training and prediction of an ensemble.

Rows become an array of numbers, or a frame with float64 columns and text columns (None where a cell
is missing). Column types and missing cells follow the rules of the package (`io.column_types`,
`io.options`).
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.utils import assert_all_finite, check_consistent_length
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d, validate_data

from bayes_lcs.core.errors import DataError, DataWarning, plural
from bayes_lcs.core.escape import visible
from bayes_lcs.io.column_types import (
    ColumnType,
    convert_texts,
    infer_text_type,
    is_null,
    merge_types,
    typed_array,
    value_name,
    value_type,
)
from bayes_lcs.io.frames import as_frame, read_frame
from bayes_lcs.io.open_tables import is_streamed, open_file
from bayes_lcs.io.options import (
    DEFAULT_CSV,
    CsvOptions,
    MissingRule,
    Notes,
    is_index_name,
    missing_rules,
)

__all__ = [
    "InputSpec",
    "LabelledRows",
    "check_known_rows",
    "check_labelled_rows",
    "distinct_texts",
    "take_rows",
]

MAX_TEXTS = 100_000
"""Maximum number of texts remembered per column; larger columns, such as identifiers, are not
checked for unseen texts."""


@dataclass
class InputSpec:
    """Columns that an ensemble was fitted to.

    Attributes
    ----------
    columns
        Names of the columns; None if the rows were an array.
    text
        Text columns; others are numeric.
    texts
        Texts of the training rows by text column; columns with too many are absent.
    other_columns
        Columns of the file that are not features, such as the label.
    missing_values, options
        Reader options of the training file; files to predict are read likewise.
    """

    columns: tuple[Any, ...] | None = None
    text: tuple[Any, ...] = ()
    texts: dict[Any, set[str]] = field(default_factory=dict)
    other_columns: tuple[str, ...] = ()
    missing_values: Any = None
    options: CsvOptions = DEFAULT_CSV

    def learn_texts(self, texts_by_column: Mapping[Any, Iterable[str]]) -> None:
        """Add texts of training rows."""
        for name, texts in texts_by_column.items():
            known = self.texts.setdefault(name, set())
            if len(known) <= MAX_TEXTS:
                known.update(texts)

    def finish(self) -> None:
        """Remove the texts of columns that have too many."""
        self.texts = {name: own for name, own in self.texts.items() if len(own) <= MAX_TEXTS}

    def rule(self, name: Any) -> MissingRule:
        """Return the rule for missing cells in a column."""
        given, name = self.missing_values, str(name)
        if isinstance(given, Mapping):
            given = {name: given[name]} if name in given else None
        return missing_rules(given, [name], [name], DataError)[name]


class LabelledRows(NamedTuple):
    """Training rows.

    ``y`` has the type of the labels; where ``is_known`` is False, the label is missing.
    """

    X: Any
    y: NDArray[Any]
    is_known: NDArray[np.bool_]
    spec: InputSpec
    notes: Notes


def check_labelled_rows(estimator: Any, X: Any, y: Any, allow_nan: bool) -> LabelledRows:
    """Validate training rows and labels, as scikit-learn does."""
    # Missing cells of files were reported when the file was read.
    notes = Notes(counts_empty=not is_streamed(X))
    X = as_frame(X)
    if not isinstance(X, pd.DataFrame):
        finite: Any = "allow-nan" if allow_nan else True
        if _is_series(y):
            X = validate_data(estimator, X, ensure_all_finite=finite, reset=True)
        else:
            X, y = validate_data(estimator, X, y, ensure_all_finite=finite, reset=True)
        for feature, number in enumerate(np.isnan(X).sum(axis=0).tolist()):
            notes.count_missing(f"x{feature}", "", number)
        labels, is_known = _check_labels(y, notes)
        check_consistent_length(X, labels)
        return LabelledRows(X, labels, is_known, InputSpec(), notes)
    if X.columns.has_duplicates:
        twice = X.columns[X.columns.duplicated()][0]
        raise ValueError(f"X has two columns named {twice!r}; rename one of them")
    labels, is_known = _check_labels(y, notes)
    check_consistent_length(X, labels)
    _check_shape(X)
    validate_data(estimator, X, reset=True, skip_check_array=True)
    text = tuple(name for name in X.columns if _column_type(X[name]) == "text")
    spec = InputSpec(tuple(X.columns), text)
    return LabelledRows(_typed_frame(X, spec, allow_nan, notes), labels, is_known, spec, notes)


def check_known_rows(estimator: Any, X: Any, spec: InputSpec, allow_nan: bool) -> Any:
    """Validate rows to predict: frames, Arrow tables, paths of files, or arrays."""
    path = Path(X).expanduser() if isinstance(X, str | PathLike) else Path()
    file = path.name if path.is_file() else None
    if spec.columns is None:
        X = as_frame(X)
        finite: Any = "allow-nan" if allow_nan else True
        return validate_data(estimator, X, ensure_all_finite=finite, reset=False)
    names = {str(name): name for name in spec.columns}
    if is_streamed(X):
        X = read_frame(
            X,
            columns=list(names),
            text=[str(name) for name in spec.text],
            missing_values=spec.missing_values,
            options=spec.options,
        )
        absent = [name for name in names if name not in X.columns]
        if absent:
            raise DataError(
                "the classifier needs this column, but it does not exist",
                file=file,
                column=absent[0],
            )
    if not isinstance(X, pd.DataFrame):
        if not spec.text:
            finite = "allow-nan" if allow_nan else True
            X = validate_data(estimator, X, ensure_all_finite=finite, reset=False)
            return pd.DataFrame(X, columns=list(spec.columns))
        validate_data(estimator, X, reset=False, skip_check_array=True)
        X = pd.DataFrame(np.asarray(X, dtype=object), columns=list(spec.columns))
    else:
        X = _select_columns(X, spec, names)
        validate_data(estimator, X, reset=False, skip_check_array=True)
    _check_shape(X)
    notes = Notes(file, counts_empty=False)
    error = DataError if file is None else open_file(path, spec.options).source.error
    checked = _typed_frame(X, spec, allow_nan, notes, error)
    notes.warn()
    _warn_of_unseen(checked, spec, file)
    return checked


def take_rows(X: Any, rows: Any) -> Any:
    """Return rows of an array or a frame."""
    return X.iloc[rows] if isinstance(X, pd.DataFrame) else X[rows]


def distinct_texts(X: Any, text: Iterable[Any]) -> dict[Any, list[str]]:
    """Return the distinct texts of columns of a frame.

    Examples
    --------
    >>> distinct_texts(pd.DataFrame({"town": ["Ulm", None, "Ulm"]}), ["town"])
    {'town': ['Ulm']}
    """
    return {name: X[name].dropna().unique().tolist() for name in text if name in X.columns}


def _select_columns(X: pd.DataFrame, spec: InputSpec, names: Mapping[str, Any]) -> pd.DataFrame:
    """Match column names by text (0 and "0"); drop an index and the file's other columns."""
    X = X.set_axis([names.get(str(name), name) for name in X.columns], axis=1)
    known = set(names.values())
    index = [name for name in X.columns[:1] if is_index_name(name)]
    others = [name for name in X.columns if str(name) in spec.other_columns or name in index]
    X = X.drop(columns=[name for name in others if name not in known])
    # The columns of files may be in any order; those of frames may not, by scikit-learn's rule.
    if spec.other_columns and set(X.columns) == known:
        X = X[list(spec.columns or ())]
    return X


def _check_shape(X: pd.DataFrame) -> None:
    if not len(X):
        raise ValueError("Found array with 0 sample(s) while a minimum of 1 is required.")
    if not X.shape[1]:
        raise ValueError("Found array with 0 feature(s) while a minimum of 1 is required.")


def _is_series(y: Any) -> bool:
    """Return whether labels are a column of a frame, which may have missing cells."""
    return type(y).__module__.startswith(("pandas.", "polars.", "pyarrow."))


def _check_labels(y: Any, notes: Notes) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Return labels as an array of their type, and a mask of those that are not missing."""
    if hasattr(y, "to_pandas"):
        y = y.to_pandas()
    if not isinstance(y, pd.Series):
        y = column_or_1d(y, warn=True)
        if y.dtype.kind == "f":
            assert_all_finite(y, input_name="y")
        if y.dtype.kind in "biuf":
            check_classification_targets(y)
            return y, np.ones(len(y), bool)
    codes, values = pd.factorize(y)
    kind, rule = _values_type(values), MissingRule()
    distinct: NDArray[Any] = typed_array(list(values))
    if kind == "text":
        names = [value_name(value) for value in values]
        _count_missing(notes, "y", names, codes, rule)
        missing = [rule.matches(name) for name in names]
        distinct = np.array(names, dtype=object)
    else:
        _count_missing(notes, "y", [], codes, rule)
        missing = [False] * len(values)
        check_classification_targets(distinct)
    is_known = ~np.array([*missing, True])[codes]  # the last entry serves code -1
    if not is_known.any():
        raise ValueError("all labels in y are missing")
    if isinstance(y, np.ndarray) and y.dtype.kind == "U":
        return y, is_known
    return distinct[np.maximum(codes, 0)], is_known


def _column_type(column: pd.Series) -> ColumnType | None:
    """Return the type of a column of a frame; None if all cells are missing."""
    if isinstance(column.dtype, pd.CategoricalDtype) or column.dtype.kind == "O":
        return _values_type(pd.unique(column.dropna()))
    kinds: dict[str, ColumnType] = {"b": "boolean", "i": "integer", "u": "integer", "f": "float"}
    return kinds.get(column.dtype.kind, "text")


def _values_type(values: Iterable[Any]) -> ColumnType | None:
    kind: ColumnType | None = None
    for value in values:
        kind = merge_types(kind, None if is_null(value) else value_type(value))
        if kind == "text":
            return kind
    return kind


def _typed_frame(
    X: pd.DataFrame, spec: InputSpec, allow_nan: bool, notes: Notes, error: Any = DataError
) -> pd.DataFrame:
    columns: dict[Any, NDArray[Any]] = {}
    for name in X.columns:
        if name in spec.text:
            columns[name] = _texts(X[name], spec.rule(name), notes)
            continue
        numbers = columns[name] = _numbers(X[name], spec.rule(name), notes, error)
        wrong = np.isinf(numbers) if allow_nan else ~np.isfinite(numbers)
        if wrong.any():
            what = "infinity" if allow_nan else "NaN or infinity"
            row = int(np.argmax(wrong))
            raise error(f"Input X contains {what} here", row=row, column=str(name))
    return pd.DataFrame(columns, index=X.index)


def _texts(column: pd.Series, rule: MissingRule, notes: Notes) -> NDArray[Any]:
    """Return the names of all values, None where a cell is missing."""
    codes, values = pd.factorize(column)
    names = [value_name(value) for value in values]
    _count_missing(notes, str(column.name), names, codes, rule)
    texts = [None if rule.matches(name) else name for name in names]
    return np.array([*texts, None], dtype=object)[codes]  # the last entry serves code -1


def _numbers(column: pd.Series, rule: MissingRule, notes: Notes, error: Any) -> NDArray[np.float64]:
    """Return float64 numbers; texts are parsed as numbers, as in a CSV file."""
    if not isinstance(column.dtype, pd.CategoricalDtype) and column.dtype.kind in "biuf":
        numbers = column.to_numpy(np.float64, na_value=np.nan)
        notes.count_missing(str(column.name), "", int(np.isnan(numbers).sum()))
        return _mask_listed(numbers, rule)
    codes, values = pd.factorize(column)
    names = [value_name(value) for value in values]
    numbers = np.full(len(names) + 1, np.nan)  # the last entry serves code -1
    for code, (name, value) in enumerate(zip(names, values, strict=True)):
        if value_type(value) != "text":
            numbers[code] = float(value)
            continue
        kind = None if rule.matches(name) else infer_text_type([name])
        if kind == "text":
            raise error(
                f"the cell is {visible(name, 60)!r}, but the column was numeric in training; "
                "correct the cell, or fit with categorical= if the column is text",
                row=int(np.argmax(codes == code)),
                column=str(column.name),
            )
        if kind is not None:
            numbers[code] = float(convert_texts([name], kind)[0])
    _count_missing(notes, str(column.name), names, codes, rule)
    return _mask_listed(numbers, rule)[codes]


def _mask_listed(numbers: NDArray[np.float64], rule: MissingRule) -> NDArray[np.float64]:
    listed = rule.numbers
    return np.where(np.isin(numbers, listed), np.nan, numbers) if listed else numbers


def _count_missing(
    notes: Notes, column: str, names: list[str], codes: NDArray[Any], rule: MissingRule
) -> None:
    notes.count_missing(column, "", int((codes < 0).sum()))
    for code, name in enumerate(names):
        if rule.matches(name):
            notes.count_missing(column, name, int((codes == code).sum()))


def _warn_of_unseen(X: pd.DataFrame, spec: InputSpec, file: str | None) -> None:
    """Warn of texts that were not seen in training."""
    unseen: dict[Any, Counter[str]] = {}
    for name, known in spec.texts.items():
        counts = X[name].value_counts()
        found = {text: int(number) for text, number in counts.items() if text not in known}
        if found:
            unseen[name] = Counter(found)
    if not unseen:
        return
    where = f"{file}: " if file else ""
    shown = [
        f"column {name!r} {plural(found.total(), 'cell')} ("
        + ", ".join(repr(visible(text, 40)) for text in list(found)[:3])
        + (", …)" if len(found) > 3 else ")")
        for name, found in list(unseen.items())[:8]
    ]
    if len(unseen) > 8:
        shown.append(plural(len(unseen) - 8, "more column"))
    warnings.warn(
        f"{where}values that were not seen in training are ignored: " + "; ".join(shown),
        DataWarning,
        stacklevel=5,
    )
