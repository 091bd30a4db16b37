"""Accuracy of a clustering as a classifier.

Every cluster predicts the majority class of its training rows, and the accuracy is that of test
rows (Kalton et al. 2001, section 4). Clusters without training rows predict the most common class
of all.
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
    """Mean accuracy over folds, its standard error, and the accuracies of the folds."""

    mean: float
    standard_error: float
    folds: NDArray[np.float64]


class Correlation(NamedTuple):
    """Correlation of two accuracies, share of variance explained, and p-value."""

    r: float
    explained: float
    p_value: float


def majority_accuracy(
    train_clusters: ArrayLike, train_classes: ArrayLike, clusters: ArrayLike, classes: ArrayLike
) -> float:
    """Return the share of rows whose class is the majority class of their cluster.

    Examples
    --------
    >>> majority_accuracy([0, 0, 0, 1], ["a", "a", "b", "b"], [0, 1, 2], ["a", "b", "a"])
    1.0
    """
    names, codes = np.unique(np.asarray(train_classes), return_inverse=True)
    own = np.asarray(train_clusters)
    common = names[np.bincount(codes).argmax()]
    majority = {
        cluster: names[np.bincount(codes[own == cluster]).argmax()] for cluster in np.unique(own)
    }
    predicted = [majority.get(cluster, common) for cluster in np.asarray(clusters)]
    return float(np.mean(np.asarray(predicted) == np.asarray(classes)))


def clustering_accuracy(
    clusterer: Any, X: Any, y: ArrayLike, *, folds: int = 10, random_state: int = 0
) -> MeanAccuracy:
    """Return the accuracy of a clusterer on test rows, over stratified folds.

    Parameters
    ----------
    clusterer
        Estimator with ``fit`` and ``predict``; cloned for every fold and fitted without ``y``.
    X
        Rows.
    y
        Classes of the rows.
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
            _test_accuracy(clusterer, X, classes, train, test)
            for train, test in _splits(classes, folds, random_state)
        ]
    )
    return MeanAccuracy(float(values.mean()), float(values.std(ddof=1) / np.sqrt(folds)), values)


def _splits(classes: NDArray[Any], folds: int, random_state: int) -> Any:
    from sklearn.model_selection import StratifiedKFold

    splits = StratifiedKFold(folds, shuffle=True, random_state=random_state)
    return splits.split(np.zeros(len(classes)), classes)


def _test_accuracy(
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
    """Return the accuracy on test rows for increasing numbers of training rows.

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
            accuracy = _test_accuracy(clusterer, X, classes, order[:size], test)
            found.append((size, accuracy))
    frame = pd.DataFrame(found, columns=["rows", "accuracy"])
    curve = frame.groupby("rows")["accuracy"].agg(["mean", "sem"]).reset_index()
    return curve.rename(columns={"mean": "accuracy", "sem": "standard_error"})


def accuracy_correlation(supervised: ArrayLike, unsupervised: ArrayLike) -> Correlation:
    """Return the correlation of supervised and unsupervised accuracies over data sets and learners.

    Examples
    --------
    >>> accuracy_correlation([0.5, 0.7, 0.9], [0.4, 0.5, 0.6]).explained
    1.0
    """
    from scipy.stats import pearsonr

    found = pearsonr(np.asarray(supervised, float), np.asarray(unsupervised, float))
    r = float(found.statistic)
    return Correlation(r, round(r**2, 12), float(found.pvalue))
