"""Running chains of a kernel: vmapped, in chunks of about half a second, with room to grow.

The driver returns to Python after every chunk, so that progress shows and Ctrl-C keeps what is
done. The key of a sweep depends on the chain and the number of the sweep only, and a state is a
function of its partition, so neither the length of the chunks nor the number of slots changes a
draw: a chunk that ran out of slots is thrown away and repeated with more.
"""

from __future__ import annotations

import time
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from bayes_lcs.core.progress import progress_bar
from bayes_lcs.inference import partition_gibbs
from bayes_lcs.inference.sharing_sampler import (
    Design,
    Problem,
    ProblemData,
    SweepInfo,
    SweepState,
    build_kernel,
    canonical,
    init,
)

__all__ = ["ChainDraws", "run_chains", "starting_partitions"]

CHUNK_SECONDS = 0.5
BUFFER = 128
SPARE_SLOTS = 8
MOST_SINGLETONS = 256


class ChainDraws(NamedTuple):
    """What the chains left.

    Attributes
    ----------
    info
        Arrays ``(chains, draws, ...)`` of what each kept sweep reported.
    interrupted
        Whether Ctrl-C ended the run before all draws were made.
    sweeps_per_second
        Rate after compilation, all chains together.
    """

    info: SweepInfo
    interrupted: bool
    sweeps_per_second: float


def starting_partitions(num_groups: int, chains: int, rng: np.random.Generator) -> NDArray:
    """Starts far apart, ``(chains, U)``: one block, singletons, random, random, ...

    Singletons only up to 256 groups; beyond, groups are dealt to 64 blocks, since every update
    costs time in proportion to the number of blocks.
    """
    starts = np.zeros((chains, num_groups), dtype=np.int64)
    for chain in range(1, chains):
        if chain == 1 and num_groups <= MOST_SINGLETONS:
            starts[chain] = np.arange(num_groups)
        else:
            most = 64 if chain == 1 else int(rng.integers(2, max(min(num_groups, 64), 2) + 1))
            starts[chain] = rng.integers(0, most, num_groups)
    return starts


