"""Chains of a kernel as tasks of an executor, with the draws that they have side by side."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bayes_lcs.inference.mcmc.driver import ChainDraws, ChainProblem, decisive_of, run_chains
from bayes_lcs.runtime.checkpoints import Arrays, checkpointed_task
from bayes_lcs.runtime.executors.protocol import Executor
from bayes_lcs.runtime.executors.worker_problem import WorkerProblem, build_on_workers
from bayes_lcs.runtime.progress import progress_bar

__all__ = ["spread_chains"]

AVERAGES, RATE = "averages", "sweeps_per_second"


def spread_chains(
    executor: Executor,
    pose: Callable[[], ChainProblem],
    problem: ChainProblem,
    *,
    draws: int,
    warmup: int,
    chains: int,
    thin: int,
    seed: int,
    progress: bool | None = None,
) -> ChainDraws:
    """`bayes_lcs.inference.mcmc.driver.run_chains`, each chain wherever the executor runs it.

    The key of a sweep depends on the chain and on the number of the sweep only, so that draws are
    the same. As many chains as there are workers are under way at once; those that are done are
    written down. The data go to every worker once.

    Parameters
    ----------
    executor
        Where chains run.
    pose
        Poses the problem there: it is sent in place of the problem's arrays.
    problem
        As it is posed here, to know it again.
    draws, warmup, chains, thin, seed, progress
        As of `run_chains`.
    """
    numbers = {"draws": draws, "warmup": warmup, "chains": chains, "thin": thin, "seed": seed}
    with (
        checkpointed_task("spread-sampling", *decisive_of(problem, *numbers.values())) as written,
        progress_bar("chains", chains, progress) as tick,
    ):
        done: list[Arrays] = list(written.pieces)
        tick(len(done))
        placed = build_on_workers(executor, pose, chains - len(done))
        try:
            while len(done) < chains:
                answers = executor.each(placed, _one_chain, (numbers, len(done)))
                found = [answer for answer in answers if answer is not None]
                done += found
                written.update(dict, *found)
                tick(len(found))
        finally:
            placed.release()
        written.finish()
    names = [name for name in done[0] if name not in (AVERAGES, RATE)]
    info = {name: np.concatenate([piece[name] for piece in done]) for name in names}
    averages = np.concatenate([piece[AVERAGES] for piece in done])
    return ChainDraws(info, averages, False, float(sum(piece[RATE] for piece in done)))


def _one_chain(params: tuple[dict[str, int], int], held: WorkerProblem) -> Arrays | None:
    """The chain that falls to a worker, given how many are done."""
    numbers, first = params
    chain = first + held.number
    if chain >= numbers["chains"]:
        return None
    found = run_chains(held.problem, **numbers, progress=False, only=chain)
    if found.interrupted:
        raise KeyboardInterrupt  # part of a chain fits to none of the others
    own: dict[str, Any] = {AVERAGES: found.averages, RATE: np.asarray(found.sweeps_per_second)}
    return {**found.info, **own}
