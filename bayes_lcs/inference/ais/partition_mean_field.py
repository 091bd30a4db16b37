"""Partitions annealed from a guide, a distribution near the posterior, in place of the prior.

The guide deals every group to one of ``K`` labelled slots by itself: ``q(z) = prod_u q_u(z_u)``.
Annealed is

    q(z)^(1 - t) (P(z) P(X | Y, z) c(z))^t,

whose normaliser is 1 at ``t = 0`` and the sum over partitions at ``t = 1``. What a slot is called
must mean something, or a chain would have to visit all ways of naming the blocks. So some groups
are **anchors**, the first ``A`` of all: each keeps the slot of its number. The ``S`` slots behind
are spare; blocks without an anchor lie there in any of their ``S! / (S - s)!`` arrangements, over
which ``c`` spreads them evenly.

Summed over are partitions whose anchors are apart and that have room. Others are left out, so the
mean of the weights is at most the evidence, and equal to it but for their posterior probability.
With draws from the whole posterior at the other end, those that are left out having weight zero,
the mean of ``1/w`` is one over the evidence itself.

A guide need not be right, it only has to be fixed before the chains are run.
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
from bayes_lcs.inference.mcmc.cluster_marginals import BlockLayout, log_marginal

__all__ = ["GuidedData", "GuidedDesign", "GuidedProblem", "GuidedState"]


class GuidedState(NamedTuple):
    """Slots of the groups, and what lies in them.

    Attributes
    ----------
    z : (U,)
        Slot of each group, anchors first.
    sizes : (K,)
        Groups in each slot.
    blocks : (K, D)
        Counts of each slot.
    log_marginals : (K,)
        ``log m`` of each slot.
    """

    z: jax.Array
    sizes: jax.Array
    blocks: jax.Array
    log_marginals: jax.Array


class GuidedData(NamedTuple):
    """What chains read and never change.

    Attributes
    ----------
    layout
        Dimensions and tables of the counts.
    vectors : (U, D)
        Counts of each group, anchors first.
    concentration
        Of the Chinese restaurant.
    log_guide : (U, K)
        ``log q_u``; of anchors it is not read.
    """

    layout: BlockLayout
    vectors: jax.Array
    concentration: jax.Array
    log_guide: jax.Array


class _Step(NamedTuple):
    own: jax.Array
    vector: jax.Array
    uniform: jax.Array
    log_guide: jax.Array


def _log_conditional(
    data: GuidedData, state: GuidedState, own: jax.Array, vector: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Log weights ``(K,)`` of the slots of a group given all others, and what it adds to ``m``."""
    slots = jnp.arange(state.sizes.size)
    sign = jnp.where(slots == own, -1, 1)
    without = log_marginal(data.layout, state.blocks + sign[:, None] * vector)
    gain = sign * (without - state.log_marginals)
    sizes = state.sizes - (slots == own)
    empty = sizes == 0
    alone = jnp.log(data.concentration) - jnp.log(jnp.maximum(empty.sum(), 1))
    return jnp.where(empty, alone, jnp.log(jnp.maximum(sizes, 1))) + gain, gain


def _update(
    data: GuidedData, state: GuidedState, step: _Step, temperature: Any
) -> tuple[GuidedState, tuple[jax.Array, jax.Array]]:
    """Draw the slot of one group; returns it, and its probabilities."""
    weights, gain = _log_conditional(data, state, step.own, step.vector)
    weights = temperature * weights + (1.0 - temperature) * step.log_guide
    chances = jnp.exp(weights - weights.max())
    slots = jnp.arange(chances.size)
    running = jnp.where(slots[:, None] >= slots, chances, 0.0).sum(axis=1)
    new = (running[:-1] <= step.uniform * running[-1]).sum(dtype=jnp.int32)
    change = (slots == new).astype(jnp.int32) - (slots == step.own).astype(jnp.int32)
    put = jax.lax.dynamic_update_index_in_dim
    moved = jnp.where(new != step.own, step.vector, 0)
    blocks = put(state.blocks, state.blocks[step.own] - moved, step.own, 0)
    blocks = put(blocks, blocks[new] + moved, new, 0)
    state = state._replace(
        sizes=state.sizes + change,
        blocks=blocks,
        log_marginals=state.log_marginals + change * gain,
    )
    return state, (new, chances / running[-1])


