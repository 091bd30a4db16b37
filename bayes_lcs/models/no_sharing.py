"""No-Sharing: every group has its own parameters (Roy 2006, section 2.2).

Generative process, for group ``u``, label ``y``, feature ``f``, row ``n``::

    phi_u               ~ Dirichlet(alpha)                 (2.14)
    Y_{u,n} | phi_u     ~ Discrete(phi_u)                  (2.15)
    theta_{u,y,f}       ~ Dirichlet(beta_{y,f})            (2.16)
    X_{u,n,f} | Y = y   ~ Discrete(theta_{u,y,f})          (2.17)

All priors are conjugate, so the evidence has a closed form, eq. (A.30) with all constants:

    P(X, Y) = prod_u B(m_u + alpha) / B(alpha) prod_{y,f} B(n_{u,y,f} + beta_{y,f}) / B(beta_{y,f})

The thesis allows hyper-parameters that differ between groups; here they are the same for all. With
``feature_prior=Gamma(...)`` the concentration of the feature distributions is learned from all
groups together, while their parameters are still not shared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayes_lcs.core.counts import GroupCounts
from bayes_lcs.core.naive_bayes import (
    NaiveBayesParameters,
    log_label_marginal,
    log_row_predictive,
    posterior_parameters,
)
from bayes_lcs.core.predictive import ConditionalPredictive
from bayes_lcs.core.schema import Schema
from bayes_lcs.models.base import NaiveBayesPrior
from bayes_lcs.models.numpyro_rows import (
    check_rows,
    sample_feature_prior,
    sample_rows,
    sample_simplex,
)
from bayes_lcs.models.simulation import (
    Simulation,
    Truth,
    check_simulation,
    draw_cells,
    draw_feature_prior,
    draw_labels,
    draw_table,
)

__all__ = ["NoSharing"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class NoSharing(NaiveBayesPrior):
    """Independent naive Bayes parameters in every group.

    Parameters
    ----------
    label_prior
        Dirichlet parameters ``alpha``: one number, or one per label.
    feature_prior
        Dirichlet parameters ``beta``: a number, an array ``(L, C)``, a list with one entry per
        feature, or a `Gamma` under which one number is learned.

    Examples
    --------
    >>> table, truth = NoSharing().simulate(Schema(2, (3, 2)), [20, 30], seed=1)
    >>> counts = table.counts()
    >>> NoSharing().log_predictive(counts, table.features[:5]).shape
    (2, 5, 2)
    >>> NoSharing(feature_prior=-1)
    Traceback (most recent call last):
        ...
    ValueError: feature_prior must be positive and finite, got -1
    """

    name: ClassVar[str] = "No-Sharing"

    def numpyro_model(
        self,
        schema: Schema,
        groups: ArrayLike,
        features: ArrayLike | None = None,
        labels: ArrayLike | None = None,
    ) -> None:
        """Generate rows in NumPyro, or condition on them.

        Parameters
        ----------
        groups : (N,)
            Group of each row.
        features : (N, F), or None
            Coded features, -1 missing (masked); None draws them.
        labels : (N,), or None
            Coded labels, -1 missing (summed out). None draws them; with features given, None
            means that all are missing.
        """
        import numpyro

        rows = check_rows(schema, groups, features, labels)
        prior = sample_feature_prior(self, schema)
        alpha = self.label_parameters(schema)
        with numpyro.plate("groups_of_phi", rows.num_groups):
            phi = sample_simplex("phi", alpha, (rows.num_groups,))
        with (
            numpyro.plate("groups", rows.num_groups, dim=-2),
            numpyro.plate("labels", schema.num_labels, dim=-1),
        ):
            shape = (rows.num_groups, schema.num_labels)
            theta = [sample_simplex(f"theta_{f}", beta, shape) for f, beta in enumerate(prior)]
        sample_rows(rows, phi, theta, rows.groups)

    def partition(self, num_groups: int) -> IntArray:
        """Return the partition with every group in a block of its own."""
        return np.arange(num_groups)

    def log_marginal(self, counts: GroupCounts) -> float:
        """Return the log evidence ``log P(X, Y)``, eq. (A.30).

        Examples
        --------
        Two groups with one row each, of different labels and without features: 1/2 times 1/2.

        >>> counts = GroupCounts(Schema(2, ()), np.eye(2, dtype=int), np.zeros((2, 2, 0), int))
        >>> round(float(np.exp(NoSharing().log_marginal(counts))), 12)
        0.25
        """
        labels = log_label_marginal(counts.labels, self.label_parameters(counts.schema)).sum()
        return float(labels) + self._log_feature_marginal(counts.schema, counts.features)

    def log_predictive(
        self, counts: GroupCounts, features: ArrayLike, groups: ArrayLike | None = None
    ) -> FloatArray:
        """Return ``log P(y, x | data)`` of each row and label, in each group; ``(U, N, L)``.

        Each row of ``(N, F)`` is predicted from the counts, independently of the other rows.

        Parameters
        ----------
        groups
            Groups to predict for; all by default. -1 is a new group, predicted from the prior.
        """
        alpha = self.label_parameters(counts.schema)
        informing = counts if groups is None else counts.take(groups)
        return self._average_log(
            counts.schema,
            counts.features,
            lambda beta: log_row_predictive(informing, alpha, beta, features),
        )

    def informants(self, counts: GroupCounts) -> ConditionalPredictive:
        """Return the predictive in which each group uses its own counts, and a new group none."""
        own = np.arange(counts.num_groups)
        return ConditionalPredictive(
            schema=counts.schema,
            label_counts=counts.labels,
            feature_counts=counts.features,
            label_block=own,
            feature_block=own,
            label_prior=self.label_parameters(counts.schema),
            feature_prior=self.feature_parameters(counts.schema),
            new_label_block=-1,
            new_feature_weights=np.append(np.zeros(len(own)), 1.0),
        )

    def posterior_mode(self, counts: GroupCounts) -> NaiveBayesParameters:
        """Return the mode of ``phi`` ``(U, L)`` and ``theta`` ``(U, L, C)``, natural parameters.

        A learned feature prior is first set to its own posterior mode (in logs).
        """
        schema = counts.schema
        beta = self._feature_parameters_mode(schema, counts.features)
        return posterior_parameters(counts, self.label_parameters(schema), beta)

    def simulate(
        self,
        schema: Schema,
        group_sizes: Sequence[int] | IntArray,
        seed: int = 0,
        missing: float = 0.0,
        missing_labels: float = 0.0,
    ) -> Simulation:
        """Draw parameters and a table from the prior.

        Parameters
        ----------
        group_sizes
            Number of rows of each group.
        missing, missing_labels
            Share of feature cells and of labels that are missing completely at random.
        """
        sizes = check_simulation(group_sizes, missing, missing_labels)
        rng = np.random.default_rng(seed)
        prior = draw_feature_prior(rng, self, schema)
        phi = draw_labels(rng, self.label_parameters(schema), len(sizes))
        theta = draw_cells(rng, schema, np.broadcast_to(prior, (len(sizes), *prior.shape)))
        table = draw_table(
            rng, schema, sizes, phi, theta, missing=missing, missing_labels=missing_labels
        )
        return Simulation(table, Truth(phi, theta, self.partition(len(sizes)), prior))
