"""Every row predicted from all others: errors of each group under some models, as bars."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

import bayes_lcs as bl
from bayes_lcs.plots.figure import plain_text
from experiments.benchmarks.tables import Table
from experiments.clustered_naive_bayes.posteriors import posterior
from experiments.clustered_naive_bayes.setting import Setting

COMMON = "most common label"


def predictions(models: Sequence[Any], setting: Setting) -> dict[str, bl.LeftOut]:
    """Each labelled row predicted without itself, by name of the model."""
    return {model.name: bl.leave_one_out(posterior(model, setting)) for model in models}


def errors_by_group(left_out: Mapping[str, bl.LeftOut], data: bl.GroupedTable) -> pd.DataFrame:
    """Share of wrong labels of each group; groups without a row are left out.

    The column `COMMON` is what always predicting the group's most common label would cost, the
    solid line of thesis Figures 4-4 and 4-7.
    """
    labels = data.counts().labels
    rows = labels.sum(axis=1)
    frame = pd.DataFrame({"group": data.group_names, "rows": rows})
    for name, found in left_out.items():
        frame[name] = found.loss_by_group()["loss"].to_numpy()
    frame[COMMON] = 1.0 - labels.max(axis=1) / np.maximum(rows, 1)
    return frame[frame["rows"] > 0].reset_index(drop=True)


def difference(one: bl.LeftOut, other: bl.LeftOut, loss: Any = "zero-one") -> tuple[float, float]:
    """Mean of one's loss less the other's on the same rows, and its standard error."""
    paired = bl.row_losses(one.probabilities, one.labels, loss) - bl.row_losses(
        other.probabilities, other.labels, loss
    )
    return float(paired.mean()), float(paired.std(ddof=1) / np.sqrt(len(paired)))


def error_table(name: str, frame: pd.DataFrame, left_out: Mapping[str, bl.LeftOut]) -> Table:
    """One row a group, and the mean over all rows at the end."""
    columns = [*left_out, COMMON]
    rows = [
        (group, number, *(float(value) for value in values))
        for group, number, *values in frame[["group", "rows", *columns]].itertuples(index=False)
    ]
    means = [found.mean_loss().value for found in left_out.values()]
    common = float((frame[COMMON] * frame["rows"]).sum() / frame["rows"].sum())
    rows.append(("all rows", int(frame["rows"].sum()), *means, common))
    notes = [
        f"{model}: {found.mean_loss().value:.4f} ± {found.mean_loss().standard_error:.4f} "
        f"({found.method})"
        for model, found in left_out.items()
    ]
    return Table(
        name, "Leave-one-out share of wrong labels", ("group", "rows", *columns), rows, notes
    )


def plot_errors(frame: pd.DataFrame, left_out: Mapping[str, bl.LeftOut]) -> Figure:
    """Bars of every group, one a model, under the mark of the most common label."""
    at = np.arange(len(frame))
    figure, axes = plt.subplots(
        figsize=(max(3.0 + 0.4 * len(frame), 7.5), 4.2), layout="constrained"
    )
    width = 0.8 / len(left_out)
    for number, name in enumerate(left_out):
        shift = (number - (len(left_out) - 1) / 2) * width
        axes.bar(at + shift, frame[name], width, label=plain_text(name))
    axes.hlines(frame[COMMON], at - 0.45, at + 0.45, color="black", linewidth=1.5, label=COMMON)
    axes.set_xticks(at, [plain_text(name) for name in frame["group"]], rotation=90)
    axes.set_xlim(-0.7, len(frame) - 0.3)
    axes.set_ylabel("share of wrong labels, leave-one-out")
    axes.set_ylim(bottom=0)
    axes.grid(axis="y", alpha=0.25)
    axes.set_axisbelow(True)
    figure.legend(loc="outside upper center", ncols=4, frameon=False)
    return figure
