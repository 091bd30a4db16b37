"""Heat map of the log ratios of feature values in each cluster of groups.

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
    """Plot the evidence of every feature value for a label, in every cluster.

    The log ratios are those of thesis Figure 4-2 at the posterior mode, for clusters instead of two
    users. There is one column per cluster, the largest first, and one row per feature value, below
    the name of the feature. White is zero: such a value does not discriminate between the labels.

    Parameters
    ----------
    model, data, partition, label
        See :func:`bayes_lcs.evaluation.cluster_log_ratios.cluster_log_ratios`.

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
    positive = data.label_values[-1 if label is None else data.label_code(label)]
    rest = [name for name in data.label_values if name != positive]
    against = rest[0] if len(rest) == 1 else "the rest"
    return draw_profiles(
        ratios[order],
        data.feature_names,
        data.values,
        columns,
        f"log ratio: blue favours {plain_text(positive)}, red {plain_text(against)}",
        ax,
    )


def _column_name(members: list[str]) -> str:
    if len(members) == 1:
        return plain_text(members[0])
    return f"{plain_text(members[0], longest=18)} and {len(members) - 1} more"
