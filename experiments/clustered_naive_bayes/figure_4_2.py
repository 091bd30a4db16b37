"""What two users' models have learned: log ratio of each feature value under the two labels.

As in the thesis, the two are those that No-Sharing predicts best and worst when each row is left
out. A second picture has the clusters of the most probable partition in place of two users.
"""

from __future__ import annotations

from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

import bayes_lcs as bl
from bayes_lcs.evaluation.cluster_log_ratios import cluster_log_ratios
from bayes_lcs.plots.figure import plain_text
from experiments.benchmarks.tables import Table
from experiments.clustered_naive_bayes.left_out import predictions
from experiments.clustered_naive_bayes.partitions import find_partition
from experiments.clustered_naive_bayes.setting import Setting
from experiments.papers.outcome import Finding, Outcome

COLUMNS, ALIKE = 5, 0.5


def run(setting: Setting) -> Outcome:
    data, model = setting.data, bl.ClusteredNaiveBayes()
    left_out = predictions([bl.NoSharing()], setting)["No-Sharing"]
    accuracy = 1.0 - left_out.loss_by_group()["loss"].to_numpy()
    best, worst = int(np.nanargmax(accuracy)), int(np.nanargmin(accuracy))
    pair = [best, worst]
    ratios = cluster_log_ratios(model, data, np.arange(data.num_groups))[pair]
    borrowed = _borrowed_accuracy(data, best, worst)
    alike = float(np.asarray(np.corrcoef(ratios))[0, 1])
    names = [data.group_names[code] for code in pair]
    numbers = pd.DataFrame(
        {
            "feature": np.repeat(data.feature_names, data.num_values),
            "value": [value for values in data.values for value in values],
            **dict(zip(names, ratios, strict=True)),
        }
    )
    findings = {
        "extremes_of_accuracy": Finding(f"{accuracy[best]:.0%} and {accuracy[worst]:.0%}", None),
        "the_two_models_differ": Finding(
            f"correlation of the log ratios {alike:.2f}; differing below {ALIKE}", alike < ALIKE
        ),
        "borrowed_model_predicts_better": Finding(
            f"own {accuracy[worst]:.0%}, borrowed {borrowed:.0%}", borrowed > accuracy[worst]
        ),
    }
    absolute = numbers[names].abs()
    reach = absolute.groupby(numbers["feature"], sort=False).max()
    rows = [(feature, *map(float, values)) for feature, *values in reach.itertuples()]
    title = "Largest absolute log ratio of each feature"
    columns = ("feature", f"{names[0]} (best)", f"{names[1]} (worst)")
    partition = find_partition(setting).partition
    clusters = bl.plot_cluster_profiles(model, data, partition).figure
    figures = {"": _bars(data, names, ratios), "_clusters": clusters}
    return Outcome([Table("figure_4_2", title, columns, rows)], numbers, figures, findings)


def _borrowed_accuracy(data: bl.GroupedTable, lender: int, borrower: int) -> float:
    """Share of the borrower's rows that the lender's model predicts rightly."""
    rows = data.take(data.groups == borrower)
    lent = replace(rows, groups=np.full_like(rows.groups, lender))
    p = bl.exact(bl.NoSharing(), data).predict_proba(lent)
    return 1.0 - bl.mean_loss(p, rows.labels).value


def _bars(data: bl.GroupedTable, names: list[str], ratios: np.ndarray) -> Figure:
    """Pairs of bars, a graph for each feature; the scales differ, as in the thesis."""
    columns = min(COLUMNS, data.num_features)
    lines = -(-data.num_features // columns)
    figure, grid = plt.subplots(
        lines,
        columns,
        figsize=(2.7 * columns, 0.7 + 2.5 * lines),
        squeeze=False,
        layout="constrained",
    )
    for feature, axes in enumerate(grid.flat):
        if feature >= data.num_features:
            axes.set_visible(False)
            continue
        here = data.schema.cells_of(feature)
        at = np.arange(data.num_values[feature])
        for number, name in enumerate(names):
            label = f"{plain_text(name)} (predicted {('best', 'worst')[number]})"
            axes.bar(at + 0.4 * number - 0.2, ratios[number, here], 0.4, label=label)
        axes.axhline(0, color="black", linewidth=0.8)
        values = [plain_text(value, longest=20) for value in data.values[feature]]
        axes.set_xticks(at, values, rotation=90, fontsize=7)
        axes.tick_params(axis="y", labelsize=7)
        axes.set_title(plain_text(data.feature_names[feature]), fontsize=9)
    favoured = plain_text(f"{data.label_name} = {data.label_values[-1]}")
    figure.supylabel(f"log ratio; above zero speaks for {favoured}", fontsize=9)
    figure.legend(
        *grid[0, 0].get_legend_handles_labels(),
        loc="outside upper center",
        ncols=2,
        frameon=False,
    )
    return figure
