"""Chains of annealed importance sampling as work of an executor, with the same log weights.

Chains have nothing to do with each other. Keys depend on the seed and the number of the chain only,
and a batch has the same chains whoever runs it, so that weights do not depend on where they are
run. The pilot, whose next temperature needs all of its chains, stays here.
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

from bayes_lcs.inference.ais.ais import Schedule, anneal, annealed
from bayes_lcs.inference.ais.driver import AnnealedProblem
from bayes_lcs.runtime.checkpoints import Arrays, CheckpointedTask, checkpointed_task
from bayes_lcs.runtime.executors.protocol import Executor
from bayes_lcs.runtime.executors.worker_problem import WorkerProblem, build_on_workers
from bayes_lcs.runtime.interrupts import PartialResultInterrupt
from bayes_lcs.runtime.progress import progress_bar

__all__ = ["Anneal", "SpreadAnnealing", "annealing_on"]

FloatArray = NDArray[np.float64]

BATCH = 4
"""Chains that a worker runs before it answers: what Ctrl-C can lose of each."""


class Anneal(Protocol):
    """`bayes_lcs.inference.ais.ais.anneal`, here or elsewhere."""

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
        """Run chains; the problem with the room that they needed, and their log weights."""


class _Round(NamedTuple):
    """What is sent for a batch of every worker.

    Attributes
    ----------
    design
        Of the problem as it is now: it may have been given more room since it was posed.
    temperatures
        From 0 to 1.
    chains, seed
        Of all batches together.
    first
        Number of the first worker's batch.
    starts
        Of all chains of this round, by name; None forwards.
    """

    design: Any
    temperatures: FloatArray
    chains: int
    seed: int
    first: int
    starts: dict[str, NDArray] | None


class SpreadAnnealing:
    """`bayes_lcs.inference.ais.ais.anneal` on an executor, to which the problem is sent once.

    Parameters
    ----------
    pose
        Poses the problem where it is worked on.
    """

    def __init__(self, executor: Executor, pose: Callable[[], AnnealedProblem]) -> None:
        self._executor = executor
        self._placed = build_on_workers(executor, pose, executor.num_workers)

    def __enter__(self) -> SpreadAnnealing:
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
        """Run chains; batches that are done are written down, and kept at Ctrl-C."""
        taus = schedule.temperatures
        decisive = (problem.design, jax.tree.leaves(problem.data), taus, chains, seed)
        num_batches, workers = -(-chains // BATCH), self._placed.num_blocks
        done: list[Arrays] = []
        with (
            checkpointed_task("spread-annealing", *decisive, jax.tree.leaves(starts)) as written,
            progress_bar("annealing", chains, progress) as tick,
        ):
            done += written.pieces
            tick(min(BATCH * len(done), chains))
            try:
                while (first := len(done)) < num_batches:
                    mine = slice(BATCH * first, BATCH * (first + workers))
                    own = None if starts is None else {k: v[mine] for k, v in starts.items()}
                    round_ = _Round(problem.design, taus, chains, seed, first, own)
                    answers = self._executor.each(self._placed, _batch, round_)
                    found = [answer for answer in answers if answer is not None]
                    done += found
                    written.update(dict, *found)
                    where = "forwards" if starts is None else "backwards"
                    tick(sum(len(each["log_weights"]) for each in found), where)
                written.finish()
            except KeyboardInterrupt:
                written.save()
                raise PartialResultInterrupt(_weights(done)) from None
        for _ in range(max(int(each["enlargements"]) for each in done)):
            problem = problem.enlarged()
        return problem, _weights(done)


def annealing_on(
    executor: Executor | None, pose: Callable[[], AnnealedProblem]
) -> AbstractContextManager[Anneal]:
    """A context that gives what anneals: here, or on an executor."""
    return nullcontext(anneal) if executor is None else SpreadAnnealing(executor, pose)


def _weights(done: list[Arrays]) -> FloatArray:
    if not done:
        return np.zeros((0, 0))
    return np.concatenate([np.asarray(each["log_weights"]) for each in done])


def _batch(round_: _Round, held: WorkerProblem) -> Arrays | None:
    """The chains that fall to a worker in this round, if there are any left."""
    number = round_.first + held.number
    mine = slice(BATCH * number, min(BATCH * (number + 1), round_.chains))
    if mine.start >= round_.chains:
        return None
    starts = None
    if round_.starts is not None:
        here = slice(BATCH * held.number, BATCH * (held.number + 1))
        starts = {name: values[here] for name, values in round_.starts.items()}
    problem = replace(held.problem, design=round_.design)
    after, log_weights = annealed(
        problem,
        round_.temperatures,
        round_.chains,
        round_.seed,
        starts=starts,
        progress=False,
        written=CheckpointedTask(None),
        only=mine,
    )
    enlargements = 0
    while problem.design != after.design:
        problem, enlargements = problem.enlarged(), enlargements + 1
    return {"log_weights": log_weights, "enlargements": np.asarray(enlargements)}
