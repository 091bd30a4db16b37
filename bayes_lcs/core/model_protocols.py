"""Protocols through which inference uses models.

``models`` and ``inference`` never import each other; both import this module. It also holds the
parameters and statistics of a mixture of products of multinomials as plain arrays. Their values of
all features are on one flat axis of cells, one feature after another
(`bayes_lcs.core.schema.Schema`). The cell axis comes first: a row reads all components of a few
cells, so these are adjacent in memory.
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
    """Prior over the parameters of the naive Bayes likelihoods of all groups."""

    @property
    def name(self) -> str:
        """Name of the model in tables and messages."""

    @property
    def shares_labels(self) -> bool:
        """True if all groups have the same label probabilities."""

    @property
    def feature_prior(self) -> Any:
        """Dirichlet parameters of the feature values as given by the user, or their prior."""

    def label_parameters(self, schema: Schema) -> FloatArray:
        """Return the Dirichlet parameters of the labels, ``(L,)``."""

    def feature_parameters(self, schema: Schema) -> FloatArray:
        """Return the Dirichlet parameters of the feature values, ``(L, C)``."""


@runtime_checkable
class KnownPartitionModel(NaiveBayesModel, Protocol):
    """Model with a fixed sharing structure: no sharing or complete sharing."""

    def partition(self, num_groups: int) -> NDArray[np.int64]:
        """Return the block of each group."""

    def log_marginal(self, counts: GroupCounts) -> float:
        """Return the log evidence in closed form."""

    def log_predictive(
        self, counts: GroupCounts, features: ArrayLike, groups: ArrayLike | None = None
    ) -> FloatArray:
        """Return ``log P(y, x | data)`` of each row in each of the groups; -1 is a new group."""


@runtime_checkable
class PartitionModel(NaiveBayesModel, Protocol):
    """Model with an unknown partition of the groups under a Chinese restaurant process."""

    @property
    def concentration(self) -> float | Gamma:
        """Concentration of the process, or the prior under which it is learned."""

    def log_label_marginal(self, counts: GroupCounts) -> float:
        """Return ``log P(Y)``, which does not depend on the partition."""


@runtime_checkable
class PrototypeModel(NaiveBayesModel, Protocol):
    """Model whose groups scatter around a prototype with unknown strength."""

    @property
    def strength_prior(self) -> Gamma:
        """Prior of each strength."""

    def log_label_marginal(self, counts: GroupCounts) -> float:
        """Return ``log P(Y)``, which depends on neither prototype nor strength."""


class MixtureParameters(NamedTuple):
    """Mixture weights ``pi_k`` ``(K,)`` and cell probabilities ``theta_{k,f,v}`` ``(C, K)``."""

    weights: FloatArray
    cells: FloatArray

    @property
    def num_components(self) -> int:
        """Number of components ``K``."""
        return int(self.weights.shape[0])


class MixtureStatistics(NamedTuple):
    """Expected sufficient statistics of the rows, the result of an E-step.

    Attributes
    ----------
    components : (K,)
        Expected weight of the rows of each component.
    cells : (C, K)
        Expected weight of the rows of each component that have each value; missing cells do not
        count.
    log_likelihood
        Sum over rows of weight times ``log p(x)``.
    """

    components: FloatArray
    cells: FloatArray
    log_likelihood: float


class MixtureModel(Protocol):
    """Mixture model that can be fitted by EM."""

    @property
    def schema(self) -> Schema:
        """Number of values of each feature."""

    def update(self, statistics: MixtureStatistics) -> MixtureParameters:
        """Return the parameters that maximise the expected complete log posterior (M-step)."""

    def totals(self, statistics: MixtureStatistics) -> FloatArray:
        """Return the denominators of all probabilities, prior included, ``(1 + C, K)``.

        The first row belongs to the weights, the others to the cells.
        """

    def log_prior(self, parameters: MixtureParameters) -> float:
        """Return the log prior density; EM maximises its sum with the log-likelihood."""
