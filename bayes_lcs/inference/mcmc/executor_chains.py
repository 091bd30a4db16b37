"""Run MCMC chains as tasks of an executor, with the same draws as in one process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bayes_lcs.inference.mcmc.driver import ChainDraws, ChainProblem, cache_key, run_chains
from bayes_lcs.runtime.checkpoints import Arrays, checkpointed_task
from bayes_lcs.runtime.executors.protocol import Executor
from bayes_lcs.runtime.executors.worker_problem import WorkerProblem, build_on_workers
from bayes_lcs.runtime.progress import progress_bar

__all__ = ["run_chains_on_executor"]

AVERAGES, RATE = "averages", "sweeps_per_second"


def run_chains_on_executor(
    executor: Executor,
    build_problem: Callable[[], ChainProblem],
    problem: ChainProblem,
    *,
    draws: int,
    warmup: int,
    chains: int,
    thin: int,
    seed: int,
    progress: bool | None = None,
) -> ChainDraws:
    """Run `bayes_lcs.inference.mcmc.driver.run_chains` with each chain as a task of an executor.

    The key of a sweep depends only on the chain and on the number of the sweep, so that draws are
    the same. As many chains run at once as there are workers; finished chains are saved to the
    checkpoint. The data are sent to every worker once.

    Parameters
    ----------
    executor
        Executor on which chains run.
    build_problem
        Function that builds the problem on a worker; it is sent in place of the problem's arrays.
    problem
        The problem as built in this process, for the cache key of the checkpoint.
    draws, warmup, chains, thin, seed, progress
        As for `run_chains`.
    """
    numbers = {"draws": draws, "warmup": warmup, "chains": chains, "thin": thin, "seed": seed}
    with (
        checkpointed_task("spread-sampling", *cache_key(problem, *numbers.values())) as checkpoint,
        progress_bar("chains", chains, progress) as tick,
    ):
        done: list[Arrays] = list(checkpoint.pieces)
        tick(len(done))
        placed = build_on_workers(executor, build_problem, chains - len(done))
        try:
            while len(done) < chains:
                answers = executor.each(placed, _one_chain, (numbers, len(done)))
                found = [answer for answer in answers if answer is not None]
                done += found
                checkpoint.update(dict, *found)
                tick(len(found))
        finally:
            placed.release()
        checkpoint.finish()
    names = [name for name in done[0] if name not in (AVERAGES, RATE)]
    info = {name: np.concatenate([piece[name] for piece in done]) for name in names}
    averages = np.concatenate([piece[AVERAGES] for piece in done])
    return ChainDraws(info, averages, False, float(sum(piece[RATE] for piece in done)))


def _one_chain(params: tuple[dict[str, int], int], worker: WorkerProblem) -> Arrays | None:
    """Run the chain assigned to a worker, given the number of finished chains."""
    numbers, first = params
    chain = first + worker.number
    if chain >= numbers["chains"]:
        return None
    found = run_chains(worker.problem, **numbers, progress=False, only=chain)
    if found.interrupted:
        raise KeyboardInterrupt  # chains must have equally many draws, so discard a partial one
    own: dict[str, Any] = {AVERAGES: found.averages, RATE: np.asarray(found.sweeps_per_second)}
    return {**found.info, **own}
