"""Losses under L_n, from cheap to dear false negatives, with 5 % of the rows left out at a time.

The thesis averages 90 trials of 5 %; here four divisions of all rows into 20 folds are averaged,
so that every row counts equally. The intervals are those of one division: the four predict the same
rows and say little more about other rows than one does.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

import bayes_lcs as bl
from experiments.benchmarks.tables import Table
from experiments.clustered_naive_bayes.setting import Setting
from experiments.papers.outcome import Finding, Outcome
from experiments.papers.runner import NotApplicable

DIVISIONS = 4
ALONE = "No-Sharing"
CLUSTERED = "Clustered Naive Bayes"
MARGINAL, INTERVAL = 0.9, 1.96


def run(setting: Setting) -> Outcome:
    data = setting.data
    if data.num_labels != 2:
        raise NotApplicable(f"L_n is about two labels, and there are {data.num_labels}")
    models: list[Any] = [bl.ClusteredNaiveBayes(), bl.NoSharing(), bl.CompleteSharing()]
    curves = []
    for division in range(1 if setting.smoke else DIVISIONS):
        left_out = {
            model.name: bl.cross_validate(
                model,
                data,
                fraction=0.25 if setting.smoke else 0.05,
                seed=setting.seed + division,
                draws=200,
            )
            for model in models
        }
        labels = left_out[ALONE].labels
        probabilities = {name: found.probabilities for name, found in left_out.items()}
        curves.append(bl.asymmetric_loss_curve(probabilities, labels, relative_to=ALONE))
    keys = ["model", "exponent", "relative_to"]
    curve = pd.concat(curves).groupby(keys, sort=False).mean().reset_index()
    own = curve[curve["model"] == CLUSTERED].set_index("exponent")
    ratio = own["relative_loss"]
    error = own["relative_standard_error"]
    upper = ratio + INTERVAL * error
    middle = float(ratio[ratio.index.to_series().abs().between(3, 5)].mean())
    low = float(ratio.loc[1:7].min())
    findings = {
        "clustered_marginally_better_at_zero_one_loss": Finding(
            f"loss of clustered over no sharing {ratio[0]:.3f} ± {error[0]:.3f} at n = 0; "
            f"marginal from {MARGINAL} to 1",
            bool(MARGINAL <= ratio[0] < 1),
        ),
        "clustered_significantly_better_when_asymmetric": Finding(
            f"{ratio[-4]:.3f} (below {upper[-4]:.3f}) at n = -4, "
            f"{ratio[4]:.3f} (below {upper[4]:.3f}) at n = 4",
            bool(upper[-4] < 1 and upper[4] < 1),
        ),
        "advantage_grows_with_asymmetry": Finding(
            f"{ratio[0]:.3f} at n = 0, {middle:.3f} on average at |n| = 3 to 5",
            bool(middle < ratio[0]),
        ),
        "trend_breaks_down_at_the_extremes": Finding(
            f"{ratio[8]:.3f} ± {error[8]:.3f} at n = 8, lowest of n = 1 to 7 {low:.3f}",
            bool(ratio[8] > low + 2 * error[8]),
        ),
    }
    wide = curve.pivot(index="exponent", columns="model", values="loss")[
        [model.name for model in models]
    ]
    rows = [
        (int(n), *map(float, losses), float(ratio[n]), float(error[n]))
        for n, losses in zip(wide.index, wide.to_numpy(), strict=True)
    ]
    columns = ("n", *wide.columns, "clustered / no sharing", "±")
    how = "; ".join(sorted({found.method for found in left_out.values()}))
    table = Table("figure_4_8", "Mean loss of a row under L_n", columns, rows, [f"By {how}."])
    axes = bl.plot_loss_curve(curve[curve["model"] != ALONE])
    if np.nanmax(curve["relative_loss"]) > 4:
        axes.set_yscale("log")
    return Outcome([table], curve, {"": axes.figure}, findings)