def _slots_for(used: int, num_groups: int) -> int:
    """Number of slots for ``used`` blocks: some to spare, in steps so that few are compiled."""
    wanted = used + SPARE_SLOTS
    step = 8 if wanted <= 64 else 32 if wanted <= 256 else 128
    return min(-(-wanted // step) * step, num_groups + 1)


@partial(jax.jit, static_argnames="design")
def _run_chunk(
    design: Design,
    data: ProblemData,
    keys: jax.Array,
    state: SweepState,
    start: jax.Array,
    num_sweeps: jax.Array,
    thin: jax.Array,
) -> tuple[SweepState, SweepInfo]:
    """``num_sweeps`` sweeps of all chains from number ``start``, keeping every ``thin``-th.

    The data are arguments, not constants of the program: tables of one shape share it.
    """
    kernel = build_kernel(design, data)

    def chunk(key: jax.Array, state: SweepState) -> tuple[SweepState, SweepInfo]:
        shapes = jax.eval_shape(kernel, key, state)[1]
        buffer = jax.tree.map(lambda leaf: jnp.zeros((BUFFER, *leaf.shape), leaf.dtype), shapes)

        def body(i: jax.Array, carry: tuple[SweepState, SweepInfo]) -> tuple[SweepState, SweepInfo]:
            state, buffer = carry
            state, info = kernel(jax.random.fold_in(key, start + i), state)
            buffer = jax.tree.map(lambda all_, one: all_.at[i // thin].set(one), buffer, info)
            return state, buffer

        return jax.lax.fori_loop(0, num_sweeps, body, (state, buffer))

    return jax.vmap(chunk)(keys, state)


@partial(jax.jit, static_argnames=("design", "num_slots"))
def _begin(
    design: Design,
    data: ProblemData,
    starts: jax.Array,
    keys: jax.Array,
    concentration: jax.Array,
    num_slots: int,
) -> SweepState:
    """The first states of all chains."""

    def begin(start: jax.Array, key: jax.Array) -> SweepState:
        return init(design, data, start, concentration, num_slots, key)

    return jax.vmap(begin)(starts, keys)


def _resized(state: SweepState, num_slots: int) -> SweepState:
    """All chains with ``num_slots`` slots; only empty ones are cut."""
    partition = state.partition
    now = partition.sizes.shape[-1]
    if num_slots > now:
        partition = partition_gibbs.resize(partition, num_slots)
    elif num_slots < now:
        partition = jax.vmap(canonical)(partition)
        partition = partition._replace(
            sizes=partition.sizes[:, :num_slots],
            blocks=partition.blocks[:, :num_slots],
            log_marginals=partition.log_marginals[:, :num_slots],
        )
    return state._replace(partition=partition)


def _num_used(state: SweepState) -> int:
    return int((state.partition.sizes > 0).sum(axis=-1).max())


def run_chains(
    problem: Problem,
    *,
    draws: int,
    warmup: int,
    chains: int,
    thin: int,
    seed: int,
    progress: bool | None = None,
) -> ChainDraws:
    """Run ``chains`` chains and keep ``draws`` draws of each after ``warmup`` sweeps."""
    rng = np.random.default_rng(seed)
    design = problem.design
    if problem.partition is None:
        starts = starting_partitions(design.num_groups, chains, rng)
    else:
        starts = np.tile(problem.partition, (chains, 1))
    slots = _slots_for(int(starts.max()) + 1, design.num_groups)
    with jax.enable_x64(True):
        root = jax.random.key(seed)
        keys = jax.random.split(jax.random.fold_in(root, 0), chains)
        start_keys = jax.random.split(jax.random.fold_in(root, 1), chains)
        concentration = jnp.asarray(problem.concentration)
        state = _begin(design, problem.data, jnp.asarray(starts), start_keys, concentration, slots)
        return _drive(problem, keys, state, draws, warmup, thin, progress)


def _drive(
    problem: Problem,
    keys: jax.Array,
    state: SweepState,
    draws: int,
    warmup: int,
    thin: int,
    progress: bool | None,
) -> ChainDraws:
    design = problem.design
    kept: list[SweepInfo] = []
    done, total = 0, warmup + draws * thin
    seconds_per_sweep, timed, timed_sweeps = CHUNK_SECONDS, 0.0, 0
    interrupted, fresh = False, True
    with progress_bar("sampling", total, progress) as tick:
        try:
            while done < total:
                in_warmup = done < warmup
                spacing = 1 if in_warmup else thin
                most = min(warmup - done if in_warmup else total - done, BUFFER * spacing)
                size = int(np.clip(CHUNK_SECONDS / seconds_per_sweep, 1, most))
                size = most if in_warmup and size >= most else max(size // spacing, 1) * spacing
                began = time.perf_counter()
                numbers = (jnp.asarray(number) for number in (done, size, spacing))
                after, info = _run_chunk(design, problem.data, keys, state, *numbers)
                overflow = bool(after.partition.overflow.any())
                elapsed = time.perf_counter() - began
                if overflow:
                    now = state.partition.sizes.shape[-1]
                    state = _resized(state, _slots_for(now + now // 2, design.num_groups))
                    fresh = True
                    continue
                if not fresh:
                    seconds_per_sweep = elapsed / size
                    timed, timed_sweeps = timed + elapsed, timed_sweeps + size
                fresh = False
                state, done = after, done + size
                if not in_warmup:
                    rows = size // spacing
                    kept.append(jax.tree.map(lambda leaf, n=rows: np.asarray(leaf[:, :n]), info))
                wanted = _slots_for(_num_used(state), design.num_groups)
                if not design.knows_partition and wanted <= state.partition.sizes.shape[-1] // 2:
                    state, fresh = _resized(state, wanted), True
                tick(size, _status(info, size // spacing - 1))
        except KeyboardInterrupt:
            if not kept:
                raise
            interrupted = True
    info = jax.tree.map(lambda *parts: np.concatenate(parts, axis=1), *kept)
    chains = len(keys)
    rate = chains * timed_sweeps / timed if timed else float("nan")
    return ChainDraws(info, interrupted, rate)


def _status(info: SweepInfo, last: int) -> str:
    clusters = np.asarray(info.num_clusters[:, last])
    return (
        f"clusters {clusters.min()}-{clusters.max()}, log joint {info.log_joint[:, last].max():.1f}"
    )
