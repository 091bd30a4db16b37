"""Figure 2: how many times faster than a single tree one scan and less than one scan are."""

from __future__ import annotations

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from experiments.benchmarks.tables import Table
from experiments.papers.outcome import Finding, Outcome
from experiments.partial_scan.scans import records
from experiments.partial_scan.setting import Setting

DATA = "ucsd_fico2009"


def run(setting: Setting) -> Outcome:
    """All rows are in memory, and the validation rows are part of the time."""
    found = records(setting, DATA, False, "tree")
    one = found["single_seconds"] / found["one_seconds"]
    less = found["single_seconds"] / found["less_seconds"]
    seconds = float(found["single_seconds"].iloc[0])
    rows = list(zip(found["parts"], one, less, found["share"], strict=True))
    table = Table(
        "figure_2",
        f"{DATA}: times faster than a single tree, which takes {seconds:.2f} s",
        ("parts", "one scan", "less than one", "% read"),
        rows,
    )
    both = int(((one > 1.0) & (less > 1.0)).sum())
    faster = int((less > one).sum())
    return Outcome(
        [table],
        found,
        {"": _figure(found["parts"], one, less)},
        {
            "faster_than_a_single_model": Finding(
                f"both for {both} of {len(found)} numbers of parts; one scan {one.min():.1f} to "
                f"{one.max():.1f} times, less than one {less.min():.1f} to {less.max():.1f} times",
                both == len(found),
            ),
            "less_is_faster_than_one": Finding(
                f"for {faster} of {len(found)} numbers of parts", faster == len(found)
            ),
        },
    )


def _figure(parts: pd.Series, one: pd.Series, less: pd.Series) -> Figure:
    figure, axes = plt.subplots(figsize=(5.6, 3.8), layout="constrained")
    axes.plot(parts, one, marker="o", label="one scan")
    axes.plot(parts, less, marker="s", label="less than one scan")
    axes.axhline(1.0, color="0.4", linestyle="--")
    axes.set_xscale("log", base=2)
    axes.set_xlabel("parts")
    axes.set_ylabel("time of a single tree over that of the ensemble")
    axes.grid(alpha=0.25)
    axes.legend(frameon=False)
    return figure
