"""Collapsed Gibbs updates of the partition: each group in turn leaves its block and chooses anew.

Invariant distribution: ``P(z | X, Y)`` of clustered naive Bayes. With all parameters integrated
out (thesis A.43; A.44 put right),

    P(z_u = k | rest)  proportional to  |T_k| m(T_k + u) / m(T_k)   for a block without u,
                                        a m({u})                    for a new block.

Blocks live in ``K`` slots, more than there are blocks; a new one takes the first free slot. When a
draw wants a new block and no slot is free, ``overflow`` is set and the sweep is void: the driver
throws it away, makes more slots and repeats it with the same key. Draws use one uniform number
and a running sum over the slots, so that empty slots at the end change nothing.

**What is known is not computed again.** The score of a group in a block,

    log m(T_k + u) - log m(T_k)  elsewhere,    log m(T_k) - log m(T_k - u)  in its own block,

stays right until the block changes. Every group keeps its scores and the time at which all of them
were right, every block the time at which it last changed: an update computes only what is newer,
which in a settled partition is nothing.

**A sweep in which nobody would move is not made.** After a sweep without a move every group keeps
the part of the unit interval that leaves it where it is. Until a block or a parameter changes, a
sweep whose uniform numbers all fall into their parts would end where it began.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from bayes_lcs.inference.mcmc.cluster_marginals import BlockLayout, log_marginal

__all__ = [
    "PartitionInfo",
    "PartitionState",
    "build_kernel",
    "cut",
    "draw_index",
    "forget",
    "init",
    "mark_changed",
    "packed",
    "resize",
]

FEW = 4  # stale scores are few if they are at most one in so many


class Rest(NamedTuple):
    """What leaves every group where it is: a uniform number in ``[low, high) / total``.

    Attributes
    ----------
    low, high, total : (U,)
        Running sums of the weights before and with the group's own slot, and of all.
    clock
        When this was so; -1 if a group has moved since.
    concentration, temperature
        For which it was so.
    """

    low: jax.Array
    high: jax.Array
    total: jax.Array
    clock: jax.Array
    concentration: jax.Array
    temperature: jax.Array


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
    scores : (U, K)
        Score of each group in each slot.
    known : (U,)
        When all scores of a group were right; -1 for never.
    changed : (K,)
        When each slot last changed.
    clock
        Number of changes so far.
    alone : (U,)
        ``log m`` of each group by itself.
    rest
        What leaves every group where it is.
    """

    z: jax.Array
    sizes: jax.Array
    blocks: jax.Array
    log_marginals: jax.Array
    overflow: jax.Array
    scores: jax.Array
    known: jax.Array
    changed: jax.Array
    clock: jax.Array
    alone: jax.Array
    rest: Rest


class _Blocks(NamedTuple):
    """What an update may change of all groups' state; the rest is a group's own."""

    sizes: jax.Array
    blocks: jax.Array
    log_marginals: jax.Array
    overflow: jax.Array
    changed: jax.Array
    clock: jax.Array


class _Step(NamedTuple):
    """What one update reads of its group."""

    own: jax.Array
    vector: jax.Array
    uniform: jax.Array
    log_alone: jax.Array
    scores: jax.Array
    known: jax.Array


class PartitionInfo(NamedTuple):
    """How many groups changed their block."""

    num_moved: jax.Array


Kernel = Callable[..., tuple[PartitionState, PartitionInfo]]


def init(
    layout: BlockLayout, vectors: jax.Array, partition: jax.Array, num_slots: int
) -> PartitionState:
    """State of a partition with labels below ``num_slots``; ``vectors`` is ``(U, D)``."""
    z = jnp.asarray(partition, dtype=jnp.int32)
    blocks = jax.ops.segment_sum(vectors, z, num_slots)
    sizes = jax.ops.segment_sum(jnp.ones_like(z), z, num_slots)
    log_marginals = log_marginal(layout, blocks)
    return PartitionState(
        z,
        sizes,
        blocks,
        log_marginals,
        jnp.asarray(False),
        jnp.zeros((z.size, num_slots), dtype=log_marginals.dtype),
        jnp.full(z.size, -1, dtype=jnp.int64),
        jnp.zeros(num_slots, dtype=jnp.int64),
        jnp.zeros((), dtype=jnp.int64),
        log_marginal(layout, vectors),
        _no_rest(z.size, log_marginals.dtype),
    )


def _no_rest(num_groups: int, dtype: jnp.dtype) -> Rest:
    nothing, zero = jnp.zeros(num_groups, dtype=dtype), jnp.zeros((), dtype=dtype)
    return Rest(nothing, nothing, nothing, jnp.asarray(-1, dtype=jnp.int64), zero, zero)


