"""Annealing of partitions from a mean-field base distribution near the posterior.

The base assigns every group independently to one of ``K`` labelled slots:
``q(z) = prod_u q_u(z_u)``. The target at temperature ``t`` is

    q(z)^(1 - t) (P(z) P(X | Y, z) c(z))^t,

whose normaliser is 1 at ``t = 0`` and the sum over partitions at ``t = 1``. The labels of the slots
must be identified, or a chain would have to visit all labellings of the clusters. Therefore some
groups are **anchors**, the first ``A`` of all: each keeps the slot of its number. The ``S``
remaining slots are spare; ``s`` clusters without an anchor occupy them in any of their
``S! / (S - s)!`` arrangements, over which ``c`` is uniform.

The sum is over partitions whose anchors are in different clusters and that fit into the slots.
Others are left out, so the mean of the weights is at most the evidence, and equal to it up to their
posterior probability. With draws from the whole posterior at the other end, of which those that are
left out have weight zero, the mean of ``1/w`` is one over the evidence itself.

The base need not be accurate; it only has to be fixed before the chains are run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from bayes_lcs.core.dirichlet_jax import log_rising
from bayes_lcs.inference.mcmc.cluster_marginals import CountLayout, log_marginal

__all__ = ["MeanFieldConfig", "MeanFieldData", "MeanFieldProblem", "MeanFieldState"]


class MeanFieldState(NamedTuple):
    """Slots of the groups, and the counts of the slots.

    Attributes
    ----------
    z : (U,)
        Slot of each group, anchors first.
    sizes : (K,)
        Number of groups in each slot.
    cluster_counts : (K, D)
        Counts of each slot.
    log_marginals : (K,)
        ``log m`` of each slot.
    """

    z: jax.Array
    sizes: jax.Array
    cluster_counts: jax.Array
    log_marginals: jax.Array


class MeanFieldData(NamedTuple):
    """Constant arrays of the chains.

    Attributes
    ----------
    layout
        Dimensions and tables of the counts.
    vectors : (U, D)
        Counts of each group, anchors first.
    concentration
        Concentration of the Chinese restaurant process.
    log_base : (U, K)
        ``log q_u``; the rows of anchors are not used.
    """

    layout: CountLayout
    vectors: jax.Array
    concentration: jax.Array
    log_base: jax.Array


class _Step(NamedTuple):
    own: jax.Array
    vector: jax.Array
    uniform: jax.Array
    log_base: jax.Array


def _log_conditional(
    data: MeanFieldData, state: MeanFieldState, own: jax.Array, vector: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Return log weights ``(K,)`` of a group's slots given the rest, and its gains in ``log m``."""
    slots = jnp.arange(state.sizes.size)
    sign = jnp.where(slots == own, -1, 1)
    without = log_marginal(data.layout, state.cluster_counts + sign[:, None] * vector)
    gain = sign * (without - state.log_marginals)
    sizes = state.sizes - (slots == own)
    empty = sizes == 0
    # The empty slots share the weight of a new cluster.
    alone = jnp.log(data.concentration) - jnp.log(jnp.maximum(empty.sum(), 1))
    return jnp.where(empty, alone, jnp.log(jnp.maximum(sizes, 1))) + gain, gain


def _update(
    data: MeanFieldData, state: MeanFieldState, step: _Step, temperature: Any
) -> tuple[MeanFieldState, tuple[jax.Array, jax.Array]]:
    """Draw the slot of one group; return the state, the slot and the probabilities of all slots."""
    weights, gain = _log_conditional(data, state, step.own, step.vector)
    # Geometric path between the base and the posterior.
    weights = temperature * weights + (1.0 - temperature) * step.log_base
    probabilities = jnp.exp(weights - weights.max())
    slots = jnp.arange(probabilities.size)
    # Running sums as masked sums, which for few slots are faster than a scan.
    running = jnp.where(slots[:, None] >= slots, probabilities, 0.0).sum(axis=1)
    new = (running[:-1] <= step.uniform * running[-1]).sum(dtype=jnp.int32)
    change = (slots == new).astype(jnp.int32) - (slots == step.own).astype(jnp.int32)
    put = jax.lax.dynamic_update_index_in_dim
    moved = jnp.where(new != step.own, step.vector, 0)
    cluster_counts = put(state.cluster_counts, state.cluster_counts[step.own] - moved, step.own, 0)
    cluster_counts = put(cluster_counts, cluster_counts[new] + moved, new, 0)
    state = state._replace(
        sizes=state.sizes + change,
        cluster_counts=cluster_counts,
        log_marginals=state.log_marginals + change * gain,
    )
    return state, (new, probabilities / running[-1])


