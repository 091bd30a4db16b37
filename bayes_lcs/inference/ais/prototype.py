"""Annealing target of the prototype model.

With ``phi`` and ``theta`` integrated out, the target at temperature ``t`` is

    p(theta_bar, K) P(Y_missing | Y_known) P(X | Y, theta_bar, K)^t,

whose normaliser is 1 at ``t = 0`` and ``P(X, Y_known) / P(Y_known)`` at ``t = 1``. If all labels
are known and ``beta`` is fixed, the (label, feature) pairs are independent and have separate
weights: the evidence is the product of the integrals of the pairs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from bayes_lcs.inference.mcmc import label_gibbs, prototype_metropolis
from bayes_lcs.inference.mcmc import prototype as prototype_sampler
from bayes_lcs.inference.mcmc.prototype import (
    PrototypeConfig,
    PrototypeData,
    PrototypeState,
    build_kernel,
    padded_counts,
)

if TYPE_CHECKING:
    from bayes_lcs.core.model_protocols import PrototypeModel
    from bayes_lcs.data.grouped_table import GroupedTable

__all__ = ["AnnealedPrototypeConfig", "AnnealedPrototypeProblem", "build_problem"]

WIDTHS = (2.0, 0.5, 0.12)
"""Step widths at every temperature. They are not adapted, so that moves can be reversed."""


@dataclass(frozen=True)
class AnnealedPrototypeConfig:
    """Static configuration of the annealing target."""

    sweep: PrototypeConfig

    def begin(self, data: PrototypeData, rng_key: jax.Array) -> PrototypeState:
        """Draw all unknown quantities from their prior, given the known labels."""
        key_b, key_p, key_k, key_y = jax.random.split(rng_key, 4)
        learned, strength = self.sweep.feature_prior, self.sweep.strength_prior
        beta = jnp.ones(())
        if learned is not None:
            drawn = jnp.exp(jax.random.loggamma(key_b, learned.shape)) / learned.rate
            beta = jnp.maximum(drawn, prototype_metropolis.MIN_SCATTER)
        exists = data.prior > 0
        log_gammas = jax.random.loggamma(key_p, jnp.where(exists, data.prior * beta, 1.0))
        log_gammas = jnp.where(exists, log_gammas, -jnp.inf)
        shape = jnp.full(len(data.prior), strength.shape)
        log_strength = jax.random.loggamma(key_k, shape) - jnp.log(strength.rate)
        log_scatter = jax.nn.log_softmax(log_gammas, axis=-1) + log_strength[:, None]
        labels = label_gibbs.draw_labels(key_y, data.rows, data.label_counts, data.label_prior)
        return self.state(data, log_scatter, labels, beta)

    def state(
        self,
        data: PrototypeData,
        log_scatter: jax.Array,
        labels: jax.Array | None,
        beta: jax.Array,
    ) -> PrototypeState:
        """Return the state at given values of all unknown quantities."""
        label_state, vectors = label_gibbs.init(data.rows, data.label_counts, data.vectors, labels)
        counts = padded_counts(self.sweep.schema, vectors)
        tail_counts = prototype_metropolis.count_tails(counts, self.sweep.tail_length)
        return PrototypeState(
            prototype_metropolis.init(log_scatter), label_state, tail_counts, beta
        )

    def transition(
        self, data: PrototypeData, reverse: bool
    ) -> Callable[[jax.Array, PrototypeState, jax.Array], PrototypeState]:
        """Build a sweep at a temperature."""
        kernel = build_kernel(self.sweep, data, reverse)
        return lambda key, state, temperature: kernel(key, state, temperature)[0]

    def log_likelihood(self, data: PrototypeData, state: PrototypeState) -> jax.Array:
        """Return ``log P(X | Y, theta_bar, K)``, for every pair if pairs are independent."""
        scatter, length = jnp.exp(state.walk.log_scatter), self.sweep.tail_length
        cells = prototype_metropolis.log_likelihood(scatter, state.tail_counts.cells, length)
        strength = scatter.sum(axis=-1)
        totals = prototype_metropolis.log_likelihood(strength, state.tail_counts.totals, length)
        by_pair = cells.sum(axis=-1) - totals
        independent = data.rows is None and self.sweep.feature_prior is None
        return by_pair if independent else by_pair.sum(keepdims=True)

    def out_of_slots(self, state: PrototypeState) -> jax.Array:  # noqa: ARG002
        """Return False: there are no slots."""
        return jnp.asarray(False)


@dataclass(frozen=True)
class AnnealedPrototypeProblem:
    """Annealing problem of a prototype model and a table."""

    config: AnnealedPrototypeConfig
    data: PrototypeData

    def with_more_slots(self) -> AnnealedPrototypeProblem:
        """Return the problem unchanged: it has no slots."""
        return self

    def states(self, unknown: dict[str, NDArray]) -> PrototypeState:
        """Return states at draws ``(chains, ...)``, given by name as a sampler returns them."""
        schema = self.config.sweep.schema
        cell, exists = prototype_sampler.cell_of(schema)
        chains = len(unknown["prototype"])
        prototype = unknown["prototype"].reshape(chains, -1)[:, cell]
        strength = unknown["strength"].reshape(chains, -1, 1)
        with np.errstate(divide="ignore"):
            log_scatter = np.where(exists, np.log(prototype) + np.log(strength), -np.inf)
        log_scatter = np.where(exists, np.maximum(log_scatter, -700.0), -np.inf)
        beta = unknown.get("beta", np.ones(chains))
        labels = unknown.get("latent_label")
        with jax.enable_x64(True):
            return jax.vmap(
                lambda s, y, b: self.config.state(self.data, s, y, b),
                in_axes=(0, None if labels is None else 0, 0),
            )(
                jnp.asarray(log_scatter),
                None if labels is None else jnp.asarray(labels.astype(np.int32)),
                jnp.asarray(beta),
            )


def build_problem(model: PrototypeModel, data: GroupedTable) -> AnnealedPrototypeProblem:
    """Build the annealing problem of a prototype model and a table."""
    with jax.enable_x64(True):
        problem = prototype_sampler.build_problem(model, data, num_adapt=0)
    config = replace(problem.config, widths=WIDTHS)
    return AnnealedPrototypeProblem(AnnealedPrototypeConfig(config), problem.data)
