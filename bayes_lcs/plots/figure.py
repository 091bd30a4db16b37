"""What every plot begins with: an Axes to draw on, and names that are drawn as they are written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bayes_lcs.core.escape import visible

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["legend_text", "new_axes", "plain_text"]


def new_axes(ax: Axes | None, width: float, height: float) -> Axes:
    """The Axes given, or that of a new figure of some size in inches."""
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=(width, height), layout="constrained")[1]


def plain_text(name: str, longest: int = 24) -> str:
    r"""A name that matplotlib draws as it is written, cut off where it is long.

    Examples
    --------
    >>> plain_text("$x$")
    '\\$x\\$'
    """
    return visible(name, longest).replace("$", r"\$")


def legend_text(name: str, longest: int = 24) -> str:
    """The same for a legend, from which matplotlib leaves out what begins with an underscore.

    Examples
    --------
    >>> legend_text("_model")
    ' _model'
    """
    text = plain_text(name, longest)
    return f" {text}" if text.startswith("_") else text
