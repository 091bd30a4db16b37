"""Benefit, cost and utility (Meek, Thiesson and Heckerman 2002, equations 1 to 3).

``benefit(m) = (l(m) - l(base)) / (l(m_D) - l(base))`` with ``l`` the score on the hold-out, ``m_D``
the model of all rows and ``base`` a simple one; ``cost = α · run time``; ``utility = benefit -
cost``. As an extension of the paper, users may give functions of relative benefit and of seconds.

The baseline of the paper is a model of independent features, that is, a mixture of one component.
Classifiers are compared with the frequencies of the labels, regressors with the mean.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

__all__ = ["Preferences", "default_baseline", "relative_benefit"]


def relative_benefit(score: float, base: float, full: float) -> float:
    """Return the gain over the baseline as a share of that of the model of all rows (equation 1).

    Examples
    --------
    >>> relative_benefit(-12.0, base=-20.0, full=-10.0)
    0.8
    """
    if full == base:
        raise ValueError(
            "benefit is undefined, because the model of all rows has the score of the baseline"
        )
    return (score - base) / (full - base)


@dataclass(frozen=True)
class Preferences:
    """Preferences of the decision maker.

    Attributes
    ----------
    alpha
        Cost of an hour of waiting, in units of benefit.
    benefit
        Function from relative benefit to its worth; by default the identity.
    cost
        Non-decreasing function from seconds to their cost, instead of ``alpha``.

    Examples
    --------
    >>> Preferences(alpha=0.2).utility(0.98, seconds=360)
    0.96
    >>> deadline = Preferences(cost=lambda seconds: 0.0 if seconds < 60 else 1.0)
    >>> deadline.utility(0.98, seconds=59), deadline.utility(0.98, seconds=61) < 0
    (0.98, True)
    """

    alpha: float = 0.2
    benefit: Callable[[float], float] | None = None
    cost: Callable[[float], float] | None = None

    def worth(self, relative: float) -> float:
        """Return the worth of a relative benefit."""
        return relative if self.benefit is None else float(self.benefit(relative))

    def price(self, seconds: float) -> float:
        """Return the cost of run time (equation 2)."""
        return self.alpha * seconds / 3600.0 if self.cost is None else float(self.cost(seconds))

    def utility(self, relative: float, seconds: float) -> float:
        """Return worth less price (equation 3)."""
        return self.worth(relative) - self.price(seconds)


def default_baseline(estimator: Any) -> Any:
    """Return a simple unfitted estimator of the same kind.

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
        f"there is no default baseline for {type(estimator).__name__}; pass baseline=, a simpler "
        "estimator with the same kind of score, or its score on the hold-out"
    )
