"""Annealed importance sampling (Neal 2001) for any model with a tempered likelihood.

The distributions between a base with known normaliser and the target are proportional to
``base * likelihood^t``, ``0 = t_0 < ... < t_T = 1``. A chain starts at a draw from the base, moves
at every temperature, and accumulates

    log w = sum_i (t_i - t_{i-1}) log_likelihood(state before the move at t_i).

The mean of ``w`` is unbiased for the ratio of the normalisers, ``Z / Z_0``, so its log is a
stochastic *lower* bound. A chain that starts at a draw from the target and makes the same moves
backwards in time has ``E[1/w] = Z_0 / Z``: a stochastic *upper* bound (Grosse, Ghahramani and
Adams 2015). Where the likelihood is a product of factors that are independent at every
temperature, every factor has its own weight, and the ratios multiply.

Temperatures come from a pilot run that keeps the conditional effective sample size of a step
constant, and are then fixed: the estimate itself comes from new chains and stays unbiased.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from bayes_lcs.inference.chain_driver import ChainProblem, Chains, split_chains
from bayes_lcs.inference.executor_chains import build_on_workers, run_on_workers
from bayes_lcs.runtime.checkpoints import Arrays, CheckpointedTask, checkpointed_task
from bayes_lcs.runtime.executors.protocol import Executor, Placed
from bayes_lcs.runtime.interrupts import PartialResultInterrupt, run_interruptibly
from bayes_lcs.runtime.memory import num_cores
from bayes_lcs.runtime.progress import Tick, progress_bar

__all__ = [
    "Anneal",
    "AnnealedConfig",
    "AnnealedProblem",
    "Schedule",
    "anneal",
    "annealing_context",
    "pilot_schedule",
]

FloatArray = NDArray[np.float64]
Anneal = Callable[..., tuple["AnnealedProblem", FloatArray]]
"""Signature of `anneal`, in this process or on an executor."""

PILOT_CHAINS = 32
PILOT_EFFICIENCY = 0.9
MAX_PILOT_STEPS = 5000

MAX_CHAINS_PER_PART = 8
"""Chains that run one after the other in a thread."""

CHAINS_PER_TASK = 4
"""Chains that a worker runs in one task, and so at most what Ctrl-C can lose per worker."""

SCHEDULE_LENGTH = 1 << 14
"""Schedules are padded to multiples of this length, so that they share a program."""


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
    """Annealing problem of a model and a table, a dataclass."""

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


class Schedule(NamedTuple):
    """Temperatures, and the variance of the log weights between them.

    Attributes
    ----------
    temperatures : (T + 1,)
        From 0 to 1.
    step_variance
        Variance of the log weight of one step at which the pilot aimed.
    """

    temperatures: FloatArray
    step_variance: float

    def refine(self, total_variance: float, most: int) -> Schedule:
        """Return a finer schedule with this variance of the log weights, if chains mix well.

        With ``r`` times the steps, each has ``1/r^2`` of its variance: the total falls with ``r``.
        """
        steps = len(self.temperatures) - 1
        factor = max(steps * self.step_variance / total_variance, 1.0)
        wanted = int(np.clip(np.ceil(factor * steps), steps, most))
        old, new = np.linspace(0, 1, steps + 1), np.linspace(0, 1, wanted + 1)
        finer = np.interp(new, old, self.temperatures)
        return Schedule(finer, self.step_variance * (steps / wanted) ** 2)


def _next_temperature(temperature: float, logs: FloatArray) -> float:
    """Return the next temperature, at which the worst factor reaches the required efficiency.

    ``logs`` ``(chains, B)`` are the log likelihoods. The step is found by bisection.
    """

    def is_efficient(step: float) -> bool:
        weights = np.exp(step * (logs - logs.max(axis=0)))
        efficiency = weights.mean(axis=0) ** 2 / (weights**2).mean(axis=0)
        return bool(efficiency.min() >= PILOT_EFFICIENCY)

    left = 1.0 - temperature
    if is_efficient(left):
        return 1.0
    low, high = left * 1e-9, left
    for _ in range(60):
        middle = np.sqrt(low * high)
        low, high = (middle, high) if is_efficient(middle) else (low, middle)
    return temperature + low


class _OutOfSlotsError(Exception):
    """Chains ran out of slots."""


class _Chain(NamedTuple):
    """State of an annealed chain, its number of steps, log weights and log likelihoods ``(B,)``."""

    state: Any
    step: jax.Array
    log_weight: jax.Array
    log_likelihood: jax.Array


class _ChainInfo(NamedTuple):
    """Nothing: all that is known of a step is in the state."""


class _Kernel(NamedTuple):
    """Step of an annealed chain, as the driver of chains takes it.

    Its data are those of the target, and the differences and temperatures of the schedule.
    """

    target: AnnealedConfig
    is_reversed: bool

    def kernel(
        self, data: tuple[Any, jax.Array, jax.Array]
    ) -> Callable[[jax.Array, _Chain], tuple[_Chain, _ChainInfo]]:
        """Build the step."""
        arrays, deltas, temperatures = data
        move = self.target.transition(arrays, self.is_reversed)

        def step(rng_key: jax.Array, chain: _Chain) -> tuple[_Chain, _ChainInfo]:
            # Neal's weight takes the likelihood of the state before the move.
            log_weight = chain.log_weight + deltas[chain.step] * chain.log_likelihood
            state = move(rng_key, chain.state, temperatures[chain.step])
            logs = self.target.log_likelihood(arrays, state)
            return _Chain(state, chain.step + 1, log_weight, logs), _ChainInfo()

        return step


class _KernelProblem(ChainProblem):
    """Chains that anneal a problem; those that run out of slots start again."""

    def __init__(self, problem: AnnealedProblem, is_reversed: bool) -> None:
        self.config, self.data = _Kernel(problem.config, is_reversed), (problem.data, None, None)

    def out_of_slots(self, state: _Chain) -> bool:
        """Return True if a chain ran out of slots."""
        return bool(np.any(self.config.target.out_of_slots(state.state)))

    def with_more_slots(self, state: _Chain) -> _Chain:  # noqa: ARG002
        """Raise an error, since initial states depend on the slots as well."""
        raise _OutOfSlotsError


@partial(jax.jit, static_argnames="config")
def _begin(config: AnnealedConfig, data: Any, keys: jax.Array, states: Any) -> _Chain:
    """Return chains at states, or by default at draws from the base distribution."""

    def one(chain: tuple[jax.Array, Any]) -> _Chain:
        key, state = chain
        state = config.begin(data, key) if state is None else state
        logs = config.log_likelihood(data, state)
        return _Chain(state, jnp.zeros((), dtype=int), jnp.zeros_like(logs), logs)

    return jax.lax.map(one, (keys, states))


def _annealed_chains(
    problem: AnnealedProblem,
    chains: int,
    rng_key: jax.Array,
    starts: dict[str, NDArray] | None = None,
    only: slice = slice(None),
    threads: int | None = None,
) -> Chains:
    """Return the chains of ``only``, with ``starts`` of just these; weights do not depend on it."""
    # Two separate keys: `fold_in` and `split` of one key could give the same stream.
    begin_key, move_key = jax.random.split(rng_key)
    first_keys = jax.random.split(begin_key, chains)[only]
    keys = jax.random.split(move_key, chains)[only]
    parts = len(keys) // _part_size(len(keys), threads or num_cores())
    target = _KernelProblem(problem, starts is not None)
    states = [None] * parts if starts is None else split_chains(problem.states(starts), parts)
    begin = partial(_in_x64, _begin, problem.config, problem.data)
    first = zip(split_chains(first_keys, parts), states, strict=True)
    begun = [run_interruptibly(partial(begin, key, state)) for key, state in first]
    if any(target.out_of_slots(state) for state in begun):
        raise _OutOfSlotsError
    return Chains(target, split_chains(keys, parts), begun)


def _in_x64(call: Callable[..., Any], *args: Any) -> Any:
    with jax.enable_x64(True):
        return call(*args)


def _set_schedule(chains: Chains, deltas: FloatArray, temperatures: FloatArray) -> None:
    """Set the differences and temperatures of the steps."""
    pad = (0, -len(deltas) % SCHEDULE_LENGTH)
    padded = (jnp.asarray(np.pad(values, pad)) for values in (deltas, temperatures))
    chains.problem.data = (chains.problem.data[0], *padded)


def _part_size(chains: int, threads: int) -> int:
    """Return the number of chains per part: equal for all, if possible one part per thread."""
    share = -(-chains // threads)
    return max(size for size in range(1, min(share, MAX_CHAINS_PER_PART) + 1) if chains % size == 0)


def _enlarge(problem: AnnealedProblem, times: int) -> AnnealedProblem:
    for _ in range(times):
        problem = problem.with_more_slots()
    return problem


def pilot_schedule(
    problem: AnnealedProblem, seed: int, progress: bool | None = None
) -> tuple[AnnealedProblem, Schedule]:
    """Find temperatures at which each step keeps 90 % of its effective sample size.

    Returns the problem as well, with more slots if the pilot needed them.
    """
    key_parts = (problem.config, jax.tree.leaves(problem.data), seed)
    with (
        jax.enable_x64(True),
        checkpointed_task("pilot", *key_parts) as checkpoint,
        progress_bar("pilot", MAX_PILOT_STEPS, progress) as tick,
    ):
        enlargements = 0 if checkpoint.state is None else int(checkpoint.state["enlargements"])
        while True:
            try:
                larger = _enlarge(problem, enlargements)
                temperatures = _run_pilot(larger, seed, checkpoint, enlargements, tick)
            except _OutOfSlotsError:
                enlargements, checkpoint.state = enlargements + 1, None
            else:
                return larger, Schedule(temperatures, 1.0 / PILOT_EFFICIENCY - 1.0)


def _run_pilot(
    problem: AnnealedProblem, seed: int, checkpoint: CheckpointedTask, enlargements: int, tick: Tick
) -> FloatArray:
    """Run the pilot's chains, from their checkpoint if there is one; return the temperatures."""
    key = jax.random.fold_in(jax.random.key(seed), 7)
    chains, temperatures = _annealed_chains(problem, PILOT_CHAINS, key), np.zeros(1)
    if checkpoint.state is not None:
        chains.restore(checkpoint.state)
        temperatures = checkpoint.state["temperatures"]
    while temperatures[-1] < 1.0 and chains.done < MAX_PILOT_STEPS:
        logs = np.concatenate([state.log_likelihood for state in chains.states])
        new = _next_temperature(temperatures[-1], logs)
        temperatures = np.append(temperatures, new)
        _set_schedule(chains, np.diff(temperatures), temperatures[1:])
        for _ in chains.chunks(chains.done + 1):
            saved = chains.snapshot(temperatures=temperatures, enlargements=enlargements)
            checkpoint.update(saved)
        tick(1, f"temperature {new:.3g}")
    checkpoint.finish(chains.snapshot(temperatures=temperatures, enlargements=enlargements))
    return temperatures if temperatures[-1] == 1.0 else np.append(temperatures, 1.0)


