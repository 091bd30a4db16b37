"""SQUAREM: EM steps extrapolated, with plain EM to fall back on (Varadhan and Roland 2008).

With ``M`` the EM map, ``u_1 = M(u_0)``, ``u_2 = M(u_1)``, ``r = u_1 - u_0`` and
``v = (u_2 - u_1) - r``, the next point is ``u_0 - 2 a r + a^2 v`` with ``a = -|r| / |v|`` (their
scheme S3, eqs. 5 to 9). Theirs extrapolates any parameters; here they are the logs of
probabilities, which are normalised again afterwards, so that no step leaves the simplex. With
``a = -1`` the point is ``u_2``.

The objective never falls: a point at which it is below that of ``u_1`` is thrown away, and ``u_2``,
at which it cannot be lower, is taken. This differs from their default, which lets it fall a little.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bayes_lcs.core.mixture import MixtureModel, MixtureParameters, MixtureStatistics
from bayes_lcs.core.schema import Schema
from bayes_lcs.inference.em import ConvergenceRule, EMRequest, EMResult, EMSteps

__all__ = ["squarem_steps"]

FloatArray = NDArray[np.float64]

SMALLEST = 1e-300
LONGEST_STEP = 64.0


def squarem_steps(
    model: MixtureModel,
    start: MixtureParameters,
    max_iter: int,
    stop: ConvergenceRule,
    before: EMResult | None = None,
) -> EMSteps:
    """SQUAREM from a start, or from where it was before, for `bayes_lcs.inference.em.run_em`.

    ``max_iter`` counts passes over the rows, thrown away ones included. The trace holds the
    objectives of points that were kept; the stopping rule is asked between ``u_0`` and ``u_1``
    only, which are one plain EM step apart.
    """
    reached = before or EMResult(start, np.zeros(0), None, 0, False, False)
    point, trace, passes = reached.parameters, reached.trace.tolist(), reached.num_iter

    def result(parameters: MixtureParameters, converged: bool) -> EMResult:
        return EMResult(parameters, np.array(trace), statistics, passes, converged)

    def objective(parameters: MixtureParameters, found: MixtureStatistics) -> float:
        return found.log_likelihood + model.log_prior(parameters)

    if reached.statistics is None:
        statistics = yield EMRequest(point, reached)
        passes += 1
        trace.append(objective(point, statistics))
    else:
        statistics = reached.statistics
    while True:
        reached = EMResult(point, np.array(trace), statistics, passes, False, False)
        first = model.update(statistics)
        if passes >= max_iter:
            return result(first, False)
        statistics = yield EMRequest(first, reached)
        passes += 1
        trace.append(objective(first, statistics))
        if stop(trace):
            return result(first, True)
        second = model.update(statistics)
        if passes >= max_iter:
            return result(second, False)
        bold = _extrapolated(model.schema, point, first, second)
        tried = yield EMRequest(bold, reached)
        passes += 1
        value = objective(bold, tried)
        if value >= trace[-1]:
            point, statistics = bold, tried
            trace.append(value)
            continue
        point = second
        if passes >= max_iter:
            return result(second, False)
        statistics = yield EMRequest(second, reached)
        passes += 1
        trace.append(objective(second, statistics))
        if stop(trace):
            return result(second, True)


def _extrapolated(
    schema: Schema, zero: MixtureParameters, one: MixtureParameters, two: MixtureParameters
) -> MixtureParameters:
    points = [
        np.log(np.maximum(np.vstack([p.weights, p.cells]), SMALLEST)) for p in (zero, one, two)
    ]
    r = points[1] - points[0]
    v = (points[2] - points[1]) - r
    length = np.linalg.norm(v)
    step = np.clip(np.linalg.norm(r) / length, 1.0, LONGEST_STEP) if length > 0.0 else 1.0
    logs = points[0] + 2.0 * step * r + step**2 * v
    # What is zero stays zero: EM never brings it back.
    zeros = np.vstack([two.weights, two.cells]) == 0.0
    weights = np.where(zeros[0], 0.0, np.exp(logs[0] - logs[0].max()))
    cells = logs[1:]
    if schema.num_features == 0:
        return MixtureParameters(weights / weights.sum(), two.cells)
    top = np.maximum.reduceat(cells, schema.offsets[:-1], axis=0)
    cells = np.where(zeros[1:], 0.0, np.exp(cells - top[schema.cell_feature]))
    totals = np.add.reduceat(cells, schema.offsets[:-1], axis=0)
    return MixtureParameters(weights / weights.sum(), cells / totals[schema.cell_feature])
