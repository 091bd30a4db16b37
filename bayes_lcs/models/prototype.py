"""Prototype: the groups' parameters scatter around a prototype (Roy 2006, section 2.4).

Generative process, for group ``u``, label ``y``, feature ``f``, row ``n``::

    theta_bar_{y,f}     ~ Dirichlet(beta_{y,f})                    (2.26)
    K_{y,f}             ~ Gamma(gamma_1, gamma_2), shape and rate  (2.27)
    phi_u               ~ Dirichlet(alpha)                         (2.28)
    Y_{u,n} | phi_u     ~ Discrete(phi_u)                          (2.29)
    theta_{u,y,f}       ~ Dirichlet(K_{y,f} theta_bar_{y,f})       (2.30)
    X_{u,n,f} | Y = y   ~ Discrete(theta_{u,y,f})                  (2.31)

``theta_u`` integrates out to a Dirichlet-multinomial with parameters ``K theta_bar``, and the
remaining likelihood factorises over labels and features:

    P(X, Y | theta_bar, K) = prod_u B(m_u + alpha) / B(alpha)
                             prod_{y,f} prod_u B(n_{u,y,f} + K_{y,f} theta_bar_{y,f})
                                               / B(K_{y,f} theta_bar_{y,f})

so the evidence is a product of integrals of dimension ``V_f`` over ``(theta_bar_{y,f}, K_{y,f})``,
one for each label and feature, with integrand `Prototype.log_factor`. The thesis defines the model
without its inference.

The prototype is called ``prototype`` and has shape ``(L, C)``; ``K`` is called ``strength`` and
has shape ``(L, F)``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayes_lcs.core.counts import GroupCounts
from bayes_lcs.core.dirichlet import CountHistograms, log_dirichlet_density
from bayes_lcs.core.naive_bayes import (
    NaiveBayesParameters,
    log_feature_marginal,
    log_label_marginal,
    log_row_predictive,
    posterior_parameters,
)
from bayes_lcs.core.predictive import ConditionalPredictive
from bayes_lcs.core.priors import Gamma
from bayes_lcs.core.quadrature import integrate_log_density
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

__all__ = ["Prototype"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

DEFAULT_STRENGTH_PRIOR = Gamma(1.0, 0.1)


@dataclass(frozen=True, kw_only=True)
class Prototype(NaiveBayesPrior):
    """Feature parameters scattered around a prototype; label parameters not shared.

    Parameters
    ----------
    label_prior
        Dirichlet parameters ``alpha``: one number, or one per label.
    feature_prior
        Dirichlet parameters ``beta`` of the prototype: a number, an array ``(L, C)``, a list with
        one entry per feature, or a `Gamma` under which one number is learned.
    strength_prior
        Gamma prior of every strength ``K_{y,f}``. The prototype weighs as much as ``K`` rows of a
        group. The default ``Gamma(1, 0.1)`` is the exponential distribution with mean 10, which
        has the largest entropy of all positive distributions with this mean; nine tenths of it lie
        between 0.5 and 30. A tenth lies below 1, where the Dirichlet concentrates in the corners
        of the simplex (thesis, footnote 2), and only e^-10 above 100. For large groups that are
        nearly alike, use a smaller rate.

    Examples
    --------
    >>> table, truth = Prototype().simulate(Schema(2, (3, 2)), [20, 30, 10], seed=1)
    >>> truth.prototype.shape, truth.strength.shape
    ((2, 5), (2, 2))
    >>> value = Prototype().log_joint(table.counts(), truth.prototype, truth.strength)
    >>> isinstance(value, float)
    True
    """

    strength_prior: Gamma = DEFAULT_STRENGTH_PRIOR

    name: ClassVar[str] = "Prototype"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.strength_prior, Gamma):
            raise TypeError(
                f"strength_prior must be a Gamma(shape, rate), got {self.strength_prior!r}"
            )

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
        import numpyro.distributions as dist

        rows = check_rows(schema, groups, features, labels)
        prior = sample_feature_prior(self, schema)
        gamma = dist.Gamma(self.strength_prior.shape, self.strength_prior.rate)
        with numpyro.plate("labels", schema.num_labels, dim=-1):
            shape = (schema.num_labels,)
            prototype = [
                sample_simplex(f"prototype_{f}", beta, shape) for f, beta in enumerate(prior)
            ]
            strength = [numpyro.sample(f"strength_{f}", gamma) for f in range(len(prior))]
            with numpyro.plate("groups", rows.num_groups, dim=-2):
                theta = [
                    sample_simplex(
                        f"theta_{f}", strength[f][:, None] * prototype[f], (rows.num_groups, *shape)
                    )
                    for f in range(len(prior))
                ]
        with numpyro.plate("groups_of_phi", rows.num_groups):
            phi = sample_simplex("phi", self.label_parameters(schema), (rows.num_groups,))
        sample_rows(rows, phi, theta, rows.groups)

    def scatter_parameters(
        self, schema: Schema, prototype: ArrayLike, strength: ArrayLike
    ) -> FloatArray:
        """Return Dirichlet parameters ``K_{y,f} theta_bar_{y,f,x}`` of ``theta_u``, ``(L, C)``."""
        bar, k = np.asarray(prototype, dtype=np.float64), np.asarray(strength, dtype=np.float64)
        if bar.shape[-1:] != (schema.num_cells,) or k.shape[-1:] != (schema.num_features,):
            raise ValueError(
                f"prototype {bar.shape} and strength {k.shape} must end in the "
                f"{schema.num_cells} feature values and the {schema.num_features} features"
            )
        # The prototype may be zero at a value, but Dirichlet parameters must be positive.
        return np.maximum(k[..., schema.cell_feature] * bar, np.finfo(np.float64).tiny)

    @staticmethod
    def log_factor(
        feature_counts: ArrayLike | CountHistograms, prototype: ArrayLike, strength: ArrayLike
    ) -> FloatArray:
        """Return ``log P(X_f | Y, theta_bar, K)`` of one label and feature, without ``theta_u``.

        Parameters
        ----------
        feature_counts : (U, V)
            ``n_{u,y,f,x}`` of one ``(y, f)``, or its histograms.
        prototype : (..., V)
            Points of the simplex.
        strength : (...)
            Strengths, broadcast against the leading axes of ``prototype``.

        Examples
        --------
        With one row per group the strength does not matter: a row has the prototype's probability.

        >>> counts = [[1, 0], [0, 1]]
        >>> np.exp(Prototype.log_factor(counts, [0.5, 0.5], [0.1, 100.0])).round(12).tolist()
        [0.25, 0.25]
        """
        scatter = np.asarray(strength)[..., None] * np.asarray(prototype)
        scatter = np.maximum(scatter, np.finfo(np.float64).tiny)
        histograms = feature_counts
        if not isinstance(histograms, CountHistograms):
            histograms = CountHistograms(histograms)
        return histograms.log_marginal(scatter)

    def log_label_marginal(self, counts: GroupCounts) -> float:
        """Return ``log P(Y)``, which depends on neither prototype nor strength."""
        prior = self.label_parameters(counts.schema)
        return float(log_label_marginal(counts.labels, prior).sum())

    def log_marginal(self, counts: GroupCounts, prototype: ArrayLike, strength: ArrayLike) -> float:
        """Return ``log P(X, Y | theta_bar, K)``; prototype ``(L, C)``, strengths ``(L, F)``."""
        scatter = self.scatter_parameters(counts.schema, prototype, strength)
        features = log_feature_marginal(counts.schema, counts.features, scatter).sum()
        return self.log_label_marginal(counts) + float(features)

    def log_prior(self, schema: Schema, prototype: ArrayLike, strength: ArrayLike) -> float:
        """Return the log density of the prototype and the strengths, eqs. (2.26), (2.27).

        The density is with respect to the first ``V_f - 1`` values of each simplex and ``K``. A
        learned feature prior is integrated out.
        """
        bar = np.asarray(prototype, dtype=np.float64)
        strengths = float(self.strength_prior.log_density(np.asarray(strength)).sum())

        def log_simplex(beta: FloatArray) -> float:
            parts = [
                log_dirichlet_density(bar[:, cells], beta[:, cells]).sum()
                for cells in map(schema.cells_of, range(schema.num_features))
            ]
            return float(np.sum(parts))

        if not isinstance(self.feature_prior, Gamma):
            return strengths + log_simplex(self.feature_parameters(schema))
        learned = self.feature_prior
        shape = (schema.num_labels, schema.num_cells)

        def log_density(log_b: FloatArray) -> FloatArray:
            b = np.maximum(np.exp(log_b), 1e-300)
            density = np.array([log_simplex(np.full(shape, value)) for value in b])
            return learned.log_density_of_log(log_b) + density

        return strengths + integrate_log_density(log_density).log_integral

    def log_joint(self, counts: GroupCounts, prototype: ArrayLike, strength: ArrayLike) -> float:
        """Return ``log P(X, Y | theta_bar, K) + log p(theta_bar, K)``."""
        return self.log_marginal(counts, prototype, strength) + self.log_prior(
            counts.schema, prototype, strength
        )

    def log_predictive(
        self,
        counts: GroupCounts,
        features: ArrayLike,
        prototype: ArrayLike,
        strength: ArrayLike,
        groups: ArrayLike | None = None,
    ) -> FloatArray:
        """Return ``log P(y, x | data, theta_bar, K)`` of each row and label; ``(U, N, L)``.

        Each row of ``(N, F)`` is predicted from the counts, independently of the other rows.

        Parameters
        ----------
        groups
            Groups to predict for; all by default. -1 is a new group, predicted by the prototype.
        """
        scatter = self.scatter_parameters(counts.schema, prototype, strength)
        alpha = self.label_parameters(counts.schema)
        informing = counts if groups is None else counts.take(groups)
        return log_row_predictive(informing, alpha, scatter, features)

    def informants(
        self, counts: GroupCounts, prototype: ArrayLike, strength: ArrayLike
    ) -> ConditionalPredictive:
        """Return the predictive of groups' own counts, with the prototype as Dirichlet prior."""
        own = np.arange(counts.num_groups)
        return ConditionalPredictive(
            schema=counts.schema,
            label_counts=counts.labels,
            feature_counts=counts.features,
            label_block=own,
            feature_block=own,
            label_prior=self.label_parameters(counts.schema),
            feature_prior=self.scatter_parameters(counts.schema, prototype, strength),
            new_label_block=-1,
            new_feature_weights=np.append(np.zeros(len(own)), 1.0),
        )

    def posterior_mode(
        self, counts: GroupCounts, prototype: ArrayLike, strength: ArrayLike
    ) -> NaiveBayesParameters:
        """Return the mode of ``phi`` and ``theta`` given prototype and strength (natural)."""
        scatter = self.scatter_parameters(counts.schema, prototype, strength)
        return posterior_parameters(counts, self.label_parameters(counts.schema), scatter)

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
        prototype = draw_cells(rng, schema, prior)
        strength = rng.gamma(
            self.strength_prior.shape,
            1.0 / self.strength_prior.rate,
            (schema.num_labels, schema.num_features),
        )
        phi = draw_labels(rng, self.label_parameters(schema), len(sizes))
        scatter = self.scatter_parameters(schema, prototype, strength)
        theta = draw_cells(rng, schema, np.broadcast_to(scatter, (len(sizes), *scatter.shape)))
        table = draw_table(
            rng, schema, sizes, phi, theta, missing=missing, missing_labels=missing_labels
        )
        truth = Truth(
            phi, theta, np.arange(len(sizes)), prior, prototype=prototype, strength=strength
        )
        return Simulation(table, truth)