class _Batches(NamedTuple):
    """Parameters of batches, each run by a worker of an executor, or by this process.

    Attributes
    ----------
    config
        Configuration of the problem, which may have more slots than when it was built.
    enlargements
        How many times slots have to be added to it.
    temperatures
        From 0 to 1.
    chains, seed
        Number of chains in all batches, and their common seed.
    size, threads
        Number of chains in a batch, and of the threads that run them.
    first, starts
        Initial states of the chains from number ``first`` on, by name; None for forward chains.
    """

    config: AnnealedConfig
    enlargements: int
    temperatures: FloatArray
    chains: int
    seed: int
    size: int
    threads: int
    first: int
    starts: dict[str, NDArray] | None


def _run_batch(
    problem: Any,
    batches: _Batches,
    first: int,
    checkpoint: CheckpointedTask | None = None,
    tick: Tick = lambda *_: None,
) -> Arrays:
    """Run the batch whose first chain has this number; return its log weights."""
    temperatures, starts, ticked = batches.temperatures, batches.starts, 0
    deltas, at, purpose = np.diff(temperatures), temperatures[1:], 10
    if starts is not None:
        here = slice(first - batches.first, first - batches.first + batches.size)
        starts = {name: values[here] for name, values in starts.items()}
        deltas, at, purpose = deltas[::-1], temperatures[:-1][::-1], 11
    checkpoint = checkpoint or CheckpointedTask(None)
    saved, checkpoint.state = checkpoint.state or None, None
    enlargements = batches.enlargements if saved is None else int(saved["enlargements"])
    problem = _enlarge(replace(problem, config=batches.config), enlargements)
    only = slice(first, min(first + batches.size, batches.chains))
    with jax.enable_x64(True):
        key = jax.random.fold_in(jax.random.key(batches.seed), purpose)
        while True:
            try:
                chains = _annealed_chains(
                    problem, batches.chains, key, starts, only, batches.threads
                )
                _set_schedule(chains, deltas, at)
                if saved is not None:
                    chains.restore(saved)
                tick((chains.done - ticked) * (only.stop - first))
                ticked = chains.done
                for size, _ in chains.chunks(len(deltas)):
                    checkpoint.update(chains.snapshot(enlargements=enlargements))
                    tick(size * (only.stop - first), "forwards" if starts is None else "backwards")
                    ticked += size
                log_weights = np.concatenate([state.log_weight for state in chains.states])
                return {"log_weights": log_weights, "enlargements": np.asarray(enlargements)}
            except _OutOfSlotsError:
                problem, enlargements, saved = problem.with_more_slots(), enlargements + 1, None


