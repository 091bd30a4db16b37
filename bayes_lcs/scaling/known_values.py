"""Every sample must know the values of all rows.

An estimator of categories that learns its values from the sample it is given would call a value
that only other rows hold "unknown", and score hold-outs on fewer cells the smaller the sample was:
the scores of two stages could not be compared. Files and frames of text carry their categories
along. Arrays and frames of integers do not, so the estimator is told.
"""

from __future__ import annotations

from typing import Any

from bayes_lcs.io.options import add_empty_cell
from bayes_lcs.io.sampler import RowSource

__all__ = ["with_known_values"]


def with_known_values(estimator: Any, source: RowSource) -> Any:
    """The estimator, or a copy that knows all values if it has ``categories="auto"``.

    Examples
    --------
    >>> import numpy as np, bayes_lcs as bl
    >>> source = bl.row_source(np.array([[0, 1], [2, 1]]))
    >>> told = with_known_values(bl.MixtureClusterer(2), source)
    >>> [values.tolist() for values in told.categories]
    [[0, 2], [1]]
    """
    known = estimator.get_params(deep=False)
    if not (isinstance(known.get("categories"), str) and known["categories"] == "auto"):
        return estimator
    given = add_empty_cell(known.get("missing_values"))
    values = source.values(given, known.get("categorical"))
    if values is None:
        return estimator
    from sklearn.base import clone

    return clone(estimator).set_params(categories=values)
