"""Pictures of learning-curve sampling: the curve, where it stopped, and why it may be cut short.

Every function draws on one Axes and returns it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from bayes_lcs.report.axes import new_axes
from bayes_lcs.scaling.rates import seconds_text
from bayes_lcs.scaling.result import LearningCurveResult

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

__all__ = [
    "last_forecast",
    "plot_convergence_curves",
    "plot_iterations",
    "plot_sampling_curve",
    "plot_stopping_line",
]

_MARKERS = "osD^vPX*"


def plot_sampling_curve(
    result: LearningCurveResult,
    ax: Axes | None = None,
    *,
    x_scale: Literal["log", "linear"] = "log",
) -> Axes:
    """Score on the hold-out against sample size, with the size chosen (the paper's Figure 3).

    Both scales of the score are drawn: its own on the left, benefit on the right. A rule that fits
    the curve has its last forecast drawn, with bands of two standard deviations.

    Parameters
    ----------
    result
        From :func:`bayes_lcs.learning_curve_sample`.
    x_scale : {"log", "linear"}
        Scale of the sample size.

    Examples
    --------
    >>> import numpy as np, bayes_lcs as bl
    >>> from sklearn.mixture import GaussianMixture
    >>> X = np.random.default_rng(0).normal(size=(4000, 2))
    >>> result = bl.learning_curve_sample(
    ...     GaussianMixture(2), X, initial_size=200, holdout_size=500, baseline=-9.0
    ... )
    >>> ax = bl.plot_sampling_curve(result)
    """
    axes = new_axes(ax, 6.5, 4.2)
    curve = result.curve
    axes.plot(curve["size"], curve["score"], "o-", linewidth=1.5, markersize=4, label="stages")
    forecast = last_forecast(result)
    if forecast:
        sizes = np.array(sorted(forecast))
        mean, sd = np.array([forecast[n] for n in sizes]).T
        axes.plot(sizes, mean, "--", color="0.4", linewidth=1.2, label="forecast")
        axes.fill_between(sizes, mean - 2 * sd, mean + 2 * sd, color="0.4", alpha=0.18, linewidth=0)
    axes.axvline(result.sample_size, color="C3", linewidth=1.0, linestyle=":", label="chosen")
    axes.set_xscale(x_scale)
    axes.set_xlabel("rows trained on")
    axes.set_ylabel("score on the hold-out")
    full, base = result.full_score[0], result.baseline_score
    if np.isfinite(full) and full != base:
        scale = full - base

        def to_benefit(score: Any) -> Any:
            return (score - base) / scale

        def to_score(benefit: Any) -> Any:
            return base + benefit * scale

        right = axes.secondary_yaxis("right", functions=(to_benefit, to_score))
        right.set_ylabel("benefit (estimated)" if result.is_estimate else "benefit")
    axes.grid(alpha=0.25)
    axes.legend(frameon=False)
    return axes


def last_forecast(result: LearningCurveResult) -> dict[int, tuple[float, float]]:
    """Forecast score and standard deviation at sizes not yet visited, of the last decision."""
    decisions = [stage.decision for stage in result.stages if stage.decision is not None]
    return decisions[-1].forecast if decisions else {}


def plot_stopping_line(result: LearningCurveResult, ax: Axes | None = None) -> Axes:
    """Benefit against run time, and the line of slope α through the stop (the paper's Figure 1).

    Where the curve is steeper than the line, waiting pays; the height over a line of that slope
    through the origin is utility.

    Examples
    --------
    >>> import numpy as np, bayes_lcs as bl
    >>> from sklearn.mixture import GaussianMixture
    >>> X = np.random.default_rng(0).normal(size=(4000, 2))
    >>> result = bl.learning_curve_sample(
    ...     GaussianMixture(2), X, initial_size=200, holdout_size=500, baseline=-9.0
    ... )
    >>> ax = bl.plot_stopping_line(result)
    """
    axes = new_axes(ax, 6.5, 4.2)
    curve = result.curve
    seconds, benefit = curve["elapsed_seconds"].to_numpy(), curve["benefit"].to_numpy()
    axes.plot(seconds, benefit, "o-", linewidth=1.5, markersize=4, label="stages")
    for size, x, y in zip(curve["size"], seconds, benefit, strict=True):
        axes.annotate(f"{size:,}", (x, y), xytext=(4, -10), textcoords="offset points", fontsize=7)
    ends = np.linspace(0.0, max(float(seconds[-1]), result.runtime_seconds) * 1.05, 50)
    price = np.array([result.preferences.price(float(t)) for t in ends])
    stopped = result.preferences.price(float(seconds[-1]))
    line = benefit[-1] - stopped + price
    what = "equal utility" if result.preferences.cost is not None else "slope α"
    axes.plot(ends, line, "--", color="C3", linewidth=1.0, label=what)
    if result.runtime_seconds > seconds[-1]:
        label = f"final training, to {seconds_text(result.runtime_seconds)}"
        axes.plot(result.runtime_seconds, result.benefit, "*", color="C2", label=label)
    axes.set_xlabel("run time (seconds)")
    axes.set_ylabel("benefit (estimated)" if result.is_estimate else "benefit")
    axes.grid(alpha=0.25)
    axes.legend(frameon=False)
    return axes


def plot_convergence_curves(
    frame: pd.DataFrame,
    ax: Axes | None = None,
    *,
    x_scale: Literal["log", "linear"] = "log",
) -> Axes:
    """Score against sample size, one line a convergence threshold γ (the paper's Figure 3).

    Parameters
    ----------
    frame
        From :func:`bayes_lcs.convergence_curves`.
    x_scale : {"log", "linear"}
        Scale of the sample size.
    """
    axes = _by_threshold(frame, "score", ax)
    axes.set_xscale(x_scale)
    axes.set_ylabel("score on the hold-out")
    return axes


def plot_iterations(frame: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Iterations to convergence against sample size, one line a threshold (the paper's Figure 2).

    Parameters
    ----------
    frame
        From :func:`bayes_lcs.convergence_curves`.
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
