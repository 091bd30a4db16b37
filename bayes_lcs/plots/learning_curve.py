"""Plots of learning-curve sampling: score and stopping point.

Every function draws on one Axes and returns it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from bayes_lcs.learning_curve_sampling.result import LearningCurveResult
from bayes_lcs.learning_curve_sampling.time_cost import seconds_text
from bayes_lcs.plots.figure import new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_sampling_curve", "plot_stopping_line"]


def plot_sampling_curve(
    result: LearningCurveResult,
    ax: Axes | None = None,
    *,
    x_scale: Literal["log", "linear"] = "log",
) -> Axes:
    """Plot the score on the hold-out set against sample size (the paper's Figure 3).

    The left axis shows the score, with bars of two standard errors over the hold-out rows. The
    right axis shows the gain over the baseline, relative to that of the best model.

    Parameters
    ----------
    result
        Result of :func:`bayes_lcs.learning_curve_sample`.
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
    if curve["standard_error"].notna().all():
        bars = 2 * curve["standard_error"]
        axes.errorbar(curve["size"], curve["score"], bars, fmt="none", color="C0", capsize=2)
    axes.plot(result.sample_size, result.score, "*", color="C2", markersize=9, label="best model")
    axes.axvline(
        result.sample_size, color="C3", linewidth=1.0, linestyle=":", label="rows of the best model"
    )
    axes.set_xscale(x_scale)
    axes.set_xlabel("rows trained on")
    axes.set_ylabel("score on the hold-out")
    if result.gain > 0:
        base, gain = result.baseline_score, result.gain

        def to_gain(score: Any) -> Any:
            return (score - base) / gain

        def to_score(share: Any) -> Any:
            return base + share * gain

        right = axes.secondary_yaxis("right", functions=(to_gain, to_score))
        right.set_ylabel("gain over the baseline (best model = 1)")
    axes.grid(alpha=0.25)
    axes.legend(frameon=False)
    return axes


def plot_stopping_line(result: LearningCurveResult, ax: Axes | None = None) -> Axes:
    """Plot gain against run time, with the line of slope α at the stop (the paper's Figure 1).

    The gain over the baseline is relative to that of the best model. Where the curve is steeper
    than the line, continuing pays off. The height above a line of that slope through the origin is
    the utility on this scale.

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
    seconds, gain = curve["elapsed_seconds"].to_numpy(), curve["relative_gain"].to_numpy()
    axes.plot(seconds, gain, "o-", linewidth=1.5, markersize=4, label="stages")
    for size, x, y in zip(curve["size"], seconds, gain, strict=True):
        axes.annotate(f"{size:,}", (x, y), xytext=(4, -10), textcoords="offset points", fontsize=7)
    ends = np.linspace(0.0, max(float(seconds[-1]), result.runtime_seconds) * 1.05, 50)
    price = np.array([result.preferences.price(float(t)) for t in ends])
    price_at_stop = result.preferences.price(float(seconds[-1]))
    line = gain[-1] - price_at_stop + price
    label = "equal utility" if result.preferences.cost is not None else "slope α"
    axes.plot(ends, line, "--", color="C3", linewidth=1.0, label=label)
    end = result.run.end
    if result.gain > 0 and end is not result.stages[-1].fit:
        label = f"training to the end, after {seconds_text(result.runtime_seconds)}"
        share = (end.score - result.baseline_score) / result.gain
        axes.plot(result.runtime_seconds, share, "*", color="C2", label=label)
    axes.set_xlabel("run time (seconds)")
    axes.set_ylabel("gain over the baseline (best model = 1)")
    axes.grid(alpha=0.25)
    axes.legend(frameon=False)
    return axes
