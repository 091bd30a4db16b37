"""Log evidence of many groups by annealing from a mean-field base of their partition.

Several chains sample the posterior. The best chain of one half of them gives the mean-field base
(`bayes_lcs.inference.ais.fit_mean_field`); chains annealed from it give the lower bound. Draws of
the other half, which are independent of the base, start the reversed chains that give the upper
bound.

The base is near the posterior, so few temperatures suffice for any number of groups. Annealing from
the prior, or SMC over groups, is infeasible for hundreds of groups. The cost is limited in look-ups
of counts and not in seconds, so that results do not depend on the speed of the machine.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayes_lcs.model_evidence.bidirectional import (
    bidirectional_estimate,
    log_known_labels,
    num_chains_for_precision,
    summarize,
)
from bayes_lcs.model_evidence.log_evidence import LogEvidence
from bayes_lcs.runtime.executors.protocol import Executor
from bayes_lcs.runtime.interrupts import PartialResultInterrupt
from bayes_lcs.runtime.memory import require_memory

if TYPE_CHECKING:
    from bayes_lcs.data.grouped_table import GroupedTable
    from bayes_lcs.inference.ais.ais import Anneal, Schedule
    from bayes_lcs.inference.ais.fit_mean_field import AnchoredLabelling
    from bayes_lcs.inference.ais.partition_mean_field import MeanFieldProblem

__all__ = ["mean_field_ais_evidence"]

FloatArray = NDArray[np.float64]

MAX_LOOKUPS = 2e10
"""Maximum number of look-ups of sampling, and of each bound: about 40 seconds of two cores."""

ASSUMED_NUM_CLUSTERS = 32
"""Number of clusters assumed when sampling is planned."""

MAX_SAMPLED_CHAINS, MIN_SAMPLED_CHAINS = 4, 2
MAX_SWEEPS, MIN_SWEEPS = 1000, 60
"""Range of the number of sweeps of a posterior chain; the first half is warm-up."""

MAX_DRAWS = 64
"""Maximum number of draws per chain, evenly spaced over its second half."""

BASE_SWEEPS = 100

TRIAL_VARIANCE = 0.1
"""Variance of the log weights above which the number of temperatures is increased."""

MIN_TEMPERATURES, MAX_TEMPERATURES = 16, 4096
TRIAL_CHAINS = 16
MIN_CHAINS = 8
"""Enough for bounds that hold for any distribution of the weights."""

SLOW_SWEEP_LOOKUPS, SLOW_CHAINS_PER_CALL = 2e7, 2
"""Sweeps with more look-ups take over 0.1 seconds. Then only a few chains run in one call, because
Ctrl-C and checkpoints keep whole calls only."""


def _memory(num_groups: int, num_dimensions: int, chains: int) -> float:
    """Return the estimated peak memory in bytes; ``docs/memory.md`` has measurements.

    Parameters
    ----------
    num_dimensions
        Number of counts per group, totals included.
    chains
        Number of posterior chains. Each has a buffer of 256 draws, and the scores of the groups.
    """
    return 64.0 * 2**20 + num_groups * (24.0 * num_dimensions + chains * 3000.0 + 12_000.0)


class _SamplingPlan(NamedTuple):
    """Number and length of the posterior chains.

    Half of the chains are for the mean-field base, the other half starts the reversed chains.
    """

    chains: int
    warmup: int
    draws: int
    thin: int


def _plan_sampling(num_groups: int, dimensions: int) -> _SamplingPlan:
    """Return as many chains and sweeps as `MAX_LOOKUPS` allows.

    Examples
    --------
    >>> _plan_sampling(946, 109)
    _SamplingPlan(chains=4, warmup=500, draws=64, thin=7)
    >>> _plan_sampling(100_000, 51)
    _SamplingPlan(chains=2, warmup=30, draws=30, thin=1)
    """
    sweep = float(num_groups * ASSUMED_NUM_CLUSTERS * dimensions)
    affordable = MAX_LOOKUPS / sweep
    chains = (
        MAX_SAMPLED_CHAINS
        if affordable >= 2 * MAX_SAMPLED_CHAINS * MIN_SWEEPS
        else MIN_SAMPLED_CHAINS
    )
    sweeps = int(np.clip(affordable / chains, MIN_SWEEPS, MAX_SWEEPS))
    draws = min(sweeps // 2, MAX_DRAWS)
    return _SamplingPlan(chains, sweeps // 2, draws, sweeps // 2 // draws)


def _sample_partitions(
    model: Any,
    data: GroupedTable,
    plan: _SamplingPlan,
    seed: int,
    progress: bool | None,
    executor: Executor | None,
) -> tuple[NDArray[np.int64], FloatArray]:
    """Sample partitions ``(chains, S, U)`` from the posterior; return them with log joints."""
    from bayes_lcs.inference.draw_posterior import sample_partitions

    return sample_partitions(
        model,
        data,
        draws=plan.draws,
        chains=plan.chains,
        warmup=plan.warmup,
        thin=plan.thin,
        seed=seed,
        progress=progress,
        executor=executor,
    )


def _even_schedule(temperatures: int) -> Schedule:
    from bayes_lcs.inference.ais.ais import Schedule

    return Schedule(np.linspace(0.0, 1.0, temperatures + 1), np.nan)


def _tune_num_temperatures(
    problem: MeanFieldProblem, anneal: Anneal, affordable: float, seed: int, progress: bool | None
) -> tuple[int, FloatArray | None]:
    """Increase the number of temperatures until the log weights of trial chains vary little.

    Parameters
    ----------
    affordable
        Total number of sweeps allowed; if it is too small, there are no trials.

    Returns
    -------
    temperatures, trial
        Number of temperatures, and log weights of the trial chains (None without trials).
    """
    temperatures = MIN_TEMPERATURES
    if affordable < 4 * TRIAL_CHAINS * temperatures:
        return temperatures, None
    while True:
        _, trial = anneal(
            problem, _even_schedule(temperatures), chains=TRIAL_CHAINS, seed=seed, progress=progress
        )
        found = float(trial.var(ddof=1))
        most = min(MAX_TEMPERATURES, affordable / (4 * TRIAL_CHAINS))
        if found <= TRIAL_VARIANCE or 2 * temperatures > most:
            return temperatures, trial
        wanted = temperatures * float(np.clip(found / TRIAL_VARIANCE, 2.0, 8.0))
        temperatures = int(min(wanted, most))


def _run_chains(
    anneal: Anneal,
    problem: MeanFieldProblem,
    schedule: Schedule,
    together: int,
    progress: bool | None,
    chains: int,
    seed: int,
    starts: NDArray[np.int32] | None = None,
) -> FloatArray:
    """Run forward chains, or reversed ones from slots ``(chains, U)``; return ``(chains, 1)``.

    Raises
    ------
    PartialResultInterrupt
        After Ctrl-C, with the log weights of the chains that were finished.
    """
    done: list[FloatArray] = []
    for first in range(0, chains, together):
        some = slice(first, min(first + together, chains))
        own_seed = int(np.random.SeedSequence([seed, first]).generate_state(1)[0])
        own = None if starts is None else {"z": starts[some]}
        try:
            _, found = anneal(
                problem,
                schedule,
                chains=some.stop - some.start,
                seed=own_seed,
                starts=own,
                progress=progress,
            )
        except PartialResultInterrupt as stopped:
            kept = [weights for weights in (*done, stopped.log_weights) if weights.size]
            raise PartialResultInterrupt(
                np.concatenate(kept) if kept else np.zeros((0, 1))
            ) from None
        done.append(found)
    return np.concatenate(done)


def _num_chains(
    trial: FloatArray | None,
    precision: float | None,
    max_chains: int | None,
    num_groups: int,
    temperatures: int,
    affordable: float,
) -> int:
    """Return the number of chains for the precision, within the number of sweeps allowed."""
    most = int(affordable / temperatures) // MIN_CHAINS * MIN_CHAINS
    few = max(min(most, max_chains or most), MIN_CHAINS)
    if trial is None:
        return few
    wanted = num_chains_for_precision(
        trial, precision, max_chains, float(num_groups * temperatures)
    )
    return wanted if precision is not None else min(wanted, few)


def _backward_starts(
    labelling: AnchoredLabelling, draws: NDArray[np.int64], chains: int, seed: int
) -> tuple[list[NDArray[np.int32]], int]:
    """Map evenly spaced draws to slots; return them and the number of draws that have no slots."""
    rng = np.random.default_rng(seed)
    chains = min(chains, len(draws))
    chosen = np.linspace(0, len(draws) - 1, chains).astype(int)
    slots = [labelling.slots(draws[number], rng) for number in chosen]
    placed = [one for one in slots if one is not None]
    return placed, chains - len(placed)


def mean_field_ais_evidence(
    model: Any,
    data: GroupedTable,
    *,
    precision: float | None = None,
    max_chains: int | None = None,
    bracket: bool = True,
    seed: int = 0,
    progress: bool | None = None,
    executor: Executor | None = None,
) -> LogEvidence:
    """Estimate ``log P(X, Y)`` of clustered naive Bayes; all labels must be known.

    Parameters
    ----------
    precision
        Target standard error, which sets the number of chains; see :func:`bayes_lcs.evidence`.
    bracket
        If True, run reversed chains from posterior draws as well, for the upper bound.
    executor
        Executor of the chains; None runs them in this process.
    """
    from bayes_lcs.inference.ais.ais import annealing_context
    from bayes_lcs.inference.ais.fit_mean_field import choose_anchors, fit_mean_field

    labels, cells = data.schema.num_labels, data.schema.num_cells
    dimensions = labels * (cells + data.schema.num_features) + 1
    groups = data.num_groups
    plan = _plan_sampling(groups, dimensions)
    require_memory(
        _memory(groups, dimensions, plan.chains),
        f"the evidence of {groups:,} groups",
        "Take fewer groups, or use a larger machine",
    )
    base = log_known_labels(model, data)
    # Adjacent seeds must not share chains.
    seeds = [int(word) for word in np.random.SeedSequence(seed).generate_state(6)]
    draws, log_joints = _sample_partitions(model, data, plan, seeds[0], progress, executor)
    half = plan.chains // 2
    better = int(log_joints[:half].mean(axis=1).argmax())
    found = choose_anchors(draws[better], int(log_joints[better].argmax()))
    sweep = float(groups * found.num_slots * dimensions)
    affordable = MAX_LOOKUPS / sweep
    problem = fit_mean_field(
        model,
        data,
        found,
        sweeps=int(np.clip(affordable / 8, 8, BASE_SWEEPS)),
        seed=seeds[1],
        progress=progress,
    )
    with annealing_context(executor, problem.builder()) as anneal:
        temperatures, trial = _tune_num_temperatures(
            problem, anneal, affordable, seeds[2], progress
        )
        schedule = _even_schedule(temperatures)
        chains = _num_chains(trial, precision, max_chains, groups, temperatures, affordable)

        together = chains if sweep < SLOW_SWEEP_LOOKUPS else SLOW_CHAINS_PER_CALL
        run = partial(_run_chains, anneal, problem, schedule, together, progress)

        def forwards() -> FloatArray:
            return run(chains, seeds[3])

        def backwards() -> tuple[FloatArray, bool]:
            others = draws[half:].reshape(-1, groups)
            placed, missing = _backward_starts(found, others, chains, seeds[4])
            # The forward chains cannot reach draws without slots: their weight is infinite.
            nowhere = np.full((missing, 1), np.inf)
            if not placed:
                return nowhere, False
            back = run(len(placed), seeds[5], np.array(placed))
            return np.concatenate([back, nowhere]), False

        ends = bidirectional_estimate(base, forwards, backwards if bracket else None)
    how = (
        f"annealed importance sampling from a mean-field base with {found.num_anchors} anchors "
        f"and {found.num_slots} slots, {chains} chains over {temperatures} temperatures"
    )
    return summarize(ends, method="guided", model=model.name, how=how)
