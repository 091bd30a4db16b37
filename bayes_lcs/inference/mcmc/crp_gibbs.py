"""Collapsed Gibbs updates of the partition, one group after the other.

Invariant distribution: ``P(z | X, Y)`` of clustered naive Bayes. With all parameters integrated
out (thesis A.43; A.44 corrected),

    P(z_u = k | rest)  proportional to  |T_k| m(T_k + u) / m(T_k)   for a cluster without u,
                                        a m({u})                    for a new cluster.

Clusters are stored in ``K`` slots, of which some are free; a new cluster takes the first free one.
If a draw opens a new cluster and no slot is free, ``overflow`` is set and the sweep is invalid: the
driver discards it, adds slots and repeats it with the same key. A draw uses one uniform number and
a running sum over the slots, so that empty slots at the end change nothing.

**Scores are cached.** The score of a group in a cluster,

    log m(T_k + u) - log m(T_k)  elsewhere,    log m(T_k) - log m(T_k - u)  in its own cluster,

stays valid until the cluster changes. A version counter increases with every change. Each group
stores the version at which all of its scores were valid, each cluster the version of its last
change: an update computes only the scores that are older, which once the partition is stable are
none.

**Sweeps without moves are skipped.** After a sweep in which no group moved, each group stores the
interval of its uniform number that leaves it in its cluster. Until a cluster or a parameter
changes, a sweep whose uniform numbers all fall into these intervals is the identity.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from bayes_lcs.inference.mcmc.cluster_marginals import CountLayout, log_marginal

__all__ = [
    "PartitionInfo",
    "PartitionState",
    "build_kernel",
    "draw_index",
    "increment_version",
    "init",
    "invalidate_scores",
    "relabel",
    "with_num_slots",
]

STALE_DIVISOR = 4
"""Stale scores are computed one by one if at most one score in four is stale, else all at once."""


class StayIntervals(NamedTuple):
    """Intervals ``[low, high) / total`` of the uniform draw for which each group keeps its cluster.

    Attributes
    ----------
    low, high, total : (U,)
        Running sums of the weights before and including the group's own slot, and of all slots.
    version
        Version of the partition for which they hold; -1 if a group has moved since.
    concentration, temperature
        Parameters for which they hold.
    """

    low: jax.Array
    high: jax.Array
    total: jax.Array
    version: jax.Array
    concentration: jax.Array
    temperature: jax.Array


class PartitionState(NamedTuple):
    """A partition, the counts of its clusters, and cached scores.

    Attributes
    ----------
    z : (U,)
        Slot of each group.
    sizes : (K,)
        Number of groups in each slot.
    cluster_counts : (K, D)
        Counts of each slot.
    log_marginals : (K,)
        ``log m`` of each slot.
    overflow
        True if a draw found no free slot.
    scores : (U, K)
        Score of each group in each slot.
    score_version : (U,)
        Version at which all scores of a group were valid; -1 if they never were.
    cluster_version : (K,)
        Version of the last change of each slot.
    version
        Number of changes so far.
    log_singleton : (U,)
        ``log m`` of each group as a cluster of its own.
    stay_intervals
        Intervals of the uniform draws that change nothing.
    """

    z: jax.Array
    sizes: jax.Array
    cluster_counts: jax.Array
    log_marginals: jax.Array
    overflow: jax.Array
    scores: jax.Array
    score_version: jax.Array
    cluster_version: jax.Array
    version: jax.Array
    log_singleton: jax.Array
    stay_intervals: StayIntervals


class _Carry(NamedTuple):
    """The part of the state that is carried from the update of one group to the next."""

    sizes: jax.Array
    cluster_counts: jax.Array
    log_marginals: jax.Array
    overflow: jax.Array
    cluster_version: jax.Array
    version: jax.Array


class _Step(NamedTuple):
    """The input of one update: the group's slot, counts, uniform number and cached scores."""

    own: jax.Array
    vector: jax.Array
    uniform: jax.Array
    log_singleton: jax.Array
    scores: jax.Array
    score_version: jax.Array


class PartitionInfo(NamedTuple):
    """Number of groups that changed their cluster."""

    num_moved: jax.Array


Kernel = Callable[..., tuple[PartitionState, PartitionInfo]]


def init(
    layout: CountLayout, vectors: jax.Array, partition: jax.Array, num_slots: int
) -> PartitionState:
    """Return the state at a partition; ``vectors`` is ``(U, D)``.

    Labels of the partition must be below ``num_slots``.
    """
    z = jnp.asarray(partition, dtype=jnp.int32)
    cluster_counts = jax.ops.segment_sum(vectors, z, num_slots)
    sizes = jax.ops.segment_sum(jnp.ones_like(z), z, num_slots)
    log_marginals = log_marginal(layout, cluster_counts)
    return PartitionState(
        z,
        sizes,
        cluster_counts,
        log_marginals,
        jnp.asarray(False),
        jnp.zeros((z.size, num_slots), dtype=log_marginals.dtype),
        jnp.full(z.size, -1, dtype=jnp.int64),
        jnp.zeros(num_slots, dtype=jnp.int64),
        jnp.zeros((), dtype=jnp.int64),
        log_marginal(layout, vectors),
        _empty_stay_intervals(z.size, log_marginals.dtype),
    )


