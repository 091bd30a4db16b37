"""Running chains of a kernel: side by side, in chunks of about half a second, with room to grow.

The driver returns to Python after every chunk, so that progress shows and Ctrl-C keeps what is
done; inside :func:`bayes_lcs.checkpoints` draws and states are written down at times. The key of a
sweep depends on the chain and the number of the sweep only, states are put in order at certain
numbers of sweeps only, and empty slots at the end change nothing: so neither the length of the
chunks nor the number of slots changes a draw. A chunk that ran out of slots is thrown away and
repeated with more.
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

__all__ = ["AVERAGED", "ChainDraws", "ChainProblem", "decisive_of", "run_chains"]

CHUNK_SECONDS = 0.5
BUFFER = 256
MOST_PARTS = 8

AVERAGED = "label_probabilities"
"""The part of the information on a sweep of which only the mean is kept: it can be large."""


class SweepDesign(Hashable, Protocol):
    """Everything that decides which program is compiled."""

    def kernel(self, data: Any) -> Callable[[jax.Array, Any], tuple[Any, Any]]:
        """The sweep over these data, as ``kernel(rng_key, state) -> (state, info)``."""


class ChainProblem(Protocol):
    """What is to be sampled, and how its state makes room; ``info`` is a NamedTuple."""

    @property
    def design(self) -> SweepDesign:
        """What decides the program."""

    @property
    def data(self) -> Any:
        """The arrays that it reads, a pytree."""

    @property
    def start_kind(self) -> str:
        """How chains start, where there is a choice."""

    def start(
        self, keys: jax.Array, rng: np.random.Generator, only: slice, progress: bool | None
    ) -> Any:
        """The first states of chains, one for each key, or just those of ``only``."""

    def overflowed(self, state: Any) -> bool:
        """Whether a chain ran out of room, which voids the sweeps that led here."""

    def enlarged(self, state: Any) -> Any:
        """The state with more room."""

    def tidied(self, states: list[Any]) -> list[Any]:
        """States in good order, with less room, all the same, where most of it is empty."""

    def status(self, info: Any) -> str:
        """The last draw of all chains in a few words."""


class ChainDraws(NamedTuple):
    """What the chains left.

    Attributes
    ----------
    info
        Arrays ``(chains, draws, ...)`` of what each kept sweep reported, by name.
    averages
        Mean over all sweeps after warm-up of the label probabilities, ``(chains, M, L)``.
    interrupted
        Whether Ctrl-C ended the run before all draws were made.
    sweeps_per_second
        Rate after compilation, all chains together.
    """

    info: dict[str, NDArray]
    averages: NDArray
    interrupted: bool
    sweeps_per_second: float


@partial(jax.jit, static_argnames="design")
def _run_chunk(
    design: SweepDesign,
    data: Any,
    keys: jax.Array,
    state: Any,
    start: jax.Array,
    num_sweeps: jax.Array,
    thin: jax.Array,
) -> tuple[Any, Any]:
    """``num_sweeps`` sweeps of all chains from number ``start``, keeping every ``thin``-th.

    The data are arguments, not constants of the program: tables of one shape share it.
    """
    kernel = design.kernel(data)

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
                lambda all_, one: jax.lax.dynamic_update_index_in_dim(all_, one, i // thin, 0),
                buffer._replace(**nothing),
                info._replace(**nothing),
            )
            return state, rest._replace(**{AVERAGED: total})

        return jax.lax.fori_loop(0, num_sweeps, body, (state, buffer))

    # One chain after the other: what one of them need not compute is then not computed.
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

    With ``only``, run just the chain of that number, which is the same as among all; it is for
    whoever asked for it to write it down (`bayes_lcs.inference.mcmc.executor_chains`).
    """
    with jax.enable_x64(True):
        root = jax.random.key(seed)
        keys = jax.random.split(jax.random.fold_in(root, 0), chains)
        start_keys = jax.random.split(jax.random.fold_in(root, 1), chains)
        mine = slice(None) if only is None else slice(only, only + 1)
        state = problem.start(start_keys, np.random.default_rng(seed), mine, progress)
        if only is not None:
            return _drive(
                problem, keys[mine], state, draws, warmup, thin, progress, CheckpointedTask(None)
            )
        decisive = decisive_of(problem, draws, warmup, chains, thin, seed)
        with checkpointed_task("sampling", *decisive) as kept:
            return _drive(problem, keys, state, draws, warmup, thin, progress, kept)


def decisive_of(problem: ChainProblem, *numbers: int) -> tuple[Any, ...]:
    """Everything that decides the draws, for a fingerprint."""
    return (problem.design, jax.tree.leaves(problem.data), problem.start_kind, *numbers)


def num_parts(chains: int, cores: int) -> int:
    """Into how many equal parts chains are divided, each of which runs in its own thread.

    Examples
    --------
    >>> [num_parts(chains, cores=2) for chains in (1, 2, 3, 4, 10)]
    [1, 2, 3, 2, 2]
    """
    divisors = [n for n in range(1, chains + 1) if chains % n == 0]
    enough = [n for n in divisors if n >= cores]
    return (
        enough[0] if enough and enough[0] <= MOST_PARTS else max(n for n in divisors if n <= cores)
    )


