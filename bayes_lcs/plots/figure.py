"""Create axes, escape names and save figures; shared by all plots."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bayes_lcs.core.escape import visible
from bayes_lcs.runtime.atomic_files import write_atomically

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["legend_text", "new_axes", "plain_text", "save_picture"]


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


def save_picture(path: Path, size: tuple[float, float], plot: Callable[[Axes], Any]) -> Path:
    """Let ``plot`` draw on an Axes of a size in inches, and write it as PNG."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    with warnings.catch_warnings():
        # A name may hold signs that the font has not: a box is drawn, and that is no news.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        warnings.filterwarnings("ignore", message="Matplotlib currently does not support")
        warnings.filterwarnings("ignore", message="constrained_layout not applied")
        plot(figure.subplots())
        return write_atomically(path, lambda part: figure.savefig(part, format="png", dpi=150))
