"""Initial parameters given by the user or by a fit to other rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayes_lcs.core.model_protocols import MixtureParameters, MixtureStatistics
from bayes_lcs.models.multinomial_mixture import MultinomialMixture

__all__ = ["extend_to_new_categories", "parse_init"]


def parse_init(model: MultinomialMixture, init: Any) -> MixtureParameters:
    """Check and convert ``init``: weights ``(K,)`` and, for each column, ``(K, V)``."""
    if len(init) != 2:
        raise ValueError("init must be a pair (weights, probabilities), like the fitted attributes")
    weights = np.asarray(init[0], np.float64)
    tables = [np.asarray(table, np.float64) for table in init[1]]
    shapes = [(model.num_components, size) for size in model.schema.num_values]
    if weights.shape != (model.num_components,) or [t.shape for t in tables] != shapes:
        raise ValueError(
            f"init must have {model.num_components} weights and probabilities of shapes {shapes}, "
            f"got {weights.shape} and {[t.shape for t in tables]}"
        )
    for table in (weights, *tables):
        if (table < 0).any() or not np.allclose(table.sum(axis=-1), 1.0):
            raise ValueError("init must hold probabilities that add up to one")
    cells = [table.T for table in tables] or [np.empty((0, model.num_components))]
    return MixtureParameters(weights, np.vstack(cells))


def extend_to_new_categories(
    model: MultinomialMixture,
    categories: list[NDArray[Any]],
    parameters: MixtureParameters,
    weight: float,
    new_categories: list[NDArray[Any]],
) -> MixtureParameters:
    """Extend parameters to more values than they were fitted to; the old values come first.

    A new value has the count 0, so that its probability follows from the prior; without a prior,
    half a row is added to every count.
    """
    if [len(values) for values in categories] == [len(values) for values in new_categories]:
        return parameters
    expected = parameters.weights * weight
    counts = []
    first = 0
    for old, new in zip(categories, new_categories, strict=True):
        size = max(len(old), 1)
        known = parameters.cells[first : first + size] * expected
        first += size
        fresh = np.zeros((max(len(new), 1) - size, model.num_components))
        counts.append(np.vstack([known, fresh]))
    cells = np.vstack(counts)
    if np.min(model.cell_prior) <= 0.0:
        cells = cells + 0.5
    update = model.update(MixtureStatistics(expected, cells, 0.0))
    return MixtureParameters(parameters.weights, update.cells)
