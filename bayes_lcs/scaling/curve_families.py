"""Shapes that learning curves have.

A curve is ``l(n) = l_N - rise · h(n)``, where ``h`` falls from 1 at the first size to 0 at all
``N`` rows: the rise is what all rows add to the first sample. The families differ in how ``h``
falls. Each has a few shapes, spread over what is plausible; what lies between is covered by
averaging.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["FAMILIES", "Shape", "shapes"]

FAMILIES = ("power", "logarithm", "exponential", "stretched exponential")

_EXPONENTS = (0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 1.0, 1.25, 1.5, 2.0)
_SCALES = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0)


@dataclass(frozen=True)
class Shape:
    """One shape: its family, its parameter, its prior probability, and ``h`` at each size asked."""

    family: str
    parameter: float
    prior: float
    height: NDArray[np.float64]


def shapes(sizes: Sequence[int], first: int, total: int) -> list[Shape]:
    """All shapes at some sizes, between the first size and all rows.

    ``n^-c`` (power), ``-log n``, ``exp(-n / τ)`` and ``exp(-sqrt(n / τ))``, moved and scaled to be
    1 at ``first`` and 0 at ``total``. Families are equally probable, and the shapes within each.

    Examples
    --------
    >>> halves = [s for s in shapes([100, 200, 400], 100, 400) if s.family == "logarithm"]
    >>> halves[0].height.round(3).tolist()
    [1.0, 0.5, 0.0]
    """
    n = np.asarray(sizes, dtype=np.float64) / first
    end = total / first
    made = []
    for family in FAMILIES:
        parameters = {"power": _EXPONENTS, "logarithm": (0.0,)}.get(family, _SCALES)
        for parameter in parameters:
            at = _fall(family, parameter, np.array([1.0, end]))
            height = (_fall(family, parameter, n) - at[1]) / (at[0] - at[1])
            made.append(Shape(family, parameter, 1 / len(FAMILIES) / len(parameters), height))
    return made


def _fall(family: str, parameter: float, n: NDArray[np.float64]) -> NDArray[np.float64]:
    """How far the curve still has to go, without scale, at ``n`` times the first size."""
    if family == "power":
        return n**-parameter
    if family == "logarithm":
        return -np.log(n)
    if family == "exponential":
        return np.exp(-n / parameter)
    return np.exp(-np.sqrt(n / parameter))