def forget(layout: BlockLayout, vectors: jax.Array, state: PartitionState) -> PartitionState:
    """The state without its scores: the counts of groups, or the prior, have changed."""
    return _restless(state)._replace(
        known=jnp.full_like(state.known, -1), alone=log_marginal(layout, vectors)
    )


def _restless(state: PartitionState) -> PartitionState:
    """The state without what leaves its groups where they are."""
    return state._replace(rest=state.rest._replace(clock=jnp.full_like(state.rest.clock, -1)))


def mark_changed(state: PartitionState, slots: jax.Array) -> PartitionState:
    """The state in which some slots ``(n,)`` have just changed."""
    clock = state.clock + 1
    return state._replace(changed=state.changed.at[slots].set(clock), clock=clock)


def packed(state: PartitionState) -> PartitionState:
    """Number the slots by first occurrence, the empty ones last."""
    num_groups, num_slots = state.z.size, state.sizes.size
    first = jax.ops.segment_min(jnp.arange(num_groups), state.z, num_slots)
    order = jnp.argsort(jnp.where(state.sizes > 0, first, num_groups), stable=True)
    rank = jnp.zeros_like(order).at[order].set(jnp.arange(num_slots))
    return _restless(state)._replace(
        z=rank[state.z].astype(state.z.dtype),
        sizes=state.sizes[order],
        blocks=state.blocks[order],
        log_marginals=state.log_marginals[order],
        scores=state.scores[:, order],
        changed=state.changed[order],
    )


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
        scores=pad(state.scores, -1),
        changed=pad(state.changed, -1),
    )


def cut(state: PartitionState, num_slots: int) -> PartitionState:
    """The same partition with its first slots only; the others must be empty."""
    return state._replace(
        sizes=state.sizes[..., :num_slots],
        blocks=state.blocks[..., :num_slots, :],
        log_marginals=state.log_marginals[..., :num_slots],
        scores=state.scores[..., :num_slots],
        changed=state.changed[..., :num_slots],
    )


def draw_index(uniform: jax.Array, log_weights: jax.Array) -> jax.Array:
    """Index drawn in proportion to ``exp(log_weights)`` by one uniform number."""
    weights = jnp.exp(log_weights - log_weights.max())
    running = jnp.cumsum(weights)
    return jnp.argmax(running > uniform * running[-1]).astype(jnp.int32)


class _Draw(NamedTuple):
    """A slot, whether the draw fell behind all slots, and the running sums it was drawn by."""

    slot: jax.Array
    lost: jax.Array
    running: jax.Array
    total: jax.Array


def _draw_slot(uniform: jax.Array, log_weights: jax.Array, log_rest: jax.Array) -> _Draw:
    """Draw a slot in proportion to its weight; what is left over comes after the last."""
    top = jnp.maximum(log_weights.max(), log_rest)
    weights = jnp.exp(log_weights - top)
    slots = jnp.arange(weights.size)
    # Running sums as masked sums: for so few slots faster than a scan.
    running = jnp.where(slots[:, None] >= slots, weights, 0.0).sum(axis=1)
    total = running[-1] + jnp.exp(log_rest - top)
    below = (running <= uniform * total).sum(dtype=jnp.int32)
    return _Draw(below, below == weights.size, running, total)


def _moved(blocks: jax.Array, vector: jax.Array, source: jax.Array, goal: jax.Array) -> jax.Array:
    """Counts ``(K, D)`` after a vector has gone from one slot to another, updated in place."""
    put = jax.lax.dynamic_update_index_in_dim
    blocks = put(blocks, blocks[source] - vector, source, 0)
    return put(blocks, blocks[goal] + vector, goal, 0)


