"""Bidirectional Monte Carlo: bracket a log evidence by forward and reversed runs.

The functions are shared by AIS and SMC: number of chains for a precision, initial states of the
reversed runs, and summary of both estimates (Grosse, Ghahramani and Adams 2015).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayes_lcs.core.errors import InterruptedWarning
from bayes_lcs.core.naive_bayes import log_label_marginal
from bayes_lcs.core.priors import Gamma
from bayes_lcs.inference.condition import can_be_exact, condition
from bayes_lcs.inference.exact.posterior import ExactPosterior
from bayes_lcs.model_evidence.log_evidence import Bracket, EvidenceWarning, LogEvidence, MeanWeight
from bayes_lcs.runtime.executors.protocol import Executor
from bayes_lcs.runtime.interrupts import PartialResultInterrupt

if TYPE_CHECKING:
    from bayes_lcs.data.grouped_table import GroupedTable

__all__ = [
    "COARSE",
    "FINE",
    "TARGET_VARIANCE",
    "bidirectional_estimate",
    "log_known_labels",
    "num_chains_for_precision",
    "posterior_starts",
    "summarize",
]

FloatArray = NDArray[np.float64]

TARGET_VARIANCE = 0.25
"""Variance of the log weights; far below one, the mean is not dominated by a few weights."""

COARSE, FINE = 0.1, 0.01
"""Default target standard errors; the finer one is used where it is affordable."""

MAX_UPDATES = 8e6
"""Maximum number of updates of a group or label, over all chains, for the finer error: 40 seconds
of one core at 5 microseconds each, and the same for the reversed chains."""

MAX_CHAINS, MAX_FINE_CHAINS = 512, 2048
BATCH = 32
MIN_CHAINS = 64
"""With fewer chains, stated errors are too small because weights are skewed."""

MARGIN = 1.25
"""Factor on the number of chains, because trial runs are few."""

MIN_COMPLETED_RUNS = 16
"""Minimum number of completed runs for an estimate after Ctrl-C."""

MAX_EXACT_GROUPS = 21
MIN_DRAWS = 200
NUM_SAMPLED_CHAINS = 4
SWEEPS_BETWEEN_STARTS = 10
"""Sweeps between the draws that start reversed chains, so that these are nearly independent, as
their standard error assumes."""


def num_chains_for_precision(
    trial: FloatArray, precision: float | None, max_chains: int | None, work: float = np.inf
) -> int:
    """Return the number of chains for a standard error, if trial log weights ``(n, B)`` are normal.

    The relative variance of a weight is then ``exp(v) - 1``. A few trials suffice to estimate the
    variance ``v`` of the log weights, but not that of the weights themselves. The number is fixed
    in advance: adding chains until the error looks small would stop before large weights occur.

    Parameters
    ----------
    precision
        Target standard error; None for the fine default if it is affordable, else the coarse one.
    max_chains
        Maximum number; None for 512, and 2,048 where they are affordable.
    work
        Number of updates per chain.

    Examples
    --------
    >>> trial = np.array([[-0.5], [0.5]])
    >>> num_chains_for_precision(trial, precision=0.1, max_chains=512)
    96
    >>> [num_chains_for_precision(trial, None, None, work) for work in (1e3, 1e4, 1e6)]
    [2048, 800, 96]
    """
    with np.errstate(over="ignore"):
        variance = MARGIN * float(np.expm1(trial.var(axis=0, ddof=1)).sum())

    def chains_for_error(error: float, most: float) -> int:
        chains = min(variance / error**2, most)
        return int(np.ceil(max(chains, min(MIN_CHAINS, most)) / BATCH)) * BATCH

    coarse = chains_for_error(precision or COARSE, max_chains or MAX_CHAINS)
    if precision is not None:
        return coarse
    affordable = min(MAX_UPDATES / work // BATCH * BATCH, max_chains or MAX_FINE_CHAINS)
    return max(coarse, min(chains_for_error(FINE, MAX_FINE_CHAINS), int(affordable)))


def log_known_labels(model: Any, data: GroupedTable) -> float:
    """Return ``log P(Y_known)``, the log normaliser of the base distribution."""
    labels = data.counts().labels
    if model.shares_labels:
        labels = labels.sum(axis=0, keepdims=True)
    return float(log_label_marginal(labels, model.label_parameters(data.schema)).sum())


def posterior_starts(
    model: Any,
    data: GroupedTable,
    chains: int,
    seed: int,
    progress: bool | None,
    executor: Executor | None = None,
) -> tuple[dict[str, NDArray], bool]:
    """Draw initial states of reversed chains; return them, and True if the draws are exact."""
    # An exact posterior integrates out a learned feature prior, so it gives no draws of it.
    is_learned = isinstance(model.feature_prior, Gamma)
    is_exact = not is_learned and can_be_exact(model, data, MAX_EXACT_GROUPS)
    method: Literal["exact", "sample"] = "exact" if is_exact else "sample"
    posterior = condition(
        model,
        data,
        method=method,
        draws=max(MIN_DRAWS, -(-SWEEPS_BETWEEN_STARTS * chains // NUM_SAMPLED_CHAINS)),
        chains=NUM_SAMPLED_CHAINS,
        seed=seed,
        progress=progress,
        executor=executor,
    )
    if isinstance(posterior, ExactPosterior):
        return {"z": posterior.sample(chains, seed)}, True
    flat = {name: v.reshape(-1, *v.shape[2:]) for name, v in posterior.unknown.items()}
    chosen = np.linspace(0, posterior.num_draws - 1, chains).astype(int)
    return {name: values[chosen] for name, values in flat.items()}, False


class BidirectionalEstimate(NamedTuple):
    """Estimates from forward and reversed runs.

    Attributes
    ----------
    forward
        Estimate from the runs that start at the base.
    ends
        Forward and reversed estimates; None without reversed runs.
    interrupted
        Description of what Ctrl-C interrupted; empty if nothing was.
    """

    forward: MeanWeight
    ends: Bracket | None
    interrupted: str = ""


def bidirectional_estimate(
    base: float,
    forwards: Callable[[], FloatArray],
    backwards: Callable[[], tuple[FloatArray, bool]] | None,
) -> BidirectionalEstimate:
    """Add the log means of weights ``(runs, parts)`` to the log normaliser of the base.

    After Ctrl-C the completed runs are kept if there are enough of them. Their number does not
    depend on their weights, so the estimate stays unbiased.

    Parameters
    ----------
    base
        Log normaliser of the base distribution, where forward runs start.
    forwards
        Function that returns the log weights of forward runs.
    backwards
        Function that returns the log weights of reversed runs, and True if they start at exact
        draws. A draw that forward runs cannot reach has an infinite weight.
    """
    interrupted = ""
    try:
        weights = forwards()
    except PartialResultInterrupt as stopped:
        weights = stopped.log_weights
        if len(weights) < MIN_COMPLETED_RUNS:
            raise KeyboardInterrupt from None
        interrupted = f"interrupted after {len(weights)} runs"
    found = MeanWeight.of(weights)
    forward = MeanWeight(base + found.value, found.standard_error, found.effective_draws)
    if backwards is None or interrupted:
        return BidirectionalEstimate(forward, None, interrupted)
    try:
        back, rigorous = backwards()
    except KeyboardInterrupt:
        return BidirectionalEstimate(
            forward, None, "interrupted before the end of the reversed runs"
        )
    up = MeanWeight.of(-back)
    reverse = MeanWeight(base - up.value, up.standard_error, up.effective_draws)
    share = float(np.isfinite(back).all(axis=1).mean())
    left_out = -float(np.log(share)) if share else np.inf
    return BidirectionalEstimate(forward, Bracket(forward, reverse, rigorous, left_out))


def summarize(estimate: BidirectionalEstimate, *, method: str, model: str, how: str) -> LogEvidence:
    """Return the estimate with its bracket in words; warn if it is unreliable."""
    forward, ends = estimate.forward, estimate.ends
    if ends is not None:
        source = "exact draws" if ends.rigorous else "draws of converged chains (not exact)"
        if np.isinf(ends.reverse.value):
            how += f"; forward runs cannot reach any of the {source}: no upper bound is known"
        else:
            how += (
                f"; reversed runs from {source}: upper bound {ends.reverse.value:.3f} "
                f"± {ends.reverse.standard_error:.2g}"
            )
            if ends.left_out:
                how += (
                    f", forward runs cannot reach {1.0 - np.exp(-ends.left_out):.0%} of the draws"
                )
        if ends.contradicts:
            how += (
                ", which is below the lower bound: these draws are not from the posterior, and no "
                "upper bound is known"
            )
        elif not ends.agrees:
            how += "; lower and upper bound disagree"
    if forward.is_bound or (ends is not None and ends.reverse.is_bound):
        how += "; interval ends are one-sided 97.5 % bounds"
    if estimate.interrupted:
        how += f"; {estimate.interrupted}"
        warnings.warn(
            f"{estimate.interrupted}: the estimate uses the completed runs only",
            InterruptedWarning,
            stacklevel=4,
        )
    _warn(forward, ends)
    evidence = LogEvidence.estimated(forward, method, model, how, ends)
    return replace(evidence, interrupted=bool(estimate.interrupted))


def _warn(forward: MeanWeight, ends: Bracket | None) -> None:
    if forward.is_bound:
        warnings.warn(
            f"the estimate has only {forward.effective_draws:.0f} effective runs: use its interval "
            "of bounds instead of its value, or increase max_chains",
            EvidenceWarning,
            stacklevel=5,
        )
    elif ends is not None and not ends.agrees:
        warnings.warn(
            f"forward and reversed runs disagree by {ends.gap:.2f} nats: they mix badly at some "
            "temperatures. Use the interval instead of the value",
            EvidenceWarning,
            stacklevel=5,
        )
