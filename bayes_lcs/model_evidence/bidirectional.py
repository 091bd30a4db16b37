"""What estimates of evidence from two ends have in common.

How many chains there are, where those at the other end start, how both ends are concluded from.
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
    "chains_for",
    "concluded",
    "from_both_ends",
    "log_known_labels",
    "posterior_starts",
]

FloatArray = NDArray[np.float64]

TARGET_VARIANCE = 0.25
"""Of the log weights: far below one, their mean is not ruled by a few of them."""

COARSE, FINE = 0.1, 0.01
"""Standard errors aimed at where none was asked for: the finer one where it can be afforded."""

AFFORDABLE = 8e6
"""Updates of a group or a label that all chains together may make for the finer error: 40 seconds
of one core at 5 microseconds each, and again for the reversed chains."""

MOST_CHAINS, MOST_FINE_CHAINS = 512, 2048
BATCH = 32
LEAST_CHAINS = 64
"""With fewer, weights being skewed, stated errors are too small."""

MARGIN = 1.25
"""Chains beyond those that the trial asks for, since it is short."""

FEWEST_KEPT = 16
"""Runs that are worth an estimate after Ctrl-C."""

MOST_EXACT_GROUPS = 21
LEAST_DRAWS = 200
SAMPLED_CHAINS = 4
APART = 10
"""Sweeps between the draws at which reversed chains begin: nearly independent, as their error
takes them to be."""


def chains_for(
    trial: FloatArray, precision: float | None, max_chains: int | None, work: float = np.inf
) -> int:
    """Chains that the wanted standard error needs, if trial log weights ``(n, B)`` are normal.

    The relative variance of a weight is then ``exp(v) - 1``, and a variance of log weights is
    learned from few of them where that of the weights themselves is not. They are counted
    beforehand: adding chains until the error looks small stops before the large weights come.

    Parameters
    ----------
    precision
        The error; None for a fine one as far as it can be afforded, and a coarse one beyond.
    max_chains
        None for 512, and 2,048 where they can be afforded.
    work
        Updates that one chain makes.

    Examples
    --------
    >>> trial = np.array([[-0.5], [0.5]])
    >>> chains_for(trial, precision=0.1, max_chains=512)
    96
    >>> [chains_for(trial, None, None, work) for work in (1e3, 1e4, 1e6)]
    [2048, 800, 96]
    """
    with np.errstate(over="ignore"):
        variance = MARGIN * float(np.expm1(trial.var(axis=0, ddof=1)).sum())

    def planned(error: float, most: float) -> int:
        wanted = min(variance / error**2, most)
        return int(np.ceil(max(wanted, min(LEAST_CHAINS, most)) / BATCH)) * BATCH

    coarse = planned(precision or COARSE, max_chains or MOST_CHAINS)
    if precision is not None:
        return coarse
    affordable = min(AFFORDABLE / work // BATCH * BATCH, max_chains or MOST_FINE_CHAINS)
    return max(coarse, min(planned(FINE, MOST_FINE_CHAINS), int(affordable)))


def log_known_labels(model: Any, data: GroupedTable) -> float:
    """``log P(Y_known)``: the normaliser of the base distribution."""
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
    """Draws of everything unknown, one for each chain, and whether they are exact."""
    # An exact posterior has a learned feature prior integrated out: there are no draws of it.
    is_learned = isinstance(model.feature_prior, Gamma)
    is_exact = not is_learned and can_be_exact(model, data, MOST_EXACT_GROUPS)
    method: Literal["exact", "sample"] = "exact" if is_exact else "sample"
    posterior = condition(
        model,
        data,
        method=method,
        draws=max(LEAST_DRAWS, -(-APART * chains // SAMPLED_CHAINS)),
        chains=SAMPLED_CHAINS,
        seed=seed,
        progress=progress,
        executor=executor,
    )
    if isinstance(posterior, ExactPosterior):
        return {"z": posterior.sample(chains, seed)}, True
    flat = {name: v.reshape(-1, *v.shape[2:]) for name, v in posterior.unknown.items()}
    chosen = np.linspace(0, posterior.num_draws - 1, chains).astype(int)
    return {name: values[chosen] for name, values in flat.items()}, False


class BothEnds(NamedTuple):
    """What runs from the two ends found.

    Attributes
    ----------
    forward
        From runs that began at the base.
    ends
        With those that began at draws from the posterior; None without them.
    interrupted
        What Ctrl-C cut short, in words.
    """

    forward: MeanWeight
    ends: Bracket | None
    interrupted: str = ""


def from_both_ends(
    base: float,
    forwards: Callable[[], FloatArray],
    backwards: Callable[[], tuple[FloatArray, bool]] | None,
) -> BothEnds:
    """Add the means of log weights ``(runs, parts)`` to a known log normaliser.

    After Ctrl-C the runs that had come to their end are kept, if they are not too few: how many
    they are does not depend on their weights.

    Parameters
    ----------
    base
        Log normaliser of the distribution at which runs forwards begin.
    forwards
        Makes them.
    backwards
        Makes those from the other end, and says whether they began at exact draws. A draw over
        which runs forwards do not sum has an infinite weight.
    """
    cut = ""
    try:
        weights = forwards()
    except PartialResultInterrupt as stopped:
        weights = stopped.log_weights
        if len(weights) < FEWEST_KEPT:
            raise KeyboardInterrupt from None
        cut = f"interrupted after {len(weights)} runs"
    found = MeanWeight.of(weights)
    forward = MeanWeight(base + found.value, found.standard_error, found.effective_draws)
    if backwards is None or cut:
        return BothEnds(forward, None, cut)
    try:
        back, rigorous = backwards()
    except KeyboardInterrupt:
        return BothEnds(forward, None, "interrupted before the runs from the other end")
    up = MeanWeight.of(-back)
    reverse = MeanWeight(base - up.value, up.standard_error, up.effective_draws)
    share = float(np.isfinite(back).all(axis=1).mean())
    left_out = -float(np.log(share)) if share else np.inf
    return BothEnds(forward, Bracket(forward, reverse, rigorous, left_out))


def concluded(found: BothEnds, *, method: str, model: str, how: str) -> LogEvidence:
    """The estimate with its bracket in words, and a warning where it cannot be trusted."""
    forward, ends = found.forward, found.ends
    if ends is not None:
        source = "exact draws" if ends.rigorous else "draws of converged chains, not exact ones"
        if np.isinf(ends.reverse.value):
            how += f"; none of the {source} is summed over forwards: no upper end is known"
        else:
            how += (
                f"; backwards from {source}: at most {ends.reverse.value:.3f} "
                f"± {ends.reverse.standard_error:.2g}"
            )
            if ends.left_out:
                how += f", {1.0 - np.exp(-ends.left_out):.0%} of them not summed over forwards"
        if ends.contradicts:
            how += (
                ", which is below the lower end: these draws are not from the posterior, and of "
                "the upper end nothing is known"
            )
        elif not ends.agrees:
            how += "; the two ends disagree"
    if forward.is_bound or (ends is not None and ends.reverse.is_bound):
        how += "; the ends of the interval are bounds, each wrong in one case of 40 at most"
    if found.interrupted:
        how += f"; {found.interrupted}"
        warnings.warn(
            f"{found.interrupted}: the estimate rests on what was done",
            InterruptedWarning,
            stacklevel=4,
        )
    _warn(forward, ends)
    evidence = LogEvidence.estimated(forward, method, model, how, ends)
    return replace(evidence, interrupted=bool(found.interrupted))


def _warn(forward: MeanWeight, ends: Bracket | None) -> None:
    if forward.is_bound:
        warnings.warn(
            f"the estimate rests on {forward.effective_draws:.0f} effective runs only: take the "
            "interval, which is one of bounds, not the value. Allow more with max_chains=",
            EvidenceWarning,
            stacklevel=5,
        )
    elif ends is not None and not ends.agrees:
        warnings.warn(
            f"forward and reversed runs disagree by {ends.gap:.2f} nats: they do not mix well "
            "somewhere on the way. Take the interval, not the value",
            EvidenceWarning,
            stacklevel=5,
        )
