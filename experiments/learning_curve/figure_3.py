"""Figure 3: learning curves for several thresholds γ, sample size on linear and log scales."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from experiments.benchmarks.tables import Table
from experiments.learning_curve.convergence import plot_convergence_curves
from experiments.learning_curve.curves import curves
from experiments.learning_curve.setting import Setting
from experiments.papers.outcome import Finding, Outcome

PARALLEL = 0.25
"""Curves are parallel if their distance changes by less than this share of the rise."""


def run(setting: Setting) -> Outcome:
    frame = curves(setting)
    names = setting.data_sets
    figure, panels = plt.subplots(
        len(names), 2, figsize=(11, 3.4 * len(names)), layout="constrained", squeeze=False
    )
    tables, bends, drifts = [], [], []
    for pair, name in zip(panels, names, strict=True):
        own = frame[frame["data"] == name]
        for axes, x_scale in zip(pair, ("linear", "log"), strict=True):
            plot_convergence_curves(own, axes, x_scale=x_scale).set_title(name)
        wide = own.pivot(index="size", columns="threshold", values="score")
        columns = ("size", *(f"γ = {threshold:g}" for threshold in wide.columns))
        rows = [
            (str(size), *(f"{score:.4f}" for score in row))
            for size, row in zip(wide.index, wide.to_numpy(), strict=True)
        ]
        tables.append(Table("figure_3", f"{name}: hold-out score", columns, rows))
        bends.append(_bend(wide))
        drifts.append(_drift(wide))
    bent = ", ".join(f"{name} {bend:+.2f}" for name, bend in zip(names, bends, strict=True))
    drift = ", ".join(f"{name} {share:.2f}" for name, share in zip(names, drifts, strict=True))
    return Outcome(
        tables,
        frame,
        {"": figure},
        {
            "concave_in_log_size": Finding(
                f"height of the middle over the chord, in rises at γ = 1e-5: {bent}",
                min(bends) > -0.1,
            ),
            "curves_parallel": Finding(
                f"change of distance between γ = 1e-3 and 1e-5, in rises: {drift}; parallel is up "
                f"to {PARALLEL}",
                max(drifts) <= PARALLEL,
            ),
        },
    )


def _bend(wide: pd.DataFrame) -> float:
    """How far the middle of the curve lies above the line through its ends, in rises."""
    curve, sizes = wide[wide.columns.min()], np.log(wide.index.to_numpy(float))
    rise = curve.iloc[-1] - curve.iloc[0]
    chord = curve.iloc[0] + rise * (sizes - sizes[0]) / (sizes[-1] - sizes[0])
    inner = (curve - chord).iloc[1:-1]
    return float(inner.mean() / rise) if len(inner) else 0.0


def _drift(wide: pd.DataFrame) -> float:
    """By how much the distance between two curves changes along them, in rises of the tight one."""
    tight = wide[1e-5]
    distance = tight - wide[1e-3]
    return float((distance.max() - distance.min()) / (tight.max() - tight.min()))