@dataclass(frozen=True)
class MeanFieldConfig:
    """Static configuration of the annealing target.

    Attributes
    ----------
    num_anchors
        Number of anchors; these are the first groups.
    num_slots
        Number of slots, those of the anchors and spare ones.
    """

    num_anchors: int
    num_slots: int

    def state(self, data: MeanFieldData, z: jax.Array) -> MeanFieldState:
        """Return the state at given slots."""
        cluster_counts = jax.ops.segment_sum(data.vectors, z, self.num_slots)
        sizes = jax.ops.segment_sum(jnp.ones_like(z), z, self.num_slots)
        return MeanFieldState(z, sizes, cluster_counts, log_marginal(data.layout, cluster_counts))

    def begin(self, data: MeanFieldData, rng_key: jax.Array) -> MeanFieldState:
        """Draw from the base distribution."""
        probabilities = jnp.cumsum(jnp.exp(data.log_base), axis=1)
        uniforms = jax.random.uniform(rng_key, (len(probabilities), 1), dtype=float)
        drawn = (probabilities[:, :-1] <= uniforms * probabilities[:, -1:]).sum(
            axis=1, dtype=jnp.int32
        )
        numbers = jnp.arange(drawn.size, dtype=jnp.int32)
        return self.state(data, jnp.where(numbers < self.num_anchors, numbers, drawn))

    def sweep(
        self,
        data: MeanFieldData,
        rng_key: jax.Array,
        state: MeanFieldState,
        temperature: Any,
        reverse: bool = False,
    ) -> tuple[MeanFieldState, jax.Array]:
        """Draw the slots of all groups but the anchors, one after the other.

        Returns the state and the probabilities ``(U - A, K)`` from which they were drawn.
        """
        fixed = self.num_anchors
        uniforms = jax.random.uniform(rng_key, state.z.shape, dtype=float)
        steps = _Step(state.z, data.vectors, uniforms, data.log_base)
        after, (z, probabilities) = jax.lax.scan(
            lambda carry, step: _update(data, carry, step, temperature),
            state._replace(z=jnp.zeros((), dtype=jnp.int32)),
            jax.tree.map(lambda leaf: leaf[fixed:], steps),
            reverse=reverse,
        )
        return after._replace(z=jnp.concatenate([state.z[:fixed], z])), probabilities

    def transition(
        self, data: MeanFieldData, reverse: bool
    ) -> Callable[[jax.Array, MeanFieldState, jax.Array], MeanFieldState]:
        """Build a sweep at a temperature."""
        return lambda key, state, t: self.sweep(data, key, state, t, reverse)[0]

    def log_likelihood(self, data: MeanFieldData, state: MeanFieldState) -> jax.Array:
        """Return ``log P(X, z | Y) c(z) / q(z)``, which the temperature multiplies."""
        spare = self.num_slots - self.num_anchors
        occupied = state.sizes > 0
        used = occupied[self.num_anchors :].sum()
        a = data.concentration
        log_prior = (
            jnp.log(a) * occupied.sum()
            + jnp.where(occupied, log_rising(1.0, jnp.maximum(state.sizes - 1, 0)), 0.0).sum()
            - log_rising(a, jnp.asarray(state.z.size))
        )
        log_arranged = -log_rising(spare - used + 1.0, used)
        log_base = jnp.take_along_axis(data.log_base, state.z[:, None], axis=1)
        log_joint = log_prior + log_arranged + log_marginal(data.layout, state.cluster_counts).sum()
        return (log_joint - log_base[self.num_anchors :].sum())[None]

    def out_of_slots(self, state: MeanFieldState) -> jax.Array:
        """Return False: partitions that do not fit into the slots are left out of the sum."""
        return jnp.zeros_like(state.sizes[0], dtype=bool)


@dataclass(frozen=True)
class MeanFieldProblem:
    """Annealing problem of a partition from its mean-field base."""

    config: MeanFieldConfig
    data: MeanFieldData

    def with_more_slots(self) -> MeanFieldProblem:
        """Return the problem unchanged: its number of slots is fixed."""
        return self

    def states(self, unknown: dict[str, NDArray]) -> MeanFieldState:
        """Return states at slots ``z`` ``(chains, U)`` of the groups, anchors first."""
        with jax.enable_x64(True):
            slots = jnp.asarray(unknown["z"].astype(np.int32))
            return jax.vmap(lambda one: self.config.state(self.data, one))(slots)

    def builder(self) -> Callable[[], MeanFieldProblem]:
        """Return a function that builds this problem on a worker.

        It holds NumPy arrays, since JAX would cast arrays of 64 bits to 32 when they are sent.
        """
        return partial(_build_from_arrays, self.config, jax.tree.map(np.asarray, self.data))


def _build_from_arrays(config: MeanFieldConfig, data: Any) -> MeanFieldProblem:
    with jax.enable_x64(True):
        return MeanFieldProblem(config, jax.tree.map(jnp.asarray, data))
