"""Beyond the paper: what the myopic and the fitted rule lose against the best stop in hindsight."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from experiments.benchmarks.tables import Table
from experiments.learning_curve.setting import ALPHAS, Setting
from experiments.learning_curve.study import study
from experiments.papers.outcome import Finding, Outcome

TIED = 1e-4
"""Regrets closer than this are one: the noise of run times is of this size."""


def run(setting: Setting) -> Outcome:
    studies = [study(setting, name) for name in setting.data_sets]
    table = pd.concat([found.table for found in studies], ignore_index=True)
    table = table[table["rule"] != "full"]
    regret = table.pivot(index=["data", "alpha", "method"], columns="rule", values="regret")
    gain = regret["myopic"] - regret["fitted"]
    rows = []
    for name in setting.data_sets:
        for alpha in ALPHAS:
            own, lead = regret.loc[(name, alpha)], gain.loc[(name, alpha)]
            rows.append(
                (
                    name,
                    f"{alpha:g}",
                    f"{own['myopic'].mean():.4f}",
                    f"{own['fitted'].mean():.4f}",
                    int((lead > TIED).sum()),
                    int((lead.abs() <= TIED).sum()),
                    int((lead < -TIED).sum()),
                )
            )
    columns = ("data", "α", "myopic", "fitted", "fitted better", "tied", "fitted worse")
    better, tied = int((gain > TIED).sum()), int((gain.abs() <= TIED).sum())
    predictions = pd.concat([found.predictions for found in studies], ignore_index=True)
    ratio = (predictions["predicted"] / predictions["seconds"]).to_numpy(float)
    within = float(np.mean((ratio < 2) & (ratio > 0.5)))
    low, high = np.quantile(ratio, [0.05, 0.95])
    notes = [
        "Regret: the best utility of a stop at any of the method's own stages, less the rule's.",
        "It is below zero where skipped stages saved more than any stop could.",
        f"Cost model: predicted over measured seconds, 90 % between {low:.2f} and {high:.2f}.",
    ]
    return Outcome(
        [Table("regret", "Mean regret over the nine methods", columns, rows, notes)],
        table,
        {"": _figure(regret)},
        {
            "fitted_regret_below_myopic": Finding(
                f"smaller in {better}, tied in {tied}, larger in {len(gain) - better - tied} of "
                f"{len(gain)} conditions; mean regret {regret['fitted'].mean():.4f} against "
                f"{regret['myopic'].mean():.4f}",
                better >= 0.8 * len(gain),
            ),
            "cost_model_within_two": Finding(
                f"{within:.0%} of {len(ratio)} stages; median ratio {np.median(ratio):.2f}",
                within >= 0.9,
            ),
        },
    )


def _figure(regret: pd.DataFrame) -> object:
    figure, axes = plt.subplots(figsize=(5, 4.6), layout="constrained")
    for name, own in regret.groupby(level="data"):
        axes.scatter(own["myopic"], own["fitted"], s=14, label=str(name))
    ends = [float(regret.to_numpy().min()), float(regret.to_numpy().max())]
    axes.plot(ends, ends, color="0.5", linewidth=1)
    axes.set_xlabel("regret of the myopic rule")
    axes.set_ylabel("regret of the fitted rule")
    axes.grid(alpha=0.25)
    axes.legend(frameon=False, fontsize=8)
    return figure
