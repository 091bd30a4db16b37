"""Where EM begins.

``"perturbed"`` is the start of Meek, Thiesson and Heckerman (2002), section 3.2: equal weights, and
for every component the parameters of a single-component fit, "randomly perturbing the parameter
values by a small amount". The amount is ours, for they give none: logs move by ``PERTURBATION``
times a standard normal. ``"random"`` draws the parameters of every component from a Dirichlet
around the single-component fit, so that components begin far apart.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from bayes_lcs.core.model_protocols import MixtureModel, MixtureParameters, MixtureStatistics
from bayes_lcs.core.schema import Schema
from bayes_lcs.data.rows.encoded_rows import EncodedColumns

__all__ = [
    "LEAST_COUNT",
    "PERTURBATION",
    "column_counts",
    "draw_start",
    "leave_boundary",
    "single_fit_objective",
]

FloatArray = NDArray[np.float64]

PERTURBATION = 0.1
LEAST_COUNT = 1e-6
RELEASED_COUNT = 0.5
"""Expected rows that stand for a probability of zero, and for one that rows contradict."""


def column_counts(table: EncodedColumns, weights: FloatArray | None = None) -> FloatArray:
    """Weight of the rows that have each value, ``(C,)``; missing cells are in none.

    Examples
    --------
    >>> from bayes_lcs.data.rows.encoded_rows import DenseRows
    >>> column_counts(DenseRows(np.array([[0, 1], [-1, 1]]), (1, 2))).tolist()
    [1.0, 0.0, 2.0]
    """
    counts = []
    for feature, size in enumerate(table.num_values):
        ones = table.ones(feature)
        if ones is not None:
            total = float(table.num_rows if weights is None else weights.sum())
            held = float(len(ones) if weights is None else weights[ones].sum())
            counts.append(np.array([total - held, held]))
            continue
        codes = table.column(feature)
        # Missing is -1 and becomes the first entry, which is dropped.
        found = np.bincount(codes.astype(np.int64) + 1, weights, minlength=size + 1)
        counts.append(found[1:].astype(np.float64))
    return np.concatenate(counts) if counts else np.empty(0)


def draw_start(
    rng: np.random.Generator,
    model: MixtureModel,
    num_components: int,
    counts: FloatArray,
    method: str = "perturbed",
) -> MixtureParameters:
    """Parameters at which to begin; ``counts`` are those of :func:`column_counts`."""
    schema = model.schema
    single = _single_fit(model, num_components, counts).cells
    shape = (schema.num_cells, num_components)
    if method == "perturbed":
        moved = single * np.exp(PERTURBATION * rng.standard_normal(shape))
    else:
        # Twice the prior's weight of a uniform Dirichlet, on the average of each feature.
        spread = single * np.asarray(schema.num_values, np.float64)[schema.cell_feature, None]
        moved = np.where(single > 0.0, rng.gamma(np.maximum(spread, 1e-3)) + 1e-12, 0.0)
    return MixtureParameters(
        np.full(num_components, 1.0 / num_components), _normalize(schema, moved)
    )


def _single_fit(model: MixtureModel, num_components: int, counts: FloatArray) -> MixtureParameters:
    """Fit a single component, repeated with equal weights."""
    return model.update(
        MixtureStatistics(np.ones(num_components), np.tile(counts[:, None], num_components), 0.0)
    )


def single_fit_objective(model: Any, counts: FloatArray) -> float:
    """Log posterior of equal components, each the fit of a single one.

    A perturbed start begins near this value, before EM has found any difference between components.
    """
    single = _single_fit(model, model.num_components, counts)
    return float(xlogy(counts, single.cells[:, 0]).sum()) + model.log_prior(single)


def leave_boundary(
    model: MixtureModel,
    parameters: MixtureParameters,
    weight: float,
    statistics: Callable[[MixtureParameters], MixtureStatistics],
) -> MixtureParameters:
    """Raise probabilities at zero, to begin with the parameters of an earlier fit.

    EM does not change a probability of zero. Without a prior, the fit to some rows has such zeros
    where other rows have values. They are raised by next to nothing if an EM step then lowers all
    of them again, and to half a row if not: these are other rows.

    Parameters
    ----------
    weight
        Weight of the rows of the earlier fit.
    statistics
        Takes statistics of the present rows.
    """
    counts = np.maximum(parameters.weights * weight, 1.0)
    low = parameters.cells * counts < LEAST_COUNT
    if not low.any():
        return parameters
    cells = _normalize(model.schema, np.where(low, LEAST_COUNT / counts, parameters.cells))
    start = MixtureParameters(parameters.weights, cells)
    if not (model.update(statistics(start)).cells > cells)[low].any():
        return start
    cells = _normalize(model.schema, np.where(low, RELEASED_COUNT / counts, parameters.cells))
    return MixtureParameters(parameters.weights, cells)


def _normalize(schema: Schema, cells: FloatArray) -> FloatArray:
    if schema.num_features == 0:
        return cells
    totals = np.add.reduceat(cells, schema.offsets[:-1], axis=0)
    result: FloatArray = cells / totals[schema.cell_feature]
    return result
