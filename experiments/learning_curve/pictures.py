"""Pictures that several experiments draw."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

from experiments.learning_curve.setting import ALPHAS, METHODS
from experiments.learning_curve.study import Study


def utilities_figure(studies: Sequence[Study]) -> Any:
    """Utility by method, one panel a data set and one group of bars an α (the paper's Figure 4)."""
    present = set(studies[0].table["method"])
    methods = [name for name in (*METHODS, "EM-full") if name in present]
    figure, panels = plt.subplots(
        len(studies), 1, figsize=(8.5, 3.0 * len(studies)), layout="constrained", squeeze=False
    )
    for axes, found in zip(panels[:, 0], studies, strict=True):
        chosen = found.table[found.table["rule"].isin(["myopic", "full"])]
        by = chosen.pivot(index="method", columns="alpha", values="utility")
        for number, alpha in enumerate(ALPHAS):
            places = np.arange(len(methods)) + 0.27 * (number - 1)
            axes.bar(places, by.loc[methods, alpha], 0.25, label=f"α = {alpha:g}")
        low = max(float(by.to_numpy().min()), -0.5)
        axes.set_ylim(low - 0.02, 1.02)
        axes.set_xticks(range(len(methods)), methods, rotation=30, ha="right", fontsize=8)
        axes.set_ylabel("utility")
        axes.set_title(found.data_set)
        axes.grid(alpha=0.25, axis="y")
    panels[0, 0].legend(frameon=False, fontsize=8, ncols=3)
    return figure
