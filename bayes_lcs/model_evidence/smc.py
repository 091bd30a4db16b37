"""Log evidence by particles: missing labels, or the partition, summed over.

Where the partition is known, blocks are independent given what is known, so each has its own
estimates of its labels, and their logs add up. Where all labels are known, groups get blocks.
Trial runs double the number of particles until estimates spread little, and say how many runs the
wanted error needs. Runs led to draws from the posterior give the upper end.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bayes_lcs.core.model_protocols import KnownPartitionModel
from bayes_lcs.core.partitions import first_occurrence
from bayes_lcs.model_evidence.bidirectional import (
    COARSE,
    TARGET_VARIANCE,
    chains_for,
    concluded,
    from_both_ends,
    log_known_labels,
    posterior_starts,
)
from bayes_lcs.model_evidence.log_evidence import LogEvidence
from bayes_lcs.runtime.checkpoints import work
from bayes_lcs.runtime.interrupts import RunsInterrupted, interruptible
from bayes_lcs.runtime.memory import num_cores
from bayes_lcs.runtime.progress import progress_bar

if TYPE_CHECKING:
    from bayes_lcs.data.grouped_table import GroupedTable
    from bayes_lcs.inference.smc.smc import SMCProblem

__all__ = ["particle_evidence"]

FloatArray = NDArray[np.float64]

FEWEST_PARTICLES = 64
MOST_PARTICLES = 1024
HOPELESS = 16.0
"""So many times the variance that is aimed at: more runs would change little."""

UPDATES_A_PLACE = 2.0
"""What a place costs a particle, in updates of a chain, times how often an item is placed."""

TRIAL_RUNS = 16
FEW_RUNS = 64
RUNS_A_CALL = 8
CALL_SIZE = 2e6
"""Rows times particles of one call: about a second."""


def _run_all(
    parts: list[SMCProblem],
    runs: int,
    num_particles: int,
    seed: int,
    progress: bool | None,
    ends: NDArray[np.int64] | None = None,
) -> FloatArray:
    """Log estimates ``(runs, parts)``; ``ends`` ``(runs, M)`` are places to which they are led.

    Parts that needed more room are put back with it.

    Raises
    ------
    RunsInterrupted
        After Ctrl-C, with the estimates of the runs that were made.
    """
    from bayes_lcs.inference.smc.smc import estimate

    length = parts[0].length
    size = RUNS_A_CALL if length * num_particles * RUNS_A_CALL <= CALL_SIZE else 1
    # Run after run, so that after Ctrl-C some runs are whole.
    calls = [(number, first) for first in range(0, runs, size) for number in range(len(parts))]

    def call(number: int, first: int) -> FloatArray:
        posed = parts[number]
        own = None
        if ends is not None:
            own = np.zeros((size, length), dtype=np.int64)
            own[:, : len(posed.items)] = ends[first : first + size, posed.items]
        parts[number], found = estimate(
            posed,
            runs=size,
            num_particles=num_particles,
            seed=seed + 1_000_003 * (number * runs + first),
            posterior_draws=own,
        )
        return found

    what = f"{num_particles} particles" + (", backwards" if ends is not None else "")
    decisive = [_decisive(posed) for posed in parts]
    with (
        work("particles", decisive, runs, num_particles, seed, ends) as written,
        progress_bar("reading", len(calls), progress) as tick,
    ):
        found: list[FloatArray] = [piece["found"] for piece in written.pieces]
        tick(len(found), what)
        pool = ThreadPoolExecutor(num_cores())
        try:
            if len(found) < len(calls):
                # The first call compiles the program for all of them.
                found.append(interruptible(partial(call, *calls[len(found)])))
                written.keep(dict, {"found": found[-1]})
                tick(1, what)
            for future in [pool.submit(call, *each) for each in calls[len(found) :]]:
                found.append(future.result())
                written.keep(dict, {"found": found[-1]})
                tick(1, what)
            written.end()
        except KeyboardInterrupt:
            raise RunsInterrupted(_by_run(found, len(parts))) from None
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
    return _by_run(found, len(parts))


def _decisive(posed: SMCProblem) -> list[Any]:
    import jax

    # Not the configuration itself: how much room it has changes nothing, and may have grown.
    leaves = jax.tree.leaves((posed.data, posed.schedule))
    return [type(posed.config).__name__, leaves, posed.items]


def _by_run(found: list[FloatArray], num_parts: int) -> FloatArray:
    """Estimates of all parts in the calls made, ``(runs, parts)``, of whole runs."""
    whole = len(found) // num_parts * num_parts
    if not whole:
        return np.zeros((0, num_parts))
    stacked = np.stack(found[:whole]).reshape(whole // num_parts, num_parts, -1)
    return stacked.transpose(0, 2, 1).reshape(-1, num_parts)


def _settle(
    parts: list[SMCProblem], precision: float | None, seed: int, progress: bool | None
) -> tuple[int, FloatArray]:
    """A number of particles with which few runs are precise enough, and its trial runs.

    Twice the particles halve the variance of an estimate and cost less than twice the time.
    """
    num_particles = FEWEST_PARTICLES
    while True:
        trial = _run_all(parts, TRIAL_RUNS, num_particles, seed, progress)
        variances = trial.var(axis=0, ddof=1)
        spread = variances.sum() / FEW_RUNS / (precision or COARSE) ** 2
        excess = max(variances.max() / TARGET_VARIANCE, spread)
        if excess <= 1.0 or num_particles >= MOST_PARTICLES:
            return num_particles, trial
        num_particles = min(num_particles * (2 if excess < 4.0 else 4), MOST_PARTICLES)


def _pose(model: Any, data: GroupedTable) -> tuple[float, list[SMCProblem], str]:
    """What is known in closed form, the parts of what is not, and the name of their places."""
    if not isinstance(model, KnownPartitionModel):
        from bayes_lcs.inference.smc import partition

        return log_known_labels(model, data), [partition.build_problem(model, data)], "z"
    from bayes_lcs.inference.smc import labels

    parts = labels.build_problem(model, data)
    if not parts:
        raise ValueError("no row lacks a label: there is nothing to sum over; use method='exact'")
    return model.log_marginal(data.counts()), parts, "latent_label"


def particle_evidence(
    model: Any,
    data: GroupedTable,
    *,
    precision: float | None = None,
    max_chains: int | None = None,
    bracket: bool = True,
    seed: int = 0,
    progress: bool | None = None,
) -> LogEvidence:
    """``log P`` of all that was observed: features, and the labels that are known.

    Parameters
    ----------
    precision
        Standard error that the number of runs aims at; never more than ``max_chains``, and 64
        where trial runs differ so much that more of them would help little. None as for
        :func:`bayes_lcs.evidence`.
    bracket
        Whether to run towards draws from the posterior too, for the upper end.
    """
    base, parts, unknown = _pose(model, data)
    # Seeds next to each other must not share runs.
    seeds = [int(word) for word in np.random.SeedSequence(seed).generate_state(4)]
    num_particles, trial = _settle(parts, precision, seeds[0], progress)
    hopeless = trial.var(axis=0, ddof=1).max() > HOPELESS * TARGET_VARIANCE
    if hopeless:
        precision, max_chains = precision or COARSE, min(max_chains or FEW_RUNS, FEW_RUNS)
    updates = UPDATES_A_PLACE * sum(len(part.items) for part in parts) * num_particles
    runs = chains_for(trial, precision, max_chains, updates)

    def forwards() -> FloatArray:
        return _run_all(parts, runs, num_particles, seeds[1], progress)

    def backwards() -> tuple[FloatArray, bool]:
        starts, rigorous = posterior_starts(model, data, runs, seeds[2], progress)
        ends_at = starts[unknown].astype(np.int64)
        if unknown == "z":
            ends_at = np.array([first_occurrence(z) for z in ends_at])
        return _run_all(parts, runs, num_particles, seeds[3], progress, ends_at), rigorous

    found = from_both_ends(base, forwards, backwards if bracket else None)
    summed, items = ("partitions", "group") if unknown == "z" else ("missing labels", "row")
    how = (
        f"{summed} summed over by {num_particles} particles that read one {items} after the "
        f"other, {runs} runs"
    )
    return concluded(found, method="particles", model=model.name, how=how)
