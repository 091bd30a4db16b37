"""Learning curves as small graphs, one for each group."""

from __future__ import annotations

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from bayes_lcs.plots.figure import plain_text
from experiments.clustered_naive_bayes.learning_accuracy import leave_one_out_accuracy

COLUMNS = 7
INTERVAL = 1.96


def draw_panels(curves: pd.DataFrame, model: Any) -> Figure:
    """A graph for each group, with the leave-one-out accuracy of ``model`` beside its name."""
    final = leave_one_out_accuracy(curves, model)
    groups = list(final.index)
    models = list(dict.fromkeys(curves["model"]))
    columns = min(COLUMNS, len(groups))
    lines = -(-len(groups) // columns)
    figure, grid = plt.subplots(
        lines,
        columns,
        figsize=(1.0 + 1.75 * columns, 1.0 + 1.6 * lines),
        sharex=True,
        sharey=True,
        squeeze=False,
        layout="constrained",
    )
    for axes, group in zip(grid.flat, groups, strict=False):
        for model in models:
            own = curves[(curves["group"] == group) & (curves["model"] == model)]
            own = own.sort_values("size")
            at, middle = own["size"].to_numpy(), own["accuracy"].to_numpy()
            margin = INTERVAL * own["standard_error"].to_numpy()
            (line,) = axes.plot(
                at,
                middle,
                linewidth=1.2,
                marker="o",
                markersize=2.5,
                markevery=[-1],
                label=plain_text(model),
            )
            axes.fill_between(
                at, middle - margin, middle + margin, color=line.get_color(), alpha=0.2, linewidth=0
            )
        axes.set_title(f"{plain_text(group, longest=14)}: {final[group]:.0%}", fontsize=8)
        axes.set_yticks(np.linspace(0, 1, 11), ["0 %", *[""] * 4, "50 %", *[""] * 4, "100 %"])
        axes.set_ylim(0, 1.02)
        axes.tick_params(labelsize=7)
        axes.grid(alpha=0.2)
    for axes in list(grid.flat)[len(groups) :]:
        axes.set_visible(False)
    figure.supxlabel("training rows of each group", fontsize=9)
    figure.supylabel("accuracy on rows held out", fontsize=9)
    figure.legend(
        *grid[0, 0].get_legend_handles_labels(),
        loc="outside upper center",
        ncols=len(models),
        frameon=False,
    )
    return figure
