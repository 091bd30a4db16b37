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

__all__ = ["legend_text", "new_axes", "plain_text", "save_figure"]


def new_axes(ax: Axes | None, width: float, height: float) -> Axes:
    """Return the given Axes, or the Axes of a new figure with a size in inches."""
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=(width, height), layout="constrained")[1]


def plain_text(name: str, longest: int = 24) -> str:
    r"""Return a name that matplotlib draws literally, truncated to a maximum length.

    Examples
    --------
    >>> plain_text("$x$")
    '\\$x\\$'
    """
    return visible(name, longest).replace("$", r"\$")


def legend_text(name: str, longest: int = 24) -> str:
    """Return a literal name for a legend, in which names may begin with an underscore.

    Examples
    --------
    >>> legend_text("_model")
    ' _model'
    """
    text = plain_text(name, longest)
    return f" {text}" if text.startswith("_") else text


def save_figure(path: Path, size: tuple[float, float], plot: Callable[[Axes], Any]) -> Path:
    """Draw with ``plot`` on an Axes with a size in inches, and save the figure as PNG."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    with warnings.catch_warnings():
        # Characters of names that the font lacks are drawn as boxes; no warning is needed.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        warnings.filterwarnings("ignore", message="Matplotlib currently does not support")
        warnings.filterwarnings("ignore", message="constrained_layout not applied")
        plot(figure.subplots())
        return write_atomically(path, lambda part: figure.savefig(part, format="png", dpi=150))
