"""Errors of centres found on a coreset: true and reported, on 16 data sets; far groups kept."""

from __future__ import annotations

import warnings
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from numpy.typing import NDArray

import bayes_lcs as bl
from bayes_lcs.clustering.coresets.checks import compare_costs
from bayes_lcs.clustering.coresets.sampling_scores import METHODS
from bayes_lcs.clustering.kmeans.init import nearest
from experiments.benchmarks.tables import Table
from experiments.coresets.setting import CHECKED, CHECKED_SMOKE, CONFIRMED, Setting, checked
from experiments.papers.outcome import Outcome

CLUSTERS = 7
SIZES = (100, 1000)
SEEDS = range(7)
WAYS = (*METHODS, "stream", "tree")
FAR_ROWS, FAR_SIZE = 20, 50


def run(setting: Setting) -> Outcome:
    """Compare what ``largest_error`` reports with the error of centres found from other starts."""
    found = pd.concat([_errors(name, setting) for name in _names(setting)], ignore_index=True)
    means = found.groupby(["data", "size", "way"], sort=False)[["true", "reported"]].median()
    sizes = list(dict.fromkeys(found["size"]))
    rows: list[tuple[Any, ...]] = [
        (
            name,
            size,
            *(f"{own['true']:.2g} ({own['reported']:.2g})" for _, own in part.iterrows()),
        )
        for (name, size), part in means.groupby(level=[0, 1], sort=False)
    ]
    errors = Table(
        "found_centers",
        f"k = {CLUSTERS}: median true (and reported) error of centres found on the coreset",
        ("data", "size", *WAYS),
        rows,
    )
    found["exceeds"] = found["true"] > found["reported"]
    found["sets"] = np.where(found["data"].isin(CONFIRMED), "new", "used for the allowance")
    share = found.groupby(["sets", "size", "way"], sort=False)["exceeds"].mean()
    exceeds = Table(
        "exceeded",
        f"Share of cases in which the true error exceeds the reported one, of {len(SEEDS)} seeds",
        ("data sets", "size", *WAYS),
        [
            (sets, size, *(float(share[sets, size, way]) for way in WAYS))
            for sets in dict.fromkeys(found["sets"])
            for size in sizes
        ],
    )
    kept = _keep_far_groups(setting)
    figure, axes = plt.subplots(figsize=(5.0, 4.6), layout="constrained")
    for way, marker in zip(WAYS, "osD^v", strict=True):
        own = found[found["way"] == way]
        axes.scatter(own["reported"], own["true"], s=12, marker=marker, label=way)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.axline((0.01, 0.01), (1.0, 1.0), color="0.6", linewidth=1)
    axes.set_xlabel("reported error")
    axes.set_ylabel("true error of centres found")
    axes.legend(frameon=False, fontsize=8)
    return Outcome([errors, exceeds, kept], found, {"": figure}, {})


def _names(setting: Setting) -> tuple[str, ...]:
    return CHECKED_SMOKE if setting.smoke else (*CHECKED, *CONFIRMED)


def _errors(name: str, setting: Setting) -> pd.DataFrame:
    X = checked(name, setting.smoke)
    rows = []
    for size in SIZES[:1] if setting.smoke else SIZES:
        for way in WAYS:
            for seed in SEEDS:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", UserWarning)
                    small = _make(way, X, size, setting.seed + seed)
                kmeans = small.kmeans(CLUSTERS, n_init=10, random_state=1000 + seed)
                centers = kmeans.cluster_centers_
                on_coreset = float(small.weights @ nearest(small.points, centers)[1])
                true = abs(compare_costs(on_coreset, float(nearest(X, centers)[1].sum())))
                rows.append((name, size, way, seed, true, small.largest_error))
    return pd.DataFrame(rows, columns=["data", "size", "way", "seed", "true", "reported"])


def _make(way: str, X: NDArray[np.float64], size: int, seed: int) -> bl.Coreset:
    if way == "tree":
        return bl.coreset_tree(X, CLUSTERS, size, block_rows=8 * size, random_state=seed)
    if way == "stream":
        stream = bl.CoresetStream(CLUSTERS, size, random_state=seed)
        stream.push(X)
        return stream.coreset(reduced=True)
    return bl.coreset(X, CLUSTERS, size, method=way, random_state=seed)


def _keep_far_groups(setting: Setting) -> Table:
    """Count the seeds in which none of some far rows is kept."""
    num_rows, num_seeds = (5000, 20) if setting.smoke else (200_000, 200)
    rows = []
    for away, k in ((1000.0, 3), (1000.0, 10), (100.0, 3)):
        X = np.random.default_rng(setting.seed).normal(size=(num_rows, 2))
        X[:FAR_ROWS, 0] += away
        kept = [
            sum(
                bool((small.indices < FAR_ROWS).any())
                for small in (
                    bl.coreset(X, k, FAR_SIZE, method=method, queries=0, random_state=seed)
                    for seed in range(num_seeds)
                )
                if small.indices is not None
            )
            for method in METHODS
        ]
        rows.append((away, k, *(count / num_seeds for count in kept)))
    return Table(
        "far_groups",
        f"Share of {num_seeds} seeds in which {FAR_SIZE} points keep some of {FAR_ROWS} far rows "
        f"of {num_rows:,}",
        ("distance", "k", *METHODS),
        rows,
    )