def _empty_stay_intervals(num_groups: int, dtype: jnp.dtype) -> StayIntervals:
    nothing, zero = jnp.zeros(num_groups, dtype=dtype), jnp.zeros((), dtype=dtype)
    return StayIntervals(nothing, nothing, nothing, jnp.asarray(-1, dtype=jnp.int64), zero, zero)


def invalidate_scores(
    layout: CountLayout, vectors: jax.Array, state: PartitionState
) -> PartitionState:
    """Mark all scores as stale, after the counts of groups or the prior have changed."""
    return _drop_stay_intervals(state)._replace(
        score_version=jnp.full_like(state.score_version, -1),
        log_singleton=log_marginal(layout, vectors),
    )


def _drop_stay_intervals(state: PartitionState) -> PartitionState:
    """Mark the stay intervals as invalid."""
    return state._replace(
        stay_intervals=state.stay_intervals._replace(
            version=jnp.full_like(state.stay_intervals.version, -1)
        )
    )


def increment_version(state: PartitionState, slots: jax.Array) -> PartitionState:
    """Record that some slots ``(n,)`` have changed."""
    version = state.version + 1
    return state._replace(
        cluster_version=state.cluster_version.at[slots].set(version), version=version
    )


def relabel(state: PartitionState) -> PartitionState:
    """Renumber the slots by first occurrence, with the empty ones last."""
    num_groups, num_slots = state.z.size, state.sizes.size
    first = jax.ops.segment_min(jnp.arange(num_groups), state.z, num_slots)
    order = jnp.argsort(jnp.where(state.sizes > 0, first, num_groups), stable=True)
    rank = jnp.zeros_like(order).at[order].set(jnp.arange(num_slots))
    return _drop_stay_intervals(state)._replace(
        z=rank[state.z].astype(state.z.dtype),
        sizes=state.sizes[order],
        cluster_counts=state.cluster_counts[order],
        log_marginals=state.log_marginals[order],
        scores=state.scores[:, order],
        cluster_version=state.cluster_version[order],
    )


def with_num_slots(state: PartitionState, num_slots: int) -> PartitionState:
    """Return the same partition with more slots, or with fewer if the last ones are empty."""
    more = num_slots - state.sizes.shape[-1]

    def resize(array: jax.Array, axis: int) -> jax.Array:
        if more < 0:
            return jax.lax.slice_in_dim(array, 0, num_slots, axis=axis)
        widths = [(0, 0)] * array.ndim
        widths[axis] = (0, more)
        return jnp.pad(array, widths)

    return state._replace(
        sizes=resize(state.sizes, -1),
        cluster_counts=resize(state.cluster_counts, -2),
        log_marginals=resize(state.log_marginals, -1),
        overflow=jnp.zeros_like(state.overflow),
        scores=resize(state.scores, -1),
        cluster_version=resize(state.cluster_version, -1),
    )


def draw_index(uniform: jax.Array, log_weights: jax.Array) -> jax.Array:
    """Draw an index in proportion to ``exp(log_weights)`` by one uniform number."""
    weights = jnp.exp(log_weights - log_weights.max())
    running = jnp.cumsum(weights)
    return jnp.argmax(running > uniform * running[-1]).astype(jnp.int32)


class _Draw(NamedTuple):
    """A drawn slot, a flag for a draw beyond the last slot, and the running sums of the weights."""

    slot: jax.Array
    no_slot: jax.Array
    running: jax.Array
    total: jax.Array


def _draw_slot(uniform: jax.Array, log_weights: jax.Array, log_rest: jax.Array) -> _Draw:
    """Draw a slot in proportion to its weight; the weight ``log_rest`` lies beyond the last one."""
    top = jnp.maximum(log_weights.max(), log_rest)
    weights = jnp.exp(log_weights - top)
    slots = jnp.arange(weights.size)
    # Running sums as masked sums: for so few slots faster than a scan.
    running = jnp.where(slots[:, None] >= slots, weights, 0.0).sum(axis=1)
    total = running[-1] + jnp.exp(log_rest - top)
    below = (running <= uniform * total).sum(dtype=jnp.int32)
    return _Draw(below, below == weights.size, running, total)


def _move_vector(
    cluster_counts: jax.Array, vector: jax.Array, source: jax.Array, goal: jax.Array
) -> jax.Array:
    """Move a vector from one slot to another in the counts ``(K, D)``, in place."""
    put = jax.lax.dynamic_update_index_in_dim
    cluster_counts = put(cluster_counts, cluster_counts[source] - vector, source, 0)
    return put(cluster_counts, cluster_counts[goal] + vector, goal, 0)


