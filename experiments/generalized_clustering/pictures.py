"""Pictures that several experiments draw."""

from __future__ import annotations

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

MARKERS = "osD^v<>pPX"


def bars(by: Any, label: str) -> Figure:
    """One group of bars a row, one bar a column."""
    figure, axes = plt.subplots(figsize=(7.0, 3.6), layout="constrained")
    places = np.arange(len(by))
    width = 0.8 / by.shape[1]
    for k, name in enumerate(by.columns):
        axes.bar(places + k * width, by[name], width, label=str(name))
    axes.set_xticks(places + 0.4 - width / 2, [str(name) for name in by.index])
    axes.set_ylabel(label)
    axes.grid(alpha=0.25, axis="y")
    axes.legend(frameon=False, fontsize=8, ncols=2)
    return figure


def scatter(panels: dict[str, pd.DataFrame], column: str) -> Figure:
    """Accuracy without labels against accuracy with them, one panel each, a marker a learner."""
    figure, grid = plt.subplots(
        1, len(panels), figsize=(4.0 * len(panels), 4.0), layout="constrained", squeeze=False
    )
    for axes, (title, frame) in zip(grid[0], panels.items(), strict=True):
        y = title if title in frame else column
        for marker, (name, own) in zip(MARKERS, frame.groupby("learner", sort=False), strict=False):
            axes.scatter(own["supervised"], own[y], marker=marker, label=str(name), s=28)
        axes.plot([0, 100], [0, 100], color="0.7", linewidth=1)
        axes.set_xlabel("accuracy with labels, per cent")
        axes.set_ylabel("without")
        axes.set_title(title, fontsize=10)
        axes.grid(alpha=0.25)
    grid[0][0].legend(frameon=False, fontsize=7)
    return figure