def build_kernel(layout: BlockLayout, reverse: bool = False) -> Kernel:
    """One sweep of all groups: ``kernel(rng_key, state, vectors, concentration, temperature)``.

    ``vectors`` ``(U, D)`` are the groups' counts, which latent labels may change between sweeps.
    At a temperature ``t`` every ``m`` counts to the power ``t``; reversed, the last group is first.
    """

    def score(carry: _Blocks, vector: jax.Array, slot: jax.Array, own: jax.Array) -> jax.Array:
        """Score of a group in slots ``(...)``: what its rows add, or have added, to ``log m``."""
        sign = jnp.where(slot == own, -1, 1)
        without = log_marginal(layout, carry.blocks[slot] + sign[..., None] * vector)
        return sign * (without - carry.log_marginals[slot])

    def refreshed(carry: _Blocks, step: _Step, stale: jax.Array) -> jax.Array:
        """The scores of a group, the stale ones computed: one by one if few, else all at once."""
        num_slots = stale.size
        all_slots = jnp.arange(num_slots)

        def one_by_one() -> jax.Array:
            def body(state: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
                scores, stale = state
                slot = jnp.argmax(stale)
                here = all_slots == slot
                new = score(carry, step.vector, slot, step.own)
                return jnp.where(here, new, scores), stale & ~here

            return jax.lax.while_loop(lambda state: state[1].any(), body, (step.scores, stale))[0]

        return jax.lax.cond(
            stale.sum() <= num_slots // FEW,
            one_by_one,
            lambda: score(carry, step.vector, all_slots, step.own),
        )

    def update(
        carry: _Blocks, step: _Step, log_concentration: jax.Array, temperature: jax.Array
    ) -> tuple[_Blocks, tuple[jax.Array, ...]]:
        # Comparisons with the slot numbers in place of indexed updates: they fuse into one loop.
        slots = jnp.arange(carry.sizes.size, dtype=jnp.int32)
        is_own = slots == step.own
        stale = (carry.changed > step.known) & (carry.sizes > 0)
        scores = refreshed(carry, step, stale)
        sizes = carry.sizes - is_own
        occupied = sizes > 0
        none_free = occupied.all()
        is_free = (slots == jnp.argmin(occupied)) & ~none_free
        alone = log_concentration + temperature * step.log_alone
        weights = jnp.where(occupied, jnp.log(sizes) + temperature * scores, -jnp.inf)
        weights = jnp.where(is_free, alone, weights)
        # With no slot free, a new block's share comes last, and a draw must not fall into it.
        draw = _draw_slot(step.uniform, weights, jnp.where(none_free, alone, -jnp.inf))
        new = jnp.where(draw.lost, step.own, draw.slot)
        moved = new != step.own
        is_new = slots == new
        clock = carry.clock + moved
        gain = jnp.where(is_free, step.log_alone, scores)
        change = jnp.where(is_new, gain, 0.0) - jnp.where(is_own, scores, 0.0)
        carry = _Blocks(
            sizes + is_new,
            _moved(carry.blocks, jnp.where(moved, step.vector, 0), step.own, new),
            carry.log_marginals + jnp.where(moved, change, 0.0),
            carry.overflow | draw.lost,
            jnp.where(moved & (is_own | is_new), clock, carry.changed),
            clock,
        )
        low = jnp.where(slots == step.own - 1, draw.running, 0.0).sum()
        high = jnp.where(is_own, draw.running, 0.0).sum()
        return carry, (new, scores, clock - moved, low, high, draw.total)

    def sweep(
        state: PartitionState,
        vectors: jax.Array,
        uniforms: jax.Array,
        concentration: jax.Array,
        temperature: jax.Array,
    ) -> PartitionState:
        log_concentration = jnp.log(concentration)
        blocks, (z, scores, known, low, high, total) = jax.lax.scan(
            lambda carry, step: update(carry, step, log_concentration, temperature),
            _Blocks(
                state.sizes,
                state.blocks,
                state.log_marginals,
                state.overflow,
                state.changed,
                state.clock,
            ),
            _Step(
                state.z,
                vectors,
                uniforms,
                state.alone,
                state.scores,
                state.known,
            ),
            reverse=reverse,
        )
        at_rest = (blocks.clock == state.clock) & ~blocks.overflow
        clock = jnp.where(at_rest, blocks.clock, -1)
        rest = Rest(low, high, total, clock, concentration, temperature)
        return state._replace(z=z, scores=scores, known=known, rest=rest, **blocks._asdict())

    def kernel(
        rng_key: jax.Array,
        state: PartitionState,
        vectors: jax.Array,
        concentration: jax.Array,
        temperature: Any = 1.0,
    ) -> tuple[PartitionState, PartitionInfo]:
        dtype = state.log_marginals.dtype
        uniforms = jax.random.uniform(rng_key, state.z.shape, dtype=dtype)
        parameters = [jnp.asarray(value, dtype=dtype) for value in (concentration, temperature)]
        after = jax.lax.cond(
            _all_stay(state, uniforms, *parameters),
            lambda: state,
            lambda: sweep(state, vectors, uniforms, *parameters),
        )
        return after, PartitionInfo((after.z != state.z).sum())

    return kernel


def _all_stay(
    state: PartitionState, uniforms: jax.Array, concentration: jax.Array, temperature: jax.Array
) -> jax.Array:
    """Whether these numbers leave every group where it is."""
    rest = state.rest
    goals = uniforms * rest.total
    return (
        (rest.clock == state.clock)
        & (rest.concentration == concentration)
        & (rest.temperature == temperature)
        & ((rest.low <= goals) & (goals < rest.high)).all()
    )
