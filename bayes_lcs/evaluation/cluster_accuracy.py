"""How well clusters found without labels foretell labels.

Every cluster is given the class that most of its training rows have, and the classes of rows that
were not trained on are foretold by their clusters (Kalton et al. 2001, section 4). Clusters that no
training row is in foretell the most common class of all.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

__all__ = [
    "Correlation",
    "MeanAccuracy",
    "accuracy_correlation",
    "clustering_accuracy",
    "clustering_learning_curve",
    "majority_accuracy",
]


class MeanAccuracy(NamedTuple):
    """Mean of the accuracies of all folds, its standard error, and the accuracies."""

    mean: float
    standard_error: float
    folds: NDArray[np.float64]


class Correlation(NamedTuple):
    """Correlation of two accuracies, the share of variance that it explains, and its p-value."""

    r: float
    explained: float
    p_value: float


def majority_accuracy(
    train_clusters: ArrayLike, train_classes: ArrayLike, clusters: ArrayLike, classes: ArrayLike
) -> float:
    """Share of rows whose class is the most common one of the training rows in their cluster.

    Examples
    --------
    >>> majority_accuracy([0, 0, 0, 1], ["a", "a", "b", "b"], [0, 1, 2], ["a", "b", "a"])
    1.0
    """
    names, codes = np.unique(np.asarray(train_classes), return_inverse=True)
    own = np.asarray(train_clusters)
    common = names[np.bincount(codes).argmax()]
    told = {
        cluster: names[np.bincount(codes[own == cluster]).argmax()] for cluster in np.unique(own)
    }
    found = [told.get(cluster, common) for cluster in np.asarray(clusters)]
    return float(np.mean(np.asarray(found) == np.asarray(classes)))


def clustering_accuracy(
    clusterer: Any, X: Any, y: ArrayLike, *, folds: int = 10, random_state: int = 0
) -> MeanAccuracy:
    """Accuracy of a clusterer's clusters on rows left out, over stratified folds.

    Parameters
    ----------
    clusterer
        Has ``fit`` and ``predict``; cloned for every fold. It never sees ``y``.
    X
        Rows.
    y
        Their classes.
    folds
        Number of folds.
    random_state
        Seed of the folds.

    Examples
    --------
    >>> import bayes_lcs as bl
    >>> X = [[0.0], [0.1], [5.0], [5.1]] * 5
    >>> clustering_accuracy(bl.KMeans(2, random_state=0), X, [0, 0, 1, 1] * 5, folds=5).mean
    1.0
    """
    classes = np.asarray(y)
    values = np.array(
        [
            _on_rows_left_out(clusterer, X, classes, train, test)
            for train, test in _splits(classes, folds, random_state)
        ]
    )
    return MeanAccuracy(float(values.mean()), float(values.std(ddof=1) / np.sqrt(folds)), values)


def _splits(classes: NDArray[Any], folds: int, random_state: int) -> Any:
    from sklearn.model_selection import StratifiedKFold

    splits = StratifiedKFold(folds, shuffle=True, random_state=random_state)
    return splits.split(np.zeros(len(classes)), classes)


def _on_rows_left_out(
    clusterer: Any,
    X: Any,
    classes: NDArray[Any],
    train: NDArray[np.int64],
    test: NDArray[np.int64],
) -> float:
    from sklearn.base import clone
    from sklearn.utils import _safe_indexing

    model = clone(clusterer).fit(_safe_indexing(X, train))
    known, clusters = (model.predict(_safe_indexing(X, rows)) for rows in (train, test))
    return majority_accuracy(known, classes[train], clusters, classes[test])


def clustering_learning_curve(
    clusterer: Any,
    X: Any,
    y: ArrayLike,
    *,
    step: int = 25,
    folds: int = 10,
    random_state: int = 0,
) -> pd.DataFrame:
    """Accuracy on rows left out against the number of rows trained on, in steps.

    Returns
    -------
    DataFrame
        Columns ``rows``, ``accuracy`` and ``standard_error``.

    Examples
    --------
    >>> import bayes_lcs as bl
    >>> X = [[0.0], [0.1], [5.0], [5.1]] * 20
    >>> curve = clustering_learning_curve(bl.KMeans(2, random_state=0), X, [0, 0, 1, 1] * 20)
    >>> curve["rows"].tolist()
    [25, 50, 72]
    """
    classes = np.asarray(y)
    rng = np.random.default_rng(random_state)
    found = []
    for train, test in _splits(classes, folds, random_state):
        order = rng.permutation(train)
        for size in [*range(step, len(order), step), len(order)]:
            accuracy = _on_rows_left_out(clusterer, X, classes, order[:size], test)
            found.append((size, accuracy))
    frame = pd.DataFrame(found, columns=["rows", "accuracy"])
    curve = frame.groupby("rows")["accuracy"].agg(["mean", "sem"]).reset_index()
    return curve.rename(columns={"mean": "accuracy", "sem": "standard_error"})


def accuracy_correlation(supervised: ArrayLike, unsupervised: ArrayLike) -> Correlation:
    """How far accuracies with labels foretell those without, over data sets and learners.

    Examples
    --------
    >>> accuracy_correlation([0.5, 0.7, 0.9], [0.4, 0.5, 0.6]).explained
    1.0
    """
    from scipy.stats import pearsonr

    found = pearsonr(np.asarray(supervised, float), np.asarray(unsupervised, float))
    r = float(found.statistic)
    return Correlation(r, round(r**2, 12), float(found.pvalue))
