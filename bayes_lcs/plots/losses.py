"""Plots of prediction losses against training size and against the asymmetry of the loss.

Every function draws on one Axes and returns it. Names come from the user: they are drawn as plain
text, never as matplotlib's ``$...$`` maths.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from bayes_lcs.evaluation.learning_curves import average_learning_curve
from bayes_lcs.plots.figure import legend_text, new_axes, plain_text

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

__all__ = ["plot_learning_curves", "plot_loss_curve"]

INTERVAL = 1.96
"""Half-width of the bands in standard errors: 95 % of a normal distribution."""

_LOSS_NAMES = {"zero_one_loss": "share of wrong labels", "log_loss": "log loss (nats a row)"}


def plot_learning_curves(
    frame: pd.DataFrame,
    ax: Axes | None = None,
    *,
    loss: str = "zero_one_loss",
    group: str | None = None,
) -> Axes:
    """Plot the mean loss on test rows against the number of training rows, one line per model.

    Bands are 95 % intervals over the repeats (thesis Figures 4-1 and 4-3, for all groups).

    Parameters
    ----------
    frame
        Result of :func:`bayes_lcs.learning_curve`.
    loss
        Column to plot.
    group
        Name of a group; by default the mean of all groups is plotted.

    Examples
    --------
    >>> import bayes_lcs as bl
    >>> data, _ = bl.meeting_requests(seed=0, rows_per_person=40)
    >>> frame = bl.learning_curve([bl.NoSharing()], data, [5, 10, 20, 30], repeats=2)
    >>> ax = bl.plot_learning_curves(frame)
    """
    if loss not in frame:
        raise ValueError(f"the frame has no column {loss!r}")
    if group is not None:
        frame = frame[frame["group"] == group]
        if frame.empty:
            raise ValueError(f"the frame has no group {group!r}")
    axes = new_axes(ax, 6.5, 4.2)
    averages = average_learning_curve(frame).rename(columns={loss: "value"})
    error = f"{loss}_standard_error"
    _lines(axes, averages, "size", "value", error)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("training rows of each group")
    axes.set_ylabel(_LOSS_NAMES.get(loss, plain_text(loss)))
    axes.set_title("Test rows" if group is None else f"Test rows of {plain_text(group)}")
    return axes


def plot_loss_curve(curve: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Plot the loss under ``L_n`` relative to a reference, against ``n`` (thesis Figure 4-8).

    There is one line per model, with 95 % bands. Below the line at 1 a model has a smaller loss
    than the reference.

    Parameters
    ----------
    curve
        Result of :func:`bayes_lcs.asymmetric_loss_curve`.

    Examples
    --------
    >>> import bayes_lcs as bl
    >>> data, _ = bl.meeting_requests(seed=0, rows_per_person=40)
    >>> left_out = bl.leave_one_out(bl.exact(bl.NoSharing(), data))
    >>> curve = bl.asymmetric_loss_curve({"alone": left_out.probabilities}, left_out.labels)
    >>> ax = bl.plot_loss_curve(curve)
    """
    axes = new_axes(ax, 6.5, 4.2)
    axes.axhline(1.0, color="0.5", linewidth=1.0, linestyle="--", zorder=1)
    _lines(axes, curve, "exponent", "relative_loss", "relative_standard_error")
    axes.set_ylim(bottom=0)
    exponents = np.unique(curve["exponent"])
    if len(exponents) <= 20:
        axes.set_xticks(exponents)
    axes.set_xlabel("n: a false negative costs 2ⁿ, a false positive 1")
    reference = plain_text(str(curve["relative_to"].iloc[0]), longest=40)
    axes.set_ylabel(f"loss relative to {reference}")
    return axes


def _lines(axes: Axes, frame: pd.DataFrame, x: str, value: str, error: str) -> None:
    """Draw one line and one band per model, in order of appearance."""
    names: Sequence[str] = list(dict.fromkeys(frame["model"]))
    markers = "osD^vPX*"
    for number, name in enumerate(names):
        own = frame[frame["model"] == name].sort_values(x)
        at, middle = own[x].to_numpy(), own[value].to_numpy(dtype=np.float64)
        margin = INTERVAL * own[error].to_numpy(dtype=np.float64)
        (line,) = axes.plot(
            at,
            middle,
            marker=markers[number % len(markers)],
            markersize=4,
            linewidth=1.5,
            label=legend_text(name, longest=40),
        )
        axes.fill_between(
            at, middle - margin, middle + margin, color=line.get_color(), alpha=0.18, linewidth=0
        )
    axes.grid(alpha=0.25)
    axes.legend(frameon=False)
