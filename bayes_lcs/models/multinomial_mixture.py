"""A mixture of products of multinomials (Meek, Thiesson and Heckerman 2002, section 3.1).

Generative process, for row ``n``, component ``k``, feature ``f``::

    pi                  ~ Dirichlet(alpha)
    theta_{k,f}         ~ Dirichlet(beta_f)
    Z_n | pi            ~ Discrete(pi)
    X_{n,f} | Z_n = k   ~ Discrete(theta_{k,f})

also known as naive Bayes with a hidden class, latent class analysis, or AutoClass. Missing cells
are assumed missing at random and left out of the product.

The paper learns "MAP estimates ... using the diffuse Dirichlet prior described in Cooper and
Herskovits (1992)", all parameters 1. A mode depends on the parameterisation. This module uses the
natural parameters (log odds), for which the density of a Dirichlet is
``prod_v theta_v^beta_v / B(beta)``, without the usual -1. Given expected counts ``n`` the mode is
then ``theta_v = (n_v + beta_v) / sum_v (n_v + beta_v)``. It is never 0, and with ``beta = 1`` it
is Laplace's rule. A prior of 0 means no prior: maximum likelihood.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import xlogy

from bayes_lcs.core.dirichlet import (
    log_cells_marginal,
    log_dirichlet_density,
    log_dirichlet_multinomial,
)
from bayes_lcs.core.model_protocols import MixtureParameters, MixtureStatistics
from bayes_lcs.core.schema import Schema

__all__ = ["MultinomialMixture"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class MultinomialMixture:
    """A mixture of ``num_components`` products of multinomials over the features of ``schema``.

    Parameters
    ----------
    schema
        Number of values of each feature; labels are not used.
    num_components
        Number of components ``K``.
    weight_prior
        Dirichlet parameter ``alpha`` of the weights; 0 for maximum likelihood.
    cell_prior
        Dirichlet parameter ``beta`` of the values: one number, or one per cell; 0 for maximum
        likelihood.

    Examples
    --------
    >>> model = MultinomialMixture(schema=Schema(1, (3, 2)), num_components=2)
    >>> rows, components, truth = model.simulate(100, seed=0)
    >>> rows.shape, model.num_free_parameters
    ((100, 2), 7)
    """

    schema: Schema
    num_components: int
    weight_prior: float = 1.0
    cell_prior: float | ArrayLike = 1.0

    def __post_init__(self) -> None:
        if self.num_components < 1:
            raise ValueError(f"num_components must be at least 1, got {self.num_components}")
        for name, value in (("weight_prior", self.weight_prior), ("cell_prior", self.cell_prior)):
            if not np.all(np.isfinite(value)) or np.any(np.asarray(value) < 0):
                raise ValueError(f"{name} must be finite and at least 0, got {value!r}")
        if np.ndim(self.cell_prior) and np.shape(self.cell_prior) != (self.schema.num_cells,):
            raise ValueError(
                f"cell_prior must be a number or one number for each of the "
                f"{self.schema.num_cells} values, got shape {np.shape(self.cell_prior)}"
            )

    @property
    def num_free_parameters(self) -> int:
        """Number of free parameters, ``K - 1 + K sum_f (V_f - 1)``."""
        free = self.schema.num_cells - self.schema.num_features
        return self.num_components - 1 + self.num_components * free

    @property
    def cell_parameters(self) -> FloatArray:
        """Dirichlet parameters of all cells, ``(C,)``."""
        shape = (self.schema.num_cells,)
        return np.broadcast_to(np.asarray(self.cell_prior, np.float64), shape)

    def numpyro_model(self, rows: ArrayLike | None = None, num_rows: int | None = None) -> None:
        """Generate rows in NumPyro, or condition on them with the components summed out.

        Parameters
        ----------
        rows : (N, F), or None
            Coded rows, -1 missing; None draws ``num_rows`` rows.
        """
        import jax.numpy as jnp
        import numpyro
        import numpyro.distributions as dist

        codes = None if rows is None else np.asarray(rows)
        size = num_rows if codes is None else len(codes)
        alpha = jnp.full(self.num_components, float(self.weight_prior))
        pi = numpyro.sample("pi", dist.Dirichlet(alpha))
        theta = []
        with numpyro.plate("components", self.num_components):
            for f in range(self.schema.num_features):
                beta = jnp.asarray(self.cell_parameters[self.schema.cells_of(f)])
                theta.append(numpyro.sample(f"theta_{f}", dist.Dirichlet(beta)))
        if codes is None:
            with numpyro.plate("rows", size):
                z = numpyro.sample("z", dist.Categorical(probs=pi))
                for f, table in enumerate(theta):
                    numpyro.sample(f"x_{f}", dist.Categorical(probs=table[z]))
            return
        log_joint = jnp.log(pi) + jnp.zeros((len(codes), 1))
        for f, table in enumerate(theta):
            logs = jnp.log(table).T[np.maximum(codes[:, f], 0)]
            log_joint += jnp.where(codes[:, f, None] >= 0, logs, 0.0)
        # Log-sum-exp over the components.
        top = log_joint.max(axis=1)
        rest = jnp.log(jnp.exp(log_joint - top[:, None]).sum(axis=1))
        numpyro.factor("rows", (top + rest).sum())

    def update(self, statistics: MixtureStatistics) -> MixtureParameters:
        """Return the posterior mode given expected counts (M-step).

        If a component has neither counts nor a prior for a feature, its values get equal
        probabilities.
        """
        components = statistics.components + self.weight_prior
        cells = statistics.cells + self.cell_parameters[:, None]
        totals = self.totals(statistics)[1:]
        sizes = np.asarray(self.schema.num_values, np.float64)[self.schema.cell_feature, None]
        empty = totals <= 0.0
        theta = np.where(empty, 1.0 / sizes, cells / np.where(empty, 1.0, totals))
        return MixtureParameters(_normalise(components), theta)

    def totals(self, statistics: MixtureStatistics) -> FloatArray:
        """Return the denominators of all probabilities, prior included, ``(1 + C, K)``.

        The first row belongs to the weights, the others to the cells.
        """
        weights = np.full(
            (1, self.num_components),
            statistics.components.sum() + self.num_components * self.weight_prior,
        )
        if self.schema.num_features == 0:
            return weights
        cells = statistics.cells + self.cell_parameters[:, None]
        totals = np.add.reduceat(cells, self.schema.offsets[:-1], axis=0)
        return np.vstack([weights, totals[self.schema.cell_feature]])

    def log_prior(self, parameters: MixtureParameters) -> float:
        """Return the log prior density in natural parameters, with its constant; 0 without prior.

        The change of variables multiplies a Dirichlet's density by ``prod_v theta_v``.
        """
        weights = xlogy(self.weight_prior, parameters.weights).sum()
        cells = xlogy(self.cell_parameters[:, None], parameters.cells).sum()
        return float(weights + cells) + self._log_constant

    @cached_property
    def _log_constant(self) -> float:
        """Sum of ``-log B`` over all proper priors."""
        alpha = np.full(self.num_components, float(self.weight_prior))
        betas = [
            self.cell_parameters[self.schema.cells_of(f)] for f in range(self.schema.num_features)
        ]
        each = sum(_log_constant(beta) for beta in betas)
        return _log_constant(alpha) + self.num_components * each

    def log_joint(self, parameters: MixtureParameters, rows: ArrayLike) -> FloatArray:
        """Return ``log p(x_n, z_n = k)`` of coded rows (-1 missing), ``(N, K)``."""
        codes = np.asarray(rows)
        with np.errstate(divide="ignore"):
            # Missing cells read the row of zeros at the end.
            logs = np.vstack([np.log(parameters.cells), np.zeros((1, self.num_components))])
            result: FloatArray = np.log(parameters.weights) + np.zeros((len(codes), 1))
        for f in range(self.schema.num_features):
            column = codes[:, f].astype(np.int64)
            result = result + logs[np.where(column >= 0, column + self.schema.offsets[f], -1)]
        return result

    def log_marginal(self, statistics: MixtureStatistics) -> float:
        """Return the log evidence of (fractional) counts, with the parameters integrated out.

        The prior is the Dirichlet itself: an integral does not depend on the parameterisation.
        """
        if self.weight_prior == 0.0 or (self.cell_parameters == 0.0).any():
            raise ValueError("the evidence needs a proper prior: give prior > 0")
        alpha = np.full(self.num_components, float(self.weight_prior))
        weights = log_dirichlet_multinomial(statistics.components, alpha)
        cells = log_cells_marginal(self.schema, statistics.cells.T, self.cell_parameters)
        return float(weights + cells.sum())

    def simulate(
        self, num_rows: int, seed: Any = 0, parameters: MixtureParameters | None = None
    ) -> tuple[IntArray, IntArray, MixtureParameters]:
        """Draw rows ``(N, F)`` and their components; return them with the parameters.

        Parameters that are not given are drawn from the prior.
        """
        rng = np.random.default_rng(seed)
        if parameters is None:
            parameters = self._draw_parameters(rng)
        z = rng.choice(self.num_components, size=num_rows, p=parameters.weights)
        rows = np.empty((num_rows, self.schema.num_features), np.int64)
        for f in range(self.schema.num_features):
            upper = np.cumsum(parameters.cells[self.schema.cells_of(f)], axis=0)
            # Inverse CDF, per row in the column of its component.
            uniform = rng.random(num_rows) * upper[-1, z]
            rows[:, f] = (uniform[None] > upper[:-1, z]).sum(axis=0)
        return rows, z, parameters

    def _draw_parameters(self, rng: np.random.Generator) -> MixtureParameters:
        pi = rng.dirichlet(np.full(self.num_components, float(self.weight_prior)))
        theta = [
            rng.dirichlet(self.cell_parameters[self.schema.cells_of(f)], self.num_components).T
            for f in range(self.schema.num_features)
        ]
        cells = np.vstack(theta) if theta else np.empty((0, self.num_components))
        return MixtureParameters(pi, cells)


def _normalise(counts: FloatArray) -> FloatArray:
    total = counts.sum()
    return counts / total if total > 0.0 else np.full(counts.shape, 1.0 / counts.size)


def _log_constant(prior: FloatArray) -> float:
    """Return ``-log B(prior)``, or 0 if the prior is improper."""
    if (prior <= 0.0).any():
        return 0.0
    centre = np.full(prior.shape, 1.0 / prior.size)
    return float(log_dirichlet_density(centre, prior) - ((prior - 1.0) * np.log(centre)).sum())
