"""Plot of log evidence: comparison of models.

It draws on one Axes and returns it. Names are drawn as plain text, never as matplotlib's
``$...$`` maths.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from bayes_lcs.plots.figure import new_axes, plain_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from bayes_lcs.model_evidence.log_evidence import LogEvidence

__all__ = ["plot_evidence"]


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
