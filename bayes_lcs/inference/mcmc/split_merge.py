"""Split-merge moves: sequentially allocated proposals for partitions that one-by-one moves miss.

Invariant distribution: ``P(z | X, Y)``, by Metropolis-Hastings (Dahl 2005). Two groups ``i, j``
are chosen. If they share a block, the other members are dealt in random order to ``{i}`` and
``{j}``, each with probability in proportion to

    |T| m(T + u) / m(T)

of the two blocks so far; ``q`` is the product of those probabilities. If they do not, their
blocks are merged, and ``q`` is the probability that the same dealing would have split them again.
The ratio of acceptance of a split is

    a Gamma(|A|) Gamma(|B|) m(A) m(B) / (Gamma(|A + B|) m(A + B)) / q,

and that of a merge its inverse. The order is drawn independently of all else, so both directions
may use the same one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from bayes_lcs.core.dirichlet_jax import log_rising
from bayes_lcs.inference.mcmc.cluster_marginals import BlockLayout, log_marginal
from bayes_lcs.inference.mcmc.crp_gibbs import PartitionState, mark_changed

__all__ = ["SplitMergeInfo", "build_kernel"]


class SplitMergeInfo(NamedTuple):
    """Whether the move was a split, and whether it was accepted."""

    is_split: jax.Array
    accepted: jax.Array


class _Dealing(NamedTuple):
    """Two blocks in the making: counts ``(2, D)``, sizes, ``log m``, and ``log q`` so far."""

    blocks: jax.Array
    sizes: jax.Array
    log_marginals: jax.Array
    log_q: jax.Array


Kernel = Callable[..., tuple[PartitionState, SplitMergeInfo]]


def build_kernel(layout: BlockLayout) -> Kernel:
    """One proposal, as ``kernel(rng_key, state, vectors, concentration, temperature)``."""

    def deal(
        dealing: _Dealing,
        vector: jax.Array,
        forced: jax.Array,
        uniform: jax.Array,
        temperature: Any,
    ) -> tuple[_Dealing, jax.Array]:
        """Give one group to a side: where it must go (0 or 1), or by chance (-1)."""
        joined = log_marginal(layout, dealing.blocks + vector)
        scores = jnp.log(dealing.sizes) + temperature * (joined - dealing.log_marginals)
        log_p = scores - jax.nn.logsumexp(scores)
        side = jnp.where(forced >= 0, forced, (jnp.log(uniform) >= log_p[0]).astype(jnp.int32))
        here = jnp.arange(2) == side
        dealing = _Dealing(
            dealing.blocks + here[:, None] * vector,
            dealing.sizes + here,
            jnp.where(here, joined, dealing.log_marginals),
            dealing.log_q + log_p[side],
        )
        return dealing, side

    def kernel(
        rng_key: jax.Array,
        state: PartitionState,
        vectors: jax.Array,
        concentration: jax.Array,
        temperature: Any = 1.0,
    ) -> tuple[PartitionState, SplitMergeInfo]:
        num_groups = state.z.size
        key_pair, key_order, key_deal, key_accept = jax.random.split(rng_key, 4)
        dtype = state.log_marginals.dtype
        first = jax.random.randint(key_pair, (), 0, num_groups)
        apart = jax.random.randint(jax.random.fold_in(key_pair, 1), (), 1, num_groups)
        second = (first + apart) % num_groups
        slot_a, slot_b = state.z[first], state.z[second]
        is_split = slot_a == slot_b
        in_play = (state.z == slot_a) | (state.z == slot_b)
        others = in_play.at[first].set(False).at[second].set(False)
        # Those who take part come first, in random order; the work is theirs alone.
        priority = jax.random.uniform(key_order, (num_groups,), dtype=dtype)
        order = jnp.argsort(jnp.where(others, priority, 2.0))
        uniforms = jax.random.uniform(key_deal, (num_groups,), dtype=dtype)
        seeds = jnp.stack([vectors[first], vectors[second]])

        def give(i: jax.Array, carry: tuple[_Dealing, jax.Array]) -> tuple[_Dealing, jax.Array]:
            dealing, on_second = carry
            group = order[i]
            forced = jnp.where(is_split, -1, (state.z[group] == slot_b).astype(jnp.int32))
            dealing, side = deal(dealing, vectors[group], forced, uniforms[i], temperature)
            put = jax.lax.dynamic_update_index_in_dim
            return dealing, put(on_second, side == 1, group, 0)

        dealing, on_second = jax.lax.fori_loop(
            0,
            others.sum(),
            give,
            (
                _Dealing(
                    seeds,
                    jnp.ones(2, dtype=jnp.int32),
                    log_marginal(layout, seeds),
                    jnp.zeros((), dtype),
                ),
                jnp.zeros(num_groups, dtype=bool),
            ),
        )
        together = dealing.blocks[0] + dealing.blocks[1]
        log_together = log_marginal(layout, together)
        log_split = (
            jnp.log(concentration)
            + log_rising(1.0, dealing.sizes - 1).sum()
            - log_rising(1.0, dealing.sizes.sum() - 1)
            + temperature * (dealing.log_marginals.sum() - log_together)
            - dealing.log_q
        )
        log_ratio = jnp.where(is_split, log_split, -log_split)
        wanted = jnp.log(jax.random.uniform(key_accept, dtype=dtype)) < log_ratio

        free = jnp.argmin(state.sizes > 0)
        none_free = (state.sizes > 0).all()
        overflow = state.overflow | (wanted & is_split & none_free)
        accepted = wanted & ~(is_split & none_free)
        # A split keeps the first seed's side in place and moves the second's; a merge moves b to a.
        moved = on_second.at[second].set(True)
        goal = jnp.where(is_split, free, slot_a)
        source = jnp.where(is_split, slot_a, slot_b)
        new_a = jnp.where(is_split, dealing.blocks[0], together)
        new_b = jnp.where(is_split, dealing.blocks[1], jnp.zeros_like(together))
        size_a = jnp.where(is_split, dealing.sizes[0], dealing.sizes.sum()).astype(jnp.int32)
        size_b = jnp.where(is_split, dealing.sizes[1], 0)
        log_a = jnp.where(is_split, dealing.log_marginals[0], log_together)
        log_b = jnp.where(is_split, dealing.log_marginals[1], 0.0)
        other = jnp.where(is_split, free, source)
        state = state._replace(overflow=overflow)

        def moved_on() -> PartitionState:
            proposed = state._replace(
                z=jnp.where(moved, goal, state.z).astype(state.z.dtype),
                sizes=state.sizes.at[slot_a].set(size_a).at[other].set(size_b),
                blocks=state.blocks.at[slot_a].set(new_a).at[other].set(new_b),
                log_marginals=state.log_marginals.at[slot_a].set(log_a).at[other].set(log_b),
            )
            return mark_changed(proposed, jnp.stack([slot_a, other]))

        state = jax.lax.cond(accepted, moved_on, lambda: state)
        return state, SplitMergeInfo(is_split, accepted)

    return kernel