def build_kernel(layout: CountLayout, reverse: bool = False) -> Kernel:
    """Build a sweep, ``kernel(rng_key, state, vectors, concentration, temperature)``.

    ``vectors`` ``(U, D)`` are the groups' counts, which latent labels may change between sweeps.
    At a temperature ``t`` every ``m`` is raised to the power ``t``; with ``reverse`` the groups are
    updated from the last to the first.
    """

    def score(carry: _Carry, vector: jax.Array, slot: jax.Array, own: jax.Array) -> jax.Array:
        """Return the score of a group in slots ``(...)``, its contribution to their ``log m``."""
        sign = jnp.where(slot == own, -1, 1)
        without = log_marginal(layout, carry.cluster_counts[slot] + sign[..., None] * vector)
        return sign * (without - carry.log_marginals[slot])

    def refresh_scores(carry: _Carry, step: _Step, stale: jax.Array) -> jax.Array:
        """Return the scores of a group after computing the stale ones."""
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
            stale.sum() <= num_slots // STALE_DIVISOR,
            one_by_one,
            lambda: score(carry, step.vector, all_slots, step.own),
        )

    def update(
        carry: _Carry, step: _Step, log_concentration: jax.Array, temperature: jax.Array
    ) -> tuple[_Carry, tuple[jax.Array, ...]]:
        # Comparisons with the slot numbers in place of indexed updates: they fuse into one loop.
        slots = jnp.arange(carry.sizes.size, dtype=jnp.int32)
        is_own = slots == step.own
        # Scores of slots that changed after they were computed; those of empty slots are not used.
        stale = (carry.cluster_version > step.score_version) & (carry.sizes > 0)
        scores = refresh_scores(carry, step, stale)
        sizes = carry.sizes - is_own
        occupied = sizes > 0
        none_free = occupied.all()
        is_free = (slots == jnp.argmin(occupied)) & ~none_free
        new_cluster = log_concentration + temperature * step.log_singleton
        weights = jnp.where(occupied, jnp.log(sizes) + temperature * scores, -jnp.inf)
        weights = jnp.where(is_free, new_cluster, weights)
        # With no slot free, the weight of a new cluster comes last, and a draw there is invalid.
        draw = _draw_slot(step.uniform, weights, jnp.where(none_free, new_cluster, -jnp.inf))
        new = jnp.where(draw.no_slot, step.own, draw.slot)
        moved = new != step.own
        is_new = slots == new
        version = carry.version + moved
        # Scores are differences of log m: add the new cluster's, subtract the old one's.
        gain = jnp.where(is_free, step.log_singleton, scores)
        change = jnp.where(is_new, gain, 0.0) - jnp.where(is_own, scores, 0.0)
        carry = _Carry(
            sizes + is_new,
            _move_vector(carry.cluster_counts, jnp.where(moved, step.vector, 0), step.own, new),
            carry.log_marginals + jnp.where(moved, change, 0.0),
            carry.overflow | draw.no_slot,
            jnp.where(moved & (is_own | is_new), version, carry.cluster_version),
            version,
        )
        # The group stays if its uniform number times the total falls into [low, high).
        low = jnp.where(slots == step.own - 1, draw.running, 0.0).sum()
        high = jnp.where(is_own, draw.running, 0.0).sum()
        return carry, (new, scores, version - moved, low, high, draw.total)

    def sweep(
        state: PartitionState,
        vectors: jax.Array,
        uniforms: jax.Array,
        concentration: jax.Array,
        temperature: jax.Array,
    ) -> PartitionState:
        log_concentration = jnp.log(concentration)
        after, (z, scores, score_version, low, high, total) = jax.lax.scan(
            lambda carry, step: update(carry, step, log_concentration, temperature),
            _Carry(
                state.sizes,
                state.cluster_counts,
                state.log_marginals,
                state.overflow,
                state.cluster_version,
                state.version,
            ),
            _Step(
                state.z,
                vectors,
                uniforms,
                state.log_singleton,
                state.scores,
                state.score_version,
            ),
            reverse=reverse,
        )
        at_rest = (after.version == state.version) & ~after.overflow
        version = jnp.where(at_rest, after.version, -1)
        stay_intervals = StayIntervals(low, high, total, version, concentration, temperature)
        return state._replace(
            z=z,
            scores=scores,
            score_version=score_version,
            stay_intervals=stay_intervals,
            **after._asdict(),
        )

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
            _all_groups_stay(state, uniforms, *parameters),
            lambda: state,
            lambda: sweep(state, vectors, uniforms, *parameters),
        )
        return after, PartitionInfo((after.z != state.z).sum())

    return kernel


def _all_groups_stay(
    state: PartitionState, uniforms: jax.Array, concentration: jax.Array, temperature: jax.Array
) -> jax.Array:
    """Return True if these uniform numbers leave every group in its cluster."""
    intervals = state.stay_intervals
    goals = uniforms * intervals.total
    return (
        (intervals.version == state.version)
        & (intervals.concentration == concentration)
        & (intervals.temperature == temperature)
        & ((intervals.low <= goals) & (goals < intervals.high)).all()
    )
