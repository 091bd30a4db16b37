"""Figure 1: accuracy and benefit of ensembles of trees against the number of parts."""

from __future__ import annotations

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from experiments.benchmarks.tables import Table
from experiments.papers.outcome import Finding, Outcome
from experiments.partial_scan.scans import records
from experiments.partial_scan.setting import Setting

PANELS = (("ucsd_fico2009", False), ("ucsd_fico2009", True), ("kdd98", True))


def run(setting: Setting) -> Outcome:
    panels = [records(setting, name, benefits, "tree") for name, benefits in PANELS]
    titles = [f"{name}, {'benefit' if benefits else 'accuracy'}" for name, benefits in PANELS]
    found = pd.concat([own.assign(panel=t) for t, own in zip(titles, panels, strict=True)])
    rows = [
        (title, row.parts, *(f"{v:.1f}" for v in (row.single, row.one, row.less, row.share)))
        for title, own in zip(titles, panels, strict=True)
        for row in own.itertuples()
    ]
    columns = ("what", "parts", "single model", "one scan", "less than one", "% read")
    above = [int((own["one"] > own["single"]).sum()) for own in panels]
    falls = [own["one"].iloc[-1] < own["one"].max() for own in panels]
    return Outcome(
        [Table("figure_1", "Trees: per cent right, or dollars", columns, rows)],
        found,
        {"": _figure(titles, panels)},
        {
            "above_the_single_model": Finding(
                "; ".join(
                    f"{title}: for {count} of {len(own)} numbers of parts"
                    for title, count, own in zip(titles, above, panels, strict=True)
                ),
                all(count == len(own) for count, own in zip(above, panels, strict=True)),
            ),
            "falls_with_many_parts": Finding(
                "; ".join(
                    f"{title}: best with {own['parts'][own['one'].idxmax()]} parts"
                    for title, own in zip(titles, panels, strict=True)
                ),
                all(falls),
            ),
        },
    )


def _figure(titles: list[str], panels: list[pd.DataFrame]) -> Figure:
    figure, grid = plt.subplots(1, len(panels), figsize=(12.0, 3.6), layout="constrained")
    for axes, title, own in zip(grid, titles, panels, strict=True):
        axes.plot(own["parts"], own["one"], marker="o", label="one scan")
        axes.plot(own["parts"], own["less"], marker="s", label="less than one scan")
        axes.axhline(own["single"].iloc[0], color="0.4", linestyle="--", label="single model")
        axes.set_xscale("log", base=2)
        axes.set_xlabel("parts")
        axes.set_title(title, fontsize=9)
        axes.grid(alpha=0.25)
    grid[0].legend(frameon=False, fontsize=8)
    return figure