@dataclass(frozen=True)
class GuidedDesign:
    """What decides the program.

    Attributes
    ----------
    num_anchors
        Groups that keep their slots, the first ones.
    num_slots
        Anchors and spare slots.
    """

    num_anchors: int
    num_slots: int

    def state(self, data: GuidedData, z: jax.Array) -> GuidedState:
        """The state at given slots."""
        blocks = jax.ops.segment_sum(data.vectors, z, self.num_slots)
        sizes = jax.ops.segment_sum(jnp.ones_like(z), z, self.num_slots)
        return GuidedState(z, sizes, blocks, log_marginal(data.layout, blocks))

    def begin(self, data: GuidedData, rng_key: jax.Array) -> GuidedState:
        """A draw from the guide."""
        chances = jnp.cumsum(jnp.exp(data.log_guide), axis=1)
        uniforms = jax.random.uniform(rng_key, (len(chances), 1), dtype=float)
        drawn = (chances[:, :-1] <= uniforms * chances[:, -1:]).sum(axis=1, dtype=jnp.int32)
        numbers = jnp.arange(drawn.size, dtype=jnp.int32)
        return self.state(data, jnp.where(numbers < self.num_anchors, numbers, drawn))

    def sweep(
        self,
        data: GuidedData,
        rng_key: jax.Array,
        state: GuidedState,
        temperature: Any,
        reverse: bool = False,
    ) -> tuple[GuidedState, jax.Array]:
        """Draw the slots of all groups but the anchors, one after the other; their chances too."""
        fixed = self.num_anchors
        uniforms = jax.random.uniform(rng_key, state.z.shape, dtype=float)
        steps = _Step(state.z, data.vectors, uniforms, data.log_guide)
        after, (z, chances) = jax.lax.scan(
            lambda carry, step: _update(data, carry, step, temperature),
            state._replace(z=jnp.zeros((), dtype=jnp.int32)),
            jax.tree.map(lambda leaf: leaf[fixed:], steps),
            reverse=reverse,
        )
        return after._replace(z=jnp.concatenate([state.z[:fixed], z])), chances

    def transition(
        self, data: GuidedData, reverse: bool
    ) -> Callable[[jax.Array, GuidedState, jax.Array], GuidedState]:
        """A sweep at a temperature."""
        return lambda key, state, t: self.sweep(data, key, state, t, reverse)[0]

    def log_likelihood(self, data: GuidedData, state: GuidedState) -> jax.Array:
        """``log P(X, z | Y) c(z) / q(z)``, which is what the temperature multiplies."""
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
        guided = jnp.take_along_axis(data.log_guide, state.z[:, None], axis=1)
        log_joint = log_prior + log_arranged + log_marginal(data.layout, state.blocks).sum()
        return (log_joint - guided[self.num_anchors :].sum())[None]

    def overflowed(self, state: GuidedState) -> jax.Array:
        """Never: whatever has no room is left out of the sum."""
        return jnp.zeros_like(state.sizes[0], dtype=bool)


@dataclass(frozen=True)
class GuidedProblem:
    """Groups with their guide, ready to be annealed."""

    design: GuidedDesign
    data: GuidedData

    def enlarged(self) -> GuidedProblem:
        """The same: it has all the room that it will have."""
        return self

    def states(self, unknown: dict[str, NDArray]) -> GuidedState:
        """States at slots ``z`` ``(chains, U)`` of the groups, anchors first."""
        with jax.enable_x64(True):
            slots = jnp.asarray(unknown["z"].astype(np.int32))
            return jax.vmap(lambda one: self.design.state(self.data, one))(slots)

    def sent(self) -> Callable[[], GuidedProblem]:
        """What gives this problem elsewhere; arrays of 64 bits that JAX sends would lose half."""
        return partial(_received, self.design, jax.tree.map(np.asarray, self.data))


def _received(design: GuidedDesign, data: Any) -> GuidedProblem:
    with jax.enable_x64(True):
        return GuidedProblem(design, jax.tree.map(jnp.asarray, data))
