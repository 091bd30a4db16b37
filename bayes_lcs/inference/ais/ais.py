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

from collections.abc import Callable
from typing import NamedTuple

import jax
import numpy as np
from numpy.typing import NDArray

from bayes_lcs.inference.ais.driver import AnnealedChains, AnnealedProblem
from bayes_lcs.runtime.checkpoints import Arrays, CheckpointedTask, checkpointed_task
from bayes_lcs.runtime.interrupts import PartialResultInterrupt
from bayes_lcs.runtime.progress import progress_bar

__all__ = ["Schedule", "anneal", "anneal_chains", "pilot_schedule"]

FloatArray = NDArray[np.float64]

PILOT_CHAINS = 32
PILOT_EFFICIENCY = 0.9
MAX_PILOT_STEPS = 5000


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


def _key(seed: int, purpose: int) -> jax.Array:
    with jax.enable_x64(True):
        return jax.random.fold_in(jax.random.key(seed), purpose)


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


def pilot_schedule(
    problem: AnnealedProblem, seed: int, progress: bool | None = None
) -> tuple[AnnealedProblem, Schedule]:
    """Find temperatures at which each step keeps 90 % of its effective sample size.

    Returns the problem as well, with more slots if the pilot needed them.
    """
    key_parts = (problem.config, jax.tree.leaves(problem.data), seed)
    with (
        checkpointed_task("pilot", *key_parts) as checkpoint,
        progress_bar("pilot", MAX_PILOT_STEPS, progress) as tick,
    ):
        problem, enlargements = _with_saved_slots(problem, checkpoint)
        while True:
            chains = AnnealedChains(problem, PILOT_CHAINS, _key(seed, 7))
            temperatures = [0.0]
            if checkpoint.state is None:
                chains.move(np.zeros(0), np.zeros(0))
            else:
                temperatures = checkpoint.state["temperatures"].tolist()
                chains.restore_snapshot(checkpoint.state, len(temperatures) - 1)
                checkpoint.state = None
            while temperatures[-1] < 1.0 and len(temperatures) <= MAX_PILOT_STEPS:
                new = _next_temperature(temperatures[-1], chains.log_likelihoods)
                chains.move(np.array([new - temperatures[-1]]), np.array([new]))
                temperatures.append(new)
                checkpoint.update(_pilot_state(chains, temperatures, enlargements))
                tick(1, f"temperature {new:.3g}")
            checkpoint.finish(_pilot_state(chains, temperatures, enlargements))
            if temperatures[-1] < 1.0:
                temperatures.append(1.0)
            if not chains.is_out_of_slots():
                variance = 1.0 / PILOT_EFFICIENCY - 1.0
                return problem, Schedule(np.asarray(temperatures), variance)
            problem, enlargements = problem.with_more_slots(), enlargements + 1


def _pilot_state(
    chains: AnnealedChains, temperatures: list[float], enlargements: int
) -> Callable[[], Arrays]:
    """Return a function that gives the current state of a pilot as arrays."""
    states, so_far = chains.snapshot(), tuple(temperatures)
    own = {"temperatures": so_far, "enlargements": enlargements}
    return lambda: {**states(), **{name: np.asarray(value) for name, value in own.items()}}


def _with_saved_slots(
    problem: AnnealedProblem, checkpoint: CheckpointedTask
) -> tuple[AnnealedProblem, int]:
    """Return the problem with as many slots as it had when its chains were saved."""
    enlargements = 0 if checkpoint.state is None else int(checkpoint.state["enlargements"])
    for _ in range(enlargements):
        problem = problem.with_more_slots()
    return problem, enlargements


def anneal(
    problem: AnnealedProblem,
    schedule: Schedule,
    *,
    chains: int,
    seed: int,
    starts: dict[str, NDArray] | None = None,
    progress: bool | None = None,
) -> tuple[AnnealedProblem, FloatArray]:
    """Run chains forwards from the base, or backwards from ``starts``, draws from the target.

    Parameters
    ----------
    starts
        Draws ``(chains, ...)`` by name, as a sampler returns them.

    Returns
    -------
    problem
        The problem, with more slots if chains needed them.
    log_weights : (chains, B)
        Log weights of every independent factor.
    """
    temperatures = schedule.temperatures
    key_parts = (problem.config, jax.tree.leaves(problem.data), temperatures, chains, seed)
    with checkpointed_task("annealing", *key_parts, jax.tree.leaves(starts)) as checkpoint:
        return anneal_chains(
            problem,
            temperatures,
            chains,
            seed,
            starts=starts,
            progress=progress,
            checkpoint=checkpoint,
        )


def anneal_chains(
    problem: AnnealedProblem,
    temperatures: FloatArray,
    chains: int,
    seed: int,
    *,
    starts: dict[str, NDArray] | None,
    progress: bool | None,
    checkpoint: CheckpointedTask,
    only: slice | None = None,
) -> tuple[AnnealedProblem, FloatArray]:
    """Run the chains of `anneal`, or only those of ``only``, with the same weights as among all."""
    deltas = np.diff(temperatures)
    at = temperatures[1:] if starts is None else temperatures[:-1][::-1]
    deltas = deltas if starts is None else deltas[::-1]
    problem, enlargements = _with_saved_slots(problem, checkpoint)
    while True:
        key = _key(seed, 10 if starts is None else 11)
        states = None if starts is None else problem.states(starts)
        annealed = AnnealedChains(problem, chains, key, states, only)
        if annealed.is_out_of_slots():  # at their initial states
            problem, enlargements = problem.with_more_slots(), enlargements + 1
            continue
        try:
            with progress_bar("annealing", chains * len(deltas), progress) as tick:
                extra = {"enlargements": np.asarray(enlargements)}
                log_weights = annealed.move(deltas, at, tick, checkpoint, extra)
        except KeyboardInterrupt:
            if annealed.is_out_of_slots():
                raise
            raise PartialResultInterrupt(annealed.finished_weights(len(deltas))) from None
        if not annealed.is_out_of_slots():
            return problem, log_weights
        problem, enlargements = problem.with_more_slots(), enlargements + 1
        checkpoint.state = None
