"""Log evidence by annealed importance sampling, with a bracket from both ends.

A pilot sets the temperatures; trial chains raise their number until the log weights spread
little, and tell how many chains the wanted error needs. Then that many new chains run. Both numbers
are fixed before the first weight that counts: chains that are added until the error *looks* small
stop early where the large weights have not come yet, which is where the estimate is too low.
Reversed chains that begin at draws from the posterior give the upper end of the bracket.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from bayes_lcs.core.naive_bayes import log_label_marginal
from bayes_lcs.core.protocols import PrototypeModel
from bayes_lcs.evaluation.log_evidence import Bracket, EvidenceWarning, LogEvidence, MeanWeight
from bayes_lcs.inference.conditioning import can_be_exact, condition
from bayes_lcs.inference.exact_posterior import ExactPosterior

if TYPE_CHECKING:
    from bayes_lcs.data.table import GroupedTable
    from bayes_lcs.inference.annealing import Schedule

__all__ = ["annealed_evidence", "chains_for", "log_known_labels"]

FloatArray = NDArray[np.float64]

TARGET_VARIANCE = 0.25
"""Of the log weights: far below one, their mean is not ruled by a few of them."""

TRIAL_CHAINS = 32
BATCH = 32
LEAST_CHAINS = 64
"""With fewer, weights being skewed, stated errors are too small."""

MARGIN = 1.25
"""Chains beyond those that the trial asks for, since it is short."""

LEAST_EFFECTIVE_CHAINS = 20.0
MOST_TEMPERATURES = 20_000
MOST_EXACT_GROUPS = 21
LEAST_DRAWS = 200


def log_known_labels(model: Any, data: GroupedTable) -> float:
    """``log P(Y_known)``: the normaliser of the base distribution."""
    labels = data.counts().labels
    if model.shares_labels:
        labels = labels.sum(axis=0, keepdims=True)
    return float(log_label_marginal(labels, model.label_parameters(data.schema)).sum())


def _pose(model: Any, data: GroupedTable) -> Any:
    if isinstance(model, PrototypeModel):
        from bayes_lcs.inference import annealed_prototype

        return annealed_prototype.pose(model, data)
    from bayes_lcs.inference import annealed_sharing

    return annealed_sharing.pose(model, data)


def _settle(
    problem: Any, seeds: Sequence[int], progress: bool | None
) -> tuple[Any, Schedule, FloatArray]:
    """Temperatures at which trial chains have log weights of little variance, and those weights."""
    from bayes_lcs.inference.annealing import anneal, pilot_schedule

    problem, pilot = pilot_schedule(problem, seeds[0], progress)
    variance = TARGET_VARIANCE
    while True:
        schedule = pilot.refined(variance, MOST_TEMPERATURES)
        problem, trial = anneal(
            problem, schedule, chains=TRIAL_CHAINS, seed=seeds[1], progress=progress
        )
        # Of the worst part; a product of many parts has many small errors, not one large one.
        found = float(trial.log_weights.var(axis=0, ddof=1).max())
        if found <= 2.0 * TARGET_VARIANCE or len(schedule.temperatures) > MOST_TEMPERATURES:
            return problem, schedule, trial.log_weights
        variance /= float(np.clip(found / TARGET_VARIANCE, 2.0, 8.0))


def chains_for(trial: FloatArray, precision: float, max_chains: int) -> int:
    """Chains that the wanted standard error needs, if trial log weights ``(n, B)`` are normal.

    The relative variance of a weight is then ``exp(v) - 1``, and a variance of log weights is
    learned from few of them where that of the weights themselves is not.

    Examples
    --------
    >>> chains_for(np.array([[-0.5], [0.5]]), precision=0.1, max_chains=512)
    96
    """
    with np.errstate(over="ignore"):
        variance = float(np.expm1(trial.var(axis=0, ddof=1)).sum())
        wanted = min(MARGIN * variance / precision**2, max_chains)
    batches = int(np.ceil(max(wanted, min(LEAST_CHAINS, max_chains)) / BATCH))
    return batches * BATCH


def _posterior_starts(
    model: Any, data: GroupedTable, chains: int, seed: int, progress: bool | None
) -> tuple[dict[str, NDArray], bool]:
    """Draws of everything unknown, one for each chain, and whether they are exact."""
    method: Literal["exact", "sample"] = (
        "exact" if can_be_exact(model, data, MOST_EXACT_GROUPS) else "sample"
    )
    posterior = condition(
        model,
        data,
        method=method,
        draws=max(LEAST_DRAWS, 2 * chains),
        chains=4,
        seed=seed,
        progress=progress,
    )
    if isinstance(posterior, ExactPosterior):
        return {"z": posterior.sample(chains, seed)}, True
    flat = {name: v.reshape(-1, *v.shape[2:]) for name, v in posterior.unknown.items()}
    chosen = np.linspace(0, posterior.num_draws - 1, chains).astype(int)
    return {name: values[chosen] for name, values in flat.items()}, False


def annealed_evidence(
    model: Any,
    data: GroupedTable,
    *,
    precision: float = 0.1,
    max_chains: int = 512,
    bracket: bool = True,
    variant: str = "collapsed",
    seed: int = 0,
    progress: bool | None = None,
) -> LogEvidence:
    """``log P`` of all that was observed: features, and the labels that are known.

    Parameters
    ----------
    variant : {"collapsed", "thesis"}
        With parameters integrated out, or over labels and parameters as in the thesis, which has
        no reversed chains here.
    precision
        Standard error that the number of chains aims at; never more than ``max_chains``, and
        never fewer than 64 unless that is less.
    bracket
        Whether to run reversed chains too, for the upper end.
    """
    from bayes_lcs.inference import thesis_annealing
    from bayes_lcs.inference.annealing import anneal

    if variant not in ("collapsed", "thesis"):
        raise ValueError(f"variant must be 'collapsed' or 'thesis', got {variant!r}")
    if variant == "thesis":
        base, posed = thesis_annealing.log_base(data), thesis_annealing.pose(model, data)
        bracket = False
    else:
        base, posed = log_known_labels(model, data), _pose(model, data)
    # Seeds next to each other must not share chains.
    seeds = [int(word) for word in np.random.SeedSequence(seed).generate_state(5)]
    problem: Any
    problem, schedule, trial = _settle(posed, seeds[:2], progress)
    num_chains = chains_for(trial, precision, max_chains)
    problem, done = anneal(problem, schedule, chains=num_chains, seed=seeds[2], progress=progress)
    found = MeanWeight.of(done.log_weights)
    forward = MeanWeight(base + found.value, found.standard_error, found.effective_draws)
    ends = None
    if bracket:
        starts, rigorous = _posterior_starts(model, data, num_chains, seeds[3], progress)
        _, back = anneal(
            problem,
            schedule,
            chains=num_chains,
            seed=seeds[4],
            starts=problem.states(starts),
            progress=progress,
        )
        up = MeanWeight.of(-back.log_weights)
        reverse = MeanWeight(base - up.value, up.standard_error, up.effective_draws)
        ends = Bracket(forward, reverse, rigorous)
    steps = len(schedule.temperatures) - 1
    how = f"annealed importance sampling ({variant}), {num_chains} chains over {steps} temperatures"
    if ends is not None:
        source = "exact draws" if ends.rigorous else "draws of converged chains, not exact ones"
        how += (
            f"; reversed chains from {source}: at most {ends.reverse.value:.3f} "
            f"± {ends.reverse.standard_error:.2g}"
        )
        if not ends.agrees:
            how += "; the two ends disagree"
    _warn(forward, ends)
    return LogEvidence.estimated(forward, "ais", model.name, how, ends)


def _warn(forward: MeanWeight, ends: Bracket | None) -> None:
    if forward.effective_draws < LEAST_EFFECTIVE_CHAINS:
        warnings.warn(
            f"the estimate rests on {forward.effective_draws:.0f} effective chains only; its "
            "stated error may be too small. Allow more with max_chains=",
            EvidenceWarning,
            stacklevel=4,
        )
    elif ends is not None and not ends.agrees:
        warnings.warn(
            f"forward and reversed chains disagree by {ends.gap:.2f} nats: chains do not mix well "
            "at some temperature. Take the interval, not the value",
            EvidenceWarning,
            stacklevel=4,
        )
