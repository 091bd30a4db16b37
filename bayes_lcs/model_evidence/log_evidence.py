"""Log evidence with its standard error, interval and method."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

__all__ = ["INTERVAL_WIDTH", "Bracket", "EvidenceWarning", "LogEvidence", "MeanWeight"]

INTERVAL_WIDTH = 1.959963984540054
"""Half-width of a 95 % interval in standard errors."""

MIN_EFFECTIVE_RUNS = 20.0
"""With fewer effective runs standard errors are too small, and Markov bounds are used instead."""

MARKOV_MARGIN = float(np.log(40.0))
"""The log of a mean of weights exceeds that of its expectation by more than this with probability
at most 1/40, for any distribution (Markov's inequality): one end of a 95 % interval."""

MAX_LOG_PROBABILITY = 0.0
"""Largest log probability: the upper end of the interval if no better one is known."""

DISAGREEMENT = 3.0
"""Standard errors between lower and upper bound beyond which they disagree."""

ROUNDING = 1e-9
"""Relative rounding error, the only error if all weights are equal."""


class EvidenceWarning(UserWarning):
    """The stated error of an estimate may be too small; the message says what to do."""


@dataclass(frozen=True)
class MeanWeight:
    """Log of a mean of weights, or of a product of means over independent parts.

    Attributes
    ----------
    value
        Log of the mean, summed over the parts.
    standard_error
        Standard error of ``value``, by the delta method.
    effective_draws
        Effective sample size ``(sum w)^2 / sum w^2`` of the worst part.
    """

    value: float
    standard_error: float
    effective_draws: float

    @property
    def is_bound(self) -> bool:
        """True if the effective sample size is too small to estimate the standard error."""
        return self.effective_draws < MIN_EFFECTIVE_RUNS

    @property
    def margin(self) -> float:
        """Distance of the end of a 95 % interval from the value, on the bounded side.

        Examples
        --------
        >>> [round(MeanWeight(-10.0, 0.1, draws).margin, 2) for draws in (500.0, 3.0)]
        [0.2, 3.69]
        """
        margin = INTERVAL_WIDTH * self.standard_error
        return max(margin, MARKOV_MARGIN) if self.is_bound else margin

    @classmethod
    def of(cls, log_weights: NDArray[np.float64]) -> MeanWeight:
        """Return the mean of log weights ``(draws, parts)``.

        Examples
        --------
        >>> found = MeanWeight.of(np.log([[1.0], [3.0]]))
        >>> round(float(np.exp(found.value)), 12), round(found.standard_error, 12)
        (2.0, 0.5)
        """
        size = len(log_weights)
        logs = np.asarray(logsumexp(log_weights, axis=0)) - np.log(size)
        if np.isneginf(logs).any():  # all weights of a part are zero
            return cls(-np.inf, np.inf, 0.0)
        # Delta method: the error of a log mean is that of the weights relative to their mean.
        relative = np.exp(log_weights - logs)
        errors = relative.std(axis=0, ddof=1) / np.sqrt(size) if size > 1 else np.inf
        effective = relative.sum(axis=0) ** 2 / (relative**2).sum(axis=0)
        return cls(float(logs.sum()), float(np.sqrt(np.sum(errors**2))), float(np.min(effective)))


@dataclass(frozen=True)
class Bracket:
    """Stochastic lower and upper bound of a log evidence.

    Attributes
    ----------
    forward, reverse
        Estimates from chains that start at the base, and at draws from the target.
    rigorous
        True if those draws are exact; draws of chains give a valid upper bound only if the chains
        have converged.
    left_out
        Expected part of the gap: minus the log of the share of draws that forward runs can reach.
        The forward estimate is below the evidence by this amount.
    """

    forward: MeanWeight
    reverse: MeanWeight
    rigorous: bool
    left_out: float = 0.0

    @property
    def gap(self) -> float:
        """Upper minus lower bound; its expectation is ``left_out`` if both are accurate."""
        return self.reverse.value - self.forward.value

    @property
    def contradicts(self) -> bool:
        """True if the upper bound lies below the lower one: its draws are not from the posterior.

        With correct draws this happens with probability at most 1/20, and hardly ever if the
        standard errors are reliable.
        """
        low, high = self.forward, self.reverse
        return bool(high.value + high.margin < low.value - low.margin - ROUNDING * abs(low.value))

    @property
    def agrees(self) -> bool:
        """True if lower and upper bound are within three standard errors of each other."""
        if np.isinf(self.gap):
            return False
        error = np.hypot(self.forward.standard_error, self.reverse.standard_error)
        rounding = ROUNDING * (1.0 + abs(self.forward.value))
        return bool(abs(self.gap - self.left_out) <= DISAGREEMENT * error + rounding)


@dataclass(frozen=True)
class LogEvidence:
    """``log P`` of the observed data under a model.

    Attributes
    ----------
    value
        The log evidence, or its estimate.
    lower, upper
        A 95 % interval; equal to ``value`` if the value is exact. With a bracket, the upper end is
        that of the reversed chains if it is higher. If the effective sample size is small, the ends
        are bounds by Markov's inequality, 3.7 beyond the log means of the weights: the lower one
        holds for any quality of the estimate, the upper one if the initial states of the reversed
        chains are from the posterior.
    standard_error
        Zero if the value is exact; for bounds the width of the interval in the same units.
    method
        ``"closed-form"``, ``"exact"`` (sum over all partitions), ``"importance"``,
        ``"particles"``, ``"ais"`` or ``"guided"``; for a ratio of two evidences, both methods
        joined by ``"/"``.
    effective_draws
        Effective sample size of the weights (the smallest one of several integrals); infinite if
        the value is exact.
    model
        Name of the model.
    how
        Description of the computation.
    bracket
        Lower and upper bound, if both were estimated.
    interrupted
        True if Ctrl-C interrupted the computation; ``how`` says where.
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
        """Return a log evidence without error."""
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
        """Return an estimated log evidence with its interval."""
        margin = found.margin
        upper = found.value + margin
        if bracket is not None:
            upper = max(upper, bracket.reverse.value + bracket.reverse.margin)
            if bracket.contradicts or np.isinf(upper):
                upper = MAX_LOG_PROBABILITY
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
        """True if there is no sampling error."""
        return self.standard_error == 0.0

    def __str__(self) -> str:
        error = "exact" if self.is_exact else f"± {self.standard_error:.2g}"
        return f"{self.model}: {self.value:.2f} ({error}, {self.method})"
