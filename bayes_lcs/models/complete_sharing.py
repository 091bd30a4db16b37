"""Complete-Sharing: all groups share all parameters (Roy 2006, section 2.3).

Generative process, for group ``u``, label ``y``, feature ``f``, row ``n``::

    phi                 ~ Dirichlet(alpha)                 (2.21)
    Y_{u,n} | phi       ~ Discrete(phi)                    (2.22)
    theta_{y,f}         ~ Dirichlet(beta_{y,f})            (2.23)
    X_{u,n,f} | Y = y   ~ Discrete(theta_{y,f})            (2.24)

It equals No-Sharing with the data of all groups pooled, ``m_y = sum_u m_{u,y}`` (A.36) and
``n_{y,f,x} = sum_u n_{u,y,f,x}`` (A.37). Its evidence is, eqs. (A.38) and (A.51),

    P(X, Y) = B(m + alpha) / B(alpha) prod_{y,f} B(n_{y,f} + beta_{y,f}) / B(beta_{y,f})
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

__all__ = ["CompleteSharing"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class CompleteSharing(NaiveBayesPrior):
    """One set of naive Bayes parameters for all groups.

    Parameters
    ----------
    label_prior
        Dirichlet parameters ``alpha``: one number, or one per label.
    feature_prior
        Dirichlet parameters ``beta``: a number, an array ``(L, C)``, a list with one entry per
        feature, or a `Gamma` under which one number is learned.

    Examples
    --------
    >>> table, truth = CompleteSharing().simulate(Schema(2, (3, 2)), [20, 30], seed=1)
    >>> bool((truth.theta[0] == truth.theta[1]).all())
    True
    """

    name: ClassVar[str] = "Complete-Sharing"
    shares_labels: ClassVar[bool] = True

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
            Group of each row; this model uses only their number.
        features : (N, F), or None
            Coded features, -1 missing (masked); None draws them.
        labels : (N,), or None
            Coded labels, -1 missing (summed out). None draws them; with features given, None
            means that all are missing.
        """
        import numpyro

        rows = check_rows(schema, groups, features, labels)
        prior = sample_feature_prior(self, schema)
        phi = sample_simplex("phi", self.label_parameters(schema))
        with numpyro.plate("labels", schema.num_labels):
            shape = (schema.num_labels,)
            theta = [sample_simplex(f"theta_{f}", beta, shape) for f, beta in enumerate(prior)]
        sample_rows(rows, phi[None], [table[None] for table in theta], 0 * rows.groups)

    def partition(self, num_groups: int) -> IntArray:
        """Return the partition with all groups in one block."""
        return np.zeros(num_groups, dtype=np.int64)

    @staticmethod
    def pooled(counts: GroupCounts) -> GroupCounts:
        """Return the summed counts of all groups, eqs. (A.36), (A.37)."""
        return GroupCounts(
            counts.schema,
            counts.labels.sum(axis=0, keepdims=True),
            counts.features.sum(axis=0, keepdims=True),
        )

    def log_marginal(self, counts: GroupCounts) -> float:
        """Return the log evidence ``log P(X, Y)``, eqs. (A.38), (A.51).

        Examples
        --------
        Two groups with one row each, of different labels and without features: 1/2 times 1/3.

        >>> counts = GroupCounts(Schema(2, ()), np.eye(2, dtype=int), np.zeros((2, 2, 0), int))
        >>> round(float(np.exp(CompleteSharing().log_marginal(counts))), 12)
        0.166666666667
        """
        pooled = self.pooled(counts)
        labels = log_label_marginal(pooled.labels, self.label_parameters(counts.schema)).sum()
        return float(labels) + self._log_feature_marginal(counts.schema, pooled.features)

    def log_predictive(
        self, counts: GroupCounts, features: ArrayLike, groups: ArrayLike | None = None
    ) -> FloatArray:
        """Return ``log P(y, x | data)`` of each row and label per group; ``(U, N, L)``, read-only.

        Each row of ``(N, F)`` is predicted from the counts, independently of the other rows. The
        predictions are the same for all groups.

        Parameters
        ----------
        groups
            Groups to predict for; all by default. -1 is a new group, which equals any other.
        """
        pooled = self.pooled(counts)
        alpha = self.label_parameters(counts.schema)
        logs = self._average_log(
            counts.schema,
            pooled.features,
            lambda beta: log_row_predictive(pooled, alpha, beta, features),
        )
        num_groups = counts.num_groups if groups is None else len(np.asarray(groups))
        return np.broadcast_to(logs, (num_groups, *logs.shape[1:]))

    def informants(self, counts: GroupCounts) -> ConditionalPredictive:
        """Return the predictive in which every group, old or new, uses the pooled counts."""
        pooled = self.pooled(counts)
        first = np.zeros(counts.num_groups, dtype=np.int64)
        return ConditionalPredictive(
            schema=counts.schema,
            label_counts=pooled.labels,
            feature_counts=pooled.features,
            label_block=first,
            feature_block=first,
            label_prior=self.label_parameters(counts.schema),
            feature_prior=self.feature_parameters(counts.schema),
            new_label_block=0,
            new_feature_weights=np.array([1.0, 0.0]),
        )

    def posterior_mode(self, counts: GroupCounts) -> NaiveBayesParameters:
        """Return the mode of ``phi`` ``(U, L)`` and ``theta`` ``(U, L, C)``, natural parameters.

        The mode is the same for every group. A learned feature prior is first set to its own
        posterior mode (in logs).
        """
        schema = counts.schema
        pooled = self.pooled(counts)
        beta = self._feature_parameters_mode(schema, pooled.features)
        phi, theta = posterior_parameters(pooled, self.label_parameters(schema), beta)
        return NaiveBayesParameters(
            np.broadcast_to(phi, (counts.num_groups, *phi.shape[1:])),
            np.broadcast_to(theta, (counts.num_groups, *theta.shape[1:])),
        )

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
        one_phi = draw_labels(rng, self.label_parameters(schema), 1)
        one_theta = draw_cells(rng, schema, prior)
        phi = np.repeat(one_phi, len(sizes), axis=0)
        theta = np.repeat(one_theta[None], len(sizes), axis=0)
        table = draw_table(
            rng, schema, sizes, phi, theta, missing=missing, missing_labels=missing_labels
        )
        return Simulation(table, Truth(phi, theta, self.partition(len(sizes)), prior))
