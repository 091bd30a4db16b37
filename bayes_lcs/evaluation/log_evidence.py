"""A log evidence with its error, its interval, and how it was obtained."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

__all__ = ["INTERVAL_WIDTH", "Bracket", "EvidenceWarning", "LogEvidence", "MeanWeight"]

INTERVAL_WIDTH = 1.959963984540054
"""Standard errors on each side of a 95 % interval."""

DISAGREEMENT = 3.0
"""Standard errors between the two ends of a bracket beyond which they disagree."""


ROUNDING = 1e-9
"""Relative error of the arithmetic: where all weights are equal there is no other."""


class EvidenceWarning(UserWarning):
    """An estimate whose stated error may be too small; the message says what to do."""


@dataclass(frozen=True)
class MeanWeight:
    """Log of a mean of weights, or of a product of means over independent parts.

    Attributes
    ----------
    value
        Log of the mean, added up over the parts.
    standard_error
        Of ``value``, by the delta method.
    effective_draws
        ``(sum w)^2 / sum w^2`` of the worst part.
    """

    value: float
    standard_error: float
    effective_draws: float

    @classmethod
    def of(cls, log_weights: NDArray[np.float64]) -> MeanWeight:
        """From log weights ``(draws, parts)``.

        Examples
        --------
        >>> found = MeanWeight.of(np.log([[1.0], [3.0]]))
        >>> round(float(np.exp(found.value)), 12), round(found.standard_error, 12)
        (2.0, 0.5)
        """
        size = len(log_weights)
        logs = np.asarray(logsumexp(log_weights, axis=0)) - np.log(size)
        relative = np.exp(log_weights - logs)
        errors = relative.std(axis=0, ddof=1) / np.sqrt(size) if size > 1 else np.inf
        effective = relative.sum(axis=0) ** 2 / (relative**2).sum(axis=0)
        return cls(float(logs.sum()), float(np.sqrt(np.sum(errors**2))), float(np.min(effective)))


@dataclass(frozen=True)
class Bracket:
    """A stochastic lower and a stochastic upper bound of a log evidence.

    Attributes
    ----------
    forward, reverse
        From chains that began at the base, and from chains that began at draws from the target.
    rigorous
        Whether those draws were exact; if they came from chains, the upper bound holds only as
        far as the chains had converged.
    """

    forward: MeanWeight
    reverse: MeanWeight
    rigorous: bool

    @property
    def gap(self) -> float:
        """Upper less lower bound; zero on average if all is well."""
        return self.reverse.value - self.forward.value

    @property
    def agrees(self) -> bool:
        """Whether the two ends are within three standard errors of each other."""
        error = np.hypot(self.forward.standard_error, self.reverse.standard_error)
        rounding = ROUNDING * (1.0 + abs(self.forward.value))
        return bool(abs(self.gap) <= DISAGREEMENT * error + rounding)


@dataclass(frozen=True)
class LogEvidence:
    """``log P`` of what was observed under a model.

    Attributes
    ----------
    value
        The log evidence, or its estimate.
    lower, upper
        A 95 % interval; equal to ``value`` where the value is exact. Where a bracket was made,
        the upper end is that of the reversed chains if it lies higher.
    standard_error
        Zero where the value is exact.
    method
        ``"closed-form"``, ``"exact"`` (sum over all partitions), ``"importance"``,
        ``"particles"``, ``"ais"``, or for a ratio of two such the two joined by ``"/"``.
    effective_draws
        Effective sample size of the weights (the smallest, where several integrals are added);
        infinite where the value is exact.
    model
        Name of the model.
    how
        How it was obtained, in words.
    bracket
        The two bounds, where both were estimated.
    interrupted
        Whether Ctrl-C cut the work short; ``how`` says where.
    """

    value: float
    lower: float
    upper: float
    standard_error: float
    method: str
    effective_draws: float
    model: str
    how: str = ""
    bracket: Bracket | None = None
    interrupted: bool = False

    @classmethod
    def exact(cls, value: float, method: str, model: str, how: str = "") -> LogEvidence:
        """A value without error."""
        return cls(value, value, value, 0.0, method, np.inf, model, how)

    @classmethod
    def estimated(
        cls,
        found: MeanWeight,
        method: str,
        model: str,
        how: str = "",
        bracket: Bracket | None = None,
    ) -> LogEvidence:
        """An estimate with its interval."""
        margin = INTERVAL_WIDTH * found.standard_error
        upper = found.value + margin
        if bracket is not None:
            top = bracket.reverse.value + INTERVAL_WIDTH * bracket.reverse.standard_error
            upper = max(upper, top)
        return cls(
            found.value,
            found.value - margin,
            upper,
            found.standard_error,
            method,
            found.effective_draws,
            model,
            how,
            bracket,
        )

    @property
    def is_exact(self) -> bool:
        """Whether there is no sampling error."""
        return self.standard_error == 0.0

    def __str__(self) -> str:
        error = "exact" if self.is_exact else f"± {self.standard_error:.2g}"
        return f"{self.model}: {self.value:.2f} ({error}, {self.method})"
