"""Claims of learning-curve sampling against the truth, on rows held back from training and scoring.

Every condition is a data set, a number of components, a cost of full training, and a way to train
the stages. The rows are split at random, anew for each data set, number of components and way:

- a source, of which `bayes_lcs.learning_curve_sample` holds out some rows and trains on the others,
- and rows held back, which only this study sees.

Claims are the intervals of score and gain, and of benefit and utility after ``compared_with``.
Seconds are CPU seconds. Every run is made twice, and the second counts, so that compilation counts
neither for learning-curve sampling nor for full training.
"""

from __future__ import annotations

import itertools
import warnings
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from scipy.stats import binomtest

from bayes_lcs import learning_curve_sample
from bayes_lcs.io.random_order import random_order
from bayes_lcs.learning_curve_sampling.result import LearningCurveResult
from bayes_lcs.learning_curve_sampling.utility import default_baseline
from experiments.benchmarks.tables import Table
from experiments.learning_curve.setting import Setting, load, make_estimator
from experiments.papers.outcome import Finding, Outcome

COSTS = (0.0, 0.02, 0.1, 0.5)
"""Cost of full training on all rows in benefit: alpha times its hours."""

COMPONENTS = (5, 25)
WAYS = (None, "fixed-1")

MOST_ROWS = 40_000
"""Rows of a source; at most 60 % of the data set."""

MOST_HELD_BACK = 60_000

TOLERANCE = 0.02
"""Utility is at least that of full training less this, less the cost of the run's own time."""


def run(setting: Setting) -> Outcome:
    components = (3,) if setting.smoke else COMPONENTS
    costs = COSTS[1:2] if setting.smoke else COSTS
    found = []
    for number, (name, size, way) in enumerate(
        itertools.product(setting.data_sets, components, WAYS)
    ):
        data = load(name, setting.scale, setting.seed)
        found += conditions(name, data, size, way, costs, setting, setting.seed + number)
    frame = pd.DataFrame(found)
    return Outcome(
        [_by_data(frame), _by_cost(frame)], frame, {"": _figure(frame)}, _findings(frame)
    )


