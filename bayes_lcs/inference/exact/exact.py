"""Exact posteriors by closed forms, or by the recursion over subsets.

The thesis (section 4.3) considers the exact evidence of clustered naive Bayes infeasible, with 475
trillion partitions of 21 users, and gives a lower bound. With

    w(T) = concentration * Gamma(|T|) * m(T),    m(T) = prod_{y,f} B(n_{T,y,f} + beta) / B(beta),

the sum over all partitions is ``Z(all)`` of the module `partition_function`, and

    P(X, Y) = P(Y) * Z(all) * Gamma(concentration) / Gamma(concentration + U).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bayes_lcs.core.dirichlet import log_rising
from bayes_lcs.core.errors import NotExactError
from bayes_lcs.core.model_protocols import KnownPartitionModel, PartitionModel
from bayes_lcs.core.priors import Gamma, fixed_value
from bayes_lcs.data.grouped_table import require_table
from bayes_lcs.inference.exact.partition_function import PartitionSums
from bayes_lcs.inference.exact.posterior import (
    ClusteredPosterior,
    ExactPosterior,
    KnownPartitionPosterior,
)
from bayes_lcs.inference.exact.subset_marginals import log_block_marginals
from bayes_lcs.inference.exact.subset_masks import popcounts
from bayes_lcs.runtime.memory import available_memory, human_bytes

if TYPE_CHECKING:
    from bayes_lcs.data.grouped_table import GroupedTable

__all__ = ["exact", "exact_memory", "exact_seconds", "require_labels"]

MAX_GROUPS = 24
"""Default limit, at which the sum over all partitions takes about a minute and a gibibyte."""

BYTES_PER_SUBSET = 72
"""Memory of tables and scratch arrays per subset, of ``2**U``; measured peaks are 51 to 63."""

SCRATCH_BYTES = 32 << 20
"""Memory of counts and buffers that does not depend on the number of groups, for some 100 cells."""

SECONDS_PER_TERM = 1e-9
"""Order of magnitude of the time for one of the ``3**U / 2`` products on one core."""


MAX_GROUPS_WITH_COST = 60
"""Largest number of groups for which an error message states the cost."""


def exact_memory(num_groups: int) -> int:
    """Return the bytes that the recursion over the subsets of ``num_groups`` groups needs."""
    return SCRATCH_BYTES + (BYTES_PER_SUBSET << num_groups)


def exact_seconds(num_groups: int) -> float:
    """Return the approximate run time of the recursion on one core."""
    return SECONDS_PER_TERM * 3.0**num_groups / 2.0


def exact(
    model: Any, data: GroupedTable, *, max_groups: int = MAX_GROUPS, progress: bool | None = None
) -> ExactPosterior:
    """Compute the exact posterior of a model, without sampling.

    No-sharing and complete-sharing have closed forms at any size. Clustered naive Bayes sums over
    all partitions of the groups by a recursion over subsets: 0.2 seconds at 16 groups, 5 at 21,
    70 at 24 on two cores, and up to three times more for each further group. The distribution of
    the number of clusters takes longer, and is computed on request.

    Parameters
    ----------
    model
        ``NoSharing``, ``CompleteSharing`` or ``ClusteredNaiveBayes`` with fixed hyper-parameters.
    data : GroupedTable
        Table whose rows all have labels; features may be missing.
    max_groups
        Raise an error for more groups than this. Larger values take more time and memory.
    progress
        Show a progress bar; None shows one on a terminal.

    Returns
    -------
    ExactPosterior
        With ``log_evidence``, ``coclustering()``, ``num_clusters()``, ``map_partition()``,
        ``sample()`` and ``predict_proba()``.

    Raises
    ------
    NotExactError
        If there is no exact answer: rows without a label, too many groups, too little memory, a
        learned hyper-parameter, or the prototype model.

    Examples
    --------
    >>> import bayes_lcs as bl
    >>> data = bl.GroupedTable.from_arrays(
    ...     [["a"], ["a"], ["b"], ["a"]], ["yes", "no", "no", "yes"], ["ann", "ann", "bob", "bob"]
    ... )
    >>> posterior = bl.exact(bl.ClusteredNaiveBayes(), data)
    >>> posterior.num_clusters().round(4).tolist()
    [0.0, 0.4706, 0.5294]
    """
    require_table(data)
    require_labels(data)
    if isinstance(model, PartitionModel):
        return _build_clustered_posterior(model, data, max_groups, progress)
    if isinstance(model, KnownPartitionModel):
        return KnownPartitionPosterior(model, data)
    raise NotExactError(
        f"{getattr(model, 'name', type(model).__name__)} has no exact posterior; "
        "use bl.evidence for its evidence"
    )


def require_labels(data: GroupedTable) -> None:
    """Raise an error for rows with features but no label, which would have to be summed out."""
    unlabelled = (data.labels < 0) & (data.features >= 0).any(axis=1)
    if unlabelled.any():
        raise NotExactError(
            f"{int(unlabelled.sum())} of {data.num_rows} rows have no label; the exact posterior "
            "would sum over all their labels. Drop these rows with data.labelled(), or sample "
            "their labels with bl.sample"
        )


def _build_clustered_posterior(
    model: PartitionModel, data: GroupedTable, max_groups: int, progress: bool | None
) -> ClusteredPosterior:
    num_groups = data.num_groups
    _require_feasible(num_groups, max_groups)
    for name, value in (
        ("concentration", model.concentration),
        ("feature_prior", model.feature_prior),
    ):
        if isinstance(value, Gamma):
            raise NotExactError(
                f"the {name} is learned ({value}); the exact posterior needs a number, for "
                f"example {name}=1.0, or sample with bl.sample"
            )
    concentration = fixed_value(model.concentration, "concentration")
    counts = data.counts()
    feature_prior = model.feature_parameters(data.schema)
    log_weights = log_block_marginals(counts, feature_prior)
    sizes = np.maximum(popcounts(num_groups), 1)
    log_weights += log_rising(1.0, np.arange(num_groups + 1))[sizes - 1] + np.log(concentration)
    sums = PartitionSums(log_weights, progress)
    log_evidence = (
        model.log_label_marginal(counts)
        + sums.log_total
        - float(log_rising(concentration, num_groups))
    )
    return ClusteredPosterior(model, data, sums, log_evidence)


def _require_feasible(num_groups: int, max_groups: int) -> None:
    """Raise an error if the recursion would take too long or does not fit into memory."""
    cost, need = "more memory and time than any machine has", exact_memory(num_groups)
    if num_groups <= MAX_GROUPS_WITH_COST:
        seconds = exact_seconds(num_groups)
        cost = f"{human_bytes(need)} of memory and roughly {_duration(seconds)} on one core"
    instead = "Sample the posterior with bl.sample, or use fewer groups with data.select_groups"
    if num_groups > max_groups:
        raise NotExactError(
            f"the exact posterior of {num_groups} groups needs {cost}; the limit is "
            f"max_groups={max_groups}. {instead}, or raise max_groups"
        )
    free = available_memory()
    if free is not None and need > free:
        raise NotExactError(
            f"the exact posterior of {num_groups} groups needs {cost}, but only "
            f"{human_bytes(free)} are free. {instead}"
        )


def _duration(seconds: float) -> str:
    for limit, divisor, unit in (
        (90, 1, "seconds"),
        (5400, 60, "minutes"),
        (172800, 3600, "hours"),
    ):
        if seconds < limit:
            return f"{seconds / divisor:.2g} {unit}"
    return f"{seconds / 86400:.2g} days"
