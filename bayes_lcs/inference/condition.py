"""Posterior of a model given a table: exact where possible, else by sampling."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from bayes_lcs.core.model_protocols import KnownPartitionModel, PartitionModel
from bayes_lcs.core.priors import Gamma
from bayes_lcs.inference.exact.exact import exact
from bayes_lcs.inference.exact.posterior import ExactPosterior
from bayes_lcs.inference.posterior_draws import PosteriorDraws
from bayes_lcs.runtime.executors.protocol import Executor

if TYPE_CHECKING:
    from bayes_lcs.data.grouped_table import GroupedTable

__all__ = ["can_be_exact", "condition", "is_labelled"]

MAX_EXACT_GROUPS = 16
"""Default limit, at which the exact posterior takes about a fifth of a second."""


def is_labelled(data: GroupedTable) -> bool:
    """Return True if no label has to be summed over.

    Rows without label and without features are ignored, since they carry no information.
    """
    return not ((data.labels < 0) & (data.features >= 0).any(axis=1)).any()


def can_be_exact(model: Any, data: GroupedTable, max_groups: int = MAX_EXACT_GROUPS) -> bool:
    """Return True for closed-form predictions, or a sum over the partitions of few groups."""
    if not is_labelled(data):
        return False
    if isinstance(model, KnownPartitionModel):
        return True
    return (
        isinstance(model, PartitionModel)
        and not isinstance(model.feature_prior, Gamma)
        and not isinstance(model.concentration, Gamma)
        and data.num_groups <= max_groups
    )


def condition(
    model: Any,
    data: GroupedTable,
    *,
    method: Literal["auto", "exact", "sample"] = "auto",
    draws: int = 500,
    chains: int = 2,
    seed: int = 0,
    progress: bool | None = None,
    executor: Executor | None = None,
) -> ExactPosterior | PosteriorDraws:
    """Compute the posterior of a model given a table, for ``predict_proba(rows)``.

    Parameters
    ----------
    method
        ``"auto"`` is exact if :func:`can_be_exact`, and samples otherwise.
    draws, chains, seed
        Parameters of the sampler, with half as many warm-up sweeps as draws.
    executor
        Executor on which the chains of the sampler run; None for this process.

    Examples
    --------
    >>> import bayes_lcs as bl
    >>> data, _ = bl.meeting_requests(seed=0, rows_per_person=5)
    >>> condition(bl.NoSharing(), data).predict_proba(data.take([0])).shape
    (1, 2)
    """
    if method not in ("auto", "exact", "sample"):
        raise ValueError(f"method must be 'auto', 'exact' or 'sample', got {method!r}")
    if method == "exact" or (method == "auto" and can_be_exact(model, data)):
        return exact(model, data, progress=progress)
    from bayes_lcs.inference.draw_posterior import draw_posterior

    found = draw_posterior(
        model, data, draws=draws, chains=chains, seed=seed, progress=progress, executor=executor
    )
    if found.interrupted:
        # The sampler returns its draws at Ctrl-C, but callers that loop over tables must stop.
        raise KeyboardInterrupt
    return found
