"""Heat map of log ratios: one column per cluster, one row per feature value, white is zero."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bayes_lcs.plots.figure import new_axes, plain_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw_profiles"]


def draw_profiles(
    ratios: NDArray[np.float64],
    feature_names: Sequence[str],
    values: Sequence[Sequence[str]],
    columns: Sequence[str],
    legend: str,
    ax: Axes | None = None,
) -> Axes:
    """Draw log ratios ``(K, C)`` with one column per cluster and one row per feature value.

    Parameters
    ----------
    feature_names, values
        Names as in the data.
    columns, legend
        Names of the clusters and label of the colour bar, already escaped.
    """
    sizes = [len(names) for names in values]
    # Each feature has an extra row above its values, for its name.
    feature = np.repeat(np.arange(len(sizes)), sizes)
    rows = np.arange(len(feature)) + feature + 1
    headings = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(int) + np.arange(len(sizes))
    picture = np.full((len(feature) + len(sizes), len(columns)), np.nan)
    picture[rows] = ratios.T
    axes = new_axes(ax, 3.6 + 0.42 * len(columns), 2.4 + 0.17 * len(picture))
    reach = max(float(np.abs(ratios).max(initial=0.0)), 1e-12)
    image = axes.imshow(
        picture, cmap="RdBu", vmin=-reach, vmax=reach, aspect="auto", interpolation="nearest"
    )
    texts = [plain_text(value) for names in values for value in names]
    names = [plain_text(name, longest=32) for name in feature_names]
    ticks = np.argsort(np.concatenate([rows, headings]))
    axes.set_yticks(range(len(picture)), np.array(texts + names, dtype=object)[ticks], fontsize=8)
    axes.tick_params(axis="y", length=0)
    for heading in headings:
        axes.get_yticklabels()[heading].set_fontweight("bold")
    axes.set_xticks(range(len(columns)), columns, rotation=90, fontsize=8)
    axes.tick_params(axis="x", top=True, labeltop=True, bottom=False, labelbottom=False, length=0)
    axes.set_xticks(np.arange(len(columns) - 1) + 0.5, minor=True)
    axes.grid(which="minor", axis="x", color="white", linewidth=2)
    axes.tick_params(axis="x", which="minor", length=0)
    for side in axes.spines.values():
        side.set_visible(False)
    bar = axes.figure.colorbar(
        image, ax=axes, location="bottom", fraction=0.03, pad=0.01, aspect=30
    )
    bar.set_label(legend, fontsize=8)
    bar.ax.tick_params(labelsize=8)
    return axes
