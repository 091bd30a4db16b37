"""Log evidence of a model, and of its labels given its features, by the best available method."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from bayes_lcs.core.errors import NotExactError
from bayes_lcs.core.model_protocols import KnownPartitionModel, PartitionModel
from bayes_lcs.core.priors import Gamma
from bayes_lcs.data.grouped_table import require_table
from bayes_lcs.inference.condition import can_be_exact, is_labelled
from bayes_lcs.inference.exact.exact import MAX_GROUPS, exact
from bayes_lcs.inference.exact.posterior import ClusteredPosterior, ExactPosterior
from bayes_lcs.model_evidence.ais import annealed_evidence
from bayes_lcs.model_evidence.bidirectional import FINE
from bayes_lcs.model_evidence.log_evidence import EvidenceWarning, LogEvidence, MeanWeight
from bayes_lcs.model_evidence.mean_field_ais import mean_field_ais_evidence
from bayes_lcs.model_evidence.prototype import (
    MIN_EFFECTIVE_DRAWS,
    TRIAL_DRAWS,
    num_draws_for_precision,
    prototype_log_evidence,
)
from bayes_lcs.model_evidence.smc import particle_evidence
from bayes_lcs.models.prototype import Prototype
from bayes_lcs.runtime.executors.protocol import Executor

if TYPE_CHECKING:
    from bayes_lcs.data.grouped_table import GroupedTable

__all__ = ["conditional_evidence", "evidence", "evidence_from_posterior"]

METHODS = ("auto", "exact", "importance", "particles", "ais", "guided")

MAX_ANNEALED_GROUPS = 100
"""Up to this number of groups chains are annealed from the prior, which needs no posterior draws.
For more groups that takes hours, and a mean-field base replaces the prior."""


def evidence_from_posterior(posterior: ExactPosterior) -> LogEvidence:
    """Return the evidence that an exact posterior has already computed."""
    if isinstance(posterior, ClusteredPosterior):
        method, how = "exact", "sum over all partitions of the groups"
    else:
        method, how = "closed-form", "all parameters integrated out"
    return LogEvidence.exact(posterior.log_evidence, method, posterior.model.name, how)


def _best_method(model: Any, data: GroupedTable, variant: str) -> str:
    learned = isinstance(model.feature_prior, Gamma)
    if isinstance(model, Prototype):
        return "importance" if is_labelled(data) and not learned else "ais"
    if can_be_exact(model, data, MAX_GROUPS):
        return "exact"
    if variant != "collapsed" or _reason_not_applicable(model, data):
        return "ais"
    if isinstance(model, KnownPartitionModel):
        return "particles"
    return "ais" if data.num_groups <= MAX_ANNEALED_GROUPS else "guided"


def evidence(
    model: Any,
    data: GroupedTable,
    method: str = "auto",
    *,
    precision: float | None = None,
    num_draws: int | None = None,
    max_chains: int | None = None,
    bracket: bool = True,
    variant: str = "collapsed",
    seed: int = 0,
    progress: bool | None = None,
    executor: Executor | None = None,
) -> LogEvidence:
    """Return the log evidence of a model: ``log P`` of the observed part of a table.

    Missing features are ignored and missing labels are summed over. For a table without missing
    labels the evidence is ``log P(X, Y)``.

    Parameters
    ----------
    method : {"auto", "exact", "importance", "particles", "ais", "guided"}
        ``auto`` uses the closed form (no sharing, complete sharing), the exact sum over all
        partitions (clustered naive Bayes up to 24 groups), importance sampling of the factors
        (prototype), sequential Monte Carlo (``particles``) if labels are missing (no sharing,
        complete sharing), annealing from a mean-field base (``guided``) for more than 100 groups
        (clustered naive Bayes), and annealed importance sampling from the prior (``ais``)
        otherwise.
    precision
        Target standard error in nats. By default 0.01 if a fixed number of updates allows it
        (about a minute of one core), and 0.1 otherwise. The necessary number of runs, chains or
        draws is determined by trial runs, which are not part of the estimate.
    num_draws
        Number of draws per integral of the prototype model; by default set by the precision. Up to
        16 times as many are drawn if the effective sample size is small.
    max_chains
        Maximum number of chains of annealed importance sampling, or of particle filter runs; by
        default 512, and 2,048 where the finer precision is affordable.
    bracket
        If True, reversed runs give an upper bound as well.
    variant : {"collapsed", "thesis"}
        Annealed importance sampling with parameters integrated out, or over labels and parameters
        as in the thesis (no sharing and complete sharing only).
    seed
        Seed of all draws.
    executor
        Executor (:func:`bayes_lcs.executor`) of the chains of annealed importance sampling and of
        the posterior chains that start the reversed ones; None runs them in this process. Results
        do not depend on it, apart from rounding.

    Examples
    --------
    >>> import bayes_lcs as bl
    >>> data, truth = bl.meeting_requests(seed=0, rows_per_person=5)
    >>> bl.evidence(bl.NoSharing(), data).method
    'closed-form'
    """
    require_table(data)
    if method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(METHODS)}, got {method!r}")
    chosen = _best_method(model, data, variant) if method == "auto" else method
    options: dict[str, Any] = {
        "precision": precision,
        "max_chains": max_chains,
        "bracket": bracket,
        "seed": seed,
        "progress": progress,
    }
    if chosen == "ais":
        return annealed_evidence(model, data, variant=variant, executor=executor, **options)
    if chosen in ("particles", "guided"):
        reason = _reason_not_applicable(model, data)
        if not reason and chosen == "guided" and isinstance(model, KnownPartitionModel):
            reason = f"{model.name} has a known partition, so it needs no mean-field base"
        if reason:
            raise ValueError(f"{reason}; use method='ais'")
        if chosen == "guided":
            return mean_field_ais_evidence(model, data, executor=executor, **options)
        return particle_evidence(model, data, **options)
    if isinstance(model, Prototype):
        if chosen == "exact":
            raise NotExactError("the prototype model has no exact evidence; use method='auto'")
        return _prototype_evidence(model, data, precision, num_draws, seed, progress)
    if chosen == "importance":
        raise ValueError("importance sampling is for the prototype model; use method='auto'")
    return evidence_from_posterior(exact(model, data, progress=progress))


def _reason_not_applicable(model: Any, data: GroupedTable) -> str:
    """Return the reason why SMC and mean-field AIS are not applicable; empty if they are."""
    if isinstance(model.feature_prior, Gamma):
        return "this method needs a feature prior that is not learned"
    if isinstance(model, KnownPartitionModel):
        return ""
    if not isinstance(model, PartitionModel):
        return f"this method is not available for the model {model.name}"
    if not is_labelled(data):
        return "this method sums over partitions only where no label is missing"
    if isinstance(model.concentration, Gamma):
        return "this method needs a concentration that is not learned"
    return ""


def _prototype_evidence(
    model: Prototype,
    data: GroupedTable,
    precision: float | None,
    num_draws: int | None,
    seed: int,
    progress: bool | None,
) -> LogEvidence:
    if not is_labelled(data):
        raise NotExactError(
            f"{int((data.labels < 0).sum())} rows have no label; use method='ais' or 'auto', which "
            "sum over missing labels"
        )
    counts = data.counts()
    made = num_draws or TRIAL_DRAWS
    found = prototype_log_evidence(model, counts, made, seed, progress)
    if num_draws is None:
        wanted = num_draws_for_precision(counts, found.standard_error, precision or FINE)
        if wanted > made:
            made = wanted
            found = prototype_log_evidence(model, counts, made, seed, progress)
    if found.effective_draws < MIN_EFFECTIVE_DRAWS:
        warnings.warn(
            f"one of the integrals has only {found.effective_draws:.0f} effective draws, so its "
            "stated error may be too small. Increase num_draws, or use method='ais'",
            EvidenceWarning,
            stacklevel=3,
        )
    mean = MeanWeight(found.value, found.standard_error, found.effective_draws)
    how = f"importance sampling of every (label, feature) integral, at least {made} draws each"
    return LogEvidence.estimated(mean, "importance", model.name, how)


def conditional_evidence(
    model: Any,
    data: GroupedTable,
    *,
    precision: float | None = None,
    num_draws: int | None = None,
    max_chains: int | None = None,
    bracket: bool = True,
    variant: str = "collapsed",
    seed: int = 0,
    progress: bool | None = None,
    executor: Executor | None = None,
) -> LogEvidence:
    """Return the log probability of the known labels given the features, ``log P(Y | X)``.

    ``P(Y | X) = P(X, Y) / P(X)``, and ``P(X)`` is the evidence of the table with every label
    missing, a sum over all labelings, estimated by sequential Monte Carlo or annealed importance
    sampling (thesis section 4.3, A.2).

    Parameters
    ----------
    precision, num_draws, max_chains, bracket, variant, seed, executor
        See :func:`bayes_lcs.evidence`; errors of numerator and denominator add in quadrature.

    Examples
    --------
    >>> import bayes_lcs as bl
    >>> data, _ = bl.NoSharing().simulate(bl.Schema(2, (2,)), [3, 2], seed=0)
    >>> found = bl.conditional_evidence(bl.NoSharing(), data, precision=0.05)
    >>> found.value < 0.0, found.method
    (True, 'closed-form/particles')
    """
    options: dict[str, Any] = {
        "precision": precision,
        "num_draws": num_draws,
        "max_chains": max_chains,
        "bracket": bracket,
        "variant": variant,
        "seed": seed,
        "progress": progress,
        "executor": executor,
    }
    together = evidence(model, data, **options)
    unlabelled = data.mask_labels(np.arange(data.num_rows))
    features = evidence(model, unlabelled, **options)
    error = float(np.hypot(together.standard_error, features.standard_error))
    return LogEvidence(
        together.value - features.value,
        together.value
        - features.value
        - ((together.value - together.lower) ** 2 + (features.upper - features.value) ** 2) ** 0.5,
        together.value
        - features.value
        + ((together.upper - together.value) ** 2 + (features.value - features.lower) ** 2) ** 0.5,
        error,
        f"{together.method}/{features.method}",
        min(together.effective_draws, features.effective_draws),
        model.name,
        f"P(X, Y): {together.how}. P(X): {features.how}",
        features.bracket,
    )
