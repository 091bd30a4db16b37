"""The prototype model, tempered for annealed importance sampling.

Collapsed: ``phi`` and ``theta`` are integrated out. Annealed is

    p(theta_bar, K) P(Y_missing | Y_known) P(X | Y, theta_bar, K)^t,

whose normaliser is 1 at ``t = 0`` and ``P(X, Y_known) / P(Y_known)`` at ``t = 1``. Where all labels
are known and ``beta`` is given, every (label, feature) pair is independent and has a weight of its
own: the evidence is the product of the pairs' integrals.
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
    PrototypeData,
    PrototypeDesign,
    PrototypeState,
    build_kernel,
    padded_counts,
)

if TYPE_CHECKING:
    from bayes_lcs.core.model_protocols import PrototypeModel
    from bayes_lcs.data.grouped_table import GroupedTable

__all__ = ["AnnealedPrototype", "AnnealedPrototypeProblem", "pose"]

WIDTHS = (2.0, 0.5, 0.12)
"""Of the steps at every temperature: nothing is adapted, so that moves can be reversed."""


@dataclass(frozen=True)
class AnnealedPrototype:
    """What decides the program."""

    design: PrototypeDesign

    def begin(self, data: PrototypeData, rng_key: jax.Array) -> PrototypeState:
        """Everything unknown from its prior, given the labels that are known."""
        key_b, key_p, key_k, key_y = jax.random.split(rng_key, 4)
        learned, strength = self.design.feature_prior, self.design.strength_prior
        beta = jnp.ones(())
        if learned is not None:
            drawn = jnp.exp(jax.random.loggamma(key_b, learned.shape)) / learned.rate
            beta = jnp.maximum(drawn, prototype_metropolis.SMALLEST)
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
        """The state at given values of everything unknown."""
        label_state, vectors = label_gibbs.init(data.rows, data.label_counts, data.vectors, labels)
        counts = padded_counts(self.design.schema, vectors)
        counted = prototype_metropolis.exceedances(counts, self.design.tail_length)
        return PrototypeState(prototype_metropolis.init(log_scatter), label_state, counted, beta)

    def transition(
        self, data: PrototypeData, reverse: bool
    ) -> Callable[[jax.Array, PrototypeState, jax.Array], PrototypeState]:
        """A sweep at a temperature."""
        kernel = build_kernel(self.design, data, reverse)
        return lambda key, state, temperature: kernel(key, state, temperature)[0]

    def log_likelihood(self, data: PrototypeData, state: PrototypeState) -> jax.Array:
        """``log P(X | Y, theta_bar, K)``, of every pair where pairs are independent."""
        scatter, length = jnp.exp(state.walk.log_scatter), self.design.tail_length
        cells = prototype_metropolis.log_likelihood(scatter, state.counted.cells, length)
        strength = scatter.sum(axis=-1)
        totals = prototype_metropolis.log_likelihood(strength, state.counted.totals, length)
        by_pair = cells.sum(axis=-1) - totals
        independent = data.rows is None and self.design.feature_prior is None
        return by_pair if independent else by_pair.sum(keepdims=True)

    def overflowed(self, state: PrototypeState) -> jax.Array:  # noqa: ARG002
        """Never."""
        return jnp.asarray(False)


@dataclass(frozen=True)
class AnnealedPrototypeProblem:
    """A prototype model and a table, ready to be annealed."""

    design: AnnealedPrototype
    data: PrototypeData

    def enlarged(self) -> AnnealedPrototypeProblem:
        """The problem itself: nothing of it needs room."""
        return self

    def states(self, unknown: dict[str, NDArray]) -> PrototypeState:
        """States at draws ``(chains, ...)`` by name, as a sampler left them."""
        schema = self.design.design.schema
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
                lambda s, y, b: self.design.state(self.data, s, y, b),
                in_axes=(0, None if labels is None else 0, 0),
            )(
                jnp.asarray(log_scatter),
                None if labels is None else jnp.asarray(labels.astype(np.int32)),
                jnp.asarray(beta),
            )


def pose(model: PrototypeModel, data: GroupedTable) -> AnnealedPrototypeProblem:
    """Lay out a prototype model and a table for annealing."""
    with jax.enable_x64(True):
        problem = prototype_sampler.pose(model, data, num_adapt=0)
    design = replace(problem.design, widths=WIDTHS)
    return AnnealedPrototypeProblem(AnnealedPrototype(design), problem.data)
