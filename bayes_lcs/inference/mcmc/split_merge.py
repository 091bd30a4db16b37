"""Split-merge moves of the partition with sequentially allocated proposals.

Invariant distribution: ``P(z | X, Y)``, by Metropolis-Hastings (Dahl 2005). Two groups ``i, j``
are chosen at random. If they share a cluster, its other members are allocated in random order to
``{i}`` or ``{j}``, each with probability proportional to

    |T| m(T + u) / m(T)

of the two clusters so far; ``q`` is the product of those probabilities. Otherwise their clusters
are merged, and ``q`` is the probability that the same allocation would have split them again. The
acceptance ratio of a split is

    a Gamma(|A|) Gamma(|B|) m(A) m(B) / (Gamma(|A + B|) m(A + B)) / q,

and that of a merge its inverse. The order is drawn independently of the state, so both directions
may use the same one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from bayes_lcs.core.dirichlet_jax import log_rising
from bayes_lcs.inference.mcmc.cluster_marginals import CountLayout, log_marginal
from bayes_lcs.inference.mcmc.crp_gibbs import PartitionState, increment_version

__all__ = ["SplitMergeInfo", "build_kernel"]


class SplitMergeInfo(NamedTuple):
    """Indicators of a split proposal and of its acceptance."""

    is_split: jax.Array
    accepted: jax.Array


class _Allocation(NamedTuple):
    """The two clusters of a split so far: counts ``(2, D)``, sizes, ``log m``, and ``log q``."""

    cluster_counts: jax.Array
    sizes: jax.Array
    log_marginals: jax.Array
    log_q: jax.Array


Kernel = Callable[..., tuple[PartitionState, SplitMergeInfo]]


def build_kernel(layout: CountLayout) -> Kernel:
    """Build one proposal, ``kernel(rng_key, state, vectors, concentration, temperature)``."""

    def allocate(
        allocation: _Allocation,
        vector: jax.Array,
        forced: jax.Array,
        uniform: jax.Array,
        temperature: Any,
    ) -> tuple[_Allocation, jax.Array]:
        """Allocate one group to the side ``forced`` (0 or 1), or to a random side if it is -1."""
        joined = log_marginal(layout, allocation.cluster_counts + vector)
        scores = jnp.log(allocation.sizes) + temperature * (joined - allocation.log_marginals)
        log_p = scores - jax.nn.logsumexp(scores)
        side = jnp.where(forced >= 0, forced, (jnp.log(uniform) >= log_p[0]).astype(jnp.int32))
        here = jnp.arange(2) == side
        allocation = _Allocation(
            allocation.cluster_counts + here[:, None] * vector,
            allocation.sizes + here,
            jnp.where(here, joined, allocation.log_marginals),
            allocation.log_q + log_p[side],
        )
        return allocation, side

    def kernel(
        rng_key: jax.Array,
        state: PartitionState,
        vectors: jax.Array,
        concentration: jax.Array,
        temperature: Any = 1.0,
    ) -> tuple[PartitionState, SplitMergeInfo]:
        num_groups = state.z.size
        key_pair, key_order, key_allocate, key_accept = jax.random.split(rng_key, 4)
        dtype = state.log_marginals.dtype
        first = jax.random.randint(key_pair, (), 0, num_groups)
        # A second group different from the first, uniformly.
        apart = jax.random.randint(jax.random.fold_in(key_pair, 1), (), 1, num_groups)
        second = (first + apart) % num_groups
        slot_a, slot_b = state.z[first], state.z[second]
        is_split = slot_a == slot_b
        is_member = (state.z == slot_a) | (state.z == slot_b)
        others = is_member.at[first].set(False).at[second].set(False)
        # Members of the two clusters come first, in random order; the loop visits only these.
        priority = jax.random.uniform(key_order, (num_groups,), dtype=dtype)
        order = jnp.argsort(jnp.where(others, priority, 2.0))
        uniforms = jax.random.uniform(key_allocate, (num_groups,), dtype=dtype)
        seeds = jnp.stack([vectors[first], vectors[second]])

        def allocate_next(
            i: jax.Array, carry: tuple[_Allocation, jax.Array]
        ) -> tuple[_Allocation, jax.Array]:
            allocation, on_second = carry
            group = order[i]
            forced = jnp.where(is_split, -1, (state.z[group] == slot_b).astype(jnp.int32))
            allocation, side = allocate(
                allocation, vectors[group], forced, uniforms[i], temperature
            )
            put = jax.lax.dynamic_update_index_in_dim
            return allocation, put(on_second, side == 1, group, 0)

        allocation, on_second = jax.lax.fori_loop(
            0,
            others.sum(),
            allocate_next,
            (
                _Allocation(
                    seeds,
                    jnp.ones(2, dtype=jnp.int32),
                    log_marginal(layout, seeds),
                    jnp.zeros((), dtype),
                ),
                jnp.zeros(num_groups, dtype=bool),
            ),
        )
        together = allocation.cluster_counts[0] + allocation.cluster_counts[1]
        log_together = log_marginal(layout, together)
        # Log acceptance ratio of a split; that of the reverse merge is its negative.
        log_split = (
            jnp.log(concentration)
            + log_rising(1.0, allocation.sizes - 1).sum()
            - log_rising(1.0, allocation.sizes.sum() - 1)
            + temperature * (allocation.log_marginals.sum() - log_together)
            - allocation.log_q
        )
        log_ratio = jnp.where(is_split, log_split, -log_split)
        wanted = jnp.log(jax.random.uniform(key_accept, dtype=dtype)) < log_ratio

        free = jnp.argmin(state.sizes > 0)
        none_free = (state.sizes > 0).all()
        overflow = state.overflow | (wanted & is_split & none_free)
        accepted = wanted & ~(is_split & none_free)
        # A split moves the second group's side to a free slot; a merge moves cluster b to a's slot.
        moved = on_second.at[second].set(True)
        goal = jnp.where(is_split, free, slot_a)
        source = jnp.where(is_split, slot_a, slot_b)
        new_a = jnp.where(is_split, allocation.cluster_counts[0], together)
        new_b = jnp.where(is_split, allocation.cluster_counts[1], jnp.zeros_like(together))
        size_a = jnp.where(is_split, allocation.sizes[0], allocation.sizes.sum()).astype(jnp.int32)
        size_b = jnp.where(is_split, allocation.sizes[1], 0)
        log_a = jnp.where(is_split, allocation.log_marginals[0], log_together)
        log_b = jnp.where(is_split, allocation.log_marginals[1], 0.0)
        other = jnp.where(is_split, free, source)
        state = state._replace(overflow=overflow)

        def apply_move() -> PartitionState:
            proposed = state._replace(
                z=jnp.where(moved, goal, state.z).astype(state.z.dtype),
                sizes=state.sizes.at[slot_a].set(size_a).at[other].set(size_b),
                cluster_counts=state.cluster_counts.at[slot_a].set(new_a).at[other].set(new_b),
                log_marginals=state.log_marginals.at[slot_a].set(log_a).at[other].set(log_b),
            )
            return increment_version(proposed, jnp.stack([slot_a, other]))

        state = jax.lax.cond(accepted, apply_move, lambda: state)
        return state, SplitMergeInfo(is_split, accepted)

    return kernel
