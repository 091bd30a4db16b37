"""Plots of log evidence: comparison of models, and curves over the number of rows.

Every function draws on one Axes and returns it. Names are drawn as plain text, never as
matplotlib's ``$...$`` maths.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from bayes_lcs.plots.figure import legend_text, new_axes, plain_text

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from bayes_lcs.model_evidence.log_evidence import LogEvidence

__all__ = ["plot_evidence", "plot_evidence_curve"]


def plot_evidence(results: Sequence[LogEvidence], ax: Axes | None = None) -> Axes:
    """Plot the log evidence of each model relative to the best, with 95 % intervals."""
    from matplotlib.ticker import MaxNLocator

    best = max(result.value for result in results)
    axes = new_axes(ax, 6.5, 1.2 + 0.5 * len(results))
    for row, result in enumerate(results):
        below = best - result.value
        axes.barh(row, below, color="tab:blue", height=0.6)
        error = np.array([[result.upper - result.value], [result.value - result.lower]])
        axes.errorbar(below, row, xerr=error, color="black", capsize=3)
        axes.annotate(
            f"{result.value:,.1f}",
            (below, row),
            xytext=(6, 0),
            textcoords="offset points",
            va="center",
        )
    axes.set_yticks(range(len(results)), [plain_text(result.model) for result in results])
    axes.invert_yaxis()
    axes.margins(x=0.24)
    axes.set_xlim(left=0)
    axes.xaxis.set_major_locator(MaxNLocator(6))
    axes.xaxis.set_major_formatter(lambda x, _: f"{x:,.10g}")
    axes.set_xlabel("nats of log evidence below the best model (shorter is better)")
    return axes


def plot_evidence_curve(
    frame: pd.DataFrame, ax: Axes | None = None, *, relative_to: str | None = None
) -> Axes:
    """Plot the log evidence of each model relative to a reference, against the number of rows.

    This is Figure 4-5 of the thesis.

    Parameters
    ----------
    frame
        Result of :func:`bayes_lcs.evidence_curve`.
    relative_to
        Name of the reference model; the last one by default.

    Examples
    --------
    >>> import bayes_lcs as bl
    >>> data, _ = bl.meeting_requests(seed=0, rows_per_person=10)
    >>> models = [bl.NoSharing(), bl.CompleteSharing()]
    >>> ax = bl.plot_evidence_curve(bl.evidence_curve(models, data, [10, 50, 200], repeats=2))
    """
    names = list(dict.fromkeys(frame["model"]))
    base = names[-1] if relative_to is None else relative_to
    if base not in names:
        raise ValueError(f"the frame has no model {base!r}; it has {', '.join(names)}")
    wide = frame.pivot_table(index=["size", "repeat"], columns="model", values="log_evidence")
    axes = new_axes(ax, 6.5, 4.2)
    axes.axhline(0.0, color="0.4", linewidth=1, linestyle="--", label=legend_text(base))
    for name in names:
        if name == base:
            continue
        ratio = (wide[name] - wide[base]).groupby("size")
        error = 1.96 * ratio.sem().fillna(0.0)
        axes.errorbar(
            ratio.mean().index, ratio.mean(), error, marker="o", capsize=2, label=legend_text(name)
        )
    axes.set_xscale("log")
    axes.set_yscale("symlog", linthresh=10)
    axes.set_xlabel("rows (drawn at random from all groups)")
    axes.set_ylabel(f"log evidence above {plain_text(base)} (nats)")
    axes.legend()
    return axes
