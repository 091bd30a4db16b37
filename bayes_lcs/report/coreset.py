"""The report of a coreset: how many points stand for how many rows, and how well."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from bayes_lcs.clustering.coresets.checks import LARGE_ERROR
from bayes_lcs.clustering.coresets.coreset import Coreset
from bayes_lcs.report.html import Origin, provenance, render, save_html, short
from bayes_lcs.report.svg import Axis, scatter

__all__ = ["coreset_page", "place_of_page", "save_coreset_page"]

FloatArray = NDArray[np.float64]

MOST_COLUMNS = 50
"""Columns whose ranges a page shows."""
MAX_POINTS = 3000
"""Points that a page draws; the heaviest."""
LONGEST_LABEL = 18
"""Characters of a name that fit beside an axis, whatever they are."""
METHODS = {
    "sensitivity": "drawn by per-cluster sensitivities, with small clusters as often as large ones",
    "lightweight": "drawn half evenly, half by squared distance to the mean (lightweight)",
    "uniform": "drawn evenly (uniform); small far groups are easily missed",
}


def coreset_page(small: Coreset, names: Sequence[str], origin: Origin | None = None) -> str:
    """The whole page.

    Parameters
    ----------
    small
        From :func:`bayes_lcs.coreset`.
    names
        Of the columns.
    origin
        What was read and asked, for the provenance.
    """
    points: FloatArray = np.asarray(small.points, dtype=np.float64)
    given = origin or Origin()
    drawn = np.argsort(-small.weights, kind="stable")[:MAX_POINTS]
    return render(
        "coreset.html.j2",
        title=f"bayes_lcs: coreset of {given.name or 'a table'}",
        name=given.name or "this table",
        small=small,
        k=given.options.get("clusters"),
        asked=given.options.get("size"),
        stream=bool(given.options.get("stream")),
        how=METHODS.get(small.method, small.method),
        factor=small.num_rows / max(len(small), 1),
        weights=_weights(small.weights),
        checks=[f"{value:+.2%}" for value in small.distortions],
        worst=small.largest_error if small.distortions else None,
        is_poor=small.largest_error > LARGE_ERROR,
        chart=_chart(points[drawn], small.weights[drawn], names),
        num_drawn=len(drawn),
        columns=_columns(points, small.weights, names),
        num_columns=len(names),
        provenance=provenance(given, (), ("scikit-learn", "numpy")),
    )


def place_of_page(path: Path) -> Path:
    """Return where the page of a coreset is: beside its file, as ``<stem>-report.html``.

    Examples
    --------
    >>> place_of_page(Path("small.parquet")).name
    'small-report.html'
    """
    return path.with_name(f"{path.stem}-report.html")


def save_coreset_page(
    small: Coreset, names: Sequence[str], path: Path, origin: Origin | None = None
) -> Path:
    """Write the page beside the file of the coreset."""
    return save_html(coreset_page(small, names, origin), place_of_page(path))


def _weights(weights: FloatArray) -> dict[str, str]:
    low, middle, high = np.quantile(weights, [0.0, 0.5, 1.0]) if len(weights) else (0.0, 0.0, 0.0)
    return {
        "low": f"{low:,.4g}",
        "middle": f"{middle:,.4g}",
        "high": f"{high:,.4g}",
        "sum": f"{weights.sum():,.6g}",
    }


def _chart(points: FloatArray, weights: FloatArray, names: Sequence[str]) -> Markup | None:
    """The first two columns, weights as areas."""
    if points.ndim != 2 or points.shape[1] < 2 or not len(points):
        return None
    x, y = (Axis.over(short(names[c], LONGEST_LABEL), points[:, c], form=_figure) for c in (0, 1))
    title = "points of the coreset, their weights as areas"
    return scatter(x, y, points[:, 0], points[:, 1], weights, title)


def _columns(points: FloatArray, weights: FloatArray, names: Sequence[str]) -> list[dict[str, Any]]:
    total = max(float(weights.sum()), 1e-300)
    return [
        {
            "name": names[c],
            "low": _figure(points[:, c].min()),
            "mean": _figure(float(weights @ points[:, c]) / total),
            "high": _figure(points[:, c].max()),
        }
        for c in range(min(len(names), MOST_COLUMNS))
    ]


def _figure(value: float) -> str:
    """A number in few characters.

    Examples
    --------
    >>> [_figure(value) for value in (0.123456, 12345.6, 1.5e9)]
    ['0.1235', '12,346', '1.5e+09']
    """
    size = abs(value)
    return f"{value:,.0f}" if 1000 <= size < 1e7 else f"{value:.4g}"
