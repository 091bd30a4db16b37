"""Truncated training: a few iterations, or a loose threshold (section 5 of the paper)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Literal

__all__ = ["NAMES", "Abbreviation", "parse_abbreviation"]

NAMES = (
    *(f"fixed-{steps}" for steps in (1, 3, 5, 10)),
    *(f"thresh-{threshold}" for threshold in ("0.1", "0.01", "0.001", "0.0001")),
)
"""The abbreviated methods of the paper."""


@dataclass(frozen=True)
class Abbreviation:
    """Truncation by a number of iterations (``fixed``) or a threshold ``tol`` (``thresh``)."""

    kind: Literal["fixed", "thresh"]
    value: float

    @property
    def iterations(self) -> float | None:
        """The number of iterations, if it is known beforehand."""
        return self.value if self.kind == "fixed" else None

    def parameters(self, estimator: Any) -> dict[str, Any] | None:
        """Return the parameters that truncate the estimator; None to use ``partial_fit``."""
        params = estimator.get_params(deep=False)
        if self.kind == "fixed" and "max_iter" in params:
            return {"max_iter": int(self.value)}
        if self.kind == "thresh" and "tol" in params:
            # The thresholds of the paper are relative to the improvement since the start.
            relative = {"stopping": "relative"} if "stopping" in params else {}
            return {"tol": self.value, **relative}
        if self.kind == "fixed" and hasattr(estimator, "partial_fit"):
            return None
        needed = "max_iter or partial_fit" if self.kind == "fixed" else "tol"
        raise ValueError(
            f"{type(estimator).__name__} has no {needed}, which {self.kind}-… requires; "
            "use abbreviated=None"
        )


def parse_abbreviation(name: str | None) -> Abbreviation | None:
    """Parse ``"fixed-3"`` or ``"thresh-0.01"``; None and "none" mean full training.

    Examples
    --------
    >>> parse_abbreviation("fixed-3"), parse_abbreviation("none")
    (Abbreviation(kind='fixed', value=3.0), None)
    """
    if name is None or name == "none":
        return None
    match = re.fullmatch(r"(fixed)-(\d+)|(thresh)-(0?\.\d+|\d+(?:\.\d*)?e-\d+)", name)
    value = float(match[2] or match[4]) if match else 0.0
    if match is None or value <= 0:
        raise ValueError(
            f"abbreviated={name!r} must be 'fixed-N', 'thresh-T' or None, such as "
            + ", ".join(NAMES)
        )
    return Abbreviation("fixed" if match[1] else "thresh", value)
