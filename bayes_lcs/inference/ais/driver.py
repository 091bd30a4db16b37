"""Run annealed chains: the compiled programs that move them, and the threads they run in.

All chains of a problem are moved by one compiled program, a few chains and temperatures per call:
those of the pilot, of trials, and of the estimate itself.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from bayes_lcs.runtime.checkpoints import Arrays, CheckpointedTask
from bayes_lcs.runtime.interrupts import run_interruptibly
from bayes_lcs.runtime.memory import num_cores
from bayes_lcs.runtime.progress import Tick
from bayes_lcs.runtime.state_arrays import state_from_arrays, state_to_arrays

__all__ = ["AnnealedChains", "AnnealedConfig", "AnnealedProblem"]

FloatArray = NDArray[np.float64]

SEGMENT = 64
"""Number of temperatures per call of the compiled program."""

CHECKPOINT_SECONDS = 0.5
"""Seconds between two checkpoints of the chains."""

MAX_CHAINS_PER_CALL = 8
"""Chains that run one after the other in one call; few, so that calls are short."""


class AnnealedConfig(Hashable, Protocol):
    """Static configuration of the target; it determines the compiled program."""

    def begin(self, data: Any, rng_key: jax.Array) -> Any:
        """Draw a state from the base distribution."""

    def transition(self, data: Any, reverse: bool) -> Callable[[jax.Array, Any, jax.Array], Any]:
        """Build the moves at a temperature, or their reversal, ``move(rng_key, state, t)``."""

    def log_likelihood(self, data: Any, state: Any) -> jax.Array:
        """Return the tempered log likelihood of each independent factor, ``(B,)``."""

    def out_of_slots(self, state: Any) -> jax.Array:
        """Return True if a state ran out of slots, which invalidates its chain."""


class AnnealedProblem(Protocol):
    """Annealing problem of a model and a table."""

    @property
    def config(self) -> AnnealedConfig:
        """Static configuration."""

    @property
    def data(self) -> Any:
        """Arrays of the problem, a pytree."""

    def with_more_slots(self) -> AnnealedProblem:
        """Return the problem with more slots."""

    def states(self, unknown: dict[str, NDArray]) -> Any:
        """Return states at draws ``(chains, ...)``, given by name as a sampler returns them."""


@partial(jax.jit, static_argnames="config")
def _begin(config: AnnealedConfig, data: Any, keys: jax.Array) -> Any:
    return jax.lax.map(lambda key: config.begin(data, key), keys)


@partial(jax.jit, static_argnames=("config", "reverse"))
def _segment(
    config: AnnealedConfig,
    data: Any,
    keys: jax.Array,
    states: Any,
    steps: jax.Array,
    temperatures: jax.Array,
    number: jax.Array,
    first: jax.Array,
    reverse: bool,
) -> tuple[Any, jax.Array, jax.Array]:
    """Make ``number`` steps of all chains, from step ``first`` on.

    Returns the new states, the increments of the log weights, and the log likelihoods of the new
    states.
    """
    move = config.transition(data, reverse)

    def path(chain: tuple[jax.Array, Any]) -> tuple[Any, jax.Array, jax.Array]:
        key, state = chain

        def step(i: jax.Array, carry: tuple[Any, jax.Array]) -> tuple[Any, jax.Array]:
            state, log_weight = carry
            # Neal's weight takes the likelihood of the state before the move.
            log_weight += steps[i] * config.log_likelihood(data, state)
            state = move(jax.random.fold_in(key, first + i), state, temperatures[i])
            return state, log_weight

        start = jnp.zeros_like(config.log_likelihood(data, state))
        state, gained = jax.lax.fori_loop(0, number, step, (state, start))
        return state, gained, config.log_likelihood(data, state)

    return jax.lax.map(path, (keys, states))


class _Batch(NamedTuple):
    """A few chains that move together.

    Attributes
    ----------
    states
        Current states.
    made
        Number of steps made in the current call of `AnnealedChains.move`.
    gained : (chains, B)
        Increments of the log weights in these steps.
    logs : (chains, B)
        Log likelihoods of the states.
    """

    states: Any
    made: int
    gained: Any
    logs: Any


class AnnealedChains:
    """Chains at a temperature, in batches that run in parallel threads.

    Parameters
    ----------
    starts
        Draws from the target, a pytree with a leading chain axis, from which chains run backwards.
        By default chains start at draws from the base distribution and run forwards.
    only
        Run only these chains, in one thread; their weights are the same as among all chains.
        ``starts`` then holds only their states.

    Attributes
    ----------
    log_likelihoods : (chains, B)
        Log likelihoods of the current states.
    """

    def __init__(
        self,
        problem: AnnealedProblem,
        chains: int,
        rng_key: jax.Array,
        starts: Any = None,
        only: slice | None = None,
    ) -> None:
        self._problem = problem
        self._is_reversed = starts is not None
        self._steps_made = 0
        self._stop = threading.Event()
        mine = range(chains)[only or slice(None)]
        self._workers = 1 if only is not None else _num_workers(chains)
        size = _batch_size(len(mine) // self._workers)
        self._slices = [slice(first, first + size) for first in range(0, len(mine), size)]
        with jax.enable_x64(True):
            # Two separate keys: `fold_in` and `split` of one key could give the same stream.
            begin_key, move_key = jax.random.split(rng_key)
            keys = jax.random.split(move_key, chains)[mine.start : mine.stop]
            self._keys = [keys[batch] for batch in self._slices]
            first_keys = jax.random.split(begin_key, chains)[mine.start : mine.stop]

            def begin(batch: slice) -> Any:
                if starts is None:
                    return _begin(problem.config, problem.data, first_keys[batch])
                return jax.tree.map(lambda leaf: leaf[batch], starts)

            states = [run_interruptibly(partial(_in_x64, begin, batch)) for batch in self._slices]
        self._batches = [_Batch(state, 0, 0.0, None) for state in states]
        self.log_likelihoods: FloatArray = np.zeros((len(mine), 0))

    def move(
        self,
        deltas: FloatArray,
        temperatures: FloatArray,
        tick: Tick | None = None,
        checkpoint: CheckpointedTask | None = None,
        extra: Arrays = MappingProxyType({}),
    ) -> FloatArray:
        """Move through temperatures; return the increments of the log weights ``(chains, B)``.

        Parameters
        ----------
        checkpoint
            Checkpoint to which the state is saved, and from which it is resumed.
        extra
            Further arrays to save with it.
        """
        if checkpoint is not None and checkpoint.state is not None:
            self._restore(checkpoint.state, tick)
        pool = ThreadPoolExecutor(self._workers)
        try:
            futures = [
                pool.submit(self._move_batch, batch, deltas, temperatures, tick)
                for batch in range(len(self._batches))
            ]
            while True:
                done, under_way = wait(futures, CHECKPOINT_SECONDS, FIRST_EXCEPTION)
                for future in done:
                    future.result()
                if not under_way:
                    break
                if checkpoint is not None:
                    checkpoint.update(partial(_state_arrays, tuple(self._batches), extra))
        except BaseException:
            self._stop.set()
            raise
        finally:
            # After Ctrl-C, do not wait for steps that will not be used.
            pool.shutdown(wait=False, cancel_futures=True)
        if checkpoint is not None:
            checkpoint.finish(partial(_state_arrays, tuple(self._batches), extra))
        self._steps_made += len(deltas)
        gained, self.log_likelihoods = self._collect_finished(len(deltas))
        self._batches = [batch._replace(made=0, gained=0.0) for batch in self._batches]
        return gained

    def _move_batch(
        self, batch: int, deltas: FloatArray, temperatures: FloatArray, tick: Tick | None
    ) -> None:
        config, data = self._problem.config, self._problem.data
        # At least one call, for the likelihoods of states that have not moved.
        while self._batches[batch].logs is None or self._batches[batch].made < len(deltas):
            if self._stop.is_set():
                raise KeyboardInterrupt
            now = self._batches[batch]
            number = min(SEGMENT, len(deltas) - now.made)
            with jax.enable_x64(True):
                states, gained, logs = _segment(
                    config,
                    data,
                    self._keys[batch],
                    now.states,
                    *(
                        jnp.asarray(np.pad(values[now.made :][:number], (0, SEGMENT - number)))
                        for values in (deltas, temperatures)
                    ),
                    jnp.asarray(number),
                    jnp.asarray(self._steps_made + now.made),
                    self._is_reversed,
                )
                gained, logs = now.gained + np.asarray(gained), np.asarray(logs)
            self._batches[batch] = _Batch(states, now.made + number, gained, logs)
            self._report_progress(batch, number, tick)

    def _report_progress(self, batch: int, steps: int, tick: Tick | None) -> None:
        if tick is not None:
            where = "backwards" if self._is_reversed else "forwards"
            tick(steps * len(self._keys[batch]), where)

    def _restore(self, state: Arrays, tick: Tick | None) -> None:
        """Resume from a checkpoint, unless its number of batches differs, as with other cores."""
        if len(state["made"]) != len(self._batches):
            return
        with jax.enable_x64(True):
            states = state_from_arrays(state, self._batches[0].states)
            for number, (batch, made) in enumerate(zip(self._slices, state["made"], strict=True)):
                if made:
                    own = jax.tree.map(lambda leaf, batch=batch: leaf[batch], states)
                    gained, logs = state["gained"][batch], state["logs"][batch]
                    self._batches[number] = _Batch(own, int(made), gained, logs)
                    self._report_progress(number, int(made), tick)

    def _collect_finished(self, steps: int) -> tuple[FloatArray, FloatArray]:
        done = [batch for batch in self._batches if batch.made == steps and batch.logs is not None]
        if not done:
            return np.zeros((0, 0)), np.zeros((0, 0))
        return (
            np.concatenate([np.broadcast_to(batch.gained, batch.logs.shape) for batch in done]),
            np.concatenate([batch.logs for batch in done]),
        )

    def finished_weights(self, steps: int) -> FloatArray:
        """Return the log weights of the chains that made all ``steps``, after Ctrl-C."""
        return self._collect_finished(steps)[0]

    @property
    def states(self) -> Any:
        """Current states, a pytree with a leading chain axis."""
        states = [batch.states for batch in self._batches]
        with jax.enable_x64(True):
            return jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *states)

    def snapshot(self) -> Callable[[], Arrays]:
        """Return a function that gives the current states as arrays, for `restore_snapshot`."""
        states = [batch.states for batch in self._batches]
        return partial(_snapshot_arrays, states, self.log_likelihoods)

    def restore_snapshot(self, checkpoint: Arrays, steps_made: int) -> None:
        """Restore the states of a `snapshot` that was taken after ``steps_made`` steps."""
        with jax.enable_x64(True):
            states = state_from_arrays(checkpoint, self._batches[0].states)
            self._batches = [
                _Batch(jax.tree.map(lambda leaf, batch=batch: leaf[batch], states), 0, 0.0, None)
                for batch in self._slices
            ]
        self._steps_made, self.log_likelihoods = steps_made, checkpoint["logs"]

    def is_out_of_slots(self) -> bool:
        """Return True if a chain ran out of slots, which invalidates it."""
        with jax.enable_x64(True):
            return bool(jax.vmap(self._problem.config.out_of_slots)(self.states).any())


def _snapshot_arrays(states: list[Any], logs: FloatArray) -> Arrays:
    return {**state_to_arrays(states), "logs": logs}


def _in_x64(call: Callable[[slice], Any], batch: slice) -> Any:
    with jax.enable_x64(True):
        return call(batch)


def _state_arrays(batches: tuple[_Batch, ...], extra: Arrays) -> Arrays:
    logs = next((batch.logs for batch in batches if batch.logs is not None), np.zeros((1, 0)))

    def whole(batch: _Batch, values: Any) -> FloatArray:
        size = len(jax.tree.leaves(batch.states)[0])
        return np.broadcast_to(0.0 if values is None else values, (size, logs.shape[1]))

    return {
        **extra,
        **state_to_arrays([batch.states for batch in batches]),
        "made": np.array([batch.made for batch in batches]),
        "gained": np.concatenate([whole(batch, batch.gained) for batch in batches]),
        "logs": np.concatenate([whole(batch, batch.logs) for batch in batches]),
    }


def _num_workers(chains: int) -> int:
    """Return the number of threads, at most one per core, that divides the number of chains."""
    most = min(num_cores(), chains)
    return max(workers for workers in range(1, most + 1) if chains % workers == 0)


def _batch_size(share: int) -> int:
    return max(size for size in range(1, min(share, MAX_CHAINS_PER_CALL) + 1) if share % size == 0)
