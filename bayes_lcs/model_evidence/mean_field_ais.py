"""Log evidence of many groups by annealing from a guide to their partition.

Some chains are drawn from the posterior. The better half of one half of them makes the guide
(`bayes_lcs.inference.ais.fit_mean_field`); chains annealed from it give the lower end. Draws of the
other half, which the guide does not know, begin the runs backwards that give the upper end.

Near the posterior few temperatures are enough, however many groups there are; from the prior, or
one group after the other, hundreds of groups are out of reach. What all of it may cost is counted
in look-ups of counts, never in seconds: the numbers must not depend on the clock.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayes_lcs.model_evidence.bidirectional import (
    chains_for,
    concluded,
    from_both_ends,
    log_known_labels,
)
from bayes_lcs.model_evidence.log_evidence import LogEvidence
from bayes_lcs.runtime.executors.protocol import Executor
from bayes_lcs.runtime.interrupts import RunsInterrupted
from bayes_lcs.runtime.memory import require_memory

if TYPE_CHECKING:
    from bayes_lcs.data.grouped_table import GroupedTable
    from bayes_lcs.inference.ais.ais import Schedule
    from bayes_lcs.inference.ais.executor_chains import Anneal
    from bayes_lcs.inference.ais.fit_mean_field import AnchoredLabelling
    from bayes_lcs.inference.ais.partition_mean_field import MeanFieldProblem

__all__ = ["guided_evidence"]

FloatArray = NDArray[np.float64]

AFFORDABLE = 2e10
"""Look-ups that drawing, and each of the two ends, may take: 40 seconds or so of two cores."""

SUPPOSED_BLOCKS = 32
"""Blocks that sampling is planned for, before it is known how many there are."""

SAMPLED_CHAINS, FEW_SAMPLED_CHAINS = 4, 2
MANY_SWEEPS, FEW_SWEEPS = 1000, 60
"""Of a chain from the posterior, the first half of them thrown away."""

KEPT_DRAWS = 64
"""Of a chain, at most, evenly from its second half: sweeps apart, nearly independent."""

GUIDE_SWEEPS = 100

TRIAL_VARIANCE = 0.1
"""Of log weights, beyond which there are more temperatures: they are cheap here."""

FEWEST_TEMPERATURES, MOST_TEMPERATURES = 16, 4096
TRIAL_CHAINS = 16
FEWEST_CHAINS = 8
"""Enough for bounds that hold whatever the weights are, if more cannot be afforded."""


LONG_SWEEP, FEW_TOGETHER = 2e7, 2
"""A sweep of so many look-ups takes a tenth of a second. From there on few chains move together:
at Ctrl-C and in checkpoints only whole calls count."""


def _memory(num_groups: int, num_dimensions: int, chains: int) -> float:
    """Return the estimated peak memory in bytes; ``docs/memory.md`` has measurements.

    Parameters
    ----------
    num_dimensions
        Numbers that describe the counts of a group.
    chains
        Chains from the posterior. Each has a buffer of 256 draws, and the scores of the groups.
    """
    return 64.0 * 2**20 + num_groups * (24.0 * num_dimensions + chains * 3000.0 + 12_000.0)


class _Plan(NamedTuple):
    """How long chains from the posterior are.

    Attributes
    ----------
    chains, warmup, draws, thin
        Half of the chains are for the guide, half for the other end.
    """

    chains: int
    warmup: int
    draws: int
    thin: int


def _planned(num_groups: int, dimensions: int) -> _Plan:
    """As many sweeps as can be afforded.

    Examples
    --------
    >>> _planned(946, 109)
    _Plan(chains=4, warmup=500, draws=64, thin=7)
    >>> _planned(100_000, 51)
    _Plan(chains=2, warmup=30, draws=30, thin=1)
    """
    sweep = float(num_groups * SUPPOSED_BLOCKS * dimensions)
    affordable = AFFORDABLE / sweep
    chains = SAMPLED_CHAINS if affordable >= 2 * SAMPLED_CHAINS * FEW_SWEEPS else FEW_SAMPLED_CHAINS
    sweeps = int(np.clip(affordable / chains, FEW_SWEEPS, MANY_SWEEPS))
    draws = min(sweeps // 2, KEPT_DRAWS)
    return _Plan(chains, sweeps // 2, draws, sweeps // 2 // draws)


def _draws(
    model: Any,
    data: GroupedTable,
    plan: _Plan,
    seed: int,
    progress: bool | None,
    executor: Executor | None,
) -> tuple[NDArray[np.int64], FloatArray]:
    """Partitions ``(chains, S, U)`` from the posterior, and their log joint probability."""
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


def _even(temperatures: int) -> Schedule:
    from bayes_lcs.inference.ais.ais import Schedule

    return Schedule(np.linspace(0.0, 1.0, temperatures + 1), np.nan)


def _settle(
    problem: MeanFieldProblem, anneal: Anneal, affordable: float, seed: int, progress: bool | None
) -> tuple[int, FloatArray | None]:
    """Temperatures at which trial chains have log weights of little variance, and those weights.

    Parameters
    ----------
    affordable
        Sweeps of all chains together; where they are too few for trials there are none.
    """
    temperatures = FEWEST_TEMPERATURES
    if affordable < 4 * TRIAL_CHAINS * temperatures:
        return temperatures, None
    while True:
        _, trial = anneal(
            problem, _even(temperatures), chains=TRIAL_CHAINS, seed=seed, progress=progress
        )
        found = float(trial.var(ddof=1))
        most = min(MOST_TEMPERATURES, affordable / (4 * TRIAL_CHAINS))
        if found <= TRIAL_VARIANCE or 2 * temperatures > most:
            return temperatures, trial
        wanted = temperatures * float(np.clip(found / TRIAL_VARIANCE, 2.0, 8.0))
        temperatures = int(min(wanted, most))


def _annealed(
    anneal: Anneal,
    problem: MeanFieldProblem,
    schedule: Schedule,
    together: int,
    progress: bool | None,
    chains: int,
    seed: int,
    starts: NDArray[np.int32] | None = None,
) -> FloatArray:
    """Log weights ``(chains, 1)`` of chains forwards, or backwards from slots ``(chains, U)``.

    Raises
    ------
    RunsInterrupted
        After Ctrl-C, with those of the chains that had come to their end.
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
        except RunsInterrupted as stopped:
            kept = [weights for weights in (*done, stopped.log_weights) if weights.size]
            raise RunsInterrupted(np.concatenate(kept) if kept else np.zeros((0, 1))) from None
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
    most = int(affordable / temperatures) // FEWEST_CHAINS * FEWEST_CHAINS
    few = max(min(most, max_chains or most), FEWEST_CHAINS)
    if trial is None:
        return few
    wanted = chains_for(trial, precision, max_chains, float(num_groups * temperatures))
    return wanted if precision is not None else min(wanted, few)


