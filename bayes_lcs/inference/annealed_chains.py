"""Chains that pass through temperatures: the programs that move them, and the threads they run in.

All chains of a problem are moved by one compiled program, a few chains and temperatures a call:
those that look for the temperatures, those that try them, and those whose weights count.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from bayes_lcs.core.progress import Tick

__all__ = ["AnnealedChains", "AnnealedDesign", "AnnealedProblem"]

FloatArray = NDArray[np.float64]

SEGMENT = 64
"""Temperatures that chains pass through in one call."""

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


class AnnealedChains:
    """Chains at a temperature, in parts that run side by side.

    Parameters
    ----------
    starts
        Draws from the target, a pytree with a leading chain axis, from which chains run backwards.
        Without them they begin at draws from the base.

    Attributes
    ----------
    log_likelihoods : (chains, B)
        What is tempered, of the states that the last move reached.
    """

    def __init__(
        self, problem: AnnealedProblem, chains: int, rng_key: jax.Array, starts: Any = None
    ) -> None:
        self._problem = problem
        self._is_reversed = starts is not None
        self._steps_made = 0
        self._stop = threading.Event()
        self._workers = _num_workers(chains)
        size = _part_size(chains // self._workers)
        parts = [slice(first, first + size) for first in range(0, chains, size)]
        with jax.enable_x64(True):
            # Of two keys of their own: folding a number in is what splitting does, too.
            begin_key, move_key = jax.random.split(rng_key)
            keys = jax.random.split(move_key, chains)
            self._keys = [keys[part] for part in parts]
            first_keys = jax.random.split(begin_key, chains)
            self._states = [
                _begin(problem.design, problem.data, first_keys[part])
                if starts is None
                else jax.tree.map(lambda leaf, part=part: leaf[part], starts)
                for part in parts
            ]
        self.log_likelihoods: FloatArray = np.zeros((chains, 0))

    def move(
        self, deltas: FloatArray, temperatures: FloatArray, tick: Tick | None = None
    ) -> FloatArray:
        """Pass through temperatures; what the log weights ``(chains, B)`` gained by the steps."""
        with ThreadPoolExecutor(self._workers) as pool:
            futures = [
                pool.submit(self._move_part, part, deltas, temperatures, tick)
                for part in range(len(self._states))
            ]
            try:
                done = [future.result() for future in futures]
            except BaseException:
                self._stop.set()
                raise
        self._steps_made += len(deltas)
        gained, logs = (np.concatenate(each) for each in zip(*done, strict=True))
        self.log_likelihoods = logs
        return gained

    def _move_part(
        self, part: int, deltas: FloatArray, temperatures: FloatArray, tick: Tick | None
    ) -> tuple[FloatArray, FloatArray]:
        design, data = self._problem.design, self._problem.data
        total: Any = 0.0
        # Once at least, for the likelihoods of states that have not moved.
        for first in range(0, max(len(deltas), 1), SEGMENT):
            if self._stop.is_set():
                raise KeyboardInterrupt
            number = min(SEGMENT, len(deltas) - first)
            with jax.enable_x64(True):
                self._states[part], gained, logs = _segment(
                    design,
                    data,
                    self._keys[part],
                    self._states[part],
                    *(
                        jnp.asarray(np.pad(values[first : first + number], (0, SEGMENT - number)))
                        for values in (deltas, temperatures)
                    ),
                    jnp.asarray(number),
                    jnp.asarray(self._steps_made + first),
                    self._is_reversed,
                )
                total = total + np.asarray(gained)
            if tick is not None:
                where = "backwards" if self._is_reversed else "forwards"
                tick(number * len(self._keys[part]), where)
        return total, np.asarray(logs)

    @property
    def states(self) -> Any:
        """Where the chains are, a pytree with a leading chain axis."""
        with jax.enable_x64(True):
            return jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *self._states)

    @property
    def overflowed(self) -> bool:
        """Whether a chain ran out of room, which voids it."""
        with jax.enable_x64(True):
            return bool(jax.vmap(self._problem.design.overflowed)(self.states).any())


def _num_workers(chains: int) -> int:
    """Threads, at most one for each core, that have equally many chains."""
    most = min(len(os.sched_getaffinity(0)), chains)
    return max(workers for workers in range(1, most + 1) if chains % workers == 0)


def _part_size(share: int) -> int:
    return max(size for size in range(1, min(share, MOST_IN_A_CALL) + 1) if share % size == 0)
