"""A log evidence with its error, its interval, and how it was obtained."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

__all__ = ["INTERVAL_WIDTH", "Bracket", "EvidenceWarning", "LogEvidence", "MeanWeight"]

INTERVAL_WIDTH = 1.959963984540054
"""Standard errors on each side of a 95 % interval."""

LEAST_EFFECTIVE_RUNS = 20.0
"""With fewer, stated errors are too small, and bounds are taken that need none."""

MARKOV = float(np.log(40.0))
"""By how much the log of a mean of weights exceeds its expectation in one case of 40 at most,
however they are distributed (Markov's inequality): one end of a 95 % interval."""

CERTAIN = 0.0
"""The log of no probability is higher: an upper end where nothing else is known."""

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

    @property
    def is_bound(self) -> bool:
        """Whether so few of the weights count that there is no telling the error of their mean."""
        return self.effective_draws < LEAST_EFFECTIVE_RUNS

    @property
    def margin(self) -> float:
        """How far the end of a 95 % interval lies from the value, on the side that is bounded.

        Examples
        --------
        >>> [round(MeanWeight(-10.0, 0.1, draws).margin, 2) for draws in (500.0, 3.0)]
        [0.2, 3.69]
        """
        margin = INTERVAL_WIDTH * self.standard_error
        return max(margin, MARKOV) if self.is_bound else margin

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
        if np.isneginf(logs).any():
            return cls(-np.inf, np.inf, 0.0)
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
    left_out
        Part of the gap that is known: minus the log of the share of those draws over which the
        runs forwards sum. They are below the evidence by so much, and all is well.
    """

    forward: MeanWeight
    reverse: MeanWeight
    rigorous: bool
    left_out: float = 0.0

    @property
    def gap(self) -> float:
        """Upper less lower bound; ``left_out`` on average if all is well."""
        return self.reverse.value - self.forward.value

    @property
    def contradicts(self) -> bool:
        """Whether the upper bound lies below the lower one: the draws it came from cannot be right.

        Of right draws that happens in one case of 20 at most, and hardly ever where errors are
        known.
        """
        low, high = self.forward, self.reverse
        return bool(high.value + high.margin < low.value - low.margin - ROUNDING * abs(low.value))

    @property
    def agrees(self) -> bool:
        """Whether the two ends are within three standard errors of each other."""
        if np.isinf(self.gap):
            return False
        error = np.hypot(self.forward.standard_error, self.reverse.standard_error)
        rounding = ROUNDING * (1.0 + abs(self.forward.value))
        return bool(abs(self.gap - self.left_out) <= DISAGREEMENT * error + rounding)


@dataclass(frozen=True)
class LogEvidence:
    """``log P`` of what was observed under a model.

    Attributes
    ----------
    value
        The log evidence, or its estimate.
    lower, upper
        A 95 % interval; equal to ``value`` where the value is exact. Where a bracket was made,
        the upper end is that of the reversed chains if it lies higher. Where few of the weights
        count, they are bounds by Markov's inequality, 3.7 beyond the means of the weights: the
        lower one holds however bad the estimate is, the upper one as far as the draws at which
        reversed chains began are from the posterior.
    standard_error
        Zero where the value is exact; of bounds as wide as they are.
    method
        ``"closed-form"``, ``"exact"`` (sum over all partitions), ``"importance"``,
        ``"particles"``, ``"ais"``, ``"guided"``, or for a ratio of two such the two joined by
        ``"/"``.
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
        margin = found.margin
        upper = found.value + margin
        if bracket is not None:
            upper = max(upper, bracket.reverse.value + bracket.reverse.margin)
            if bracket.contradicts or np.isinf(upper):
                upper = CERTAIN
        return cls(
            found.value,
            found.value - margin,
            upper,
            margin / INTERVAL_WIDTH,
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