def anneal(
    problem: AnnealedProblem,
    schedule: Schedule,
    *,
    chains: int,
    seed: int,
    starts: dict[str, NDArray] | None = None,
    progress: bool | None = None,
    workers: tuple[Executor, Placed] | None = None,
) -> tuple[AnnealedProblem, FloatArray]:
    """Run chains forwards from the base, or backwards from ``starts``, draws from the target.

    They run in batches, so that those that are finished count at Ctrl-C.

    Parameters
    ----------
    starts
        Draws ``(chains, ...)`` by name, as a sampler returns them.
    workers
        Executor that runs the batches, and the problem as placed on it.

    Returns
    -------
    problem
        The problem, with more slots if chains needed them.
    log_weights : (chains, B)
        Log weights of every independent factor.
    """
    temperatures, steps = schedule.temperatures, len(schedule.temperatures) - 1
    key_parts = (problem.config, jax.tree.leaves(problem.data), temperatures, chains, seed)
    kind = "annealing" if workers is None else "spread-annealing"
    threads = num_cores() if workers is None else 1
    size = MAX_CHAINS_PER_PART * threads if workers is None else CHAINS_PER_TASK
    together = size * (1 if workers is None else workers[1].num_blocks)
    done: list[Arrays] = []
    with (
        checkpointed_task(kind, *key_parts, jax.tree.leaves(starts)) as checkpoint,
        progress_bar("annealing", chains * steps, progress) as tick,
    ):
        done += checkpoint.pieces
        tick(len(_weights(done)) * steps)
        try:
            while (first := len(_weights(done))) < chains:
                now = slice(first, first + together)
                own = None if starts is None else {k: v[now] for k, v in starts.items()}
                numbers = (chains, seed, size, threads, first)
                batches = _Batches(problem.config, _enlargements(done), temperatures, *numbers, own)
                if workers is None:
                    found = [_run_batch(problem, batches, first, checkpoint, tick)]
                else:
                    tasks = range(first, chains, size)
                    found = run_on_workers(*workers, _run_batch, batches, tasks)
                    tick(len(_weights(found)) * steps)
                done += found
                checkpoint.update(dict, *found)
            checkpoint.finish()
        except KeyboardInterrupt:
            checkpoint.save()
            raise PartialResultInterrupt(_weights(done)) from None
    return _enlarge(problem, _enlargements(done)), _weights(done)


def _weights(done: list[Arrays]) -> FloatArray:
    return np.concatenate([each["log_weights"] for each in done]) if done else np.zeros((0, 0))


def _enlargements(done: list[Arrays]) -> int:
    return max((int(each["enlargements"]) for each in done), default=0)


@contextmanager
def annealing_context(
    executor: Executor | None, build_problem: Callable[[], AnnealedProblem]
) -> Iterator[Anneal]:
    """Yield `anneal`, in this process or on an executor, to which the problem is sent once."""
    if executor is None:
        yield anneal
        return
    placed = build_on_workers(executor, build_problem, executor.num_workers)
    try:
        yield partial(anneal, workers=(executor, placed))
    finally:
        placed.release()
