"""A model given a table, by the best means there are: exactly where possible, else by sampling."""

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

MOST_EXACT_GROUPS = 16
"""Up to here the exact posterior is a matter of a fifth of a second."""


def is_labelled(data: GroupedTable) -> bool:
    """Whether no label has to be summed over: a row without label and features says nothing."""
    return not ((data.labels < 0) & (data.features >= 0).any(axis=1)).any()


def can_be_exact(model: Any, data: GroupedTable, max_groups: int = MOST_EXACT_GROUPS) -> bool:
    """Whether predictions have a closed form, or a sum over partitions that takes no time."""
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
    """The posterior of a model given a table, ready to predict with ``predict_proba(rows)``.

    Parameters
    ----------
    method
        ``"auto"`` is exact where :func:`can_be_exact`, and samples elsewhere.
    draws, chains, seed
        Of the sampler; half as many sweeps come before the first draw.
    executor
        Where the chains of the sampler run; None is this process.

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
        # The sampler keeps its draws at Ctrl-C, but whoever loops over tables wants to stop.
        raise KeyboardInterrupt
    return found
