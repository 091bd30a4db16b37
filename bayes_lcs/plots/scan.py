"""Plot of a partial scan: decided validation rows and expected benefit against the share read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bayes_lcs.classification.partial_scan.result import Scan
from bayes_lcs.plots.figure import new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from bayes_lcs.classification.partial_scan.estimator import PartialScanClassifier

__all__ = ["plot_scan"]


def plot_scan(scan: Scan | PartialScanClassifier, ax: Axes | None = None) -> Axes:
    """Plot the share of decided validation rows, and the expected benefit, against the share read.

    Parameters
    ----------
    scan
        A fitted `bayes_lcs.PartialScanClassifier`, or its ``scan_``.
    ax
        Axes to draw on; a new figure by default. The benefit has a separate axis on the right.

    Examples
    --------
    >>> import numpy as np, bayes_lcs as bl
    >>> X = np.random.default_rng(0).normal(size=(2000, 2))
    >>> classifier = bl.PartialScanClassifier(n_partitions=16, random_state=0)
    >>> ax = bl.plot_scan(classifier.fit(X, X[:, 0] > 0))
    >>> ax.get_xlabel()
    'share of the data that was read'
    """
    story = scan if isinstance(scan, Scan) else scan.scan_
    axes = new_axes(ax, 6.5, 4.0)
    trace = story.trace
    axes.plot(trace["fraction"], trace["settled"], "o-", markersize=4, color="C0")
    axes.axvspan(story.fraction, 1.0, color="0.5", alpha=0.12, linewidth=0)
    if story.fraction < 0.85:
        axes.text(
            0.5 * (1.0 + story.fraction),
            0.04,
            "not read",
            color="0.4",
            ha="center",
            transform=axes.get_xaxis_transform(),
        )
    axes.set_xlim(0.0, 1.0)
    axes.set_ylim(-0.02, 1.02)
    axes.set_xlabel("share of the data that was read")
    axes.set_ylabel("share of validation rows decided", color="C0")
    axes.grid(alpha=0.25)
    evaluated = trace.dropna(subset=["benefit"])
    if len(evaluated):
        right = axes.twinx()
        right.plot(evaluated["fraction"], evaluated["benefit"], "s--", markersize=3, color="C1")
        right.set_ylabel("expected benefit per row", color="C1")
    axes.set_title(
        f"{story.parts_read} of {story.num_parts} parts, {story.rows_read:,} rows", fontsize=10
    )
    return axes
