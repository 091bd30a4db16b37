"""What tables 1 and 2 have in common: means over numbers of parts, and answers to the claims."""

from __future__ import annotations

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from experiments.benchmarks.tables import Table
from experiments.papers.outcome import Finding
from experiments.partial_scan.setting import Setting

COLUMNS = ("single", "one", "less", "share", "usual_one", "paper", "usual_share", "paper_share")
CLEARLY_LESS = 90.0  # per cent


def means(found: pd.DataFrame) -> pd.DataFrame:
    """Of each data set and learner, over numbers of parts; those not run are left out."""
    return found.groupby(["data", "learner"], sort=False)[list(COLUMNS)].mean()


def mean_table(name: str, title: str, by: pd.DataFrame, setting: Setting) -> Table:
    rows = [(*key, *(f"{value:.1f}" for value in row)) for key, row in _pairs(by)]
    usual = setting.usual_parts
    many = ", ".join(map(str, setting.parts("tree")))
    return Table(
        name,
        title,
        (
            "data",
            "learner",
            "single model",
            "one scan",
            "less than one",
            "% read",
            f"one, {usual} parts",
            "less, the paper's rule",
            f"% read, {usual} parts",
            "% read, the paper's rule",
        ),
        rows,
        [f"Means over {many} parts (rules: {usual} parts), then {usual} parts alone."],
    )


def answers(by: pd.DataFrame, slack: pd.Series) -> dict[str, Finding]:
    """To the claims on values and shares; values that differ by no more than a slack are alike.

    ``slack`` is given for each row of ``by``.
    """
    cases = len(by)
    gain, lost = by["one"] - by["single"], (by["less"] - by["one"]).abs()
    lost_papers = (by["paper"] - by["usual_one"]).abs()
    ahead = int((gain > slack).sum())
    behind = int((gain < -slack).sum())
    share, papers, usual = by["share"], by["paper_share"], by["usual_share"]
    return {
        "one_scan_is_as_good": Finding(
            f"better in {ahead} of {cases} cases, worse in {behind}{_names(gain < -slack)}",
            behind == 0,
        ),
        "less_is_nearly_identical": Finding(
            f"in {int((lost <= slack).sum())} of {cases} cases{_names(lost > slack)}; by the "
            f"paper's rule in {int((lost_papers <= slack).sum())}",
            bool((lost <= slack).all()),
        ),
        "reads_clearly_less": Finding(
            f"{share.min():.0f} to {share.max():.0f} % read, mean {share.mean():.0f} %",
            bool((share < CLEARLY_LESS).all()),
        ),
        "reads_clearly_less_by_its_rule": Finding(
            f"{papers.min():.0f} to {papers.max():.0f} % read, mean {papers.mean():.0f} %, where "
            f"ours reads {usual.mean():.0f} %; below {CLEARLY_LESS:.0f} % in "
            f"{int((papers < CLEARLY_LESS).sum())} of {cases} cases",
            bool((papers < CLEARLY_LESS).all()),
        ),
        "trees_read_more": _trees(by),
    }


def _trees(by: pd.DataFrame) -> Finding:
    """With the same number of parts for all."""
    wide = by["usual_share"].unstack("learner")
    mean = wide.mean()
    most = wide["tree"] >= wide.drop(columns="tree").max(axis=1)
    return Finding(
        ", ".join(f"{learner} {value:.0f} %" for learner, value in mean.items())
        + f"; trees most on {int(most.sum())} of {len(most)} data sets",
        bool(most.all()),
    )


def bars(by: pd.DataFrame, label: str) -> Figure:
    """Values beside shares, a group of bars for each data set and learner."""
    names = [f"{data}\n{learner}" for data, learner in by.index]
    place = np.arange(len(names))
    figure, axes = plt.subplots(2, 1, figsize=(1.1 * len(names) + 2.0, 6.0), layout="constrained")
    base = by["single"].abs().where(by["single"].abs() > 0, 1.0)
    for number, column in enumerate(("one", "less")):
        change = 100.0 * (by[column] - by["single"]) / base
        axes[0].bar(place + 0.4 * number - 0.2, change, 0.4, label=f"{column} scan")
    axes[0].axhline(0.0, color="0.3", linewidth=0.8)
    axes[0].set_ylabel(f"{label}:\n% above the single model")
    axes[1].bar(place - 0.2, by["usual_share"], 0.4, label="our rule", color="tab:green")
    axes[1].bar(place + 0.2, by["paper_share"], 0.4, label="the paper's rule", color="0.6")
    axes[1].set_ylabel("% of the rows read")
    for own in axes:
        own.set_xticks(place, names, fontsize=7)
        own.legend(frameon=False, fontsize=8)
    return figure


def _pairs(by: pd.DataFrame) -> Any:
    return zip(by.index, by.to_numpy(), strict=True)


def _names(chosen: pd.Series) -> str:
    names = [f"{data} {learner}" for data, learner in chosen.index[chosen.to_numpy()]]
    return f" ({', '.join(names)})" if names else ""
