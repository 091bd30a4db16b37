"""What each cluster has learned, as a heat map: the clusters beside each other, value by value.

Names come from data files: they are drawn as plain text, never as matplotlib's ``$...$`` maths.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from bayes_lcs.core.partitions import blocks
from bayes_lcs.evaluation.cluster_log_ratios import cluster_log_ratios
from bayes_lcs.plots.figure import plain_text
from bayes_lcs.plots.heat_map import draw_profiles

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from bayes_lcs.data.grouped_table import GroupedTable

__all__ = ["plot_cluster_profiles"]


def plot_cluster_profiles(
    model: Any,
    data: GroupedTable,
    partition: ArrayLike,
    ax: Axes | None = None,
    *,
    label: Any = None,
) -> Axes:
    """How far every feature value speaks for a label, in every cluster.

    The log ratios of thesis Figure 4-2 at the posterior mode, for clusters in place of two users:
    one column a cluster, the largest first; one row a feature value, under the feature's name.
    Zero is white: such a value says nothing about the label.

    Parameters
    ----------
    model, data, partition, label
        As in :func:`bayes_lcs.evaluation.cluster_log_ratios.cluster_log_ratios`.

    Examples
    --------
    >>> import bayes_lcs as bl
    >>> data, truth = bl.meeting_requests(seed=0)
    >>> ax = bl.plot_cluster_profiles(bl.ClusteredNaiveBayes(), data, truth.partition)
    """
    ratios = cluster_log_ratios(model, data, partition, label)
    clusters = blocks(partition)
    order = sorted(range(len(clusters)), key=lambda k: (-len(clusters[k]), clusters[k][0]))
    columns = [_column_name([data.group_names[u] for u in clusters[k]]) for k in order]
    spoken = data.label_values[-1 if label is None else data.label_code(label)]
    rest = [name for name in data.label_values if name != spoken]
    against = rest[0] if len(rest) == 1 else "the rest"
    return draw_profiles(
        ratios[order],
        data.feature_names,
        data.values,
        columns,
        f"log ratio: blue speaks for {plain_text(spoken)}, red for {plain_text(against)}",
        ax,
    )


def _column_name(members: list[str]) -> str:
    if len(members) == 1:
        return plain_text(members[0])
    return f"{plain_text(members[0], longest=18)} and {len(members) - 1} more"
