"""Run MCMC chains of a kernel in parallel, in chunks of about half a second.

The driver returns to Python after every chunk, so that progress is shown and Ctrl-C keeps the draws
made so far; inside :func:`bayes_lcs.checkpoints` draws and states are saved at intervals. The key
of a sweep depends only on the chain and the number of the sweep, states are compacted only at
fixed sweep numbers, and empty slots at the end change nothing: neither the length of the chunks nor
the number of slots changes a draw. A chunk that ran out of slots is discarded and repeated with
more slots.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from bayes_lcs.runtime.checkpoints import Arrays, CheckpointedTask, checkpointed_task
from bayes_lcs.runtime.interrupts import run_interruptibly
from bayes_lcs.runtime.memory import num_cores
from bayes_lcs.runtime.progress import progress_bar
from bayes_lcs.runtime.state_arrays import state_from_arrays, state_to_arrays

__all__ = ["AVERAGED", "ChainDraws", "ChainProblem", "cache_key", "run_chains"]

CHUNK_SECONDS = 0.5
BUFFER = 256
MAX_THREADS = 8

AVERAGED = "label_probabilities"
"""Field of the sweep information of which only the mean is stored, since it can be large."""


class ChainConfig(Hashable, Protocol):
    """Static configuration of a kernel; it determines the compiled program."""

    def kernel(self, data: Any) -> Callable[[jax.Array, Any], tuple[Any, Any]]:
        """Build the sweep over these data, ``kernel(rng_key, state) -> (state, info)``."""


class ChainProblem(Protocol):
    """A sampling problem: configuration, data, initial states and their number of slots.

    The ``info`` that its kernel returns is a NamedTuple.
    """

    @property
    def config(self) -> ChainConfig:
        """Static configuration."""

    @property
    def data(self) -> Any:
        """Arrays of the problem, a pytree."""

    @property
    def start_kind(self) -> str:
        """Kind of initial states; empty if there is only one."""

    def start(
        self, keys: jax.Array, rng: np.random.Generator, only: slice, progress: bool | None
    ) -> Any:
        """Return the initial states of chains, one for each key, or only those of ``only``."""

    def out_of_slots(self, state: Any) -> bool:
        """Return True if a chain ran out of slots, which invalidates its last sweeps."""

    def with_more_slots(self, state: Any) -> Any:
        """Return the state with more slots."""

    def compact(self, states: list[Any]) -> list[Any]:
        """Move occupied slots to the front, and drop slots from all states if most are empty."""

    def status(self, info: Any) -> str:
        """Describe the last draws of all chains, for the progress bar."""


class ChainDraws(NamedTuple):
    """Result of running chains.

    Attributes
    ----------
    info
        Arrays ``(chains, draws, ...)`` of the values that the kernel returns, by name.
    averages
        Mean over all sweeps after warm-up of the label probabilities, ``(chains, M, L)``.
    interrupted
        True if Ctrl-C ended the run before all draws were made.
    sweeps_per_second
        Rate after compilation, summed over chains.
    """

    info: dict[str, NDArray]
    averages: NDArray
    interrupted: bool
    sweeps_per_second: float


@partial(jax.jit, static_argnames="config")
def _run_chunk(
    config: ChainConfig,
    data: Any,
    keys: jax.Array,
    state: Any,
    start: jax.Array,
    num_sweeps: jax.Array,
    thin: jax.Array,
) -> tuple[Any, Any]:
    """Run ``num_sweeps`` sweeps of all chains from number ``start``, storing every ``thin``-th.

    The data are arguments, not constants of the program, so that tables of one shape share it.
    """
    kernel = config.kernel(data)

    def chunk(key: jax.Array, state: Any) -> tuple[Any, Any]:
        shapes = jax.eval_shape(kernel, key, state)[1]
        buffer = jax.tree.map(lambda leaf: jnp.zeros((BUFFER, *leaf.shape), leaf.dtype), shapes)
        total = jnp.zeros_like(getattr(shapes, AVERAGED))
        buffer = buffer._replace(**{AVERAGED: total})

        def body(i: jax.Array, carry: tuple[Any, Any]) -> tuple[Any, Any]:
            state, buffer = carry
            state, info = kernel(jax.random.fold_in(key, start + i), state)
            total = getattr(buffer, AVERAGED) + getattr(info, AVERAGED)
            nothing = {AVERAGED: None}
            rest = jax.tree.map(
                # Sweeps between two draws overwrite each other; the last of them remains.
                lambda all_, one: jax.lax.dynamic_update_index_in_dim(all_, one, i // thin, 0),
                buffer._replace(**nothing),
                info._replace(**nothing),
            )
            return state, rest._replace(**{AVERAGED: total})

        return jax.lax.fori_loop(0, num_sweeps, body, (state, buffer))

    # One chain after the other: under vmap, `lax.cond` would always compute both branches.
    return jax.lax.map(lambda chain: chunk(*chain), (keys, state))


def run_chains(
    problem: ChainProblem,
    *,
    draws: int,
    warmup: int,
    chains: int,
    thin: int,
    seed: int,
    progress: bool | None = None,
    only: int | None = None,
) -> ChainDraws:
    """Run ``chains`` chains and keep ``draws`` draws of each after ``warmup`` sweeps.

    With ``only``, run just the chain of that number; its draws are the same as among all chains.
    The caller saves them (`bayes_lcs.inference.mcmc.executor_chains`).
    """
    with jax.enable_x64(True):
        root = jax.random.key(seed)
        keys = jax.random.split(jax.random.fold_in(root, 0), chains)
        start_keys = jax.random.split(jax.random.fold_in(root, 1), chains)
        mine = slice(None) if only is None else slice(only, only + 1)
        state = problem.start(start_keys, np.random.default_rng(seed), mine, progress)
        if only is not None:
            return _run_loop(
                problem, keys[mine], state, draws, warmup, thin, progress, CheckpointedTask(None)
            )
        key = cache_key(problem, draws, warmup, chains, thin, seed)
        with checkpointed_task("sampling", *key) as kept:
            return _run_loop(problem, keys, state, draws, warmup, thin, progress, kept)


def cache_key(problem: ChainProblem, *numbers: int) -> tuple[Any, ...]:
    """Return all values that determine the draws, as the cache key of a checkpoint."""
    return (problem.config, jax.tree.leaves(problem.data), problem.start_kind, *numbers)


def num_threads(chains: int, cores: int) -> int:
    """Return the number of threads; each runs the same number of chains.

    Examples
    --------
    >>> [num_threads(chains, cores=2) for chains in (1, 2, 3, 4, 10)]
    [1, 2, 3, 2, 2]
    """
    divisors = [n for n in range(1, chains + 1) if chains % n == 0]
    enough = [n for n in divisors if n >= cores]
    return (
        enough[0] if enough and enough[0] <= MAX_THREADS else max(n for n in divisors if n <= cores)
    )


def next_compaction(sweep: int) -> int:
    """Return the next sweep number at which states are compacted; it must not depend on time.

    Examples
    --------
    >>> [next_compaction(sweep) for sweep in (0, 4, 5, 255, 256, 300)]
    [4, 16, 16, 256, 512, 512]
    """
    early = [number for number in (4, 16, 64) if number > sweep]
    return early[0] if early else (sweep // BUFFER + 1) * BUFFER


class _ThreadedChains:
    """Chains split evenly over threads; the chains of a thread run one after the other."""

    def __init__(self, problem: ChainProblem, keys: jax.Array, state: Any) -> None:
        self.problem = problem
        self.count = num_threads(len(keys), num_cores())
        self.keys = jnp.split(keys, self.count)
        self.states = self._split(state)
        self.new_shape = True

    def _split(self, state: Any) -> list[Any]:
        leaves, structure = jax.tree.flatten(state)
        split = [jnp.split(leaf, self.count) for leaf in leaves]
        return [jax.tree.unflatten(structure, part) for part in zip(*split, strict=True)]

    def run(self, *numbers: int) -> tuple[list[Any], list[Any]]:
        """Run one chunk; return the new states and the information, without storing them."""

        def run_thread(thread: tuple[jax.Array, Any]) -> tuple[Any, Any]:
            with jax.enable_x64(True):
                arguments = (jnp.asarray(number) for number in numbers)
                result = _run_chunk(self.problem.config, self.problem.data, *thread, *arguments)
                return jax.tree.map(lambda leaf: leaf.block_until_ready(), result)

        threads = list(zip(self.keys, self.states, strict=True))
        # The first thread compiles the program for all of them.
        alone = self.new_shape or self.count == 1
        first = [run_interruptibly(partial(run_thread, threads.pop(0)))] if alone else []
        pool = ThreadPoolExecutor(self.count)
        try:
            results = first + list(pool.map(run_thread, threads))
        finally:
            # After Ctrl-C, do not wait for chunks whose results are discarded.
            pool.shutdown(wait=False, cancel_futures=True)
        self.new_shape = False
        return [state for state, _ in results], [info for _, info in results]

    def accept(self, states: list[Any]) -> None:
        """Continue from these states."""
        self.states = states

    def restore(self, checkpoint: Arrays) -> None:
        """Continue from saved states."""
        self.states = self._split(state_from_arrays(checkpoint, self.states[0]))
        self.new_shape = True

    def add_slots(self) -> None:
        """Add slots, the same number in all threads."""
        self.states = [self.problem.with_more_slots(state) for state in self.states]
        self.new_shape = True

    def compact(self) -> None:
        """Compact the states of all threads, and remove slots that none of them needs."""
        shapes = [jnp.shape(leaf) for leaf in jax.tree.leaves(self.states[0])]
        self.states = self.problem.compact(self.states)
        now = [jnp.shape(leaf) for leaf in jax.tree.leaves(self.states[0])]
        self.new_shape |= now != shapes


def _run_loop(
    problem: ChainProblem,
    keys: jax.Array,
    state: Any,
    draws: int,
    warmup: int,
    thin: int,
    progress: bool | None,
    checkpoint: CheckpointedTask,
) -> ChainDraws:
    chains = len(keys)
    threaded = _ThreadedChains(problem, keys, state)
    kept: list[dict[str, NDArray]] = list(checkpoint.pieces)
    done, total = 0, warmup + draws * thin
    averages: Any = 0.0
    if checkpoint.state is not None:
        done, averages = int(checkpoint.state["done"]), checkpoint.state["averages"]
        threaded.restore(checkpoint.state)
    seconds_per_sweep, timed, timed_sweeps = CHUNK_SECONDS, 0.0, 0
    interrupted, rate = False, float("nan")
    with progress_bar("sampling", total, progress) as tick:
        tick(done)
        try:
            while done < total:
                in_warmup = done < warmup
                spacing = 1 if in_warmup else thin
                # At most one buffer of draws, and only up to the next compaction.
                most = min(warmup - done if in_warmup else total - done, BUFFER * spacing)
                most = min(most, max((next_compaction(done) - done) // spacing, 1) * spacing)
                size = int(np.clip(CHUNK_SECONDS / seconds_per_sweep, 1, most))
                size = max(size // spacing, 1) * spacing
                compiles, began = threaded.new_shape, time.perf_counter()
                states, infos = threaded.run(done, size, spacing)
                elapsed = time.perf_counter() - began
                if any(problem.out_of_slots(state) for state in states):
                    # Repeat the chunk with the same keys from the states before it.
                    threaded.add_slots()
                    continue
                if not compiles:  # compilation must not count in the time of a sweep
                    seconds_per_sweep = elapsed / size
                    timed, timed_sweeps = timed + elapsed, timed_sweeps + size
                    rate = chains * timed_sweeps / timed
                threaded.accept(states)
                if done + size >= next_compaction(done):
                    threaded.compact()
                done += size
                info = _join_buffers(infos, size // spacing)
                if not in_warmup:
                    averages = averages + getattr(info, AVERAGED)
                    kept.append({k: v for k, v in info._asdict().items() if k != AVERAGED})
                snapshot = partial(_chain_state, threaded.states, done, averages)
                checkpoint.update(snapshot, *([] if in_warmup else kept[-1:]))
                tick(size, problem.status(info) + (f", {rate:,.0f} sweeps/s" if timed else ""))
        except KeyboardInterrupt:
            if not kept:
                raise
            interrupted = True
            checkpoint.save()
        else:
            checkpoint.finish(partial(_chain_state, threaded.states, done, averages))
    info = {name: np.concatenate([part[name] for part in kept], axis=1) for name in kept[0]}
    sweeps = info["log_joint"].shape[1] * thin
    return ChainDraws(info, np.asarray(averages) / sweeps, interrupted, rate)


def _chain_state(states: list[Any], done: int, averages: Any) -> Arrays:
    own = {"done": np.asarray(done), "averages": np.asarray(averages)}
    return {**state_to_arrays(states), **own}


def _join_buffers(infos: list[Any], rows: int) -> Any:
    """Concatenate the filled parts of all buffers along the chains, as NumPy arrays."""
    arrays = {
        name: np.concatenate([np.asarray(getattr(info, name)) for info in infos])
        for name in infos[0]._fields
    }
    arrays = {
        # Copy: a view of a few rows would keep the whole buffer in memory.
        name: values if name == AVERAGED else values[:, :rows].copy()
        for name, values in arrays.items()
    }
    return infos[0]._replace(**arrays)
