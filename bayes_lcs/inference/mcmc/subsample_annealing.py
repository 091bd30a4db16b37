"""Initial partitions for many groups, by subsample annealing.

A sampler that moves one group at a time does not mix when clusters have thousands of members,
whether it starts with all groups in one cluster or at a random partition. With few groups it does.
An initial partition therefore begins with a few groups, in random order, and sweeps over them; then
the number of groups is doubled, each new group is assigned given those before, all groups so far
are swept over, and so on until all are included (Obermeyer, Glidden and Jonas 2014, "Scaling
nonparametric Bayesian inference via subsample-annealing"). Each visit draws a group's cluster from

    |T_k| m(T_k + u) / m(T_k)   for a cluster without u,    a m({u})   for a new cluster,

over the groups included so far. This determines only the initial states of chains, not what they
sample: the sweeps that follow leave the posterior invariant for any initial state.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from bayes_lcs.core.partitions import first_occurrence
from bayes_lcs.inference.mcmc.cluster_marginals import CountLayout, log_marginal
from bayes_lcs.inference.mcmc.crp_gibbs import draw_index
from bayes_lcs.runtime.memory import num_cores
from bayes_lcs.runtime.progress import Tick, progress_bar

__all__ = ["GrowingState", "build_kernel", "grow_partitions", "init", "visit_schedule"]

IntArray = NDArray[np.int64]

FIRST_GROUPS = 64
MAX_SWEEPS = 20
STAGE_VISITS, STAGE_SHARE = 50_000, 0.5
"""Visits in the sweeps of a stage: the larger of this number and this share of all groups. A stage
with few groups makes fewer, since it has at most `MAX_SWEEPS` sweeps."""

CHUNK = 4096
"""Visits per call of the compiled program, which take a fraction of a second."""

FIRST_SLOTS = 32


class GrowingState(NamedTuple):
    """Partition of the groups included so far.

    Attributes
    ----------
    z : (U,)
        Slot of each group; -1 for a group that is not yet included.
    sizes : (K,)
        Number of groups in each slot.
    cluster_counts : (K, D)
        Counts of each slot.
    log_marginals : (K,)
        ``log m`` of each slot.
    overflow
        True if a group found no free slot, which invalidates the last visits.
    """

    z: jax.Array
    sizes: jax.Array
    cluster_counts: jax.Array
    log_marginals: jax.Array
    overflow: jax.Array


def init(vectors: jax.Array, num_slots: int) -> GrowingState:
    """Return the state without any group; ``vectors`` is ``(U, D)``."""
    num_groups, num_dims = vectors.shape
    return GrowingState(
        jnp.full(num_groups, -1, dtype=jnp.int32),
        jnp.zeros(num_slots, dtype=jnp.int32),
        jnp.zeros((num_slots, num_dims), dtype=vectors.dtype),
        jnp.zeros(num_slots),
        jnp.asarray(False),
    )


def build_kernel(
    layout: CountLayout, vectors: jax.Array, concentration: jax.Array
) -> Callable[[GrowingState, jax.Array, jax.Array], GrowingState]:
    """Build one visit, ``kernel(state, group, uniform)``: add a group, or redraw its cluster."""
    put = jax.lax.dynamic_update_index_in_dim

    def kernel(state: GrowingState, group: jax.Array, uniform: jax.Array) -> GrowingState:
        vector, old = vectors[group], state.z[group]
        slots = jnp.arange(state.sizes.size)
        own = jnp.maximum(old, 0)  # an arbitrary slot if the group is not yet included
        left = state.cluster_counts[own] - jnp.where(old >= 0, vector, 0)
        sizes = state.sizes - (slots == old)
        cluster_counts = put(state.cluster_counts, left, own, 0)
        log_marginals = put(state.log_marginals, log_marginal(layout, left), own, 0)
        # An empty cluster has log m = 0, so that this is the group's own log m there.
        joined = log_marginal(layout, cluster_counts + vector)
        occupied = sizes > 0
        is_free = (slots == jnp.argmin(occupied)) & ~occupied
        prior = jnp.where(occupied, jnp.log(sizes), jnp.where(is_free, jnp.log(concentration), 0.0))
        weights = prior + joined - log_marginals
        new = draw_index(uniform, jnp.where(occupied | is_free, weights, -jnp.inf))
        return GrowingState(
            put(state.z, new, group, 0),
            sizes + (slots == new),
            put(cluster_counts, cluster_counts[new] + vector, new, 0),
            put(log_marginals, joined[new], new, 0),
            state.overflow | occupied.all(),
        )

    return kernel


@jax.jit
def _visit(
    layout: CountLayout,
    vectors: jax.Array,
    concentration: jax.Array,
    state: GrowingState,
    groups: jax.Array,
    number: jax.Array,
    rng_key: jax.Array,
) -> GrowingState:
    """Make the first ``number`` of the visits, one after the other."""
    kernel = build_kernel(layout, vectors, concentration)
    uniforms = jax.random.uniform(rng_key, groups.shape, dtype=float)
    return jax.lax.fori_loop(
        0, number, lambda i, state: kernel(state, groups[i], uniforms[i]), state
    )


def visit_schedule(num_groups: int, rng: np.random.Generator) -> IntArray:
    """Return the order of visits: new groups, then several sweeps over all groups so far.

    The number of groups doubles from stage to stage. The last stage has no sweeps, since those of
    the chain follow.

    Examples
    --------
    >>> visit_schedule(4, np.random.default_rng(0)).tolist()
    [2, 0, 1, 3]
    >>> len(visit_schedule(100_000, np.random.default_rng(0)))
    426400
    """
    order = rng.permutation(num_groups)
    visits, inside = [], 0
    while inside < num_groups:
        end = min(max(2 * inside, FIRST_GROUPS), num_groups)
        visits.append(order[inside:end])
        inside = end
        if inside < num_groups:
            visits_here = max(STAGE_VISITS, STAGE_SHARE * num_groups)
            sweeps = int(np.clip(visits_here / inside, 1, MAX_SWEEPS))
            visits += [rng.permutation(order[:inside]) for _ in range(sweeps)]
    return np.concatenate(visits)


def grow_partitions(
    layout: CountLayout,
    vectors: jax.Array,
    concentration: float,
    keys: jax.Array,
    progress: bool | None = None,
) -> IntArray:
    """Return an initial partition for each chain, ``(chains, U)``.

    Parameters
    ----------
    vectors : (U, D)
        Counts of the groups.
    keys
        Random keys of the chains; each chain adds the groups in another order.
    """
    num_groups, stop = len(vectors), threading.Event()
    total = len(visit_schedule(num_groups, np.random.default_rng(0)))

    def visit(state: GrowingState, part: IntArray, key: jax.Array) -> GrowingState:
        groups = jnp.asarray(np.pad(part, (0, CHUNK - len(part))))
        a = jnp.asarray(concentration, dtype=float)
        return _visit(layout, vectors, a, state, groups, jnp.asarray(len(part)), key)

    def grow(key: jax.Array, tick: Tick) -> IntArray:
        with jax.enable_x64(True):
            rng = np.random.default_rng(np.asarray(jax.random.key_data(key)).tolist())
            visits, state = visit_schedule(num_groups, rng), init(vectors, FIRST_SLOTS)
            for number, first in enumerate(range(0, len(visits), CHUNK)):
                if stop.is_set():
                    raise KeyboardInterrupt
                part = visits[first : first + CHUNK]
                before = state
                while (state := visit(before, part, jax.random.fold_in(key, number))).overflow:
                    before = _with_more_slots(before)
                tick(len(part), f"{int((state.sizes > 0).sum())} clusters")
            return first_occurrence(np.asarray(state.z))

    with progress_bar("starting", len(keys) * total, progress) as tick:
        pool = ThreadPoolExecutor(min(num_cores(), len(keys)))
        try:
            return np.stack(list(pool.map(partial(grow, tick=tick), keys)))
        finally:
            # After Ctrl-C, do not wait for partitions that will not be used.
            stop.set()
            pool.shutdown(wait=False, cancel_futures=True)


def _with_more_slots(state: GrowingState) -> GrowingState:
    """Return the state with twice as many slots."""
    more = len(state.sizes)
    return state._replace(
        sizes=jnp.pad(state.sizes, (0, more)),
        cluster_counts=jnp.pad(state.cluster_counts, ((0, more), (0, 0))),
        log_marginals=jnp.pad(state.log_marginals, (0, more)),
    )
