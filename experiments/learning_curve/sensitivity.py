"""Sensitivity: ten random orders of the rows of MS.COM, all methods, three α."""

from __future__ import annotations

import pandas as pd

from experiments.benchmarks.tables import Table
from experiments.learning_curve.pictures import utilities_figure
from experiments.learning_curve.setting import ALPHAS, Setting
from experiments.learning_curve.study import study
from experiments.learning_curve.tables import NOT_ABBREVIATED, of_rule
from experiments.papers.outcome import Finding, Outcome


def run(setting: Setting) -> Outcome:
    name = "MS.COM" if "MS.COM" in setting.data_sets else setting.data_sets[0]
    studies = [study(setting, name, sequence) for sequence in range(setting.sequences)]
    numbers = pd.concat([found.table for found in studies], ignore_index=True)
    by = of_rule(numbers).pivot(index=["sequence", "alpha"], columns="method", values="utility")
    rows = []
    for method in (*setting.methods, "EM-full"):
        cells = []
        for alpha in ALPHAS:
            own = by.xs(alpha, level="alpha")[method]
            cells.append(f"{own.mean():.4f} ± {own.std():.4f}")
        rows.append((method, *cells))
    columns = ("method", *(f"α = {alpha:g}" for alpha in ALPHAS))
    title = f"{name}: utility over {setting.sequences} orders of the rows (mean ± sd)"
    standard = by["standard LCS"] > by["EM-full"]
    over_both = (by["fixed-1"] > by["standard LCS"]) & (by["fixed-1"] > by["EM-full"])
    top = by["fixed-1"] >= by.drop(columns=list(NOT_ABBREVIATED)).max(axis=1)
    total = len(by)
    return Outcome(
        [Table("sensitivity", title, columns, rows)],
        numbers,
        {"": utilities_figure(studies[:1])},
        {
            "standard_over_full_in_most_orders": Finding(
                f"{int(standard.sum())} of {total} runs", bool(standard.sum() >= 0.9 * total)
            ),
            "fixed_1_over_both_in_all_orders": Finding(
                f"{int(over_both.sum())} of {total} runs", bool(over_both.all())
            ),
            "fixed_1_best_in_nearly_all_orders": Finding(
                f"{int(top.sum())} of {total} runs", bool(top.sum() >= total - 1)
            ),
        },
    )
