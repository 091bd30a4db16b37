"""Plots of posteriors over partitions. Every function draws on one Axes and returns it.

Names come from data files: they are drawn as plain text, never as matplotlib's ``$...$`` maths.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from bayes_lcs.core.partitions import blocks, first_occurrence
from bayes_lcs.plots.figure import new_axes, plain_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes


__all__ = ["plot_coclustering", "plot_num_clusters"]

MIN_LABEL_SIZE, MAX_LABEL_SIZE = 6.0, 10.0
"""Range of the font size of group names, in points."""
LINE_SPACING = 1.25


def plot_coclustering(
    matrix: ArrayLike, partition: ArrayLike, names: Sequence[str], ax: Axes | None = None
) -> Axes:
    """Plot a heat map of co-clustering probabilities, ordered by a partition with framed clusters.

    Parameters
    ----------
    matrix : (U, U)
        Probability that each pair of groups is in the same cluster.
    partition : (U,)
        The partition that orders the rows, the largest cluster first.
    names
        Names of the groups.
    """
    if hasattr(matrix, "toarray"):
        raise TypeError(
            "a sparse matrix is too large to plot; choose some groups, as in "
            "matrix[chosen][:, chosen].toarray()"
        )
    probability, z = np.asarray(matrix), first_occurrence(partition)
    by_size = sorted(blocks(z), key=lambda block: (-len(block), block[0]))
    order = [group for block in by_size for group in block]
    side = 2.5 + 0.22 * len(order)
    axes = new_axes(ax, side + 1.0, side)
    image = axes.imshow(probability[np.ix_(order, order)], vmin=0, vmax=1, cmap="Blues")
    start = 0
    for block in by_size:
        axes.plot(
            *_square(start - 0.5, start + len(block) - 0.5), color="tab:orange", linewidth=1.5
        )
        start += len(block)
    axes.figure.colorbar(image, ax=axes, label="probability of the same cluster", shrink=0.8)
    step, points = _label_step(axes, len(order))
    places = range(0, len(order), step)
    labels = [plain_text(names[order[place]]) for place in places]
    axes.set_xticks(places, labels, rotation=90, fontsize=points)
    axes.set_yticks(places, labels, fontsize=points)
    if step > 1:
        axes.set_xlabel(f"{len(order)} groups, one name in {step}")
    axes.set_title("Which groups share their parameters")
    return axes


def _label_step(axes: Axes, num_labels: int) -> tuple[int, float]:
    """Return step and font size of the labels so that they do not overlap."""
    box = axes.get_window_extent()
    room = min(box.width, box.height) * 72 / axes.figure.dpi / max(num_labels, 1) / LINE_SPACING
    step = max(math.ceil(MIN_LABEL_SIZE / room), 1)
    return step, min(room * step, MAX_LABEL_SIZE)


def _square(low: float, high: float) -> tuple[list[float], list[float]]:
    return [low, high, high, low, low], [low, low, high, high, low]


def plot_num_clusters(probability: ArrayLike, ax: Axes | None = None) -> Axes:
    """Plot the posterior of the number of clusters; entry ``k`` is for ``k`` clusters."""
    from matplotlib.ticker import MaxNLocator

    p = np.asarray(probability)
    shown = np.flatnonzero(p > 1e-4)
    counts = np.arange(max(shown[0] - 1, 1), min(shown[-1] + 2, len(p)))
    axes = new_axes(ax, 5.0, 3.2)
    axes.bar(counts, p[counts], color="tab:blue")
    axes.xaxis.set_major_locator(MaxNLocator(nbins=20, integer=True, min_n_ticks=1))
    axes.set_ylim(0, 1)
    axes.set_xlabel("number of clusters")
    axes.set_ylabel("posterior probability")
    return axes
