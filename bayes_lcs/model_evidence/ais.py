"""Log evidence by annealed importance sampling (AIS), bracketed by forward and reversed chains.

A pilot chain sets the schedule of temperatures. Trial chains refine it until the log weights vary
little, and give the number of chains for the target error. Then that many new chains run. Both
numbers are fixed before the chains of the estimate: adding chains until the error *looks* small
would stop before the large weights occur, when the estimate is too low. Reversed chains that start
at posterior draws give the upper bound.
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
    bidirectional_estimate,
    log_known_labels,
    num_chains_for_precision,
    posterior_starts,
    summarize,
)
from bayes_lcs.model_evidence.log_evidence import LogEvidence
from bayes_lcs.runtime.executors.protocol import Executor

if TYPE_CHECKING:
    from bayes_lcs.data.grouped_table import GroupedTable
    from bayes_lcs.inference.ais.ais import Anneal, Schedule

__all__ = ["annealed_evidence"]

FloatArray = NDArray[np.float64]

TRIAL_CHAINS = 32
MAX_TEMPERATURES = 20_000


def _build_problem(variant: str, model: Any, data: GroupedTable) -> Any:
    if variant == "thesis":
        from bayes_lcs.inference.ais import uncollapsed

        return uncollapsed.build_problem(model, data)
    if isinstance(model, PrototypeModel):
        from bayes_lcs.inference.ais import prototype

        return prototype.build_problem(model, data)
    from bayes_lcs.inference.ais import partition

    return partition.build_problem(model, data)


def _tune_schedule(
    problem: Any, anneal: Anneal, seeds: Sequence[int], progress: bool | None
) -> tuple[Any, Schedule, FloatArray]:
    """Refine the schedule until trial chains have log weights of little variance.

    Returns
    -------
    problem, schedule, trial
        Problem (possibly with more slots), schedule, and log weights of the trial chains.
    """
    from bayes_lcs.inference.ais.ais import pilot_schedule

    problem, pilot = pilot_schedule(problem, seeds[0], progress)
    variance = TARGET_VARIANCE
    while True:
        schedule = pilot.refine(variance, MAX_TEMPERATURES)
        problem, trial = anneal(
            problem, schedule, chains=TRIAL_CHAINS, seed=seeds[1], progress=progress
        )
        # Of the worst part: a product of many parts has many small errors, not one large one.
        worst = float(trial.var(axis=0, ddof=1).max())
        if worst <= 2.0 * TARGET_VARIANCE or len(schedule.temperatures) > MAX_TEMPERATURES:
            return problem, schedule, trial
        variance /= float(np.clip(worst / TARGET_VARIANCE, 2.0, 8.0))


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
    """Estimate ``log P`` of the observed features and labels.

    Parameters
    ----------
    variant : {"collapsed", "thesis"}
        With parameters integrated out, or over labels and parameters as in the thesis, which has
        no reversed chains here.
    precision
        Target standard error, which sets the number of chains, from 64 up to ``max_chains``. See
        :func:`bayes_lcs.evidence`.
    bracket
        If True, run reversed chains as well, for the upper bound.
    executor
        Executor of the chains, including posterior chains; None runs them in this process.
    """
    from bayes_lcs.inference.ais import uncollapsed
    from bayes_lcs.inference.ais.ais import annealing_context

    if variant not in ("collapsed", "thesis"):
        raise ValueError(f"variant must be 'collapsed' or 'thesis', got {variant!r}")
    is_thesis = variant == "thesis"
    build = partial(_build_problem, variant, model, data)
    problem: Any = build()
    base = uncollapsed.log_base(data) if is_thesis else log_known_labels(model, data)
    # Adjacent seeds must not share chains.
    seeds = [int(word) for word in np.random.SeedSequence(seed).generate_state(5)]
    with annealing_context(executor, build) as anneal:
        problem, schedule, trial = _tune_schedule(problem, anneal, seeds[:2], progress)
        items = data.num_groups + int((data.labels < 0).sum())
        work = float(items * len(schedule.temperatures))
        num_chains = num_chains_for_precision(trial, precision, max_chains, work)

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

        estimate = bidirectional_estimate(
            base, forwards, backwards if bracket and not is_thesis else None
        )
    steps = len(schedule.temperatures) - 1
    how = f"annealed importance sampling ({variant}), {num_chains} chains over {steps} temperatures"
    return summarize(estimate, method="ais", model=model.name, how=how)
