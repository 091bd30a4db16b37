"""Partitions to start from where groups are many: grown by subsample annealing.

From all groups in one block, or dealt at random to blocks, a sampler that moves one group at a time
does not find its way when blocks have thousands of members. Among few groups it does. So a start
begins with a few of them, in random order, sweeps over them, lets in as many again, each placed
given those before, sweeps over all that are there, and so on until all are in (Obermeyer, Glidden
and Jonas 2014, "Scaling nonparametric Bayesian inference via subsample-annealing"). Each visit
draws a group's block from

    |T_k| m(T_k + u) / m(T_k)   for a block without u,    a m({u})   for a new block,

over the groups that are in. This decides only where chains start, never what they sample: the
sweeps that follow leave the posterior invariant wherever they begin.
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
from bayes_lcs.inference.mcmc.cluster_marginals import BlockLayout, log_marginal
from bayes_lcs.inference.mcmc.crp_gibbs import draw_index
from bayes_lcs.runtime.memory import num_cores
from bayes_lcs.runtime.progress import Tick, progress_bar

__all__ = ["GrowingState", "build_kernel", "grown_partitions", "init", "visits_of"]

IntArray = NDArray[np.int64]

FIRST_GROUPS = 64
MOST_SWEEPS = 20
STAGE_VISITS, STAGE_SHARE = 50_000, 0.5
"""Visits of a stage's sweeps: so many, or this share of all groups if that is more. A stage of few
groups makes fewer, since it has no more than 20 sweeps."""

CHUNK = 4096
"""Visits of one call: a fraction of a second."""

FIRST_SLOTS = 32


class GrowingState(NamedTuple):
    """The groups that are in, in blocks.

    Attributes
    ----------
    z : (U,)
        Slot of each group; -1 for one that is not in yet.
    sizes : (K,)
        Number of groups in each slot.
    blocks : (K, D)
        Counts of each slot.
    log_marginals : (K,)
        ``log m`` of each slot.
    overflow
        Whether a group found no free slot, which voids the visits that led here.
    """

    z: jax.Array
    sizes: jax.Array
    blocks: jax.Array
    log_marginals: jax.Array
    overflow: jax.Array


def init(vectors: jax.Array, num_slots: int) -> GrowingState:
    """Nobody is in; ``vectors`` is ``(U, D)``."""
    num_groups, num_dims = vectors.shape
    return GrowingState(
        jnp.full(num_groups, -1, dtype=jnp.int32),
        jnp.zeros(num_slots, dtype=jnp.int32),
        jnp.zeros((num_slots, num_dims), dtype=vectors.dtype),
        jnp.zeros(num_slots),
        jnp.asarray(False),
    )


def build_kernel(
    layout: BlockLayout, vectors: jax.Array, concentration: jax.Array
) -> Callable[[GrowingState, jax.Array, jax.Array], GrowingState]:
    """One visit, ``kernel(state, group, uniform)``: a group comes, or leaves and chooses anew."""
    put = jax.lax.dynamic_update_index_in_dim

    def kernel(state: GrowingState, group: jax.Array, uniform: jax.Array) -> GrowingState:
        vector, old = vectors[group], state.z[group]
        slots = jnp.arange(state.sizes.size)
        own = jnp.maximum(old, 0)  # of a group that is not in yet, any will do
        left = state.blocks[own] - jnp.where(old >= 0, vector, 0)
        sizes = state.sizes - (slots == old)
        blocks = put(state.blocks, left, own, 0)
        log_marginals = put(state.log_marginals, log_marginal(layout, left), own, 0)
        # An empty block has log m = 0, so that this is the group's own log m there.
        joined = log_marginal(layout, blocks + vector)
        occupied = sizes > 0
        is_free = (slots == jnp.argmin(occupied)) & ~occupied
        prior = jnp.where(occupied, jnp.log(sizes), jnp.where(is_free, jnp.log(concentration), 0.0))
        weights = prior + joined - log_marginals
        new = draw_index(uniform, jnp.where(occupied | is_free, weights, -jnp.inf))
        return GrowingState(
            put(state.z, new, group, 0),
            sizes + (slots == new),
            put(blocks, blocks[new] + vector, new, 0),
            put(log_marginals, joined[new], new, 0),
            state.overflow | occupied.all(),
        )

    return kernel


@jax.jit
def _visit(
    layout: BlockLayout,
    vectors: jax.Array,
    concentration: jax.Array,
    state: GrowingState,
    groups: jax.Array,
    number: jax.Array,
    rng_key: jax.Array,
) -> GrowingState:
    """The first ``number`` of some visits, one after the other."""
    kernel = build_kernel(layout, vectors, concentration)
    uniforms = jax.random.uniform(rng_key, groups.shape, dtype=float)
    return jax.lax.fori_loop(
        0, number, lambda i, state: kernel(state, groups[i], uniforms[i]), state
    )


def visits_of(num_groups: int, rng: np.random.Generator) -> IntArray:
    """Who is visited, one after the other: newcomers, then all that are in, some times.

    The number in doubles from stage to stage. The last stage has no sweeps: those of the chain
    follow.

    Examples
    --------
    >>> visits_of(4, np.random.default_rng(0)).tolist()
    [2, 0, 1, 3]
    >>> len(visits_of(100_000, np.random.default_rng(0)))
    426400
    """
    order = rng.permutation(num_groups)
    visits, inside = [], 0
    while inside < num_groups:
        reached = min(max(2 * inside, FIRST_GROUPS), num_groups)
        visits.append(order[inside:reached])
        inside = reached
        if inside < num_groups:
            visits_here = max(STAGE_VISITS, STAGE_SHARE * num_groups)
            sweeps = int(np.clip(visits_here / inside, 1, MOST_SWEEPS))
            visits += [rng.permutation(order[:inside]) for _ in range(sweeps)]
    return np.concatenate(visits)


def grown_partitions(
    layout: BlockLayout,
    vectors: jax.Array,
    concentration: float,
    keys: jax.Array,
    progress: bool | None = None,
) -> IntArray:
    """A start for each of some chains, ``(chains, U)``, by its own key.

    Parameters
    ----------
    vectors : (U, D)
        Counts of the groups.
    keys
        Of the chains; groups come in another order to each.
    """
    num_groups, stop = len(vectors), threading.Event()
    total = len(visits_of(num_groups, np.random.default_rng(0)))

    def visit(state: GrowingState, part: IntArray, key: jax.Array) -> GrowingState:
        groups = jnp.asarray(np.pad(part, (0, CHUNK - len(part))))
        a = jnp.asarray(concentration, dtype=float)
        return _visit(layout, vectors, a, state, groups, jnp.asarray(len(part)), key)

    def grow(key: jax.Array, tick: Tick) -> IntArray:
        with jax.enable_x64(True):
            rng = np.random.default_rng(np.asarray(jax.random.key_data(key)).tolist())
            visits, state = visits_of(num_groups, rng), init(vectors, FIRST_SLOTS)
            for number, first in enumerate(range(0, len(visits), CHUNK)):
                if stop.is_set():
                    raise KeyboardInterrupt
                part = visits[first : first + CHUNK]
                before = state
                while (state := visit(before, part, jax.random.fold_in(key, number))).overflow:
                    before = _enlarged(before)
                tick(len(part), f"{int((state.sizes > 0).sum())} clusters")
            return first_occurrence(np.asarray(state.z))

    with progress_bar("starting", len(keys) * total, progress) as tick:
        pool = ThreadPoolExecutor(min(num_cores(), len(keys)))
        try:
            return np.stack(list(pool.map(partial(grow, tick=tick), keys)))
        finally:
            # After Ctrl-C nobody waits for starts that nobody will use.
            stop.set()
            pool.shutdown(wait=False, cancel_futures=True)


def _enlarged(state: GrowingState) -> GrowingState:
    """The state with twice the slots."""
    more = len(state.sizes)
    return state._replace(
        sizes=jnp.pad(state.sizes, (0, more)),
        blocks=jnp.pad(state.blocks, ((0, more), (0, 0))),
        log_marginals=jnp.pad(state.log_marginals, (0, more)),
    )
