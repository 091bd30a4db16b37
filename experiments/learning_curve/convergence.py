"""Learning curves at several convergence thresholds (Figures 2 and 3 of the paper).

Abbreviated training relies on two observations: the curves for different thresholds are roughly
parallel, and the number of iterations hardly depends on the sample size. These curves show whether
this is true of given data.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal

from bayes_lcs.learning_curve_sampling.controller import stage_sizes
from bayes_lcs.learning_curve_sampling.default_sizes import (
    default_holdout_size,
    default_initial_size,
    num_components_of,
)
from bayes_lcs.learning_curve_sampling.trainer import EstimatorTrainer, with_all_categories
from bayes_lcs.learning_curve_sampling.training_rows import open_rows
from bayes_lcs.learning_curve_sampling.truncated_training import Abbreviation
from bayes_lcs.plots.figure import new_axes
from bayes_lcs.runtime.progress import progress_bar

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

__all__ = ["convergence_curves", "plot_convergence_curves", "plot_iterations"]

_MARKERS = "osD^vPX*"


def convergence_curves(
    estimator: Any,
    source: Any,
    y: Any = None,
    *,
    thresholds: Sequence[float] = (1e-2, 1e-3, 1e-4, 1e-5),
    initial_size: int | None = None,
    growth: float = 2.0,
    holdout_size: int | None = None,
    scoring: Callable[..., float] | None = None,
    random_state: int = 0,
    progress: bool | None = None,
    clock: Callable[[], float] = time.perf_counter,
) -> pd.DataFrame:
    """Compute score and iterations at every size and threshold.

    Parameters
    ----------
    estimator
        Estimator with a convergence threshold ``tol``.
    source, y, initial_size, growth, holdout_size, scoring, random_state, progress, clock
        As in :func:`bayes_lcs.learning_curve_sample`.
    thresholds
        Values of ``tol``.

    Returns
    -------
    pandas.DataFrame
        One row for each ``threshold`` and ``size``: ``score``, ``iterations``, ``seconds``.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.mixture import GaussianMixture
    >>> X = np.random.default_rng(0).normal(size=(600, 2))
    >>> frame = convergence_curves(
    ...     GaussianMixture(2), X, thresholds=[0.1, 0.01], initial_size=200, holdout_size=100
    ... )
    >>> frame[["threshold", "size"]].values.tolist()
    [[0.1, 200.0], [0.01, 200.0], [0.1, 400.0], [0.01, 400.0], [0.1, 500.0], [0.01, 500.0]]
    """
    import pandas as pd
    from sklearn.base import clone

    rows = open_rows(estimator, source, y, seed=random_state)
    estimator = with_all_categories(estimator, rows)
    if holdout_size is None:
        holdout_size = default_holdout_size(rows.num_rows)
    trainers = {
        threshold: EstimatorTrainer(
            clone(estimator).set_params(
                **(Abbreviation("thresh", threshold).parameters(estimator) or {})
            ),
            rows,
            holdout_size=holdout_size,
            scoring=scoring,
            clock=clock,
        )
        for threshold in thresholds
    }
    num_rows = rows.num_rows - holdout_size
    if initial_size is None:
        initial_size = default_initial_size(num_rows, num_components_of(estimator))
    sizes = stage_sizes(initial_size, growth, num_rows)
    records = []
    with progress_bar("convergence curves", len(sizes) * len(trainers), progress) as tick:
        for size in sizes:
            for threshold, trainer in trainers.items():
                fit = trainer.fit(size, "full")
                records.append((threshold, size, fit.score, fit.iterations, fit.seconds))
                tick(1, f"{size:,} rows, threshold {threshold:g}")
    return pd.DataFrame(records, columns=["threshold", "size", "score", "iterations", "seconds"])


def plot_convergence_curves(
    frame: pd.DataFrame,
    ax: Axes | None = None,
    *,
    x_scale: Literal["log", "linear"] = "log",
) -> Axes:
    """Plot the score against sample size, one line per threshold γ (the paper's Figure 3).

    Parameters
    ----------
    frame
        Result of `convergence_curves`.
    x_scale : {"log", "linear"}
        Scale of the sample size.
    """
    axes = _by_threshold(frame, "score", ax)
    axes.set_xscale(x_scale)
    axes.set_ylabel("score on the hold-out")
    return axes


def plot_iterations(frame: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Plot iterations against sample size, one line per threshold (the paper's Figure 2).

    Parameters
    ----------
    frame
        Result of `convergence_curves`.
    """
    axes = _by_threshold(frame, "iterations", ax)
    axes.set_xscale("log")
    axes.set_ylim(bottom=0)
    axes.set_ylabel("iterations")
    return axes


def _by_threshold(frame: pd.DataFrame, column: str, ax: Axes | None) -> Axes:
    axes = new_axes(ax, 6.5, 4.2)
    groups: Any = frame.groupby("threshold", sort=False)
    for number, (threshold, own) in enumerate(groups):
        axes.plot(
            own["size"],
            own[column],
            marker=_MARKERS[number % len(_MARKERS)],
            markersize=4,
            linewidth=1.5,
            label=f"γ = {threshold:g}",
        )
    axes.set_xlabel("rows trained on")
    axes.grid(alpha=0.25)
    axes.legend(frameon=False)
    return axes
