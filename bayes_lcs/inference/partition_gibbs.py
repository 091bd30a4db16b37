"""Collapsed Gibbs updates of the partition: each group in turn leaves its block and chooses anew.

Invariant distribution: ``P(z | X, Y)`` of clustered naive Bayes. With all parameters integrated
out (thesis A.43; A.44 put right),

    P(z_u = k | rest)  proportional to  |T_k| m(T_k + u) / m(T_k)   for a block without u,
                                        a m({u})                    for a new block.

Blocks live in ``K`` slots, more than there are blocks; a new one takes the first free slot. When a
draw wants a new block and no slot is free, ``overflow`` is set and the sweep is void: the driver
throws it away, makes more slots and repeats it with the same key. Draws use one uniform number
and a running sum over the slots, so that empty slots at the end change nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from bayes_lcs.inference.block_layout import BlockLayout, log_marginal

__all__ = ["PartitionInfo", "PartitionState", "build_kernel", "draw_index", "init", "resize"]


class PartitionState(NamedTuple):
    """A partition and the counts of its blocks.

    Attributes
    ----------
    z : (U,)
        Slot of each group.
    sizes : (K,)
        Number of groups in each slot.
    blocks : (K, D)
        Counts of each slot.
    log_marginals : (K,)
        ``log m`` of each slot.
    overflow
        Whether a draw found no free slot.
    """

    z: jax.Array
    sizes: jax.Array
    blocks: jax.Array
    log_marginals: jax.Array
    overflow: jax.Array


class PartitionInfo(NamedTuple):
    """How many groups changed their block."""

    num_moved: jax.Array


Kernel = Callable[
    [jax.Array, PartitionState, jax.Array, jax.Array], tuple[PartitionState, PartitionInfo]
]


def init(
    layout: BlockLayout, vectors: jax.Array, partition: jax.Array, num_slots: int
) -> PartitionState:
    """State of a partition with labels below ``num_slots``; ``vectors`` is ``(U, D)``."""
    z = jnp.asarray(partition, dtype=jnp.int32)
    blocks = jax.ops.segment_sum(vectors, z, num_slots)
    sizes = jax.ops.segment_sum(jnp.ones_like(z), z, num_slots)
    return PartitionState(z, sizes, blocks, log_marginal(layout, blocks), jnp.asarray(False))


def resize(state: PartitionState, num_slots: int) -> PartitionState:
    """The same partition with more slots, empty ones added at the end."""
    more = num_slots - state.sizes.shape[-1]

    def pad(array: jax.Array, axis: int) -> jax.Array:
        widths = [(0, 0)] * array.ndim
        widths[axis] = (0, more)
        return jnp.pad(array, widths)

    return state._replace(
        sizes=pad(state.sizes, -1),
        blocks=pad(state.blocks, -2),
        log_marginals=pad(state.log_marginals, -1),
        overflow=jnp.zeros_like(state.overflow),
    )


def draw_index(uniform: jax.Array, log_weights: jax.Array) -> jax.Array:
    """Index drawn in proportion to ``exp(log_weights)`` by one uniform number."""
    weights = jnp.exp(log_weights - log_weights.max())
    running = jnp.cumsum(weights)
    return jnp.argmax(running > uniform * running[-1]).astype(jnp.int32)


def build_kernel(layout: BlockLayout) -> Kernel:
    """One sweep over all groups, as ``kernel(rng_key, state, vectors, concentration)``.

    ``vectors`` ``(U, D)`` are the groups' counts, which latent labels may change between sweeps.
    """

    def update(
        state: PartitionState, step: tuple[jax.Array, ...], log_concentration: jax.Array
    ) -> tuple[PartitionState, jax.Array]:
        group, vector, uniform = step
        old = state.z[group]
        sizes = state.sizes.at[old].add(-1)
        blocks = state.blocks.at[old].add(-vector)
        log_marginals = state.log_marginals.at[old].set(log_marginal(layout, blocks[old]))
        joined = log_marginal(layout, blocks + vector)
        occupied = sizes > 0
        free = jnp.argmin(occupied)
        none_free = occupied.all()
        weight = jnp.where(
            occupied, jnp.log(jnp.maximum(sizes, 1).astype(log_marginals.dtype)), -jnp.inf
        )
        weight = weight.at[free].set(jnp.where(none_free, weight[free], log_concentration))
        scores = weight + joined - log_marginals
        # With no slot free, the new block's share is what a draw must not fall into.
        alone = log_concentration + log_marginal(layout, vector)
        scores = jnp.append(scores, jnp.where(none_free, alone, -jnp.inf))
        chosen = draw_index(uniform, scores)
        lost = chosen == sizes.size
        new = jnp.where(lost, old, chosen)
        state = PartitionState(
            state.z.at[group].set(new),
            sizes.at[new].add(1),
            blocks.at[new].add(vector),
            log_marginals.at[new].set(joined[new]),
            state.overflow | lost,
        )
        return state, new != old

    def kernel(
        rng_key: jax.Array, state: PartitionState, vectors: jax.Array, concentration: jax.Array
    ) -> tuple[PartitionState, PartitionInfo]:
        num_groups = state.z.size
        uniforms = jax.random.uniform(rng_key, (num_groups,), dtype=state.log_marginals.dtype)
        log_concentration = jnp.log(concentration)
        state, moved = jax.lax.scan(
            lambda carry, step: update(carry, step, log_concentration),
            state,
            (jnp.arange(num_groups), vectors, uniforms),
        )
        return state, PartitionInfo(moved.sum())

    return kernel
