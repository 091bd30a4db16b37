"""SQUAREM: extrapolation of EM steps (Varadhan and Roland 2008).

With ``M`` the EM map, ``u_1 = M(u_0)``, ``u_2 = M(u_1)``, ``r = u_1 - u_0`` and
``v = (u_2 - u_1) - r``, the next point is ``u_0 - 2 a r + a^2 v`` with ``a = -|r| / |v|`` (their
scheme S3, eqs. 5 to 9). Three things differ from theirs:

- Points are logs of probabilities, normalised again afterwards, so that no step leaves the simplex.
  With ``a = -1`` the point is ``u_2``.
- Norms weight each log by its expected count, as the complete information does. In this metric the
  EM map is symmetric near a maximum; without weights, the step would be dominated by probabilities
  that go to zero, whose logs diverge.
- The objective never falls: a point at which it is below that of ``u_1`` is rejected, and EM
  continues from ``u_1``.

Steps have an upper limit that grows when it is attained and shrinks after a rejection, as in the R
package SQUAREM.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayes_lcs.core.model_protocols import MixtureParameters, MixtureStatistics
from bayes_lcs.core.schema import Schema

__all__ = ["FIRST_LIMIT", "MIN_PROBABILITY", "EMPoint", "extrapolate", "next_limit", "stack"]

FloatArray = NDArray[np.float64]

MIN_PROBABILITY = 1e-200
"""Smaller probabilities are set to zero."""
FIRST_LIMIT = 4.0
"""Initial upper limit of steps."""
LIMIT_FACTOR = 4.0
"""Factor by which the limit grows or shrinks."""


class EMPoint(NamedTuple):
    """Parameters with their statistics, objective and M-step.

    Attributes
    ----------
    parameters, statistics
        The parameters and the statistics there.
    objective
        Log-likelihood plus log prior.
    update
        Parameters after the M-step.
    gain
        Expected improvement by the M-step, in nats.
    edge_gain
        Additional gain if growing probabilities near zero counted as one row each.
    importance : (1 + C, K)
        Weights of the logs of all probabilities, as in :func:`stack`.
    log_floor : (1 + C, K)
        Logs below which probabilities are not extrapolated.
    """

    parameters: MixtureParameters
    statistics: MixtureStatistics
    objective: float
    update: MixtureParameters
    gain: float
    edge_gain: float
    importance: FloatArray
    log_floor: FloatArray


def stack(parameters: MixtureParameters) -> FloatArray:
    """Stack weights on top of cells, ``(1 + C, K)``."""
    return np.vstack([parameters.weights, parameters.cells])


def extrapolate(
    schema: Schema, zero: EMPoint, one: EMPoint, limit: float
) -> tuple[MixtureParameters, float]:
    """Extrapolate from a point ``zero`` and its EM step ``one``; return the step ``-a`` too."""
    points = [
        np.log(np.maximum(stack(p), MIN_PROBABILITY))
        for p in (zero.parameters, one.parameters, one.update)
    ]
    r = points[1] - points[0]
    v = (points[2] - points[1]) - r
    norms = [float((zero.importance * x**2).sum()) for x in (r, v)]
    step = float(np.clip(np.sqrt(norms[0] / norms[1]), 1.0, limit)) if norms[1] > 0.0 else 1.0
    logs = points[0] + 2.0 * step * r + step**2 * v
    # A floor: EM would need many steps to raise a probability that was lowered too far.
    logs = np.maximum(logs, np.minimum(points[2], zero.log_floor))
    # Zero probabilities stay zero, as in EM.
    logs = np.where(stack(one.update) == 0.0, -np.inf, logs)
    weights = np.exp(logs[0] - logs[0].max())
    cells = logs[1:]
    if schema.num_features == 0:
        return MixtureParameters(weights / weights.sum(), one.update.cells), step
    cells = np.exp(cells - np.maximum.reduceat(cells, schema.offsets[:-1])[schema.cell_feature])
    totals = np.add.reduceat(cells, schema.offsets[:-1], axis=0)
    return MixtureParameters(weights / weights.sum(), cells / totals[schema.cell_feature]), step


def next_limit(limit: float, step: float, is_better: bool) -> float:
    """Adapt the upper limit of steps to the outcome of one.

    Examples
    --------
    >>> next_limit(4.0, 4.0, True), next_limit(16.0, 5.0, True), next_limit(64.0, 20.0, False)
    (16.0, 16.0, 5.0)
    """
    if is_better:
        return limit * LIMIT_FACTOR if step >= limit else limit
    return max(step / LIMIT_FACTOR, 1.0)
