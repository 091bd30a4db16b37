"""The lecture's construction in pictures: draw, take the nearest half away; cells; weights."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import bayes_lcs as bl
from bayes_lcs.clustering.kmeans.init import nearest
from experiments.benchmarks.tables import Table
from experiments.coresets.setting import Setting, made
from experiments.papers.outcome import Outcome

DRAWN = 6
ROUNDS = 3


def run(setting: Setting) -> Outcome:
    X = made(setting.seed, 2000)
    rng = np.random.default_rng(setting.seed)
    figure, grid = plt.subplots(2, 3, figsize=(11.0, 7.0), layout="constrained")
    left = np.arange(len(X))
    drawn: list[np.ndarray] = []
    panels = list(grid.ravel())
    for number in range(ROUNDS):
        chosen = rng.choice(left, DRAWN, replace=False)
        drawn.append(chosen)
        order = np.argsort(nearest(X[left], X[chosen])[1], kind="stable")
        gone, kept = left[order[: len(left) // 2]], left[order[len(left) // 2 :]]
        axes = panels[number]
        axes.scatter(*X[kept].T, s=3, color="tab:blue")
        axes.scatter(*X[gone].T, s=3, color="0.8")
        axes.scatter(*X[np.concatenate(drawn)].T, s=40, color="tab:red", marker="x")
        axes.set_title(f"round {number + 1}: half of {len(left):,} taken away", fontsize=9)
        left = kept
    while len(left) > DRAWN:
        chosen = rng.choice(left, DRAWN, replace=False)
        drawn.append(chosen)
        order = np.argsort(nearest(X[left], X[chosen])[1], kind="stable")
        left = left[order[len(left) // 2 :]]
    centers = X[np.unique(np.concatenate([*drawn, left]))]
    cells = nearest(X, centers)[0]
    axes = panels[3]
    axes.scatter(*X.T, s=3, c=np.random.default_rng(1).permutation(len(centers))[cells], cmap="hsv")
    axes.scatter(*centers.T, s=25, color="black", marker="x")
    axes.set_title(f"{len(centers)} points and their cells", fontsize=9)
    rows = []
    for axes, method in zip(panels[4:], ("sensitivity", "uniform"), strict=True):
        small = bl.coreset(X, 7, 100, method=method, queries=0, random_state=setting.seed)
        axes.scatter(*X.T, s=2, color="0.85")
        axes.scatter(*small.points.T, s=0.6 * small.weights, color="tab:red", alpha=0.6)
        axes.set_title(f"{method}: {len(small)} weighted points", fontsize=9)
        far = int((np.abs(small.points).max(axis=1) > 40).sum())
        rows.append((method, len(small), far))
    for axes in panels:
        axes.set_xticks([])
        axes.set_yticks([])
    table = Table(
        "slides",
        "Two coresets of 100 draws",
        ("method", "points", "in the two far clouds"),
        rows,
    )
    return Outcome([table], pd.DataFrame(rows, columns=list(table.columns)), {"": figure}, {})
