"""The zero of the scale of benefit: a simple model of a few rows.

The paper takes independent features, which is a mixture of one component. Other kinds of estimators
have their own: classifiers the shares of the labels, regressors the mean.
"""

from __future__ import annotations

from typing import Any

__all__ = ["default_baseline"]


def default_baseline(estimator: Any) -> Any:
    """A simple estimator of the same kind, not yet fitted.

    Examples
    --------
    >>> from sklearn.mixture import GaussianMixture
    >>> default_baseline(GaussianMixture(5)).n_components
    1
    """
    from sklearn.base import clone, is_classifier, is_regressor

    if is_classifier(estimator) or is_regressor(estimator):
        from sklearn.dummy import DummyClassifier, DummyRegressor

        return DummyClassifier() if is_classifier(estimator) else DummyRegressor()
    if "n_components" in estimator.get_params(deep=False):
        return clone(estimator).set_params(n_components=1)
    if "n_clusters" in estimator.get_params(deep=False):
        return clone(estimator).set_params(n_clusters=1)
    raise ValueError(
        f"{type(estimator).__name__} has no baseline of its own; pass baseline=, a simpler "
        "estimator with the same kind of score, or its score on the hold-out"
    )
