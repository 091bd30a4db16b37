"""Protocols through which inference uses models.

``models`` and ``inference`` never import each other; both import this module. It also holds the
parameters and statistics of a mixture of products of multinomials as plain arrays. There the values
of all features lie on one flat axis of cells, feature after feature
(`bayes_lcs.core.schema.Schema`). It is the first axis: a row reads all components of few cells, so
these lie side by side in memory.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayes_lcs.core.counts import GroupCounts
from bayes_lcs.core.priors import Gamma
from bayes_lcs.core.schema import Schema

__all__ = [
    "KnownPartitionModel",
    "MixtureModel",
    "MixtureParameters",
    "MixtureStatistics",
    "NaiveBayesModel",
    "PartitionModel",
    "PrototypeModel",
]

FloatArray = NDArray[np.float64]


class NaiveBayesModel(Protocol):
    """A prior over the parameters of one naive Bayes likelihood in every group."""

    @property
    def name(self) -> str:
        """Name for tables and messages."""

    @property
    def shares_labels(self) -> bool:
        """Whether all groups have the same label probabilities."""

    @property
    def feature_prior(self) -> Any:
        """Dirichlet parameters of the feature values as given, or the prior they have."""

    def label_parameters(self, schema: Schema) -> FloatArray:
        """Dirichlet parameters of the labels, ``(L,)``."""

    def feature_parameters(self, schema: Schema) -> FloatArray:
        """Dirichlet parameters of the feature values, ``(L, C)``."""


@runtime_checkable
class KnownPartitionModel(NaiveBayesModel, Protocol):
    """A model whose sharing structure is fixed in advance: none, or complete."""

    def partition(self, num_groups: int) -> NDArray[np.int64]:
        """Block of each group."""

    def log_marginal(self, counts: GroupCounts) -> float:
        """Log evidence in closed form."""

    def log_predictive(
        self, counts: GroupCounts, features: ArrayLike, groups: ArrayLike | None = None
    ) -> FloatArray:
        """``log P(y, x | data)`` of each row in each of the groups; -1 is one never seen."""


@runtime_checkable
class PartitionModel(NaiveBayesModel, Protocol):
    """A model with an unknown partition of the groups under a Chinese restaurant process."""

    @property
    def concentration(self) -> float | Gamma:
        """Concentration of the process, or the prior under which it is learned."""

    def log_label_marginal(self, counts: GroupCounts) -> float:
        """``log P(Y)``, which does not depend on the partition."""


@runtime_checkable
class PrototypeModel(NaiveBayesModel, Protocol):
    """A model whose groups are noisy copies of a prototype of unknown strength."""

    @property
    def strength_prior(self) -> Gamma:
        """Prior of every strength."""

    def log_label_marginal(self, counts: GroupCounts) -> float:
        """``log P(Y)``, which depends on neither prototype nor strength."""


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
