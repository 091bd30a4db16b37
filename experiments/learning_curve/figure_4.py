"""Figure 4: utilities of all methods at three α, on every data set."""

from __future__ import annotations

from itertools import pairwise

import pandas as pd

from experiments.benchmarks.tables import Table
from experiments.learning_curve.pictures import utilities_figure
from experiments.learning_curve.setting import ALPHAS, Setting
from experiments.learning_curve.study import study
from experiments.learning_curve.tables import NOT_ABBREVIATED, utilities
from experiments.papers.outcome import Finding, Outcome


def run(setting: Setting) -> Outcome:
    studies = [study(setting, name) for name in setting.data_sets]
    tables = []
    pieces = {}
    for found in studies:
        by = utilities(found.table)[list(ALPHAS)]
        pieces[found.data_set] = by
        rows = [
            (m, *(f"{by.loc[m, a]:.4f}" for a in ALPHAS)) for m in (*setting.methods, "EM-full")
        ]
        columns = ("method", *(f"α = {alpha:g}" for alpha in ALPHAS))
        tables.append(Table("figure_4", f"{found.data_set}: utility", columns, rows))
    every = pd.concat(pieces)
    standard = every.xs("standard LCS", level=1)
    full = every.xs("EM-full", level=1)
    better = int((standard > full).to_numpy().sum())
    short = every[~every.index.get_level_values(1).isin(NOT_ABBREVIATED)]
    lead = short.sub(standard, level=0).to_numpy()
    best = every.groupby(level=0, sort=False).max()
    fixed = int((every.xs("fixed-1", level=1) >= best - 1e-12).to_numpy().sum())
    tight = every.xs("thresh-0.0001", level=1)
    loose = every.xs("fixed-1", level=1)
    speedups = {
        found.data_set: float(
            found.table.query("method == 'fixed-1' and rule == 'myopic'")["speedup"].max()
        )
        for found in studies
    }
    by_size = [speedups[found.data_set] for found in sorted(studies, key=lambda s: s.num_rows)]
    return Outcome(
        tables,
        every.reset_index(names=["data", "method"]),
        {"": utilities_figure(studies)},
        {
            "standard_over_full": Finding(
                f"in {better} of {standard.size} conditions", better == standard.size
            ),
            "abbreviated_over_standard": Finding(
                f"in {int((lead > 0).sum())} of {lead.size} conditions, by {lead.mean():.4f}",
                bool((lead > 0).mean() > 0.5),
            ),
            "fixed_1_does_best": Finding(
                f"in {fixed} of {best.size} conditions", fixed >= best.size - 1
            ),
            "tight_thresholds_do_worse": Finding(
                f"thresh-0.0001 below fixed-1 in {int((tight < loose).to_numpy().sum())} of "
                f"{tight.size} conditions",
                bool((tight < loose).to_numpy().mean() > 0.5),
            ),
            "speedup_grows_with_rows": Finding(
                ", ".join(f"{name} {value:.1f}" for name, value in speedups.items()),
                all(b >= a for a, b in pairwise(by_size)) if len(by_size) > 1 else None,
            ),
        },
    )
