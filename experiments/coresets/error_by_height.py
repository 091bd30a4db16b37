"""Errors of a streamed coreset against the height of its tree, and those of a chain."""

from __future__ import annotations

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import bayes_lcs as bl
from bayes_lcs.clustering.kmeans.init import draw_centers, nearest
from experiments.benchmarks.tables import Table
from experiments.coresets.setting import Setting, made
from experiments.papers.outcome import Finding, Outcome

CLUSTERS, POINTS, LEAF = 7, 200, 400
REPEATS = 4
"""Times those of other experiments: errors themselves are what is measured."""


def run(setting: Setting) -> Outcome:
    """A chain reduces what it has together with every leaf: as many compressions as leaves."""
    leaves = (1, 4, 16) if setting.smoke else (1, 2, 4, 8, 16, 32, 64)
    state = np.random.RandomState(setting.seed)
    centers = draw_centers(made(setting.seed, 2000), CLUSTERS, "k-means++", state, np.ones(2000))
    rows: list[tuple[Any, ...]] = []
    for count in leaves:
        for repeat in range(REPEATS * setting.repeats):
            X = made(setting.seed + 1000 + repeat, LEAF * count)
            exact = float(nearest(X, centers)[1].sum())
            stream = bl.CoresetStream(CLUSTERS, POINTS, leaf_size=LEAF, random_state=repeat)
            stream.push(X)
            tree = stream.coreset(reduced=True, checked=False)
            for way, points, weights in (
                ("tree", tree.points, tree.weights),
                ("chain", *_chain(X, repeat)),
            ):
                cost = float(weights @ nearest(points, centers)[1])
                rows.append((count, stream.height, way, repeat, cost / exact - 1.0))
    frame = pd.DataFrame(rows, columns=["leaves", "height", "way", "repeat", "error"])
    spread = frame.groupby(["way", "leaves"])["error"].agg(lambda e: float(np.sqrt(np.mean(e**2))))
    table = Table(
        "error_by_height",
        f"Root mean square of the relative error, {POINTS} points, leaves of {LEAF} rows",
        ("leaves", "height", "tree", "chain"),
        [
            (count, int(np.log2(count)), spread[("tree", count)], spread[("chain", count)])
            for count in leaves
        ],
    )
    figure, axes = plt.subplots(figsize=(5.6, 3.8), layout="constrained")
    for way, marker in (("tree", "o"), ("chain", "s")):
        axes.plot(leaves, spread[way], marker=marker, label=way)
    axes.set_xscale("log", base=2)
    axes.set_xlabel("leaves")
    axes.set_ylabel("relative error of a cost (rms)")
    axes.grid(alpha=0.25)
    axes.legend(frameon=False)
    last = leaves[-1]
    tree, chain = float(spread[("tree", last)]), float(spread[("chain", last)])
    return Outcome(
        [table],
        frame,
        {"": figure},
        {
            "error_grows_with_height": Finding(
                f"at {last} leaves {tree:.3f} by the tree, {chain:.3f} by the chain", tree < chain
            )
        },
    )


def _chain(X: Any, seed: int) -> tuple[Any, Any]:
    points, weights = np.empty((0, X.shape[1])), np.empty(0)
    for number, start in enumerate(range(0, len(X), LEAF)):
        leaf = X[start : start + LEAF]
        small = bl.coreset(
            np.concatenate([points, leaf]),
            CLUSTERS,
            POINTS,
            sample_weight=np.concatenate([weights, np.ones(len(leaf))]),
            queries=0,
            random_state=1000 * seed + number,
        )
        points, weights = small.points, small.weights
    return points, weights
