"""Arrow columns that come part by part, as columns of numbers and of names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bayes_lcs.data.arrow_columns import column_from_arrow, is_text, text_numbers, without
from bayes_lcs.data.columns import Source, parse_number
from bayes_lcs.data.errors import DataError, one_line

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["PartColumns"]


class PartColumns:
    """Turns tables of text or typed cells into features and labels, all parts alike.

    What a column of text holds is decided by the first part: numbers if every cell is one, names
    otherwise. Columns of a Parquet file say it by their type.

    Parameters
    ----------
    features
        The columns to predict from.
    label
        The column to be predicted.
    missing
        The cells of each column that mean "missing".
    categorical
        Columns that hold names, whatever they look like.
    source
        Names the place in errors.
    is_text
        Whether every cell is text, so that numbers are to be told from names.
    """

    def __init__(
        self,
        features: Sequence[str],
        label: str,
        *,
        missing: Mapping[str, frozenset[str]],
        categorical: Iterable[str],
        source: Source,
        is_text: bool,
    ) -> None:
        self._features, self._label = list(features), label
        self._missing, self._source, self._is_text = missing, source, is_text
        self._is_number: dict[str, bool] = dict.fromkeys(categorical, False)

    def frame(self, table: Any, start: int) -> pd.DataFrame:
        """The features of rows of which the first is row ``start`` of the file."""
        import pandas as pd

        columns: dict[str, Any] = {}
        for name in self._features:
            values = self._feature(name, table.column(name), start)
            # Left to itself, pandas 3 makes something else of objects that are text.
            columns[name] = pd.Series(values, dtype=values.dtype, copy=False)
        return pd.DataFrame(columns, copy=False)

    @property
    def name_columns(self) -> list[str]:
        """The features that hold names, as far as is known."""
        return [name for name in self._features if self._is_number.get(name) is False]

    def labels(self, table: Any, start: int) -> NDArray[Any]:
        """The labels of the same rows: text, or numbers and the like if their type says so."""
        name, cells = self._label, table.column(self._label)
        if _holds_numbers(cells.type):
            values: NDArray[Any] = _numbers(cells, self._missing[name])
            lacking = np.isnan(values)
        else:
            values = self._names(name, cells)
            lacking = np.array([value is None for value in values.tolist()])
        if lacking.any():
            raise self._source.error(
                "the label is missing; remove such rows or fill them in",
                row=start + int(np.argmax(lacking)),
                column=name,
            )
        return values if _holds_text(cells.type) else _objects(cells)

    def _feature(self, name: str, cells: Any, start: int) -> NDArray[Any]:
        """One column: an array of numbers, or one of text with None where it is missing."""
        if not self._is_text:
            self._is_number.setdefault(name, _holds_numbers(cells.type))
        if self._is_number.get(name) is False:
            return self._names(name, cells)
        if not self._is_text:
            return _numbers(cells, self._missing[name])
        cells = without(cells, self._missing[name])
        numbers = text_numbers(cells)
        if numbers is None and self._is_number.get(name):
            raise self._not_a_number(name, cells, start)
        self._is_number[name] = numbers is not None
        return cells.to_numpy() if numbers is None else numbers

    def _names(self, name: str, cells: Any) -> NDArray[Any]:
        """Cells of any kind as text, None where they are missing."""
        import pyarrow as pa
        import pyarrow.types as types

        missing = self._missing[name]
        try:
            if _holds_text(cells.type) and not types.is_dictionary(cells.type):
                texts = np.asarray(without(cells, missing).to_numpy(), dtype=object)
                self._check_nul(name, cells)
                return texts
            column = column_from_arrow(name, cells, self._source)
        except (UnicodeDecodeError, pa.ArrowException) as error:
            raise self._source.error(
                f"holds bytes that are no text: {one_line(error)}", column=name
            ) from None
        names = [None if text in missing else text for text in column.names]
        return np.array([*names, None], dtype=object)[column.codes]  # the last one serves code -1

    def _check_nul(self, name: str, cells: Any) -> None:
        import pyarrow.compute as pc

        if not self._is_text and pc.any(pc.match_substring(cells, "\x00")).as_py():
            raise self._source.error(
                "a cell holds a NUL byte; the file is damaged or not a text file", column=name
            )

    def _not_a_number(self, name: str, cells: Any, start: int) -> DataError:
        row, text = next(
            (row, text)
            for row, text in enumerate(cells.to_pylist(), start=start)
            if text is not None and parse_number(text) is None
        )
        return self._source.error(
            f"{text!r} is not a number, as all cells of this column in the first part are; correct "
            f"it, list it in missing_values=, or take all for names with categorical=[{name!r}]",
            row=row,
            column=name,
        )


def _numbers(cells: Any, missing: frozenset[str]) -> NDArray[np.float64]:
    """Cells of numbers or truth values as numbers, NaN where they are missing."""
    import pyarrow as pa
    import pyarrow.types as types

    numbers = np.array(cells.cast(pa.float64(), safe=False).to_numpy(), np.float64)
    marks = np.array([number for number in map(parse_number, missing) if number is not None])
    if len(marks) and not types.is_boolean(cells.type):
        if types.is_float32(cells.type):
            marks = marks.astype(np.float32)
        numbers[np.isin(numbers, marks)] = np.nan
    return numbers


def _objects(cells: Any) -> NDArray[Any]:
    """Cells without nulls as Python objects."""
    import pyarrow.types as types

    if types.is_integer(cells.type) or types.is_floating(cells.type):
        return np.asarray(cells.to_numpy()).astype(object)
    objects = np.empty(len(cells), dtype=object)
    objects[:] = cells.to_pylist()
    return objects


def _holds_numbers(kind: Any) -> bool:
    import pyarrow.types as types

    return bool(
        types.is_integer(kind)
        or types.is_floating(kind)
        or types.is_decimal(kind)
        or types.is_boolean(kind)
        or types.is_null(kind)
    )


def _holds_text(kind: Any) -> bool:
    """Whether labels of a type are text; a dictionary of anything is."""
    import pyarrow.types as types

    return bool(types.is_dictionary(kind) or is_text(kind))
