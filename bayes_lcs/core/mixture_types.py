"""Parameters and statistics of a mixture of products of multinomials, as plain arrays.

The values of all features lie on one flat axis of cells, feature after feature
(`bayes_lcs.core.schema.Schema`), here the first one: the components of a cell lie side by side in
memory, because a row reads all components of few cells.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from bayes_lcs.core.schema import Schema

__all__ = ["MixtureModel", "MixtureParameters", "MixtureStatistics"]

FloatArray = NDArray[np.float64]


class MixtureParameters(NamedTuple):
    """``weights`` are ``pi_k``, ``(K,)``; ``cells`` are ``theta_{k,f,v}``, ``(C, K)``."""

    weights: FloatArray
    cells: FloatArray

    @property
    def num_components(self) -> int:
        """Number of components ``K``."""
        return int(self.weights.shape[0])


class MixtureStatistics(NamedTuple):
    """Sums over rows of what EM needs, at some parameters.

    Attributes
    ----------
    components : (K,)
        Expected weight of the rows of each component.
    cells : (C, K)
        Expected weight of the rows of each component that have each value; missing cells are in
        none.
    log_likelihood
        Sum of weight times ``log p(x)``.
    """

    components: FloatArray
    cells: FloatArray
    log_likelihood: float


class MixtureModel(Protocol):
    """What EM needs to know of a model."""

    @property
    def schema(self) -> Schema:
        """Numbers of values."""

    def update(self, statistics: MixtureStatistics) -> MixtureParameters:
        """The parameters that maximise the expected complete log posterior (the M-step)."""

    def totals(self, statistics: MixtureStatistics) -> FloatArray:
        """Counts, prior included, of which each probability is a share, ``(1 + C, K)``.

        The first row is that of the weights, the others are those of the cells.
        """

    def log_prior(self, parameters: MixtureParameters) -> float:
        """What is added to the log-likelihood to make the objective that EM climbs."""
