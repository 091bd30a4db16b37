"""Figure 2: EM iterations to convergence against sample size, for several thresholds γ."""

from __future__ import annotations

import matplotlib.pyplot as plt

from experiments.benchmarks.tables import Table
from experiments.learning_curve.convergence import plot_iterations
from experiments.learning_curve.curves import curves
from experiments.learning_curve.setting import Setting
from experiments.papers.outcome import Finding, Outcome


def run(setting: Setting) -> Outcome:
    frame = curves(setting)
    names = setting.data_sets
    figure, panels = plt.subplots(
        1, len(names), figsize=(4.5 * len(names), 3.6), layout="constrained", squeeze=False
    )
    tables, ratios = [], []
    for axes, name in zip(panels[0], names, strict=True):
        own = frame[frame["data"] == name]
        plot_iterations(own, axes).set_title(name)
        wide = own.pivot(index="size", columns="threshold", values="iterations")
        columns = ("size", *(f"γ = {threshold:g}" for threshold in wide.columns))
        rows = [(str(size), *row) for size, row in zip(wide.index, wide.to_numpy(), strict=True)]
        tables.append(Table("figure_2", f"{name}: iterations", columns, rows))
        tightest = wide[wide.columns.min()]
        ratios.append(float(tightest.max() / tightest.min()))
    shown = ", ".join(f"{name} {ratio:.1f}" for name, ratio in zip(names, ratios, strict=True))
    return Outcome(
        tables,
        frame,
        {"": figure},
        {
            "iterations_constant": Finding(
                f"most over fewest iterations at γ = 1e-5: {shown}; roughly is up to 2",
                max(ratios) <= 2,
            )
        },
    )
