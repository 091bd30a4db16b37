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

from collections.abc import Callable
from typing import NamedTuple

import jax
import numpy as np
from numpy.typing import NDArray

from bayes_lcs.inference.ais.driver import AnnealedChains, AnnealedProblem
from bayes_lcs.runtime.checkpoints import Arrays, CheckpointedTask, checkpointed_task
from bayes_lcs.runtime.interrupts import PartialResultInterrupt
from bayes_lcs.runtime.progress import progress_bar

__all__ = ["Schedule", "anneal", "annealed", "pilot_schedule"]

FloatArray = NDArray[np.float64]

PILOT_CHAINS = 32
PILOT_EFFICIENCY = 0.9
MOST_PILOT_STEPS = 5000


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


def _key(seed: int, purpose: int) -> jax.Array:
    with jax.enable_x64(True):
        return jax.random.fold_in(jax.random.key(seed), purpose)


def _next_temperature(temperature: float, logs: FloatArray) -> float:
    """How far the efficiency of the worst part allows to go; ``logs`` ``(chains, B)``."""

    def good(step: float) -> bool:
        weights = np.exp(step * (logs - logs.max(axis=0)))
        efficiency = weights.mean(axis=0) ** 2 / (weights**2).mean(axis=0)
        return bool(efficiency.min() >= PILOT_EFFICIENCY)

    left = 1.0 - temperature
    if good(left):
        return 1.0
    low, high = left * 1e-9, left
    for _ in range(60):
        middle = np.sqrt(low * high)
        low, high = (middle, high) if good(middle) else (low, middle)
    return temperature + low


def pilot_schedule(
    problem: AnnealedProblem, seed: int, progress: bool | None = None
) -> tuple[AnnealedProblem, Schedule]:
    """Temperatures at which each step keeps 90 % of its effective sample size.

    Returns the problem too, with more room if the pilot needed it.
    """
    decisive = (problem.design, jax.tree.leaves(problem.data), seed)
    with (
        checkpointed_task("pilot", *decisive) as written,
        progress_bar("pilot", MOST_PILOT_STEPS, progress) as tick,
    ):
        problem, enlargements = _enlarged(problem, written)
        while True:
            chains = AnnealedChains(problem, PILOT_CHAINS, _key(seed, 7))
            temperatures = [0.0]
            if written.state is None:
                chains.move(np.zeros(0), np.zeros(0))
            else:
                temperatures = written.state["temperatures"].tolist()
                chains.restored(written.state, len(temperatures) - 1)
                written.state = None
            while temperatures[-1] < 1.0 and len(temperatures) <= MOST_PILOT_STEPS:
                new = _next_temperature(temperatures[-1], chains.log_likelihoods)
                chains.move(np.array([new - temperatures[-1]]), np.array([new]))
                temperatures.append(new)
                written.update(_reached(chains, temperatures, enlargements))
                tick(1, f"temperature {new:.3g}")
            written.finish(_reached(chains, temperatures, enlargements))
            if temperatures[-1] < 1.0:
                temperatures.append(1.0)
            if not chains.has_overflowed():
                variance = 1.0 / PILOT_EFFICIENCY - 1.0
                return problem, Schedule(np.asarray(temperatures), variance)
            problem, enlargements = problem.enlarged(), enlargements + 1


def _reached(
    chains: AnnealedChains, temperatures: list[float], enlargements: int
) -> Callable[[], Arrays]:
    """What gives the state of a pilot as it is now."""
    states, so_far = chains.snapshot(), tuple(temperatures)
    own = {"temperatures": so_far, "enlargements": enlargements}
    return lambda: {**states(), **{name: np.asarray(value) for name, value in own.items()}}


def _enlarged(problem: AnnealedProblem, written: CheckpointedTask) -> tuple[AnnealedProblem, int]:
    """The problem with the room that it had when its chains were written down."""
    enlargements = 0 if written.state is None else int(written.state["enlargements"])
    for _ in range(enlargements):
        problem = problem.enlarged()
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
        Draws ``(chains, ...)`` by name, as a sampler left them.

    Returns
    -------
    problem
        With more room if chains needed it.
    log_weights : (chains, B)
        Of every independent part.
    """
    taus = schedule.temperatures
    decisive = (problem.design, jax.tree.leaves(problem.data), taus, chains, seed)
    with checkpointed_task("annealing", *decisive, jax.tree.leaves(starts)) as written:
        return annealed(
            problem, taus, chains, seed, starts=starts, progress=progress, written=written
        )


def annealed(
    problem: AnnealedProblem,
    temperatures: FloatArray,
    chains: int,
    seed: int,
    *,
    starts: dict[str, NDArray] | None,
    progress: bool | None,
    written: CheckpointedTask,
    only: slice | None = None,
) -> tuple[AnnealedProblem, FloatArray]:
    """`anneal`, or just the chains ``only``, which are the same as among all."""
    deltas = np.diff(temperatures)
    at = temperatures[1:] if starts is None else temperatures[:-1][::-1]
    deltas = deltas if starts is None else deltas[::-1]
    problem, enlargements = _enlarged(problem, written)
    while True:
        key = _key(seed, 10 if starts is None else 11)
        states = None if starts is None else problem.states(starts)
        moved = AnnealedChains(problem, chains, key, states, only)
        if moved.has_overflowed():  # by what they start from
            problem, enlargements = problem.enlarged(), enlargements + 1
            continue
        try:
            with progress_bar("annealing", chains * len(deltas), progress) as tick:
                beside = {"enlargements": np.asarray(enlargements)}
                log_weights = moved.move(deltas, at, tick, written, beside)
        except KeyboardInterrupt:
            if moved.has_overflowed():
                raise
            raise PartialResultInterrupt(moved.finished_weights(len(deltas))) from None
        if not moved.has_overflowed():
            return problem, log_weights
        problem, enlargements = problem.enlarged(), enlargements + 1
        written.state = None
