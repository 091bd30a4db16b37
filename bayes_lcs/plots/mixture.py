"""Plots of a mixture model: profiles of its clusters, and the EM trace."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from bayes_lcs.clustering.mixture.estimator import MixtureClusterer
from bayes_lcs.plots.figure import new_axes
from bayes_lcs.plots.heat_map import draw_profiles

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_em_trace", "plot_mixture_profiles"]

FloatArray = NDArray[np.float64]

MAX_LOG_RATIO = 4.0
"""Maximum log ratio of the colour scale, a factor of about 50."""


def plot_mixture_profiles(
    clusterer: MixtureClusterer, ax: Axes | None = None, *, max_features: int = 20
) -> Axes:
    """Plot the frequency of every value in each cluster relative to all rows.

    The colour is ``log theta_kfv / sum_k pi_k theta_kfv``: blue values are more common in the
    cluster than overall, white ones as common. Clusters are ordered by size.

    Parameters
    ----------
    clusterer
        A fitted `MixtureClusterer`.
    max_features
        Maximum number of features; those with the largest mutual information with the cluster are
        plotted.

    Examples
    --------
    >>> import bayes_lcs as bl
    >>> clusterer = bl.MixtureClusterer(2, random_state=0).fit([[0, 1], [1, 0]] * 20)
    >>> ax = bl.plot_mixture_profiles(clusterer)
    """
    if max_features < 1:
        raise ValueError(f"max_features must be at least 1, got {max_features}")
    weights = clusterer.weights_
    order = np.argsort(-weights, kind="stable")
    informative = np.argsort(
        [-_mutual_information(weights, table) for table in clusterer.probabilities_],
        kind="stable",
    )
    features = np.sort(informative[:max_features])
    names = getattr(clusterer, "feature_names_in_", None)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.hstack(
            [
                np.log(clusterer.probabilities_[f][order] / (weights @ clusterer.probabilities_[f]))
                for f in features
            ]
        )
    return draw_profiles(
        np.clip(np.nan_to_num(ratios), -MAX_LOG_RATIO, MAX_LOG_RATIO),
        [f"x{f}" if names is None else str(names[f]) for f in features],
        [[str(value) for value in clusterer.categories_[f]] or ["(none)"] for f in features],
        [f"{k}: {weights[k]:.0%}" for k in order],
        "log ratio: blue is more common in the cluster than overall, red less",
        ax,
    )


def _mutual_information(weights: FloatArray, table: FloatArray) -> float:
    """Return the mutual information of the cluster and a feature, in nats."""
    joint = weights[:, None] * table
    mean = joint.sum(axis=0)
    return float(xlogy(joint, table).sum() - xlogy(mean, mean).sum())


def plot_em_trace(clusterer: MixtureClusterer, ax: Axes | None = None) -> Axes:
    """Plot the log posterior of all EM starts at each pass, as the distance to the best.

    Examples
    --------
    >>> import bayes_lcs as bl
    >>> clusterer = bl.MixtureClusterer(2, n_init=2, random_state=0).fit([[0, 1], [1, 0]] * 20)
    >>> ax = bl.plot_em_trace(clusterer)
    """
    axes = new_axes(ax, 6.0, 4.0)
    best = max(float(result.trace.max()) for result in clusterer.results_)
    smallest = max(abs(best) * 1e-12, 1e-12)
    for number, result in enumerate(clusterer.results_):
        axes.plot(np.maximum(best - result.trace, smallest), label=f"start {number}")
    axes.set_yscale("log")
    axes.set_xlabel("pass over the rows")
    axes.set_ylabel("log posterior below the best (nats)")
    if len(clusterer.results_) > 1:
        axes.legend()
    return axes
