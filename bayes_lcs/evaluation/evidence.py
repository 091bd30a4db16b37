"""Log evidence of a model, with its error and how it was obtained."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from bayes_lcs.core.errors import NotExactError
from bayes_lcs.evaluation.prototype_evidence import (
    LEAST_EFFECTIVE_DRAWS,
    prototype_log_evidence,
)
from bayes_lcs.inference.exact import exact, require_labels
from bayes_lcs.inference.exact_posterior import ClusteredPosterior, ExactPosterior
from bayes_lcs.models.prototype import Prototype

if TYPE_CHECKING:
    from bayes_lcs.data.table import GroupedTable

__all__ = ["EvidenceWarning", "LogEvidence", "evidence", "evidence_of"]

INTERVAL_WIDTH = 1.959963984540054
"""Standard errors on each side of a 95 % interval."""


class EvidenceWarning(UserWarning):
    """An estimate whose stated error may be too small; the message says what to do."""


@dataclass(frozen=True)
class LogEvidence:
    """``log P(X, Y)`` of a model.

    Attributes
    ----------
    value
        The log evidence, or its estimate.
    lower, upper
        A 95 % interval; equal to ``value`` where the value is exact.
    standard_error
        Zero where the value is exact.
    method
        ``"closed-form"``, ``"exact"`` (sum over all partitions) or ``"importance"``.
    effective_draws
        Effective sample size of the weights (the smallest, where several integrals are added);
        infinite where the value is exact.
    model
        Name of the model.
    """

    value: float
    lower: float
    upper: float
    standard_error: float
    method: str
    effective_draws: float
    model: str

    @property
    def is_exact(self) -> bool:
        """Whether there is no sampling error."""
        return self.standard_error == 0.0

    def __str__(self) -> str:
        error = "exact" if self.is_exact else f"± {self.standard_error:.2g}"
        return f"{self.model}: {self.value:.2f} ({error}, {self.method})"


def evidence_of(posterior: ExactPosterior) -> LogEvidence:
    """The evidence that an exact posterior has already computed."""
    method = "exact" if isinstance(posterior, ClusteredPosterior) else "closed-form"
    value = posterior.log_evidence
    return LogEvidence(value, value, value, 0.0, method, np.inf, posterior.model.name)


def evidence(
    model: Any,
    data: GroupedTable,
    method: str = "auto",
    *,
    num_draws: int = 4000,
    seed: int = 0,
    progress: bool | None = None,
) -> LogEvidence:
    """Log evidence ``log P(X, Y)`` of a model, by the best method there is for it.

    Parameters
    ----------
    method : {"auto", "exact", "importance"}
        ``auto`` takes the closed form (no sharing, complete sharing), the exact sum over all
        partitions (clustered naive Bayes up to 24 groups) or importance sampling (prototype).
    num_draws
        Draws for each integral of the prototype model; up to 16 times as many where few count.
    seed
        Seed of those draws.

    Examples
    --------
    >>> import bayes_lcs as bl
    >>> data, truth = bl.meeting_requests(seed=0, rows_per_person=5)
    >>> bl.evidence(bl.NoSharing(), data).method
    'closed-form'
    """
    if method not in {"auto", "exact", "importance"}:
        raise ValueError(f"method must be 'auto', 'exact' or 'importance', got {method!r}")
    if isinstance(model, Prototype):
        if method == "exact":
            raise NotExactError("the prototype model has no exact evidence; use method='auto'")
        require_labels(data)
        found = prototype_log_evidence(model, data.counts(), num_draws, seed, progress)
        if found.effective_draws < LEAST_EFFECTIVE_DRAWS:
            warnings.warn(
                f"one of the integrals rests on {found.effective_draws:.0f} effective draws only; "
                "its stated error may be too small. Draw more with num_draws=",
                EvidenceWarning,
                stacklevel=2,
            )
        margin = INTERVAL_WIDTH * found.standard_error
        return LogEvidence(
            found.value,
            found.value - margin,
            found.value + margin,
            found.standard_error,
            "importance",
            found.effective_draws,
            model.name,
        )
    if method == "importance":
        raise ValueError("importance sampling is for the prototype model; use method='auto'")
    return evidence_of(exact(model, data, progress=progress))