def next_tidying(sweep: int) -> int:
    """The next sweep number at which states are put in order: it must not depend on the clock.

    Examples
    --------
    >>> [next_tidying(sweep) for sweep in (0, 4, 5, 255, 256, 300)]
    [4, 16, 16, 256, 512, 512]
    """
    early = [number for number in (4, 16, 64) if number > sweep]
    return early[0] if early else (sweep // BUFFER + 1) * BUFFER


class _Parts:
    """Chains in equal parts that run side by side; a part's chains run one after the other."""

    def __init__(self, problem: ChainProblem, keys: jax.Array, state: Any) -> None:
        self.problem = problem
        self.count = num_parts(len(keys), num_cores())
        self.keys = jnp.split(keys, self.count)
        self.states = self._split(state)
        self.new_shape = True

    def _split(self, state: Any) -> list[Any]:
        leaves, structure = jax.tree.flatten(state)
        split = [jnp.split(leaf, self.count) for leaf in leaves]
        return [jax.tree.unflatten(structure, part) for part in zip(*split, strict=True)]

    def run(self, *numbers: int) -> tuple[list[Any], list[Any]]:
        """New states and information of all parts, without keeping them."""

        def run_part(part: tuple[jax.Array, Any]) -> tuple[Any, Any]:
            with jax.enable_x64(True):
                arguments = (jnp.asarray(number) for number in numbers)
                done = _run_chunk(self.problem.design, self.problem.data, *part, *arguments)
                return jax.tree.map(lambda leaf: leaf.block_until_ready(), done)

        parts = list(zip(self.keys, self.states, strict=True))
        # The first part compiles the program for all of them.
        alone = self.new_shape or self.count == 1
        first = [run_interruptibly(partial(run_part, parts.pop(0)))] if alone else []
        pool = ThreadPoolExecutor(self.count)
        try:
            results = first + list(pool.map(run_part, parts))
        finally:
            # After Ctrl-C nobody waits for chunks whose results are thrown away.
            pool.shutdown(wait=False, cancel_futures=True)
        self.new_shape = False
        return [state for state, _ in results], [info for _, info in results]

    def keep(self, states: list[Any]) -> None:
        """Go on from here."""
        self.states = states

    def restore(self, written: Arrays) -> None:
        """Go on from states that were written down."""
        self.states = self._split(state_from_arrays(written, self.states[0]))
        self.new_shape = True

    def enlarge(self) -> None:
        """Make more room, in all parts the same."""
        self.states = [self.problem.enlarged(state) for state in self.states]
        self.new_shape = True

    def tidy(self) -> None:
        """Put all parts in order, and take away room that none of them needs."""
        shapes = [jnp.shape(leaf) for leaf in jax.tree.leaves(self.states[0])]
        self.states = self.problem.tidied(self.states)
        now = [jnp.shape(leaf) for leaf in jax.tree.leaves(self.states[0])]
        self.new_shape |= now != shapes


def _drive(
    problem: ChainProblem,
    keys: jax.Array,
    state: Any,
    draws: int,
    warmup: int,
    thin: int,
    progress: bool | None,
    written: CheckpointedTask,
) -> ChainDraws:
    chains = len(keys)
    parts = _Parts(problem, keys, state)
    kept: list[dict[str, NDArray]] = list(written.pieces)
    done, total = 0, warmup + draws * thin
    averages: Any = 0.0
    if written.state is not None:
        done, averages = int(written.state["done"]), written.state["averages"]
        parts.restore(written.state)
    seconds_per_sweep, timed, timed_sweeps = CHUNK_SECONDS, 0.0, 0
    interrupted, rate = False, float("nan")
    with progress_bar("sampling", total, progress) as tick:
        tick(done)
        try:
            while done < total:
                in_warmup = done < warmup
                spacing = 1 if in_warmup else thin
                most = min(warmup - done if in_warmup else total - done, BUFFER * spacing)
                most = min(most, max((next_tidying(done) - done) // spacing, 1) * spacing)
                size = int(np.clip(CHUNK_SECONDS / seconds_per_sweep, 1, most))
                size = max(size // spacing, 1) * spacing
                compiles, began = parts.new_shape, time.perf_counter()
                states, infos = parts.run(done, size, spacing)
                elapsed = time.perf_counter() - began
                if any(problem.overflowed(state) for state in states):
                    parts.enlarge()
                    continue
                if not compiles:
                    seconds_per_sweep = elapsed / size
                    timed, timed_sweeps = timed + elapsed, timed_sweeps + size
                    rate = chains * timed_sweeps / timed
                parts.keep(states)
                if done + size >= next_tidying(done):
                    parts.tidy()
                done += size
                info = _joined(infos, size // spacing)
                if not in_warmup:
                    averages = averages + getattr(info, AVERAGED)
                    kept.append({k: v for k, v in info._asdict().items() if k != AVERAGED})
                reached = partial(_reached, parts.states, done, averages)
                written.update(reached, *([] if in_warmup else kept[-1:]))
                tick(size, problem.status(info) + (f", {rate:,.0f} sweeps/s" if timed else ""))
        except KeyboardInterrupt:
            if not kept:
                raise
            interrupted = True
            written.save()
        else:
            written.finish(partial(_reached, parts.states, done, averages))
    info = {name: np.concatenate([part[name] for part in kept], axis=1) for name in kept[0]}
    sweeps = info["log_joint"].shape[1] * thin
    return ChainDraws(info, np.asarray(averages) / sweeps, interrupted, rate)


def _reached(states: list[Any], done: int, averages: Any) -> Arrays:
    own = {"done": np.asarray(done), "averages": np.asarray(averages)}
    return {**state_to_arrays(states), **own}


def _joined(infos: list[Any], rows: int) -> Any:
    """The part of all chunks' buffers that was filled, chains one after the other, in NumPy."""
    arrays = {
        name: np.concatenate([np.asarray(getattr(info, name)) for info in infos])
        for name in infos[0]._fields
    }
    arrays = {
        # Copied, lest a few rows hold on to the whole buffer.
        name: values if name == AVERAGED else values[:, :rows].copy()
        for name, values in arrays.items()
    }
    return infos[0]._replace(**arrays)
