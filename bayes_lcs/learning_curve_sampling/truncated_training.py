"""Training cut short: a few iterations, or a loose threshold (section 5 of the paper)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Literal

__all__ = ["NAMES", "Abbreviation", "abbreviation"]

NAMES = (
    *(f"fixed-{steps}" for steps in (1, 3, 5, 10)),
    *(f"thresh-{threshold}" for threshold in ("0.1", "0.01", "0.001", "0.0001")),
)
"""The abbreviated methods of the paper."""


@dataclass(frozen=True)
class Abbreviation:
    """``fixed`` is a number of iterations; ``thresh`` a convergence threshold ``tol``."""

    kind: Literal["fixed", "thresh"]
    value: float

    @property
    def iterations(self) -> float | None:
        """The number of iterations, where it is known beforehand."""
        return self.value if self.kind == "fixed" else None

    def parameters(self, estimator: Any) -> dict[str, Any] | None:
        """The estimator's parameters that cut it short; None if ``partial_fit`` must do it."""
        known = estimator.get_params(deep=False)
        if self.kind == "fixed" and "max_iter" in known:
            return {"max_iter": int(self.value)}
        if self.kind == "thresh" and "tol" in known:
            # The thresholds of the paper are relative to the improvement since the start.
            relative = {"stopping": "relative"} if "stopping" in known else {}
            return {"tol": self.value, **relative}
        if self.kind == "fixed" and hasattr(estimator, "partial_fit"):
            return None
        needed = "max_iter or partial_fit" if self.kind == "fixed" else "tol"
        raise ValueError(
            f"{type(estimator).__name__} has no {needed}, which {self.kind}-… needs; "
            "use abbreviated=None"
        )


def abbreviation(name: str | None) -> Abbreviation | None:
    """What ``abbreviated="fixed-3"`` or ``"thresh-0.01"`` means; None and "none" mean nothing.

    Examples
    --------
    >>> abbreviation("fixed-3"), abbreviation("none")
    (Abbreviation(kind='fixed', value=3.0), None)
    """
    if name is None or name == "none":
        return None
    match = re.fullmatch(r"(fixed)-(\d+)|(thresh)-(0?\.\d+|\d+(?:\.\d*)?e-\d+)", name)
    value = float(match[2] or match[4]) if match else 0.0
    if match is None or value <= 0:
        raise ValueError(
            f"abbreviated={name!r} is neither 'fixed-N', 'thresh-T' nor None; the paper has "
            + ", ".join(NAMES)
        )
    return Abbreviation("fixed" if match[1] else "thresh", value)
