"""Cost of centres found on a coreset, and errors of costs, against its size, for every method."""

from __future__ import annotations

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

import bayes_lcs as bl
from bayes_lcs.clustering.coresets.sampling_scores import METHODS
from bayes_lcs.clustering.kmeans.init import draw_centers, nearest
from experiments.benchmarks.tables import Table
from experiments.coresets.setting import Setting
from experiments.papers.outcome import Finding, Outcome

CLUSTERS = 7
SIZES, SIZES_SMOKE = (100, 300, 1000, 3000, 10_000), (100, 300)
QUERIES = 10


def run(setting: Setting) -> Outcome:
    found = pd.concat([_errors(setting, name) for name in setting.data_sets], ignore_index=True)
    means = found.groupby(["data", "size", "method"], sort=False)[["cost", "error"]].mean()
    rows: list[tuple[Any, ...]] = []
    for (name, size), part in means.groupby(level=[0, 1], sort=False):
        own = part.droplevel([0, 1])
        rows.append(
            (name, size, *(f"{own.loc[m, 'cost']:.3f} {own.loc[m, 'error']:.3f}" for m in METHODS))
        )
    table = Table(
        "cost_by_size",
        f"k = {CLUSTERS}: cost of centres over the best known, and mean relative error of costs",
        ("data", "size", *METHODS),
        rows,
    )
    ratios = {}
    for name in setting.data_sets:
        errors = means.loc[name]["error"].unstack("method")
        ratios[name] = float((errors["uniform"] / errors["sensitivity"]).mean())
    shown = ", ".join(f"{ratio:.1f} on {name}" for name, ratio in ratios.items())
    return Outcome(
        [table],
        found,
        {"": _figure(means)},
        {
            "relative_error_falls_with_size": Finding(
                f"uniform errors over those by sensitivity: {shown}", max(ratios.values()) > 1.5
            )
        },
    )


def _errors(setting: Setting, name: str) -> pd.DataFrame:
    X = setting.load(name)
    state = np.random.RandomState(setting.seed)
    best = bl.KMeans(CLUSTERS, n_init=3 if setting.smoke else 10, random_state=setting.seed).fit(X)
    few = X[state.choice(len(X), min(len(X), 20_000), replace=False)]
    queries = [
        draw_centers(few, CLUSTERS, "k-means++", state, np.ones(len(few))) for _ in range(QUERIES)
    ]
    costs = [float(nearest(X, query)[1].sum()) for query in queries]
    rows = []
    for size in SIZES_SMOKE if setting.smoke else SIZES:
        if size >= len(X):
            continue
        for method in METHODS:
            for repeat in range(setting.repeats):
                small = bl.coreset(X, CLUSTERS, size, method=method, queries=0, random_state=repeat)
                centers = small.kmeans(CLUSTERS, n_init=5, random_state=repeat).cluster_centers_
                cost = float(nearest(X, centers)[1].sum()) / best.inertia_
                off = [
                    abs(float(small.weights @ nearest(small.points, query)[1]) / exact - 1.0)
                    for query, exact in zip(queries, costs, strict=True)
                ]
                rows.append((name, size, method, repeat, cost, float(np.mean(off))))
    return pd.DataFrame(rows, columns=["data", "size", "method", "repeat", "cost", "error"])


def _figure(means: pd.DataFrame) -> Figure:
    names = list(dict.fromkeys(means.index.get_level_values(0)))
    figure, grid = plt.subplots(
        len(names), 2, figsize=(9.0, 3.2 * len(names)), layout="constrained", squeeze=False
    )
    for row, name in zip(grid, names, strict=True):
        for axes, column in zip(row, ("cost", "error"), strict=True):
            wide = means.loc[name][column].unstack("method")[list(METHODS)]
            for method, marker in zip(METHODS, "osD", strict=True):
                axes.plot(wide.index, wide[method], marker=marker, markersize=4, label=method)
            axes.set_xscale("log")
            axes.set_xlabel("points of the coreset")
            axes.grid(alpha=0.25)
        row[0].set_ylabel(f"{name}\ncost over the best known")
        row[1].set_yscale("log")
        row[1].set_ylabel("mean relative error of costs")
    grid[0][1].legend(frameon=False, fontsize=8)
    return figure