def conditions(
    name: str,
    data: Any,
    components: int,
    way: str | None,
    costs: tuple[float, ...],
    setting: Setting,
    seed: int,
) -> list[dict[str, Any]]:
    """Return a row for each cost: claims, and the truth on rows held back."""
    order = np.random.default_rng(seed).permutation(data.shape[0])
    num_source = min(MOST_ROWS, int(0.6 * len(order)))
    source, test = data[order[:num_source]], data[order[num_source:][:MOST_HELD_BACK]]
    holdout = len(order[:num_source]) // 10
    estimator = make_estimator(components, seed)
    if not hasattr(data, "tocsr"):
        estimator.set_params(categories=[np.unique(column) for column in data.T])
    options: dict[str, Any] = {
        "holdout_size": holdout,
        "random_state": seed,
        "clock": setting.ticker(),
        "progress": False,
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(2):  # the first run compiles
            full = learning_curve_sample(estimator, source, method="full", **options)
        train = source[random_order(num_source, seed)[holdout:][:10_000]]
        base = default_baseline(estimator).fit(train).score_samples(test)
        top = full.model.score_samples(test)
        rows = []
        for cost in costs:
            alpha = cost / (full.runtime_seconds / 3600)
            for _ in range(2):  # the first run compiles
                result = learning_curve_sample(
                    estimator, source, alpha=alpha, abbreviated=way, **options
                )
            row = {"data": name, "K": components, "stages trained": way or "to the end"}
            row |= {"cost": cost, "seed": seed, "rows": num_source - holdout}
            rows.append(row | _compare(result.compared_with(full), full, test, base, top))
    return rows


def _compare(
    result: LearningCurveResult, full: LearningCurveResult, test: Any, base: Any, top: Any
) -> dict[str, Any]:
    own = result.model.score_samples(test)
    benefit = (own.mean() - base.mean()) / (top.mean() - base.mean())
    price = result.preferences.price
    truth = {
        "score": own.mean(),
        "gain": own.mean() - base.mean(),
        "benefit": benefit,
        "utility": benefit - price(result.runtime_seconds),
    }
    row: dict[str, Any] = {
        "N": result.sample_size,
        "stages": len(result.stages),
        "full utility": 1.0 - price(full.runtime_seconds),
        "own cost": price(result.runtime_seconds),
    }
    for key, value in truth.items():
        low, high = getattr(result, f"{key}_interval")
        row |= {f"claimed {key}": getattr(result, key), f"true {key}": value}
        row |= {f"{key} low": low, f"{key} high": high, f"{key} held": low <= value <= high}
    row["behind"] = row["full utility"] - row["true utility"]
    return row


def _by_data(frame: pd.DataFrame) -> Table:
    return _table(frame, "data", "Data sets")


def _by_cost(frame: pd.DataFrame) -> Table:
    return _table(frame, ["cost", "stages trained"], "Cost of full training, and stages")


def _table(frame: pd.DataFrame, by: Any, title: str) -> Table:
    rows = []
    for key, own in frame.groupby(by, sort=False):
        error = own["claimed utility"] - own["true utility"]
        rows.append(
            (
                ", ".join(map(str, key)) if isinstance(key, tuple) else str(key),
                len(own),
                f"{(own['N'] / own['rows']).mean():.2f}",
                f"{own['claimed utility'].mean():.3f}",
                f"{own['true utility'].mean():.3f}",
                f"{error.mean():+.4f}",
                f"{error.abs().max():.4f}",
                *(f"{own[f'{k} held'].mean():.2f}" for k in ("score", "gain", "benefit")),
                f"{own['full utility'].mean():.3f}",
                f"{(1.0 - own['true benefit']).max():+.4f}",
                f"{own['own cost'].mean():.3f}",
            )
        )
    columns = ("by", "conditions", "share of rows", "claimed utility", "true", "mean error")
    columns += ("largest error", "score held", "gain held", "benefit held", "full training")
    return Table("held_back", title, (*columns, "benefit lost at most", "own cost"), rows)


def _findings(frame: pd.DataFrame) -> dict[str, Finding]:
    keys = ("score", "gain", "benefit")
    shown = ", ".join(f"{key} {int(frame[f'{key} held'].sum())}" for key in keys)
    # Conditions of one split hold or fail together, so one of each is tested: that of the dearest
    # time, where the model differs most from that of full training.
    split = frame[frame["cost"] == frame["cost"].max()]
    held = {key: int(split[f"{key} held"].sum()) for key in keys}
    chance = min(binomtest(held[key], len(split), 0.95, "less").pvalue for key in keys)
    behind = frame["behind"] - frame["own cost"]
    worst, missed = float(behind.max()), int((behind > TOLERANCE).sum())
    return {
        "intervals_hold": Finding(
            f"{shown} of {len(frame)} conditions; of {len(split)} splits "
            + ", ".join(map(str, held.values())),
            bool(chance > 0.01),
        ),
        "utility_within_tolerance": Finding(
            f"in {len(frame) - missed} of {len(frame)} conditions; {worst:+.4f} behind at most, "
            "beyond the cost of its own time",
            missed == 0,
        ),
    }


def _figure(frame: pd.DataFrame) -> Any:
    figure, axes = plt.subplots(figsize=(5, 4.6), layout="constrained")
    for cost, own in frame.groupby("cost", sort=False):
        axes.scatter(own["true utility"], own["claimed utility"], s=14, label=f"cost {cost:g}")
    ends = [float(frame["true utility"].min()), float(frame["true utility"].max())]
    axes.plot(ends, ends, color="0.5", linewidth=1)
    axes.set_xlabel("utility on rows held back")
    axes.set_ylabel("utility claimed")
    axes.grid(alpha=0.25)
    axes.legend(frameon=False, fontsize=8)
    return figure
