"""Open the user's data (arrays, frames or files, and a target) as rows in random order."""

from __future__ import annotations

from os import PathLike
from typing import Any

import numpy as np

from bayes_lcs.core.errors import DataError
from bayes_lcs.data.rows.array_sampler import row_source
from bayes_lcs.io.frames import read_frame
from bayes_lcs.io.open_tables import is_streamed
from bayes_lcs.io.options import add_empty_cell
from bayes_lcs.io.sampler import RowSource

__all__ = ["open_rows"]


def open_rows(estimator: Any, source: Any, y: Any = None, *, seed: int = 0) -> RowSource:
    """Return the rows of a source in random order, with their target.

    Files are read as categories for estimators that support categories, and as numbers for others.

    Parameters
    ----------
    estimator
        Estimator to be trained on the rows.
    source
        Anything that :func:`bayes_lcs.row_source` accepts.
    y
        The target: an array, or the name of a column of a frame or file.
    seed
        Seed of the random order.

    Examples
    --------
    >>> import pandas as pd
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> frame = pd.DataFrame({"size": [1, 2, 3], "kind": ["a", "b", "a"]})
    >>> rows = open_rows(DecisionTreeClassifier(), frame, "kind").take(0, 3)
    >>> rows.X.columns.tolist(), sorted(rows.y)
    (['size'], ['a', 'a', 'b'])
    """
    if isinstance(source, RowSource):
        if y is not None:
            raise DataError(
                "y cannot be combined with a source: give the target when the source is made, "
                "bl.row_source(data, target=...), and leave y out"
            )
        return source
    is_name = isinstance(y, str)
    if is_name and (isinstance(source, np.ndarray) or hasattr(source, "tocsr")):
        raise DataError(
            f"y={y!r} is a column name, but an array has no column names: give y as an array"
        )
    if y is not None and not is_name and _is_path(source):
        raise DataError("the target of a file is one of its columns: give y the name of the column")
    given: dict[str, Any] = {"target": y} if is_name else {"y": y}
    if getattr(estimator, "takes_text_columns", False) and is_streamed(source):
        source = read_frame(source)  # numeric and text columns
    kind: Any = "categories" if _takes_categories(estimator) else "numbers"
    if kind == "categories" and hasattr(estimator, "missing_values"):
        given["missing_values"] = add_empty_cell(estimator.missing_values)
        given["categorical"] = getattr(estimator, "categorical", None) or ()
    return row_source(source, **given, kind=kind, seed=seed)


def _is_path(source: Any) -> bool:
    several = source if isinstance(source, list | tuple) else [source]
    return bool(several) and all(isinstance(one, str | PathLike) for one in several)


def _takes_categories(estimator: Any) -> bool:
    """Return whether an estimator, or a step of a pipeline, encodes categories itself."""
    from sklearn.utils import get_tags

    names = {name.rpartition("__")[2] for name in estimator.get_params(deep=True)}
    return "categories" in names or bool(get_tags(estimator).input_tags.categorical)
