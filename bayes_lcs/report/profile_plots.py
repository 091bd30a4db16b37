"""What each cluster has learned, as a heat map: the clusters beside each other, value by value.

Names come from data files: they are drawn as plain text, never as matplotlib's ``$...$`` maths.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from bayes_lcs.core.partitions import blocks
from bayes_lcs.evaluation.cluster_profiles import cluster_log_ratios
from bayes_lcs.report.axes import new_axes, plain_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from bayes_lcs.data.table import GroupedTable

__all__ = ["plot_cluster_profiles"]


def plot_cluster_profiles(
    model: Any,
    data: GroupedTable,
    partition: ArrayLike,
    ax: Axes | None = None,
    *,
    label: str | None = None,
) -> Axes:
    """How far every feature value speaks for a label, in every cluster.

    The log ratios of thesis Figure 4-2 at the posterior mode, for clusters in place of two users:
    one column a cluster, the largest first; one row a feature value, under the feature's name.
    Zero is white: such a value says nothing about the label.

    Parameters
    ----------
    model, data, partition, label
        As in :func:`bayes_lcs.evaluation.cluster_profiles.cluster_log_ratios`.

    Examples
    --------
    >>> import bayes_lcs as bl
    >>> data, truth = bl.meeting_requests(seed=0)
    >>> ax = bl.plot_cluster_profiles(bl.ClusteredNaiveBayes(), data, truth.partition)
    """
    ratios = cluster_log_ratios(model, data, partition, label)
    clusters = blocks(partition)
    order = sorted(range(len(clusters)), key=lambda k: (-len(clusters[k]), clusters[k][0]))
    schema = data.schema
    # Each feature has a row of its own above its values, to carry its name.
    rows = np.arange(schema.num_cells) + schema.cell_feature + 1
    headings = schema.offsets[:-1] + np.arange(schema.num_features)
    picture = np.full((schema.num_cells + schema.num_features, len(order)), np.nan)
    picture[rows] = ratios[order].T
    axes = new_axes(ax, 3.6 + 0.42 * len(order), 2.4 + 0.17 * len(picture))
    reach = max(float(np.abs(ratios).max(initial=0.0)), 1e-12)
    image = axes.imshow(
        picture, cmap="RdBu", vmin=-reach, vmax=reach, aspect="auto", interpolation="nearest"
    )
    values = [plain_text(value) for names in data.values for value in names]
    names = [plain_text(name, longest=32) for name in data.feature_names]
    ticks = np.argsort(np.concatenate([rows, headings]))
    axes.set_yticks(range(len(picture)), np.array(values + names, dtype=object)[ticks], fontsize=8)
    axes.tick_params(axis="y", length=0)
    for heading in headings:
        axes.get_yticklabels()[heading].set_fontweight("bold")
    columns = [_column_name([data.group_names[u] for u in clusters[k]]) for k in order]
    axes.set_xticks(range(len(order)), columns, rotation=90, fontsize=8)
    axes.tick_params(axis="x", top=True, labeltop=True, bottom=False, labelbottom=False, length=0)
    axes.set_xticks(np.arange(len(order) - 1) + 0.5, minor=True)
    axes.grid(which="minor", axis="x", color="white", linewidth=2)
    axes.tick_params(axis="x", which="minor", length=0)
    for side in axes.spines.values():
        side.set_visible(False)
    spoken = data.label_values[-1] if label is None else label
    rest = [name for name in data.label_values if name != spoken]
    against = rest[0] if len(rest) == 1 else "the rest"
    bar = axes.figure.colorbar(
        image, ax=axes, location="bottom", fraction=0.03, pad=0.01, aspect=30
    )
    bar.set_label(
        f"log ratio: blue speaks for {plain_text(spoken)}, red for {plain_text(against)}",
        fontsize=8,
    )
    bar.ax.tick_params(labelsize=8)
    return axes


def _column_name(members: list[str]) -> str:
    if len(members) == 1:
        return plain_text(members[0])
    return f"{plain_text(members[0], longest=18)} and {len(members) - 1} more"
