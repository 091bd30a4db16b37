"""Log evidence by annealed importance sampling, with a bracket from both ends.

A pilot sets the temperatures; trial chains raise their number until the log weights spread
little, and tell how many chains the wanted error needs. Then that many new chains run. Both numbers
are fixed before the first weight that counts: chains that are added until the error *looks* small
stop early where the large weights have not come yet, which is where the estimate is too low.
Reversed chains that begin at draws from the posterior give the upper end of the bracket.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bayes_lcs.core.model_protocols import PrototypeModel
from bayes_lcs.model_evidence.bidirectional import (
    TARGET_VARIANCE,
    chains_for,
    concluded,
    from_both_ends,
    log_known_labels,
    posterior_starts,
)
from bayes_lcs.model_evidence.log_evidence import LogEvidence
from bayes_lcs.runtime.executors.protocol import Executor

if TYPE_CHECKING:
    from bayes_lcs.data.grouped_table import GroupedTable
    from bayes_lcs.inference.ais.ais import Schedule
    from bayes_lcs.inference.ais.executor_chains import Anneal

__all__ = ["annealed_evidence"]

FloatArray = NDArray[np.float64]

TRIAL_CHAINS = 32
MOST_TEMPERATURES = 20_000


def _pose(variant: str, model: Any, data: GroupedTable) -> Any:
    if variant == "thesis":
        from bayes_lcs.inference.ais import uncollapsed

        return uncollapsed.build_problem(model, data)
    if isinstance(model, PrototypeModel):
        from bayes_lcs.inference.ais import prototype

        return prototype.build_problem(model, data)
    from bayes_lcs.inference.ais import partition

    return partition.build_problem(model, data)


def _settle(
    problem: Any, anneal: Anneal, seeds: Sequence[int], progress: bool | None
) -> tuple[Any, Schedule, FloatArray]:
    """Temperatures at which trial chains have log weights of little variance, and those weights."""
    from bayes_lcs.inference.ais.ais import pilot_schedule

    problem, pilot = pilot_schedule(problem, seeds[0], progress)
    variance = TARGET_VARIANCE
    while True:
        schedule = pilot.refine(variance, MOST_TEMPERATURES)
        problem, trial = anneal(
            problem, schedule, chains=TRIAL_CHAINS, seed=seeds[1], progress=progress
        )
        # Of the worst part; a product of many parts has many small errors, not one large one.
        found = float(trial.var(axis=0, ddof=1).max())
        if found <= 2.0 * TARGET_VARIANCE or len(schedule.temperatures) > MOST_TEMPERATURES:
            return problem, schedule, trial
        variance /= float(np.clip(found / TARGET_VARIANCE, 2.0, 8.0))


def annealed_evidence(
    model: Any,
    data: GroupedTable,
    *,
    precision: float | None = None,
    max_chains: int | None = None,
    bracket: bool = True,
    variant: str = "collapsed",
    seed: int = 0,
    progress: bool | None = None,
    executor: Executor | None = None,
) -> LogEvidence:
    """``log P`` of all that was observed: features, and the labels that are known.

    Parameters
    ----------
    variant : {"collapsed", "thesis"}
        With parameters integrated out, or over labels and parameters as in the thesis, which has
        no reversed chains here.
    precision
        Standard error that the number of chains aims at; never more than ``max_chains``, and
        never fewer than 64 unless that is less. None as for :func:`bayes_lcs.evidence`.
    bracket
        Whether to run reversed chains too, for the upper end.
    executor
        Where chains run, those that draw from the posterior too; None is this process.
    """
    from bayes_lcs.inference.ais import uncollapsed
    from bayes_lcs.inference.ais.executor_chains import annealing_context

    if variant not in ("collapsed", "thesis"):
        raise ValueError(f"variant must be 'collapsed' or 'thesis', got {variant!r}")
    is_thesis = variant == "thesis"
    build_problem = partial(_pose, variant, model, data)
    problem: Any = build_problem()
    base = uncollapsed.log_base(data) if is_thesis else log_known_labels(model, data)
    # Seeds next to each other must not share chains.
    seeds = [int(word) for word in np.random.SeedSequence(seed).generate_state(5)]
    with annealing_context(executor, build_problem) as anneal:
        problem, schedule, trial = _settle(problem, anneal, seeds[:2], progress)
        items = data.num_groups + int((data.labels < 0).sum())
        work = float(items * len(schedule.temperatures))
        num_chains = chains_for(trial, precision, max_chains, work)

        def forwards() -> FloatArray:
            nonlocal problem
            problem, log_weights = anneal(
                problem, schedule, chains=num_chains, seed=seeds[2], progress=progress
            )
            return log_weights

        def backwards() -> tuple[FloatArray, bool]:
            starts, rigorous = posterior_starts(
                model, data, num_chains, seeds[3], progress, executor
            )
            _, log_weights = anneal(
                problem,
                schedule,
                chains=num_chains,
                seed=seeds[4],
                starts=starts,
                progress=progress,
            )
            return log_weights, rigorous

        found = from_both_ends(base, forwards, backwards if bracket and not is_thesis else None)
    steps = len(schedule.temperatures) - 1
    how = f"annealed importance sampling ({variant}), {num_chains} chains over {steps} temperatures"
    return concluded(found, method="ais", model=model.name, how=how)
