"""What data prefer the prototype model: evidence of all four over strength and rows a group.

Groups are drawn around one prototype with a strength of 0.5 (hardly alike) to 128 (nearly equal),
and, beside them, in three clusters of equal groups. Nothing is learned from the data set asked for.
"""

from __future__ import annotations

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

import bayes_lcs as bl
from experiments.benchmarks.simulated import clustered_groups
from experiments.benchmarks.tables import Table
from experiments.clustered_naive_bayes.setting import Setting
from experiments.papers.outcome import Outcome

SCHEMA = bl.Schema(2, (2, 3, 4, 3, 2))
STRENGTHS, STRENGTHS_SMOKE = (0.5, 2.0, 8.0, 32.0, 128.0), (2.0,)
SIZES, SIZES_SMOKE = (5, 20, 80, 320), (5,)
GROUPS, GROUPS_SMOKE = 12, 4
REPEATS, REPEATS_SMOKE = 5, 1
SHARP = 1e6  # shape of a strength prior that hardly varies
MODELS: tuple[Any, ...] = (
    bl.ClusteredNaiveBayes(),
    bl.Prototype(),
    bl.NoSharing(),
    bl.CompleteSharing(),
)
CLUSTERS = "3 clusters"
PROTOTYPE = "Prototype"


def run(setting: Setting) -> Outcome:
    smoke = setting.smoke
    strengths = STRENGTHS_SMOKE if smoke else STRENGTHS
    sizes = SIZES_SMOKE if smoke else SIZES
    rows = []
    for kind in (*strengths, CLUSTERS):
        for size in sizes:
            for repeat in range(REPEATS_SMOKE if smoke else REPEATS):
                data = _data(kind, size, GROUPS_SMOKE if smoke else GROUPS, setting.seed + repeat)
                rows.append({"data": str(kind), "rows": size, "repeat": repeat, **_evidence(data)})
    numbers = pd.DataFrame(rows)
    models = [model.name for model in MODELS]
    others = [name for name in models if name != PROTOTYPE]
    numbers["best"] = numbers[models].idxmax(axis=1)
    numbers["prototype_lead"] = numbers[PROTOTYPE] - numbers[others].max(axis=1)
    grouped = numbers.groupby(["data", "rows"], sort=False)
    table = Table(
        "prototype_map",
        "Nats by which the prototype leads the best of the others, mean of the repeats",
        ("data", "rows a group", "lead", "times best", "else best"),
        [
            (
                kind if kind == CLUSTERS else f"strength {kind}",
                size,
                float(part["prototype_lead"].mean()),
                f"{(part['best'] == PROTOTYPE).sum()} of {len(part)}",
                part[others].mean().idxmax(),
            )
            for (kind, size), part in grouped
        ],
        [f"Largest standard error of the prototype's evidence: {numbers['error'].max():.2f}."],
    )
    return Outcome([table], numbers, {"": _draw(grouped["prototype_lead"].mean())}, {})


def _data(kind: float | str, rows: int, num_groups: int, seed: int) -> bl.GroupedTable:
    if isinstance(kind, str):
        return clustered_groups(num_groups, num_clusters=3, rows_per_group=rows, seed=seed)[0]
    model = bl.Prototype(strength_prior=bl.Gamma(SHARP, SHARP / kind))
    return model.simulate(SCHEMA, [rows] * num_groups, seed=seed)[0]


def _evidence(data: bl.GroupedTable) -> dict[str, float]:
    """Of every model, and the largest standard error among them."""
    found = [bl.evidence(model, data, precision=0.1, progress=False) for model in MODELS]
    values = {each.model: each.value for each in found}
    return values | {"error": max(each.standard_error for each in found)}


def _draw(lead: pd.Series) -> Figure:
    """The lead over rows, one line for each kind of data."""
    figure, axes = plt.subplots(figsize=(8.0, 4.2), layout="constrained")
    axes.axhline(0, color="0.4", linewidth=1, linestyle="--")
    kinds = list(dict.fromkeys(lead.index.get_level_values(0)))
    for kind, shade in zip(kinds, np.linspace(0.0, 0.9, len(kinds)), strict=True):
        own = lead.loc[kind]
        is_clusters = kind == CLUSTERS
        axes.plot(
            own.index,
            own.to_numpy(),
            marker="s" if is_clusters else "o",
            linestyle=":" if is_clusters else "-",
            color="tab:red" if is_clusters else plt.get_cmap("viridis")(shade),
            label=kind if is_clusters else f"strength {kind}",
        )
    axes.set_xscale("log")
    axes.set_yscale("symlog", linthresh=10)
    axes.set_xlabel("rows a group")
    axes.set_ylabel("nats by which the prototype leads")
    axes.grid(alpha=0.25)
    axes.legend(frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure
