"""One-hot encoder of categorical columns, for learners that accept numbers only.

It does the work of scikit-learn's `ColumnTransformer` and `OneHotEncoder` in a fraction of the time
on the few hundred rows of a part; with these a scan would spend most of its time on encoding.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

__all__ = ["NameColumns"]


class NameColumns(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Transformer that keeps numeric columns and one-hot encodes the others.

    Numeric columns come first.

    Parameters
    ----------
    max_categories : int, default=100
        Maximum number of categories per column, the most frequent ones. Other and missing values
        are encoded as zeros.

    Examples
    --------
    >>> rows = pd.DataFrame({"town": ["Ulm", "Bonn", None], "age": [30.0, 40.0, 50.0]})
    >>> NameColumns().fit_transform(rows).tolist()
    [[30.0, 0.0, 1.0], [40.0, 1.0, 0.0], [50.0, 0.0, 0.0]]
    """

    def __init__(self, max_categories: int = 100) -> None:
        self.max_categories = max_categories

    def fit(self, X: pd.DataFrame, y: Any = None) -> NameColumns:
        """Learn the categorical columns and their most frequent values."""
        del y
        self.numbers_ = [c for c in X.columns if X[c].dtype.kind in "biuf"]
        self.values_ = {}
        for name in X.columns:
            if X[name].dtype.kind not in "biuf":
                common = X[name].value_counts().index[: self.max_categories]
                self.values_[name] = sorted(map(str, common))
        return self

    def transform(self, X: pd.DataFrame) -> NDArray[np.float64]:
        """Return the encoded rows as float64."""
        check_is_fitted(self)
        blocks = [X[self.numbers_].to_numpy(np.float64)]
        for name, values in self.values_.items():
            codes = pd.Categorical(X[name], categories=values).codes
            # The row of code -1 is the last one, of zeros.
            one_hot = np.vstack([np.eye(len(values)), np.zeros(len(values))])
            blocks.append(one_hot[codes])
        return np.hstack(blocks)
