"""What inference needs to know of a model, and nothing more.

``models`` and ``inference`` never import each other; they meet here.
"""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayes_lcs.core.counts import GroupCounts
from bayes_lcs.core.priors import Gamma
from bayes_lcs.core.schema import Schema

__all__ = [
    "KnownPartitionModel",
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
