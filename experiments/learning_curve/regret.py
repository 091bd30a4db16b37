"""Regret of the paper's rule against the best stop in hindsight, and errors of the cost model."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from experiments.benchmarks.tables import Table
from experiments.learning_curve.setting import ALPHAS, Setting
from experiments.learning_curve.study import study
from experiments.papers.outcome import Finding, Outcome


def run(setting: Setting) -> Outcome:
    studies = [study(setting, name) for name in setting.data_sets]
    table = pd.concat([found.table for found in studies], ignore_index=True)
    table = table[table["rule"] != "full"]
    regret = table.pivot(index=["data", "alpha"], columns="method", values="regret")
    rows = [
        (name, f"{alpha:g}", f"{own.mean():.4f}", f"{own.max():.4f}")
        for name in setting.data_sets
        for alpha in ALPHAS
        for own in [regret.loc[(name, alpha)]]
    ]
    predictions = pd.concat([found.predictions for found in studies], ignore_index=True)
    ratio = (predictions["predicted"] / predictions["seconds"]).to_numpy(float)
    within = float(np.mean((ratio < 2) & (ratio > 0.5)))
    low, high = np.quantile(ratio, [0.05, 0.95])
    notes = [
        "Regret: the best utility of a stop at any of the method's own stages, less the rule's.",
        f"Cost model: predicted over measured seconds, 90 % between {low:.2f} and {high:.2f}.",
    ]
    columns = ("data", "α", "mean", "largest")
    return Outcome(
        [Table("regret", "Regret of the paper's rule over all methods", columns, rows, notes)],
        table,
        {"": _figure(ratio)},
        {
            "cost_model_within_two": Finding(
                f"{within:.0%} of {len(ratio)} stages; median ratio {np.median(ratio):.2f}",
                within >= 0.9,
            ),
        },
    )


def _figure(ratio: np.ndarray) -> object:
    figure, axes = plt.subplots(figsize=(5, 3.6), layout="constrained")
    axes.hist(np.log2(ratio), bins=20)
    axes.set_xlabel("log2 of predicted over measured seconds of a stage")
    axes.set_ylabel("stages")
    axes.grid(alpha=0.25)
    return figure
