"""Where EM begins.

``"perturbed"`` is the start of Meek, Thiesson and Heckerman (2002), section 3.2: equal weights, and
for every component the parameters of a single-component fit, "randomly perturbing the parameter
values by a small amount". The amount is ours, for they give none: logs move by ``PERTURBATION``
times a standard normal. ``"random"`` draws the parameters of every component from a Dirichlet
around the single-component fit, so that components begin far apart.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bayes_lcs.core.mixture import MixtureModel, MixtureParameters, MixtureStatistics
from bayes_lcs.core.schema import Schema
from bayes_lcs.data.encoded_rows import EncodedColumns

__all__ = ["PERTURBATION", "column_counts", "draw_start"]

FloatArray = NDArray[np.float64]

PERTURBATION = 0.1


def column_counts(table: EncodedColumns, weights: FloatArray | None = None) -> FloatArray:
    """Weight of the rows that have each value, ``(C,)``; missing cells are in none.

    Examples
    --------
    >>> from bayes_lcs.data.encoded_rows import DenseRows
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
    single = model.update(
        MixtureStatistics(np.ones(num_components), np.tile(counts[:, None], num_components), 0.0)
    ).cells
    shape = (schema.num_cells, num_components)
    if method == "perturbed":
        moved = single * np.exp(PERTURBATION * rng.standard_normal(shape))
    else:
        # Twice the prior's weight of a uniform Dirichlet, on the average of each feature.
        spread = single * np.asarray(schema.num_values, np.float64)[schema.cell_feature, None]
        moved = np.where(single > 0.0, rng.gamma(np.maximum(spread, 1e-3)) + 1e-12, 0.0)
    return MixtureParameters(
        np.full(num_components, 1.0 / num_components), _normalised(schema, moved)
    )


def _normalised(schema: Schema, cells: FloatArray) -> FloatArray:
    if schema.num_features == 0:
        return cells
    totals = np.add.reduceat(cells, schema.offsets[:-1], axis=0)
    result: FloatArray = cells / totals[schema.cell_feature]
    return result
