"""Run chains of annealed importance sampling on an executor, with the same log weights.

Chains are independent. Keys depend only on the seed and the number of the chain, and a batch holds
the same chains on any worker, so that weights do not depend on where they are computed. The pilot,
whose next temperature needs all of its chains, runs in this process.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from types import TracebackType
from typing import Any, NamedTuple, Protocol

import jax
import numpy as np
from numpy.typing import NDArray

from bayes_lcs.inference.ais.ais import Schedule, anneal, anneal_chains
from bayes_lcs.inference.ais.driver import AnnealedProblem
from bayes_lcs.runtime.checkpoints import Arrays, CheckpointedTask, checkpointed_task
from bayes_lcs.runtime.executors.protocol import Executor
from bayes_lcs.runtime.executors.worker_problem import WorkerProblem, build_on_workers
from bayes_lcs.runtime.interrupts import PartialResultInterrupt
from bayes_lcs.runtime.progress import progress_bar

__all__ = ["Anneal", "ExecutorAnnealing", "annealing_context"]

FloatArray = NDArray[np.float64]

BATCH = 4
"""Chains that a worker runs in one task, and so at most what Ctrl-C can lose per worker."""


class Anneal(Protocol):
    """Signature of `bayes_lcs.inference.ais.ais.anneal`, in this process or on an executor."""

    def __call__(
        self,
        problem: AnnealedProblem,
        schedule: Schedule,
        *,
        chains: int,
        seed: int,
        starts: dict[str, NDArray] | None = None,
        progress: bool | None = None,
    ) -> tuple[AnnealedProblem, FloatArray]:
        """Run chains; return the problem with the slots that they needed, and their log weights."""


class _Round(NamedTuple):
    """Parameters of a task that runs one batch on every worker.

    Attributes
    ----------
    config
        Current configuration of the problem, which may have more slots than when it was built.
    temperatures
        From 0 to 1.
    chains, seed
        Number of chains in all batches, and their common seed.
    first
        Number of the first worker's batch.
    starts
        Initial states of the chains of this round by name, for backward chains; None for forward
        chains.
    """

    config: Any
    temperatures: FloatArray
    chains: int
    seed: int
    first: int
    starts: dict[str, NDArray] | None


class ExecutorAnnealing:
    """Run `bayes_lcs.inference.ais.ais.anneal` on an executor, to which the problem is sent once.

    Parameters
    ----------
    build_problem
        Function that builds the problem on a worker.
    """

    def __init__(self, executor: Executor, build_problem: Callable[[], AnnealedProblem]) -> None:
        self._executor = executor
        self._placed = build_on_workers(executor, build_problem, executor.num_workers)

    def __enter__(self) -> ExecutorAnnealing:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._placed.release()

    def __call__(
        self,
        problem: AnnealedProblem,
        schedule: Schedule,
        *,
        chains: int,
        seed: int,
        starts: dict[str, NDArray] | None = None,
        progress: bool | None = None,
    ) -> tuple[AnnealedProblem, FloatArray]:
        """Run chains; finished batches are saved to the checkpoint, and kept at Ctrl-C."""
        temperatures = schedule.temperatures
        key_parts = (problem.config, jax.tree.leaves(problem.data), temperatures, chains, seed)
        num_batches, workers = -(-chains // BATCH), self._placed.num_blocks
        done: list[Arrays] = []
        with (
            checkpointed_task(
                "spread-annealing", *key_parts, jax.tree.leaves(starts)
            ) as checkpoint,
            progress_bar("annealing", chains, progress) as tick,
        ):
            done += checkpoint.pieces
            tick(min(BATCH * len(done), chains))
            try:
                while (first := len(done)) < num_batches:
                    mine = slice(BATCH * first, BATCH * (first + workers))
                    own = None if starts is None else {k: v[mine] for k, v in starts.items()}
                    round_ = _Round(problem.config, temperatures, chains, seed, first, own)
                    answers = self._executor.each(self._placed, _run_batch, round_)
                    found = [answer for answer in answers if answer is not None]
                    done += found
                    checkpoint.update(dict, *found)
                    where = "forwards" if starts is None else "backwards"
                    tick(sum(len(each["log_weights"]) for each in found), where)
                checkpoint.finish()
            except KeyboardInterrupt:
                checkpoint.save()
                raise PartialResultInterrupt(_weights(done)) from None
        for _ in range(max(int(each["enlargements"]) for each in done)):
            problem = problem.with_more_slots()
        return problem, _weights(done)


def annealing_context(
    executor: Executor | None, build_problem: Callable[[], AnnealedProblem]
) -> AbstractContextManager[Anneal]:
    """Return a context manager that gives `anneal`, in this process or on an executor."""
    return nullcontext(anneal) if executor is None else ExecutorAnnealing(executor, build_problem)


def _weights(done: list[Arrays]) -> FloatArray:
    if not done:
        return np.zeros((0, 0))
    return np.concatenate([np.asarray(each["log_weights"]) for each in done])


def _run_batch(round_: _Round, worker: WorkerProblem) -> Arrays | None:
    """Run the batch of a worker in this round; return None if no chains are left."""
    number = round_.first + worker.number
    mine = slice(BATCH * number, min(BATCH * (number + 1), round_.chains))
    if mine.start >= round_.chains:
        return None
    starts = None
    if round_.starts is not None:
        here = slice(BATCH * worker.number, BATCH * (worker.number + 1))
        starts = {name: values[here] for name, values in round_.starts.items()}
    problem = replace(worker.problem, config=round_.config)
    after, log_weights = anneal_chains(
        problem,
        round_.temperatures,
        round_.chains,
        round_.seed,
        starts=starts,
        progress=False,
        checkpoint=CheckpointedTask(None),
        only=mine,
    )
    enlargements = 0
    while problem.config != after.config:
        problem, enlargements = problem.with_more_slots(), enlargements + 1
    return {"log_weights": log_weights, "enlargements": np.asarray(enlargements)}
