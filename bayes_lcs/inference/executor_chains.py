"""Run chains of MCMC or AIS as tasks of an executor, with the same numbers as in one process.

Keys of random numbers depend only on the seed, the chain and the sweep. The problem is built once
on every worker, so that only numbers and results travel.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from bayes_lcs.inference.chain_driver import ChainDraws, ChainProblem, cache_key, run_chains
from bayes_lcs.runtime.checkpoints import Arrays, checkpointed_task
from bayes_lcs.runtime.executors.protocol import Executor, Placed
from bayes_lcs.runtime.progress import progress_bar

__all__ = ["build_on_workers", "run_chains_on_executor", "run_on_workers"]

AVERAGES, RATE = "averages", "sweeps_per_second"


class _WorkerProblem(NamedTuple):
    """A problem as built on the worker of this number."""

    number: int
    problem: Any


def build_on_workers(executor: Executor, build_problem: Callable[[], Any], most: int) -> Placed:
    """Build the problem on every worker, or on ``most`` of them.

    ``build_problem`` is sent in place of the problem's arrays, which need 64 bits.
    """
    numbers = range(max(min(executor.num_workers, most), 1))
    return executor.place(partial(_build, build_problem), list(numbers))


def _build(build_problem: Callable[[], Any], number: int) -> _WorkerProblem:
    problem: Any = build_problem()
    if len(jax.devices()) > 1:
        # Chains run in threads, which do not know the device of their worker.
        with jax.enable_x64(True):
            problem = replace(problem, data=jax.device_put(problem.data, jnp.zeros(()).device))
    return _WorkerProblem(number, problem)


def run_on_workers(
    executor: Executor, placed: Placed, run: Callable[..., Arrays], params: Any, tasks: range
) -> list[Arrays]:
    """Return ``run(problem, params, task)`` of the first tasks, one for each worker."""
    answers = executor.each(placed, partial(_run_task, run), (params, tasks))
    return [answer for answer in answers if answer is not None]


def _run_task(
    run: Callable[..., Arrays], sent: tuple[Any, range], worker: _WorkerProblem
) -> Arrays | None:
    params, tasks = sent
    if worker.number >= len(tasks):
        return None
    return run(worker.problem, params, tasks[worker.number])


def run_chains_on_executor(
    executor: Executor,
    build_problem: Callable[[], ChainProblem],
    *,
    progress: bool | None = None,
    **numbers: int,
) -> ChainDraws:
    """Run `bayes_lcs.inference.chain_driver.run_chains` with each chain as a task of an executor.

    As many chains run at once as there are workers; finished chains are saved to the checkpoint.

    Parameters
    ----------
    executor
        Executor on which chains run.
    build_problem
        Function that builds the problem on a worker.
    progress, **numbers
        As for `run_chains`.
    """
    chains, problem = numbers["chains"], build_problem()
    with (
        checkpointed_task("spread-sampling", *cache_key(problem, *numbers.values())) as checkpoint,
        progress_bar("chains", chains, progress) as tick,
    ):
        done: list[Arrays] = list(checkpoint.pieces)
        tick(len(done))
        placed = build_on_workers(executor, build_problem, chains - len(done))
        try:
            while len(done) < chains:
                left = range(len(done), chains)
                found = run_on_workers(executor, placed, _run_chain, numbers, left)
                done += found
                checkpoint.update(dict, *found)
                tick(len(found))
        finally:
            placed.release()
        checkpoint.finish()
    info = {name: np.concatenate([piece[name] for piece in done]) for name in done[0]}
    return ChainDraws(info, info.pop(AVERAGES), False, float(info.pop(RATE).sum()))


def _run_chain(problem: ChainProblem, numbers: dict[str, int], chain: int) -> Arrays:
    found = run_chains(problem, **numbers, progress=False, only=chain)
    if found.interrupted:
        raise KeyboardInterrupt  # chains must have equally many draws, so discard a partial one
    return {**found.info, AVERAGES: found.averages, RATE: np.array([found.sweeps_per_second])}
