"""Run chains of a kernel, of MCMC or AIS, in parallel threads, in chunks of about half a second.

The driver returns to Python after every chunk, so that progress is shown and Ctrl-C keeps the draws
made so far; inside :func:`bayes_lcs.checkpoints` draws and states are saved at intervals. The key
of a sweep depends only on the chain and the number of the sweep, states are compacted only at
fixed sweep numbers, and empty slots at the end change nothing: neither the length of the chunks nor
the number of slots changes a draw. A chunk that ran out of slots is discarded and repeated with
more slots.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterator
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

__all__ = ["ChainDraws", "ChainProblem", "Chains", "cache_key", "run_chains", "split_chains"]

CHUNK_SECONDS = 0.5
BUFFER = 256
MAX_THREADS = 8

SUMMED = "label_probabilities"
"""Field of the sweep information of which only the sum is stored, since it can be large."""

_compiled: set[Hashable] = set()
"""Configurations and array shapes whose program is compiled."""


class ChainConfig(Hashable, Protocol):
    """Static configuration of a kernel; it determines the compiled program."""

    def kernel(self, data: Any) -> Callable[[jax.Array, Any], tuple[Any, Any]]:
        """Build the sweep over these data, ``kernel(rng_key, state) -> (state, info)``."""


class ChainProblem:
    """Base class of the problems whose chains the driver runs; by default without slots.

    The ``info`` that its kernel returns is a NamedTuple.

    Attributes
    ----------
    config
        Static configuration.
    data
        Arrays of the problem, a pytree.
    start_kind
        Kind of initial states; empty if there is only one.
    """

    config: Any
    data: Any
    start_kind: str = ""

    def start(
        self, keys: jax.Array, rng: np.random.Generator, only: slice, progress: bool | None
    ) -> Any:
        """Return the initial states of chains, one for each key, or only those of ``only``."""
        raise NotImplementedError

    def out_of_slots(self, state: Any) -> bool:  # noqa: ARG002
        """Return True if a chain ran out of slots, which invalidates its last sweeps."""
        return False

    def with_more_slots(self, state: Any) -> Any:
        """Return the state with more slots."""
        return state

    def compact(self, states: list[Any]) -> list[Any]:
        """Move occupied slots to the front, and drop slots from all states if most are empty."""
        return states

    def status(self, info: dict[str, NDArray]) -> str:  # noqa: ARG002
        """Describe the last draws of all chains, for the progress bar."""
        return ""


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
) -> tuple[Any, dict[str, jax.Array], jax.Array]:
    """Run ``num_sweeps`` sweeps of all chains from number ``start``, storing every ``thin``-th.

    Returns the new states, the stored information and the sums over sweeps. The data are arguments,
    not constants of the program, so that tables of one shape share it.
    """
    kernel = config.kernel(data)

    def sweep(key: jax.Array, state: Any) -> tuple[Any, dict[str, jax.Array], jax.Array]:
        state, info = kernel(key, state)
        stored = info._asdict()
        return state, stored, stored.pop(SUMMED, jnp.zeros(0))

    def chunk(key: jax.Array, state: Any) -> tuple[Any, dict[str, jax.Array], jax.Array]:
        _, stored, summed = jax.eval_shape(sweep, key, state)
        buffer = jax.tree.map(lambda leaf: jnp.zeros((BUFFER, *leaf.shape), leaf.dtype), stored)

        def body(i: jax.Array, carry: tuple[Any, Any, jax.Array]) -> tuple[Any, Any, jax.Array]:
            state, buffer, total = carry
            state, stored, summed = sweep(jax.random.fold_in(key, start + i), state)
            buffer = jax.tree.map(
                # Sweeps between two draws overwrite each other; the last of them remains.
                lambda all_, one: jax.lax.dynamic_update_index_in_dim(all_, one, i // thin, 0),
                buffer,
                stored,
            )
            return state, buffer, total + summed

        return jax.lax.fori_loop(0, num_sweeps, body, (state, buffer, jnp.zeros_like(summed)))

    # One chain after the other: under vmap, `lax.cond` would always compute both branches.
    return jax.lax.map(lambda chain: chunk(*chain), (keys, state))


def split_chains(chains: Any, count: int) -> list[Any]:
    """Split a pytree with a leading chain axis into ``count`` parts of equal size."""
    leaves, structure = jax.tree.flatten(chains)
    split = [jnp.split(leaf, count) for leaf in leaves]
    return [jax.tree.unflatten(structure, part) for part in zip(*split, strict=True)]


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


class Chains:
    """Chains in parts, each run by a thread; the chains of a part run one after the other.

    Parameters
    ----------
    keys, states
        Keys and initial states of the parts, which are pytrees of equal shapes.

    Attributes
    ----------
    done
        Number of sweeps made.
    sums : (chains, ...)
        Sum of the field `SUMMED` over these sweeps; its rounding depends on the chunks.
    rate
        Sweeps per second after compilation, summed over chains; NaN before it is known.
    """

    def __init__(self, problem: ChainProblem, keys: list[jax.Array], states: list[Any]) -> None:
        self.problem, self.states = problem, states
        self.done, self.sums, self.rate = 0, np.zeros(()), float("nan")
        self._keys = keys
        self._seconds_per_sweep, self._timed, self._timed_sweeps = CHUNK_SECONDS, 0.0, 0

    def chunks(self, end: int, thin: int = 1) -> Iterator[tuple[int, dict[str, NDArray]]]:
        """Run the sweeps before number ``end``, of which every ``thin``-th is stored.

        Yields the number of sweeps of each chunk, and its stored information by name.
        """
        while self.done < end:
            # At most one buffer of draws, and only up to the next compaction.
            compaction = next_compaction(self.done)
            most = min(end - self.done, BUFFER * thin, max(compaction - self.done, thin))
            size = int(np.clip(CHUNK_SECONDS / self._seconds_per_sweep, 1, most))
            size = max(size // thin, 1) * thin
            program, began = self._program(), time.perf_counter()
            results = self._run_threads(size, thin, program not in _compiled)
            elapsed = time.perf_counter() - began
            states = [state for state, _, _ in results]
            if any(self.problem.out_of_slots(state) for state in states):
                # Repeat the chunk with the same keys from the states before it.
                self.states = [self.problem.with_more_slots(state) for state in self.states]
                continue
            if program in _compiled:  # compilation must not count in the time of a sweep
                self._seconds_per_sweep = elapsed / size
                self._timed, self._timed_sweeps = self._timed + elapsed, self._timed_sweeps + size
                self.rate = sum(map(len, self._keys)) * self._timed_sweeps / self._timed
            _compiled.add(program)
            if self.done + size >= compaction:
                states = self.problem.compact(states)
            sums = self.sums + np.concatenate([np.asarray(summed) for _, _, summed in results])
            self.states, self.done, self.sums = states, self.done + size, sums
            rows = size // thin
            yield (
                size,
                {
                    # `concatenate` copies: a view would keep the whole buffer in memory.
                    name: np.concatenate([np.asarray(own[name])[:, :rows] for _, own, _ in results])
                    for name in results[0][1]
                },
            )

    def _program(self) -> Hashable:
        arrays = (self.problem.data, self._keys[0], self.states[0])
        return self.problem.config, *(jnp.shape(leaf) for leaf in jax.tree.leaves(arrays))

    def _run_threads(self, size: int, thin: int, compiles: bool) -> list[tuple[Any, Any, Any]]:
        """Run one chunk of all parts, without storing its results."""
        start = self.done

        def run_part(part: tuple[jax.Array, Any]) -> tuple[Any, Any, Any]:
            with jax.enable_x64(True):
                numbers = (jnp.asarray(number) for number in (start, size, thin))
                result = _run_chunk(self.problem.config, self.problem.data, *part, *numbers)
                return jax.tree.map(lambda leaf: leaf.block_until_ready(), result)

        parts = list(zip(self._keys, self.states, strict=True))
        # The first part compiles the program for all of them.
        alone = compiles or len(parts) == 1
        first = [run_interruptibly(partial(run_part, parts.pop(0)))] if alone else []
        pool = ThreadPoolExecutor(len(self._keys))
        try:
            return first + list(pool.map(run_part, parts))
        finally:
            # After Ctrl-C, do not wait for chunks whose results are discarded.
            pool.shutdown(wait=False, cancel_futures=True)

    def snapshot(self, **more: Any) -> Callable[[], Arrays]:
        """Return a function that gives the current state and ``more`` as arrays, for `restore`."""
        own = {"done": self.done, "sums": self.sums, **more}
        return partial(_snapshot_arrays, self.states, own)

    def restore(self, saved: Arrays) -> None:
        """Continue from a snapshot, unless it is one of another number of chains."""
        if len(saved["leaf-0"]) == sum(map(len, self._keys)):
            self.states = split_chains(state_from_arrays(saved, self.states[0]), len(self._keys))
            self.done, self.sums = int(saved["done"]), saved["sums"]


def _snapshot_arrays(states: list[Any], more: dict[str, Any]) -> Arrays:
    return {**state_to_arrays(states), **{name: np.asarray(value) for name, value in more.items()}}


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
    """Run ``chains`` MCMC chains and keep ``draws`` draws of each after ``warmup`` sweeps.

    With ``only``, run just the chain of that number; its draws are the same as among all chains.
    The caller saves them (`bayes_lcs.inference.executor_chains`).
    """
    total = warmup + draws * thin
    interrupted = False
    with jax.enable_x64(True):
        root = jax.random.key(seed)
        keys = jax.random.split(jax.random.fold_in(root, 0), chains)
        start_keys = jax.random.split(jax.random.fold_in(root, 1), chains)
        mine = slice(None) if only is None else slice(only, only + 1)
        state = problem.start(start_keys, np.random.default_rng(seed), mine, progress)
        parts = num_threads(len(keys[mine]), num_cores())
        run = Chains(problem, split_chains(keys[mine], parts), split_chains(state, parts))
        key_parts = cache_key(problem, draws, warmup, chains, thin, seed)
        with (
            checkpointed_task("sampling", *key_parts)
            if only is None
            else CheckpointedTask(None) as checkpoint,
            progress_bar("sampling", total, progress) as tick,
        ):
            kept: list[Arrays] = list(checkpoint.pieces)
            if checkpoint.state is not None:
                run.restore(checkpoint.state)
            tick(run.done)
            try:
                for end, spacing in ((warmup, 1), (total, thin)):
                    for size, info in run.chunks(end, spacing):
                        in_warmup = run.done <= warmup
                        if in_warmup:
                            run.sums = np.zeros(())
                        else:
                            kept.append(info)
                        checkpoint.update(run.snapshot(), *([] if in_warmup else [info]))
                        rate = "" if np.isnan(run.rate) else f", {run.rate:,.0f} sweeps/s"
                        tick(size, problem.status(info) + rate)
            except KeyboardInterrupt:
                if not kept:
                    raise
                interrupted = True
                checkpoint.save()
            else:
                checkpoint.finish(run.snapshot())
    found = {name: np.concatenate([part[name] for part in kept], axis=1) for name in kept[0]}
    sweeps = found["log_joint"].shape[1] * thin
    return ChainDraws(found, run.sums / sweeps, interrupted, run.rate)


def cache_key(problem: ChainProblem, *numbers: int) -> tuple[Any, ...]:
    """Return all values that determine the draws, as the cache key of a checkpoint."""
    return (problem.config, jax.tree.leaves(problem.data), problem.start_kind, *numbers)
