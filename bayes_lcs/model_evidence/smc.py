"""Log evidence by sequential Monte Carlo (SMC) over missing labels, or over the partition.

If the partition is known, the clusters are independent SMC problems over their missing labels, and
their log estimates add up. If all labels are known, particles assign groups to clusters. Trial runs
double the number of particles until the estimates vary little, and give the number of runs for the
target error. Conditional runs, whose reference path is a posterior draw, give the upper bound.
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
    bidirectional_estimate,
    log_known_labels,
    num_chains_for_precision,
    posterior_starts,
    summarize,
)
from bayes_lcs.model_evidence.log_evidence import LogEvidence
from bayes_lcs.runtime.checkpoints import checkpointed_task
from bayes_lcs.runtime.interrupts import PartialResultInterrupt, run_interruptibly
from bayes_lcs.runtime.memory import num_cores
from bayes_lcs.runtime.progress import progress_bar

if TYPE_CHECKING:
    from bayes_lcs.data.grouped_table import GroupedTable
    from bayes_lcs.inference.smc.smc import SMCProblem

__all__ = ["particle_evidence"]

FloatArray = NDArray[np.float64]

MIN_PARTICLES = 64
MAX_PARTICLES = 1024
HOPELESS_VARIANCE_RATIO = 16.0
"""Multiple of the target variance above which more runs would change little."""

UPDATES_PER_ITEM = 2.0
"""Cost of one item per particle, in updates of a chain."""

TRIAL_RUNS = 16
TARGET_RUNS = 64
RUNS_PER_CALL = 8
CALL_SIZE = 2e6
"""Rows times particles of one call; about a second."""


def _run_all(
    parts: list[SMCProblem],
    runs: int,
    num_particles: int,
    seed: int,
    progress: bool | None,
    ends: NDArray[np.int64] | None = None,
) -> FloatArray:
    """Return log estimates ``(runs, parts)``; ``ends`` ``(runs, M)`` are reference paths.

    Problems that ran out of slots are replaced in ``parts`` by versions with more slots.

    Raises
    ------
    PartialResultInterrupt
        After Ctrl-C, with the estimates of the completed runs.
    """
    from bayes_lcs.inference.smc.smc import estimate

    length = parts[0].length
    size = RUNS_PER_CALL if length * num_particles * RUNS_PER_CALL <= CALL_SIZE else 1
    # All parts of a run before the next run, so that complete runs remain after Ctrl-C.
    calls = [(number, first) for first in range(0, runs, size) for number in range(len(parts))]

    def call(number: int, first: int) -> FloatArray:
        problem = parts[number]
        own = None
        if ends is not None:
            own = np.zeros((size, length), dtype=np.int64)
            own[:, : len(problem.items)] = ends[first : first + size, problem.items]
        parts[number], found = estimate(
            problem,
            runs=size,
            num_particles=num_particles,
            seed=seed + 1_000_003 * (number * runs + first),
            posterior_draws=own,
        )
        return found

    status = f"{num_particles} particles" + (", reversed" if ends is not None else "")
    cache_keys = [_cache_key(problem) for problem in parts]
    with (
        checkpointed_task("particles", cache_keys, runs, num_particles, seed, ends) as written,
        progress_bar("particles", len(calls), progress) as tick,
    ):
        found: list[FloatArray] = [piece["found"] for piece in written.pieces]
        tick(len(found), status)
        pool = ThreadPoolExecutor(num_cores())
        try:
            if len(found) < len(calls):
                # The first call compiles the program for all of them.
                found.append(run_interruptibly(partial(call, *calls[len(found)])))
                written.update(dict, {"found": found[-1]})
                tick(1, status)
            for future in [pool.submit(call, *each) for each in calls[len(found) :]]:
                found.append(future.result())
                written.update(dict, {"found": found[-1]})
                tick(1, status)
            written.finish()
        except KeyboardInterrupt:
            raise PartialResultInterrupt(_by_run(found, len(parts))) from None
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
    return _by_run(found, len(parts))


def _cache_key(problem: SMCProblem) -> list[Any]:
    import jax

    # Without the configuration itself: its number of slots may grow and does not change results.
    leaves = jax.tree.leaves((problem.data, problem.schedule))
    return [type(problem.config).__name__, leaves, problem.items]


def _by_run(found: list[FloatArray], num_parts: int) -> FloatArray:
    """Arrange the estimates of the calls by run, ``(runs, parts)``; incomplete runs are dropped."""
    whole = len(found) // num_parts * num_parts
    if not whole:
        return np.zeros((0, num_parts))
    stacked = np.stack(found[:whole]).reshape(whole // num_parts, num_parts, -1)
    return stacked.transpose(0, 2, 1).reshape(-1, num_parts)


def _tune_num_particles(
    parts: list[SMCProblem], precision: float | None, seed: int, progress: bool | None
) -> tuple[int, FloatArray]:
    """Return a number of particles with which few runs are precise enough, and its trial runs.

    Doubling the particles halves the variance of an estimate and less than doubles the time.
    """
    num_particles = MIN_PARTICLES
    while True:
        trial = _run_all(parts, TRIAL_RUNS, num_particles, seed, progress)
        variances = trial.var(axis=0, ddof=1)
        spread = variances.sum() / TARGET_RUNS / (precision or COARSE) ** 2
        excess = max(variances.max() / TARGET_VARIANCE, spread)
        if excess <= 1.0 or num_particles >= MAX_PARTICLES:
            return num_particles, trial
        num_particles = min(num_particles * (2 if excess < 4.0 else 4), MAX_PARTICLES)


def _build_problems(model: Any, data: GroupedTable) -> tuple[float, list[SMCProblem], str]:
    """Return the closed-form part of the log evidence, the SMC problems, and their variable."""
    if not isinstance(model, KnownPartitionModel):
        from bayes_lcs.inference.smc import partition

        return log_known_labels(model, data), [partition.build_problem(model, data)], "z"
    from bayes_lcs.inference.smc import labels

    parts = labels.build_problem(model, data)
    if not parts:
        raise ValueError(
            "all rows have a label, so there is no sum over labels; use method='exact'"
        )
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
    """Estimate ``log P`` of the observed features and labels.

    Parameters
    ----------
    precision
        Target standard error, which sets the number of runs, up to ``max_chains``; 64 runs if
        trial runs differ so much that more would help little. See :func:`bayes_lcs.evidence`.
    bracket
        If True, make conditional runs with posterior draws as well, for the upper bound.
    """
    base, parts, unknown = _build_problems(model, data)
    # Adjacent seeds must not share runs.
    seeds = [int(word) for word in np.random.SeedSequence(seed).generate_state(4)]
    num_particles, trial = _tune_num_particles(parts, precision, seeds[0], progress)
    hopeless = trial.var(axis=0, ddof=1).max() > HOPELESS_VARIANCE_RATIO * TARGET_VARIANCE
    if hopeless:
        precision, max_chains = precision or COARSE, min(max_chains or TARGET_RUNS, TARGET_RUNS)
    updates = UPDATES_PER_ITEM * sum(len(part.items) for part in parts) * num_particles
    runs = num_chains_for_precision(trial, precision, max_chains, updates)

    def forwards() -> FloatArray:
        return _run_all(parts, runs, num_particles, seeds[1], progress)

    def backwards() -> tuple[FloatArray, bool]:
        starts, rigorous = posterior_starts(model, data, runs, seeds[2], progress)
        ends_at = starts[unknown].astype(np.int64)
        if unknown == "z":
            ends_at = np.array([first_occurrence(z) for z in ends_at])
        return _run_all(parts, runs, num_particles, seeds[3], progress, ends_at), rigorous

    estimated = bidirectional_estimate(base, forwards, backwards if bracket else None)
    summed, items = ("partitions", "group") if unknown == "z" else ("missing labels", "row")
    how = (
        f"sequential Monte Carlo over {summed}, one {items} per step, {num_particles} particles, "
        f"{runs} runs"
    )
    return summarize(estimated, method="particles", model=model.name, how=how)
