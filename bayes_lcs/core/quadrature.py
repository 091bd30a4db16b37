"""One-dimensional integrals of smooth densities given by their logs.

Hyper-parameters that have a prior are integrated out numerically in ``t = log(beta)``, where
densities that extend over decades are smooth and fall off on both sides.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Quadrature", "integrate_log_density"]

FloatArray = NDArray[np.float64]
LogDensity = Callable[[FloatArray], FloatArray]

ORDER = 16  # Gauss-Legendre points per panel
TAIL_NATS = 45.0  # the window ends where the density has fallen by this much: e^-45 = 3e-20
TOLERANCE = 1e-13  # relative error of the integral, where rounding allows it
MAX_ROUNDING = 1e-2  # nats; a log density with larger rounding errors is not smooth
MAX_PANELS = 1 << 12
MAX_REACH = 2.0**40  # width of the window beyond which the density is taken to be improper


class Quadrature(NamedTuple):
    """Quadrature rule of a density on the real line.

    Attributes
    ----------
    log_integral
        Log of the integral.
    mode
        Mode of the density.
    nodes : (Q,)
        Points of the rule, in increasing order.
    log_weights : (Q,)
        Log of the share of the integral at each node: ``exp`` of them sums to one, so that
        ``sum_q exp(log_weights[q]) g(nodes[q])`` is the expectation of a smooth ``g``.
    """

    log_integral: float
    mode: float
    nodes: FloatArray
    log_weights: FloatArray


@lru_cache(maxsize=1)
def _rule() -> tuple[FloatArray, FloatArray]:
    points, weights = np.polynomial.legendre.leggauss(ORDER)
    return points, np.log(weights)


def integrate_log_density(log_density: LogDensity) -> Quadrature:
    """Integrate ``exp(log_density(t))`` over the real line.

    The mode is found on a grid and refined by golden-section search. The window lies between the
    outermost points at which the density has fallen by 45 nats. Panels of Gauss-Legendre points
    are halved until a panel and its halves agree. Away from the mode the density is assumed to be
    smooth at the scale of one unit of ``t``; it may have several modes.

    Parameters
    ----------
    log_density
        Vectorised function of ``(Q,)`` points that returns ``(Q,)`` log densities. Its additive
        constant is part of the integral.

    Examples
    --------
    >>> normal = integrate_log_density(lambda t: -0.5 * (t - 3.0) ** 2)
    >>> float(np.exp(normal.log_integral).round(12)), round(float(np.sqrt(2 * np.pi)), 12)
    (2.506628274631, 2.506628274631)
    >>> float((np.exp(normal.log_weights) * normal.nodes).sum().round(9))
    3.0
    """
    mode, low, high = _window(log_density)
    points, log_rule = _rule()

    def panel_terms(edges: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return nodes and log terms of panels ``(P, 2)``; both ``(P, ORDER)``."""
        middle, half = edges.mean(axis=1), (edges[:, 1] - edges[:, 0]) / 2.0
        nodes = middle[:, None] + half[:, None] * points
        return nodes, log_density(nodes.ravel()).reshape(nodes.shape) + (
            log_rule + np.log(half)[:, None]
        )

    # Terms are summed relative to this; any value near the largest log term would do.
    scale = float(log_density(np.array([mode]))[0]) + np.log(high - low)
    inner = np.linspace(low, high, 9)
    edges = np.stack([inner[:-1], inner[1:]], axis=1)
    nodes, terms = panel_terms(edges)
    sums = np.exp(terms - scale).sum(axis=1)
    rounding = _rounding(log_density, mode, high - low)
    if rounding > MAX_ROUNDING:
        raise ArithmeticError("the density is not smooth enough to integrate")
    tolerance = max(TOLERANCE, 4.0 * rounding)
    done_nodes: list[FloatArray] = []
    done_terms: list[FloatArray] = []
    total = sums.sum()
    while len(edges):
        if len(edges) > MAX_PANELS:
            raise ArithmeticError("the density is not smooth enough to integrate")
        middle = edges.mean(axis=1)
        halves = np.stack(
            [np.stack([edges[:, 0], middle], axis=1), np.stack([middle, edges[:, 1]], axis=1)],
            axis=1,
        )
        nodes, terms = panel_terms(halves.reshape(-1, 2))
        half_sums = np.exp(terms - scale).sum(axis=1).reshape(-1, 2)
        total += half_sums.sum() - sums.sum()
        good = np.abs(half_sums.sum(axis=1) - sums) <= tolerance * total
        kept = np.repeat(good, 2)
        done_nodes.append(nodes[kept].ravel())
        done_terms.append(terms[kept].ravel())
        edges, sums = halves[~good].reshape(-1, 2), half_sums[~good].ravel()
    order = np.argsort(np.concatenate(done_nodes))
    all_nodes = np.concatenate(done_nodes)[order]
    all_terms = np.concatenate(done_terms)[order]
    log_integral = scale + float(np.log(np.exp(all_terms - scale).sum()))
    log_weights = all_terms - log_integral
    # Together, the nodes left out weigh less than the tolerance.
    heavy = log_weights > np.log(TOLERANCE / len(log_weights))
    return Quadrature(log_integral, mode, all_nodes[heavy], log_weights[heavy])


