"""Report of a coreset: number of points, approximation error, and weights."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from bayes_lcs.clustering.coresets.checks import LARGE_ERROR
from bayes_lcs.clustering.coresets.coreset import Coreset
from bayes_lcs.report.html import Provenance, provenance_table, render, save_html, truncate
from bayes_lcs.report.svg import Axis, scatter

__all__ = ["coreset_page", "report_path", "save_coreset_page"]

FloatArray = NDArray[np.float64]

MAX_COLUMNS = 50
"""Maximum number of columns whose ranges are shown."""
MAX_POINTS = 3000
"""Maximum number of points in the chart; the heaviest are drawn."""
MAX_LABEL_LENGTH = 18
"""Maximum number of characters of an axis label."""
METHODS = {
    "sensitivity": "sampled by per-cluster sensitivities, small clusters as often as large ones",
    "lightweight": "sampled half uniformly, half by squared distance to the mean (lightweight)",
    "uniform": "sampled uniformly; small distant clusters are easily missed",
}


def coreset_page(small: Coreset, names: Sequence[str], origin: Provenance | None = None) -> str:
    """Return the page as HTML.

    Parameters
    ----------
    small
        Result of :func:`bayes_lcs.coreset`.
    names
        Names of the columns.
    origin
        Input and options, for the provenance table.
    """
    points: FloatArray = np.asarray(small.points, dtype=np.float64)
    given = origin or Provenance()
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
        provenance=provenance_table(given, (), ("scikit-learn", "numpy")),
    )


def report_path(path: Path) -> Path:
    """Return the path of a coreset's page, ``<stem>-report.html`` beside its file.

    Examples
    --------
    >>> report_path(Path("small.parquet")).name
    'small-report.html'
    """
    return path.with_name(f"{path.stem}-report.html")


def save_coreset_page(
    small: Coreset, names: Sequence[str], path: Path, origin: Provenance | None = None
) -> Path:
    """Write the page beside the file of the coreset."""
    return save_html(coreset_page(small, names, origin), report_path(path))


def _weights(weights: FloatArray) -> dict[str, str]:
    low, middle, high = np.quantile(weights, [0.0, 0.5, 1.0]) if len(weights) else (0.0, 0.0, 0.0)
    return {
        "low": f"{low:,.4g}",
        "middle": f"{middle:,.4g}",
        "high": f"{high:,.4g}",
        "sum": f"{weights.sum():,.6g}",
    }


def _chart(points: FloatArray, weights: FloatArray, names: Sequence[str]) -> Markup | None:
    """Draw the first two columns, with weights as areas."""
    if points.ndim != 2 or points.shape[1] < 2 or not len(points):
        return None
    x, y = (
        Axis.over(truncate(names[c], MAX_LABEL_LENGTH), points[:, c], form=_format_number)
        for c in (0, 1)
    )
    title = "points of the coreset, their weights as areas"
    return scatter(x, y, points[:, 0], points[:, 1], weights, title)


def _columns(points: FloatArray, weights: FloatArray, names: Sequence[str]) -> list[dict[str, Any]]:
    total = max(float(weights.sum()), 1e-300)
    return [
        {
            "name": names[c],
            "low": _format_number(points[:, c].min()),
            "mean": _format_number(float(weights @ points[:, c]) / total),
            "high": _format_number(points[:, c].max()),
        }
        for c in range(min(len(names), MAX_COLUMNS))
    ]


def _format_number(value: float) -> str:
    """Format a number with few characters.

    Examples
    --------
    >>> [_format_number(value) for value in (0.123456, 12345.6, 1.5e9)]
    ['0.1235', '12,346', '1.5e+09']
    """
    size = abs(value)
    return f"{value:,.0f}" if 1000 <= size < 1e7 else f"{value:.4g}"