def _backward_starts(
    found: AnchoredLabelling, draws: NDArray[np.int64], chains: int, seed: int
) -> tuple[list[NDArray[np.int32]], int]:
    """Slots of draws, evenly taken and none twice, that have a place, and how many have none."""
    rng = np.random.default_rng(seed)
    chains = min(chains, len(draws))
    chosen = np.linspace(0, len(draws) - 1, chains).astype(int)
    slots = [found.slots(draws[number], rng) for number in chosen]
    placed = [one for one in slots if one is not None]
    return placed, chains - len(placed)


def guided_evidence(
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
    """``log P(X, Y)`` of clustered naive Bayes where all labels are known.

    Parameters
    ----------
    precision
        Standard error that the number of chains aims at; None as for :func:`bayes_lcs.evidence`.
    bracket
        Whether to run backwards from draws too, for the upper end.
    executor
        Where chains run; None is this process.
    """
    from bayes_lcs.inference.ais.executor_chains import annealing_context
    from bayes_lcs.inference.ais.fit_mean_field import choose_anchors, fit_mean_field

    labels, cells = data.schema.num_labels, data.schema.num_cells
    dimensions = labels * (cells + data.schema.num_features) + 1
    groups = data.num_groups
    plan = _planned(groups, dimensions)
    require_memory(
        _memory(groups, dimensions, plan.chains),
        f"the evidence of {groups:,} groups",
        "Take fewer groups, or use a larger machine",
    )
    base = log_known_labels(model, data)
    # Seeds next to each other must not share chains.
    seeds = [int(word) for word in np.random.SeedSequence(seed).generate_state(6)]
    draws, log_joints = _draws(model, data, plan, seeds[0], progress, executor)
    half = plan.chains // 2
    better = int(log_joints[:half].mean(axis=1).argmax())
    found = choose_anchors(draws[better], int(log_joints[better].argmax()))
    sweep = float(groups * found.num_slots * dimensions)
    affordable = AFFORDABLE / sweep
    problem = fit_mean_field(
        model,
        data,
        found,
        sweeps=int(np.clip(affordable / 8, 8, GUIDE_SWEEPS)),
        seed=seeds[1],
        progress=progress,
    )
    with annealing_context(executor, problem.builder()) as anneal:
        temperatures, trial = _settle(problem, anneal, affordable, seeds[2], progress)
        schedule = _even(temperatures)
        chains = _num_chains(trial, precision, max_chains, groups, temperatures, affordable)

        together = chains if sweep < LONG_SWEEP else FEW_TOGETHER
        run = partial(_annealed, anneal, problem, schedule, together, progress)

        def forwards() -> FloatArray:
            return run(chains, seeds[3])

        def backwards() -> tuple[FloatArray, bool]:
            others = draws[half:].reshape(-1, groups)
            placed, missing = _backward_starts(found, others, chains, seeds[4])
            nowhere = np.full((missing, 1), np.inf)
            if not placed:
                return nowhere, False
            back = run(len(placed), seeds[5], np.array(placed))
            return np.concatenate([back, nowhere]), False

        ends = from_both_ends(base, forwards, backwards if bracket else None)
    how = (
        f"annealed from a guide to the partition with {found.num_anchors} anchors and "
        f"{found.num_slots} slots, {chains} chains over {temperatures} temperatures"
    )
    return concluded(ends, method="guided", model=model.name, how=how)