def _window(log_density: LogDensity) -> tuple[float, float, float]:
    """Return mode and window of the density; the grid grows until both ends are negligible."""
    low, high, step = -16.0, 16.0, 0.5
    grid = np.arange(low, high + step, step)
    values = log_density(grid)
    while True:
        if not np.isfinite(values.max()):
            raise ArithmeticError("the density is zero, infinite or not a number everywhere")
        floor = values.max() - TAIL_NATS
        open_left, open_right = values[0] > floor, values[-1] > floor
        if not (open_left or open_right):
            break
        if high - low > MAX_REACH:
            raise ArithmeticError("the density does not fall off: its integral is infinite")
        # In the far tails, log densities of hyper-parameters are linear: the step may grow.
        reach = high - low
        more = np.arange(1, 65) * (reach / 64.0)
        if open_left:
            grid = np.concatenate([low - more[::-1], grid])
            low = float(grid[0])
        if open_right:
            grid = np.concatenate([grid, high + more])
            high = float(grid[-1])
        values = log_density(grid)
    best = int(values.argmax())
    mode = _golden(log_density, grid[best - 1], grid[best + 1])
    floor = max(float(values[best]), float(log_density(np.array([mode]))[0])) - TAIL_NATS
    above = np.flatnonzero(values > floor)
    left, right = (int(above[0]), int(above[-1])) if len(above) else (best, best)
    return (
        mode,
        _crossing(log_density, floor, grid[left - 1], min(grid[left], mode)),
        _crossing(log_density, floor, grid[right + 1], max(grid[right], mode)),
    )


def _rounding(log_density: LogDensity, mode: float, width: float) -> float:
    """Estimate the rounding error of the log density by second differences near the mode.

    A sharp prior subtracts large terms. With a tolerance below the rounding error the panels would
    be halved forever.
    """
    steps = np.arange(-8, 9, dtype=np.float64)
    values = log_density(mode + 1e-8 * width * steps)
    return float(np.abs(np.diff(values, n=2)).max())


def _golden(log_density: LogDensity, low: float, high: float) -> float:
    """Return the maximum between two points, to about the square root of machine precision."""
    ratio = (np.sqrt(5.0) - 1.0) / 2.0
    for _ in range(45):
        inner = np.array([high - ratio * (high - low), low + ratio * (high - low)])
        values = log_density(inner)
        if values[0] >= values[1]:
            high = inner[1]
        else:
            low = inner[0]
    return float((low + high) / 2.0)


def _crossing(log_density: LogDensity, floor: float, outside: float, inside: float) -> float:
    """Return a point just outside the crossing of the density and ``floor``, by bisection."""
    for _ in range(12):
        middle = (outside + inside) / 2.0
        if log_density(np.array([middle]))[0] > floor:
            inside = middle
        else:
            outside = middle
    return float(outside)
