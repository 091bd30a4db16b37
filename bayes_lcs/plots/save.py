"""Pictures as files, whole or not there."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bayes_lcs.runtime.atomic_files import write_atomically

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["save_picture"]


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
