"""Chains that pass through temperatures: the programs that move them, and the threads they run in.

All chains of a problem are moved by one compiled program, a few chains and temperatures a call:
those that look for the temperatures, those that try them, and those whose weights count.
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

__all__ = ["AnnealedChains", "AnnealedDesign", "AnnealedProblem"]

FloatArray = NDArray[np.float64]

SEGMENT = 64
"""Temperatures that chains pass through in one call."""

LOOK_SECONDS = 0.5
"""Between two looks at how far the chains have come."""

MOST_IN_A_CALL = 8
"""Chains that run one after the other in one call: few, so that calls end soon."""


class AnnealedDesign(Hashable, Protocol):
    """Everything that decides which program is compiled."""

    def begin(self, data: Any, rng_key: jax.Array) -> Any:
        """A draw from the base distribution."""

    def transition(self, data: Any, reverse: bool) -> Callable[[jax.Array, Any, jax.Array], Any]:
        """The moves at a temperature, or their reversal, as ``move(rng_key, state, t)``."""

    def log_likelihood(self, data: Any, state: Any) -> jax.Array:
        """What is tempered, of each independent part, ``(B,)``."""

    def overflowed(self, state: Any) -> jax.Array:
        """Whether a state ran out of room, which voids its chain."""


class AnnealedProblem(Protocol):
    """A model and a table, ready to be annealed."""

    @property
    def design(self) -> AnnealedDesign:
        """What decides the program."""

    @property
    def data(self) -> Any:
        """The arrays that it reads, a pytree."""

    def enlarged(self) -> AnnealedProblem:
        """The same with more room."""

    def states(self, unknown: dict[str, NDArray]) -> Any:
        """States at draws ``(chains, ...)`` by name, as a sampler left them."""


@partial(jax.jit, static_argnames="design")
def _begin(design: AnnealedDesign, data: Any, keys: jax.Array) -> Any:
    return jax.lax.map(lambda key: design.begin(data, key), keys)


@partial(jax.jit, static_argnames=("design", "reverse"))
def _segment(
    design: AnnealedDesign,
    data: Any,
    keys: jax.Array,
    states: Any,
    steps: jax.Array,
    temperatures: jax.Array,
    number: jax.Array,
    first: jax.Array,
    reverse: bool,
) -> tuple[Any, jax.Array, jax.Array]:
    """Some steps of all chains from step ``first`` on.

    Returns the new states, what the log weights gained, and what is tempered of the new states.
    """
    move = design.transition(data, reverse)

    def path(chain: tuple[jax.Array, Any]) -> tuple[Any, jax.Array, jax.Array]:
        key, state = chain

        def step(i: jax.Array, carry: tuple[Any, jax.Array]) -> tuple[Any, jax.Array]:
            state, log_weight = carry
            log_weight += steps[i] * design.log_likelihood(data, state)
            state = move(jax.random.fold_in(key, first + i), state, temperatures[i])
            return state, log_weight

        start = jnp.zeros_like(design.log_likelihood(data, state))
        state, gained = jax.lax.fori_loop(0, number, step, (state, start))
        return state, gained, design.log_likelihood(data, state)

    return jax.lax.map(path, (keys, states))


class _Part(NamedTuple):
    """Some chains on their way.

    Attributes
    ----------
    states
        Where they are.
    made
        Steps made of the present move.
    gained : (chains, B)
        By their log weights, in these steps.
    logs : (chains, B)
        What is tempered, of the states.
    """

    states: Any
    made: int
    gained: Any
    logs: Any


class AnnealedChains:
    """Chains at a temperature, in parts that run side by side.

    Parameters
    ----------
    starts
        Draws from the target, a pytree with a leading chain axis, from which chains run backwards.
        Without them they begin at draws from the base.
    only
        Make just these of the chains, the same as among all, in one thread; ``starts`` are theirs.

    Attributes
    ----------
    log_likelihoods : (chains, B)
        What is tempered, of the states that the last move reached.
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
        size = _part_size(len(mine) // self._workers)
        self._slices = [slice(first, first + size) for first in range(0, len(mine), size)]
        with jax.enable_x64(True):
            # Of two keys of their own: folding a number in is what splitting does, too.
            begin_key, move_key = jax.random.split(rng_key)
            keys = jax.random.split(move_key, chains)[mine.start : mine.stop]
            self._keys = [keys[part] for part in self._slices]
            first_keys = jax.random.split(begin_key, chains)[mine.start : mine.stop]

            def begin(part: slice) -> Any:
                if starts is None:
                    return _begin(problem.design, problem.data, first_keys[part])
                return jax.tree.map(lambda leaf: leaf[part], starts)

            states = [run_interruptibly(partial(_in_x64, begin, part)) for part in self._slices]
        self._parts = [_Part(state, 0, 0.0, None) for state in states]
        self.log_likelihoods: FloatArray = np.zeros((len(mine), 0))

    def move(
        self,
        deltas: FloatArray,
        temperatures: FloatArray,
        tick: Tick | None = None,
        written: CheckpointedTask | None = None,
        beside: Arrays = MappingProxyType({}),
    ) -> FloatArray:
        """Pass through temperatures; what the log weights ``(chains, B)`` gained by the steps.

        Parameters
        ----------
        written, beside
            Where the way is kept, and from where it goes on; and what is kept beside it.
        """
        if written is not None and written.state is not None:
            self._restore(written.state, tick)
        pool = ThreadPoolExecutor(self._workers)
        try:
            futures = [
                pool.submit(self._move_part, part, deltas, temperatures, tick)
                for part in range(len(self._parts))
            ]
            while True:
                done, under_way = wait(futures, LOOK_SECONDS, FIRST_EXCEPTION)
                for future in done:
                    future.result()
                if not under_way:
                    break
                if written is not None:
                    written.update(partial(_as_arrays, tuple(self._parts), beside))
        except BaseException:
            self._stop.set()
            raise
        finally:
            # After Ctrl-C nobody waits for steps that nobody will use.
            pool.shutdown(wait=False, cancel_futures=True)
        if written is not None:
            written.finish(partial(_as_arrays, tuple(self._parts), beside))
        self._steps_made += len(deltas)
        gained, self.log_likelihoods = self._finished(len(deltas))
        self._parts = [part._replace(made=0, gained=0.0) for part in self._parts]
        return gained

    def _move_part(
        self, part: int, deltas: FloatArray, temperatures: FloatArray, tick: Tick | None
    ) -> None:
        design, data = self._problem.design, self._problem.data
        # Once at least, for the likelihoods of states that have not moved.
        while self._parts[part].logs is None or self._parts[part].made < len(deltas):
            if self._stop.is_set():
                raise KeyboardInterrupt
            now = self._parts[part]
            number = min(SEGMENT, len(deltas) - now.made)
            with jax.enable_x64(True):
                states, gained, logs = _segment(
                    design,
                    data,
                    self._keys[part],
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
            self._parts[part] = _Part(states, now.made + number, gained, logs)
            self._tell(part, number, tick)

    def _tell(self, part: int, steps: int, tick: Tick | None) -> None:
        if tick is not None:
            where = "backwards" if self._is_reversed else "forwards"
            tick(steps * len(self._keys[part]), where)

    def _restore(self, state: Arrays, tick: Tick | None) -> None:
        """Go on from what was written, unless that was with other parts: on other cores."""
        if len(state["made"]) != len(self._parts):
            return
        with jax.enable_x64(True):
            states = state_from_arrays(state, self._parts[0].states)
            for number, (part, made) in enumerate(zip(self._slices, state["made"], strict=True)):
                if made:
                    own = jax.tree.map(lambda leaf, part=part: leaf[part], states)
                    gained, logs = state["gained"][part], state["logs"][part]
                    self._parts[number] = _Part(own, int(made), gained, logs)
                    self._tell(number, int(made), tick)

    def _finished(self, steps: int) -> tuple[FloatArray, FloatArray]:
        done = [part for part in self._parts if part.made == steps and part.logs is not None]
        if not done:
            return np.zeros((0, 0)), np.zeros((0, 0))
        return (
            np.concatenate([np.broadcast_to(part.gained, part.logs.shape) for part in done]),
            np.concatenate([part.logs for part in done]),
        )

    def finished_weights(self, steps: int) -> FloatArray:
        """What the log weights gained of chains that have made all of ``steps``, after Ctrl-C."""
        return self._finished(steps)[0]

    @property
    def states(self) -> Any:
        """Where the chains are, a pytree with a leading chain axis."""
        states = [part.states for part in self._parts]
        with jax.enable_x64(True):
            return jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *states)

    def snapshot(self) -> Callable[[], Arrays]:
        """What gives the states of now, between two moves, for `restored`."""
        states = [part.states for part in self._parts]
        return partial(_with_logs, states, self.log_likelihoods)

    def restored(self, written: Arrays, steps_made: int) -> None:
        """Go on from what `snapshot` gave after so many steps."""
        with jax.enable_x64(True):
            states = state_from_arrays(written, self._parts[0].states)
            self._parts = [
                _Part(jax.tree.map(lambda leaf, part=part: leaf[part], states), 0, 0.0, None)
                for part in self._slices
            ]
        self._steps_made, self.log_likelihoods = steps_made, written["logs"]

    def has_overflowed(self) -> bool:
        """Whether a chain ran out of room, which voids it."""
        with jax.enable_x64(True):
            return bool(jax.vmap(self._problem.design.overflowed)(self.states).any())


def _with_logs(states: list[Any], logs: FloatArray) -> Arrays:
    return {**state_to_arrays(states), "logs": logs}


def _in_x64(call: Callable[[slice], Any], part: slice) -> Any:
    with jax.enable_x64(True):
        return call(part)


def _as_arrays(parts: tuple[_Part, ...], beside: Arrays) -> Arrays:
    logs = next((part.logs for part in parts if part.logs is not None), np.zeros((1, 0)))

    def whole(part: _Part, values: Any) -> FloatArray:
        size = len(jax.tree.leaves(part.states)[0])
        return np.broadcast_to(0.0 if values is None else values, (size, logs.shape[1]))

    return {
        **beside,
        **state_to_arrays([part.states for part in parts]),
        "made": np.array([part.made for part in parts]),
        "gained": np.concatenate([whole(part, part.gained) for part in parts]),
        "logs": np.concatenate([whole(part, part.logs) for part in parts]),
    }


def _num_workers(chains: int) -> int:
    """Threads, at most one for each core, that have equally many chains."""
    most = min(num_cores(), chains)
    return max(workers for workers in range(1, most + 1) if chains % workers == 0)


def _part_size(share: int) -> int:
    return max(size for size in range(1, min(share, MOST_IN_A_CALL) + 1) if share % size == 0)
