"""Small inline SVG charts that scale with a page, print, and use its colours.

Colours are CSS classes of the page (``line``, ``dot``, ``band``, ``speaks``, ``against``). All text
is escaped.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup
from numpy.typing import ArrayLike, NDArray

__all__ = ["Axis", "bar", "interval", "line_chart", "scatter", "share"]

FloatArray = NDArray[np.float64]

WIDTH, HEIGHT = 420.0, 250.0
LEFT, RIGHT, TOP, BOTTOM = 62.0, 12.0, 20.0, 42.0


def bar(value: float, reach: float, mark: float | None = None) -> Markup:
    """Draw a bar from the middle, to the right if the value is positive.

    Parameters
    ----------
    value
        Value of the bar.
    reach
        Value at which the bar is full.
    mark
        Value of a thin line for comparison; None for no line.

    Examples
    --------
    >>> "against" in bar(-1.0, 2.0)
    True
    """
    full = max(reach, 1e-300)
    length = float(np.clip(value / full, -1.0, 1.0))
    parts = [
        Markup('<path class="rule" d="M0 0V1"/><rect class="{}" x="{:.4f}" y=".12" ').format(
            "speaks" if value > 0 else "against", min(length, 0.0)
        )
        + Markup('width="{:.4f}" height=".76"/>').format(abs(length))
    ]
    if mark is not None:
        place = float(np.clip(mark / full, -1.0, 1.0))
        parts.append(Markup('<path class="mark" d="M{:.4f} 0V1"/>').format(place))
    return _svg("bar", "-1.02 0 2.04 1", Markup().join(parts), stretched=True)


def share(value: float) -> Markup:
    """Draw a bar from the left end whose length is a share of the full width."""
    length = float(np.clip(value, 0.0, 1.0))
    drawing = Markup(
        '<path class="rule" d="M0 1H1"/><rect class="speaks" y=".12" width="{:.4f}" height=".76"/>'
    ).format(length)
    return _svg("bar", "0 0 1 1", drawing, stretched=True)


def interval(value: float, lower: float, upper: float, low: float, high: float) -> Markup:
    """Draw a dot and its interval on a scale from ``low`` to ``high``."""
    scale = 1.0 / max(high - low, 1e-300)
    x, a, b = ((end - low) * scale for end in (value, lower, upper))
    drawing = Markup(
        '<path class="rule" d="M0 .5H1"/><path class="reach" d="M{:.5f} .5H{:.5f}"/>'
        '<path class="dot" d="M{:.5f} .5h.00001"/>'
    ).format(a, max(b, a), x)
    return _svg("interval", "-.02 0 1.04 1", drawing, stretched=True)


@dataclass(frozen=True)
class Axis:
    """Axis of a chart: label, range, and conversion of values to positions between 0 and 1."""

    label: str
    low: float
    high: float
    is_log: bool = False
    form: Callable[[float], str] = "{:g}".format

    @classmethod
    def over(
        cls,
        label: str,
        values: ArrayLike,
        *,
        is_log: bool = False,
        room: float = 0.04,
        form: Callable[[float], str] = "{:g}".format,
    ) -> Axis:
        """Return an axis that covers all finite values."""
        known = np.asarray(values, dtype=np.float64)
        known = known[np.isfinite(known)]
        if is_log:
            known = np.log10(known)
        low, high = (float(known.min()), float(known.max())) if known.size else (0.0, 1.0)
        margin = room * (high - low) or max(abs(high) * 1e-3, 1e-9)
        low, high = low - margin, high + margin
        if is_log:
            low, high = 10.0**low, 10.0**high
        return cls(label, low, high, is_log, form)

    def place(self, values: ArrayLike) -> FloatArray:
        """Return the positions of values: 0 at the low end, 1 at the high end."""
        given = np.asarray(values, dtype=np.float64)
        low, high = self.low, self.high
        if self.is_log:
            given, low, high = np.log10(given), float(np.log10(low)), float(np.log10(high))
        result: FloatArray = (given - low) / (high - low)
        return result

    def ticks(self) -> list[tuple[float, str]]:
        """Return positions and labels of a few round values."""
        from matplotlib.ticker import MaxNLocator

        if self.is_log:
            decades = 10.0 ** np.arange(
                np.floor(np.log10(self.low)), np.ceil(np.log10(self.high)) + 1
            )
            for steps in ((1.0,), (1.0, 3.0), (1.0, 2.0, 5.0)):
                values = np.outer(decades, steps).ravel()
                values = values[(values >= self.low) & (values <= self.high)]
                if len(values) >= 3:
                    break
        else:
            values = np.asarray(MaxNLocator(5).tick_values(self.low, self.high))
            values = values[(values >= self.low) & (values <= self.high)]
        # Remove rounding errors such as 0.30000000000000004, and -0.
        clean = [float(f"{value:.12g}") + 0.0 for value in values]
        return [(float(self.place(value)), self.form(value)) for value in clean]


def line_chart(
    x: Axis,
    y: Axis,
    lines: Sequence[tuple[str, ArrayLike, ArrayLike]],
    *,
    band: tuple[ArrayLike, ArrayLike, ArrayLike] | None = None,
    marks: Sequence[tuple[float, str]] = (),
    right: Axis | None = None,
    title: str = "",
) -> Markup:
    """Draw a line chart.

    Parameters
    ----------
    lines
        CSS class of each line (``"line"`` has dots, ``"line second"``, ``"line dashed"``), with its
        ``x`` and ``y``.
    band
        ``x``, lower and upper end of an area behind the lines.
    marks
        Values of ``x`` with a vertical line, and its label.
    right
        Axis on the right side, with the same positions.
    title
        Description of the chart for screen readers.
    """
    across = _across(right)
    parts = [_frame(x, y, right)]
    if band is not None:
        where, lower, upper = (np.asarray(values, dtype=np.float64) for values in band)
        ends = [*_points(x, y, where, upper, across), *_points(x, y, where, lower, across)[::-1]]
        if len(ends) >= 4:
            parts.append(Markup('<path class="band" d="M{}Z"/>').format(_path(ends)))
    for value, label in marks:
        place = across(float(x.place(value)))
        anchor = "end" if x.place(value) > 0.6 else "start"
        shift = -4.0 if anchor == "end" else 4.0
        parts.append(
            Markup('<path class="chosen" d="M{:.1f} {}V{}"/>').format(place, TOP, HEIGHT - BOTTOM)
            + Markup('<text x="{:.1f}" y="{}" text-anchor="{}">{}</text>').format(
                place + shift, TOP - 4, anchor, label
            )
        )
    for kind, xs, ys in lines:
        points = _points(x, y, np.asarray(xs, float), np.asarray(ys, float), across)
        if not points:
            continue
        parts.append(Markup('<path class="{}" d="M{}"/>').format(kind, _path(points)))
        if "dashed" not in kind:
            dots = " ".join(f"M{a:.1f} {b:.1f}h.01" for a, b in points)
            more = (" second" if "second" in kind else "") + (" many" if len(points) > 25 else "")
            parts.append(Markup('<path class="dots{}" d="{}"/>').format(more, dots))
    return _svg("chart", f"0 0 {WIDTH:g} {HEIGHT:g}", Markup().join(parts), title=title)


def scatter(x: Axis, y: Axis, xs: ArrayLike, ys: ArrayLike, areas: ArrayLike, title: str) -> Markup:
    """Draw points as circles with areas proportional to ``areas``, the largest first."""
    weights = np.asarray(areas, dtype=np.float64)
    across = _across(None)
    radius = 9.0 * np.sqrt(weights / max(float(weights.max(initial=0.0)), 1e-300))
    # Circles cover at most about a third of the chart, for any number of points.
    covered = np.pi * float((radius**2).sum()) / (WIDTH * HEIGHT)
    radius = np.maximum(radius * min(1.0, np.sqrt(0.3 / max(covered, 1e-300))), 0.8)
    left, up = across(x.place(xs)), _up(y.place(ys))
    circles = [
        Markup('<circle cx="{:.1f}" cy="{:.1f}" r="{:.2f}"/>').format(left[i], up[i], radius[i])
        for i in np.argsort(-weights, kind="stable")
    ]
    drawing = _frame(x, y, None) + Markup('<g class="points">{}</g>').format(Markup().join(circles))
    return _svg("chart", f"0 0 {WIDTH:g} {HEIGHT:g}", drawing, title=title)


def _across(right: Axis | None) -> Callable[..., FloatArray]:
    end = WIDTH - (RIGHT if right is None else LEFT)
    return lambda places: LEFT + np.asarray(places) * (end - LEFT)


def _up(places: ArrayLike) -> FloatArray:
    result: FloatArray = HEIGHT - BOTTOM - np.asarray(places) * (HEIGHT - BOTTOM - TOP)
    return result


def _points(
    x: Axis, y: Axis, xs: FloatArray, ys: FloatArray, across: Callable[..., FloatArray]
) -> list[tuple[float, float]]:
    known = np.isfinite(xs) & np.isfinite(ys)
    places = zip(across(x.place(xs[known])), _up(y.place(ys[known])), strict=True)
    return [(float(a), float(b)) for a, b in places]


def _path(points: Sequence[tuple[float, float]]) -> str:
    return "L".join(f"{a:.1f} {b:.1f}" for a, b in points)


def _frame(x: Axis, y: Axis, right: Axis | None) -> Markup:
    """Draw the axes with their ticks and labels."""
    across = _across(right)
    start, end, bottom = float(across(0.0)), float(across(1.0)), HEIGHT - BOTTOM
    parts = []
    for place, text in y.ticks():
        up = float(_up(place))
        parts.append(
            Markup('<path class="rule" d="M{} {:.1f}H{}"/>').format(start, up, end)
            + _text(start - 5, up + 4, text, "end")
        )
    for place, text in x.ticks():
        parts.append(_text(float(across(place)), bottom + 15, text, "middle"))
    for place, text in right.ticks() if right is not None else ():
        parts.append(_text(end + 5, float(_up(place)) + 4, text, "start"))
    parts.append(Markup('<path class="axis" d="M{} {}H{}"/>').format(start, bottom, end))
    parts.append(_text((start + end) / 2, HEIGHT - 8, x.label, "middle"))
    parts.append(_rotated_text(13, y.label))
    if right is not None:
        parts.append(_rotated_text(WIDTH - 4, right.label))
    return Markup().join(parts)


def _text(x: float, y: float, text: str, anchor: str) -> Markup:
    shown = Markup('<text x="{:.1f}" y="{:.1f}" text-anchor="{}">{}</text>')
    return shown.format(x, y, anchor, text)


def _rotated_text(x: float, text: str) -> Markup:
    middle = (TOP + HEIGHT - BOTTOM) / 2
    shown = Markup('<text transform="translate({} {}) rotate(-90)" text-anchor="middle">{}</text>')
    return shown.format(x, middle, text)


def _svg(
    kind: str, view: str, drawing: Markup, *, stretched: bool = False, title: str = ""
) -> Markup:
    fit = Markup(' preserveAspectRatio="none"') if stretched else Markup()
    if title:
        aria = Markup('role="img" aria-label="{}"').format(title)
    else:
        aria = Markup('aria-hidden="true"')
    return Markup('<svg class="{}" viewBox="{}"{} {}>{}</svg>').format(
        kind, view, fit, aria, drawing
    )
