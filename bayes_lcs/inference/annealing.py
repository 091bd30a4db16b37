"""Annealed importance sampling (Neal 2001) over any model that can be tempered.

Between a base distribution whose normaliser is known and a target lie distributions proportional
to ``base * likelihood^t``, ``0 = t_0 < ... < t_T = 1``. A chain starts at a draw from the base,
moves at every temperature, and collects

    log w = sum_i (t_i - t_{i-1}) log_likelihood(state before the move at t_i).

The mean of ``w`` is unbiased for the ratio of the normalisers, ``Z / Z_0``, so its log is a
stochastic *lower* bound. A chain that starts at a draw from the target and makes the same moves
backwards in time has ``E[1/w] = Z_0 / Z``: a stochastic *upper* bound (Grosse, Ghahramani and
Adams 2015). Where the likelihood is a product over parts that are independent at every
temperature, every part has its own weight, and the ratios multiply.

Temperatures come from a pilot run that keeps the conditional effective sample size of a step, and
are then frozen: the estimate itself comes from new chains and stays unbiased.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from bayes_lcs.core.progress import Tick, progress_bar

__all__ = ["AnnealedDesign", "AnnealedProblem", "Schedule", "anneal", "pilot_schedule"]

FloatArray = NDArray[np.float64]

SEGMENT = 64
PILOT_CHAINS = 32
PILOT_EFFICIENCY = 0.9
MOST_PILOT_STEPS = 5000


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


class Schedule(NamedTuple):
    """Temperatures, and how far apart their distributions are.

    Attributes
    ----------
    temperatures : (T + 1,)
        From 0 to 1.
    step_variance
        Variance of one step's log weight that the pilot aimed at.
    """

    temperatures: FloatArray
    step_variance: float

    def refined(self, total_variance: float, most: int) -> Schedule:
        """So many temperatures that the log weights have this variance, if chains mix well.

        With ``r`` times the steps, each has ``1/r^2`` of its variance: the total falls with ``r``.
        """
        steps = len(self.temperatures) - 1
        factor = max(steps * self.step_variance / total_variance, 1.0)
        wanted = int(np.clip(np.ceil(factor * steps), steps, most))
        old, new = np.linspace(0, 1, steps + 1), np.linspace(0, 1, wanted + 1)
        refined = np.interp(new, old, self.temperatures)
        return Schedule(refined, self.step_variance * (steps / wanted) ** 2)


@partial(jax.jit, static_argnames="design")
def _begin(design: AnnealedDesign, data: Any, keys: jax.Array) -> Any:
    return jax.lax.map(lambda key: design.begin(data, key), keys)


@partial(jax.jit, static_argnames="design")
def _pilot_step(
    design: AnnealedDesign, data: Any, keys: jax.Array, states: Any, temperature: jax.Array
) -> tuple[Any, jax.Array]:
    """The next temperature, as far as the efficiency of the worst part allows, and a move there."""
    logs = jax.lax.map(lambda state: design.log_likelihood(data, state), states)

    def efficiency(step: jax.Array) -> jax.Array:
        weights = jnp.exp(step * (logs - logs.max(axis=0)))
        return (weights.mean(axis=0) ** 2 / (weights**2).mean(axis=0)).min()

    def halve(_: int, bounds: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        low, high = bounds
        middle = jnp.sqrt(low * high)
        good = efficiency(middle) >= PILOT_EFFICIENCY
        return jnp.where(good, middle, low), jnp.where(good, high, middle)

    left = 1.0 - temperature
    low, _ = jax.lax.fori_loop(0, 60, halve, (left * 1e-9, left))
    step = jnp.where(efficiency(left) >= PILOT_EFFICIENCY, left, low)
    new = jnp.where(step == left, 1.0, temperature + step)
    move = design.transition(data, False)
    states = jax.lax.map(lambda chain: move(chain[0], chain[1], new), (keys, states))
    return states, new


def pilot_schedule(
    problem: AnnealedProblem, seed: int, progress: bool | None = None
) -> tuple[AnnealedProblem, Schedule]:
    """Temperatures at which each step keeps 90 % of its effective sample size.

    Returns the problem too, with more room if the pilot needed it.
    """
    with jax.enable_x64(True), progress_bar("pilot", MOST_PILOT_STEPS, progress) as tick:
        root = jax.random.fold_in(jax.random.key(seed), 7)
        while True:
            states = _begin(problem.design, problem.data, jax.random.split(root, PILOT_CHAINS))
            temperatures = [0.0]
            for step in range(MOST_PILOT_STEPS):
                keys = jax.random.split(jax.random.fold_in(root, step), PILOT_CHAINS)
                now = jnp.asarray(temperatures[-1])
                states, new = _pilot_step(problem.design, problem.data, keys, states, now)
                temperatures.append(float(new))
                tick(1, f"temperature {temperatures[-1]:.3g}")
                if temperatures[-1] >= 1.0:
                    break
            if temperatures[-1] < 1.0:
                temperatures.append(1.0)
            if not bool(jax.vmap(problem.design.overflowed)(states).any()):
                variance = 1.0 / PILOT_EFFICIENCY - 1.0
                return problem, Schedule(np.asarray(temperatures), variance)
            problem = problem.enlarged()


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
) -> tuple[Any, jax.Array]:
    """Some steps of all chains from step ``first`` on: new states, and what the weights gained."""
    move = design.transition(data, reverse)

    def path(chain: tuple[jax.Array, Any]) -> tuple[Any, jax.Array]:
        key, state = chain

        def step(i: jax.Array, carry: tuple[Any, jax.Array]) -> tuple[Any, jax.Array]:
            state, log_weight = carry
            log_weight += steps[i] * design.log_likelihood(data, state)
            state = move(jax.random.fold_in(key, first + i), state, temperatures[i])
            return state, log_weight

        start = jnp.zeros_like(design.log_likelihood(data, state))
        return jax.lax.fori_loop(0, number, step, (state, start))

    return jax.lax.map(path, (keys, states))


class Annealed(NamedTuple):
    """What chains of annealed importance sampling left.

    Attributes
    ----------
    log_weights : (chains, B)
        Of every independent part.
    states
        Where the chains ended, a pytree with a leading chain axis.
    """

    log_weights: FloatArray
    states: Any


def anneal(
    problem: AnnealedProblem,
    schedule: Schedule,
    *,
    chains: int,
    seed: int,
    starts: Any = None,
    progress: bool | None = None,
) -> tuple[AnnealedProblem, Annealed]:
    """Run chains forwards from the base, or backwards from ``starts``, draws from the target.

    Returns the problem too, with more room if chains needed it.
    """
    taus = schedule.temperatures
    reverse = starts is not None
    deltas = np.diff(taus)
    at = taus[1:] if not reverse else taus[:-1][::-1]
    deltas = deltas if not reverse else deltas[::-1]
    while True:
        found = _run(problem, deltas, at, chains, seed, starts, reverse, progress)
        with jax.enable_x64(True):
            if not bool(jax.vmap(problem.design.overflowed)(found.states).any()):
                return problem, found
        if reverse:
            raise RuntimeError("a reversed chain ran out of room; enlarge the problem first")
        problem = problem.enlarged()


def _run(
    problem: AnnealedProblem,
    deltas: FloatArray,
    at: FloatArray,
    chains: int,
    seed: int,
    starts: Any,
    reverse: bool,
    progress: bool | None,
) -> Annealed:
    design, data = problem.design, problem.data
    stop = threading.Event()
    with jax.enable_x64(True):
        root = jax.random.fold_in(jax.random.key(seed), 11 if reverse else 10)
        keys = jax.random.split(root, chains)
        if starts is None:
            starts = _begin(design, data, jax.random.split(jax.random.fold_in(root, 1), chains))

    def run_part(part: NDArray[np.int64], tick: Tick) -> tuple[Any, jax.Array]:
        with jax.enable_x64(True):
            own, states = keys[part], jax.tree.map(lambda leaf: leaf[part], starts)
            total = jnp.zeros(())
            for first in range(0, len(deltas), SEGMENT):
                if stop.is_set():
                    raise KeyboardInterrupt
                number = min(SEGMENT, len(deltas) - first)
                steps, temperatures = (
                    jnp.asarray(np.pad(values[first : first + number], (0, SEGMENT - number)))
                    for values in (deltas, at)
                )
                states, gained = _segment(
                    design,
                    data,
                    own,
                    states,
                    steps,
                    temperatures,
                    jnp.asarray(number),
                    jnp.asarray(first),
                    reverse,
                )
                gained.block_until_ready()
                total = total + gained
                tick(number * len(part), "backwards" if reverse else "forwards")
            return states, total

    workers = min(len(os.sched_getaffinity(0)), chains)
    while chains % workers:
        workers -= 1
    parts = np.split(np.arange(chains), chains // _part_size(chains, workers))
    with (
        progress_bar("annealing", chains * len(deltas), progress) as tick,
        ThreadPoolExecutor(workers) as pool,
    ):
        futures = [pool.submit(run_part, part, tick) for part in parts]
        try:
            done = [future.result() for future in futures]
        except KeyboardInterrupt:
            stop.set()
            raise
    with jax.enable_x64(True):
        states = jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *[s for s, _ in done])
        weights = np.concatenate([np.asarray(weight) for _, weight in done])
    return Annealed(weights, states)


def _part_size(chains: int, workers: int) -> int:
    """Chains that run one after the other in one call: few, so that calls end soon."""
    share = chains // workers
    return max(size for size in range(1, min(share, 8) + 1) if share % size == 0)
