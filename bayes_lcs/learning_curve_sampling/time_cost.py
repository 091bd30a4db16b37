"""Parse and format the cost of waiting, in benefit per hour.

Meek, Thiesson and Heckerman (2002), section 2, ask "How long would you be willing to wait to
increase the relative accuracy of the learned model by one per cent?". The answer "an hour" means
0.01 benefit per hour.
"""

from __future__ import annotations

import math
import re

__all__ = ["benefit_per_hour", "rate_text", "seconds_text"]

_SECONDS = {
    **dict.fromkeys(("s", "sec", "second"), 1.0),
    **dict.fromkeys(("m", "min", "minute"), 60.0),
    **dict.fromkeys(("h", "hr", "hour"), 3600.0),
    **dict.fromkeys(("d", "day"), 86400.0),
    **dict.fromkeys(("w", "week"), 604800.0),
}
_RATE = re.compile(
    r"(?P<benefit>[\d.]+(?:e[+-]?\d+)?)\s*(?P<percent>%|per ?cent)?\s*(?:/|per\b)\s*"
    r"(?P<number>[\d.]+(?:e[+-]?\d+)?)?\s*(?P<unit>[a-z]+?)s?",
    re.IGNORECASE,
)


def benefit_per_hour(alpha: float | str) -> float:
    """Return the stopping threshold α in benefit per hour.

    Parameters
    ----------
    alpha
        A number is benefit per hour. A text may name another unit: ``"0.2/hour"``,
        ``"1 per day"``, ``"1% per 10 minutes"``.

    Examples
    --------
    >>> benefit_per_hour(0.2), benefit_per_hour("1 per day"), benefit_per_hour("1% / 10 min")
    (0.2, 0.041666666666666664, 0.06)
    """
    if isinstance(alpha, str):
        match = _RATE.fullmatch(alpha.strip())
        seconds = _SECONDS.get(match["unit"].lower()) if match else None
        if match is None or seconds is None:
            raise ValueError(
                f"alpha={alpha!r} is not a rate such as 0.2, '0.2/hour' or '1% per 10 minutes'"
            )
        benefit = float(match["benefit"]) / (100.0 if match["percent"] else 1.0)
        waited = float(match["number"] or 1.0) * seconds
        alpha = benefit * 3600.0 / waited if waited else math.inf
    if not (math.isfinite(alpha) and alpha >= 0):
        raise ValueError(f"alpha must be a finite rate of at least 0, got {alpha}")
    return float(alpha)


def rate_text(alpha: float) -> str:
    """Format a rate as benefit per hour and as the wait that one per cent is worth.

    Examples
    --------
    >>> rate_text(0.2)
    '0.2 benefit per hour (one per cent is worth a wait of 3.0 min)'
    """
    if alpha == 0:
        return "0 benefit per hour (time costs nothing)"
    return (
        f"{alpha:.4g} benefit per hour (one per cent is worth a wait of "
        f"{seconds_text(36.0 / alpha)})"
    )


def seconds_text(seconds: float) -> str:
    """Format a duration in a suitable unit.

    Examples
    --------
    >>> [seconds_text(t) for t in (0.0123, 2.0, 180.0, 7200.0)]
    ['12 ms', '2.0 s', '3.0 min', '2.0 h']
    """
    for limit, unit, name in ((1.0, 1e-3, "ms"), (120.0, 1.0, "s"), (7200.0, 60.0, "min")):
        if seconds < limit:
            value = seconds / unit
            return f"{value:.0f} {name}" if name == "ms" else f"{value:.1f} {name}"
    return f"{seconds / 3600:.1f} h"
