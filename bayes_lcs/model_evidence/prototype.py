"""Evidence of the prototype model: the product of one integral per (label, feature) pair.

Given prototype and strength the groups' own parameters integrate out, and the evidence factorises

    P(X | Y) = prod_{y,f}  integral Dir(p; beta) Gamma(K; g1, g2) prod_u DM(n_{u,y,f}; K p) dp dK

into integrals of as many dimensions as the feature has values. Each is computed by importance
sampling in unconstrained coordinates ``(log K, log p_1/p_V, ..., log p_{V-1}/p_V)``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bayes_lcs.core.counts import GroupCounts
from bayes_lcs.core.dirichlet import CountHistograms, log_dirichlet_density
from bayes_lcs.core.naive_bayes import log_label_marginal
from bayes_lcs.inference.laplace import LogIntegral, WideProposal, log_integral
from bayes_lcs.runtime.checkpoints import checkpointed_task
from bayes_lcs.runtime.progress import progress_bar

if TYPE_CHECKING:
    from bayes_lcs.models.prototype import Prototype

__all__ = [
    "MIN_EFFECTIVE_DRAWS",
    "TRIAL_DRAWS",
    "num_draws_for_precision",
    "prototype_factors",
    "prototype_log_evidence",
]

FloatArray = NDArray[np.float64]

MIN_EFFECTIVE_DRAWS = 400.0
MAX_DRAWS_FACTOR = 16
TRIAL_DRAWS = 4000
MAX_TERMS = 5e7
"""Maximum number of draws times different counts; about ten seconds."""

MIN_LOG_PROBABILITY = -600.0
"""Keeps ``K p`` representable in the far tails of the proposal, where the density is zero."""


def _to_model(points: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Convert points ``(log K, log ratios)`` to log prototypes and log strengths."""
    ratios = np.concatenate([points[:, 1:], np.zeros((len(points), 1))], axis=1)
    log_prototype = ratios - np.logaddexp.reduce(ratios, axis=1, keepdims=True)
    return np.maximum(log_prototype, MIN_LOG_PROBABILITY), points[:, 0]


def _merge_unseen_values(counts: NDArray, prior: FloatArray) -> tuple[NDArray, FloatArray]:
    """Merge values that never occur into one, which comes first; the integral stays the same.

    The likelihood does not depend on how their probability is divided, and sums of Dirichlet
    components are Dirichlet. In log ratios each of them would have a long flat tail that the
    proposal misses. The most common value comes last, as the denominator of the ratios.
    """
    seen = counts.any(axis=0)
    order = np.flatnonzero(seen)[np.argsort(counts.sum(axis=0)[seen], kind="stable")]
    if seen.all():
        return counts[:, order], prior[order]
    unseen = np.zeros((len(counts), 1), dtype=counts.dtype)
    return (
        np.concatenate([unseen, counts[:, order]], axis=1),
        np.concatenate([[prior[~seen].sum()], prior[order]]),
    )


def _integrate_factor(
    model: Prototype, counts: NDArray, prior: FloatArray, num_draws: int, rng: np.random.Generator
) -> LogIntegral:
    """Integrate over prototype and strength of one (label, feature) pair, counts ``(U, V)``."""
    strength_prior = model.strength_prior
    counts, prior = _merge_unseen_values(counts, prior)
    histograms = CountHistograms(counts, shifted=True)

    def log_prior(points: FloatArray) -> FloatArray:
        # The Jacobian of (log K, log ratios) is K times the product of the probabilities.
        log_prototype, log_strength = _to_model(points)
        with np.errstate(over="ignore"):
            return np.asarray(
                log_dirichlet_density(np.exp(log_prototype), prior)
                + log_prototype.sum(axis=1)
                + strength_prior.log_density(np.exp(log_strength))
                + log_strength
            )

    def log_density(points: FloatArray) -> FloatArray:
        log_prototype, log_strength = _to_model(points)
        result = log_prior(points)
        inside = np.abs(log_strength) < 300.0
        result[inside] += model.log_factor(
            histograms, np.exp(log_prototype[inside]), np.exp(log_strength[inside])
        )
        result[~inside] = -np.inf
        return result

    def draw(size: int, rng: np.random.Generator) -> FloatArray:
        prototype = np.maximum(rng.dirichlet(prior, size), 1e-250)
        strength = rng.gamma(strength_prior.shape, 1 / strength_prior.rate, size)
        ratios = np.log(prototype[:, :-1]) - np.log(prototype[:, -1:])
        return np.column_stack([np.log(np.maximum(strength, 1e-100)), ratios])

    mean = counts.sum(axis=0) + prior
    start = np.concatenate([[np.log(strength_prior.mean)], np.log(mean[:-1] / mean[-1])])
    found = log_integral(log_density, start, WideProposal(draw, log_prior), num_draws, rng)
    return found._replace(value=found.value + histograms.shift)


def _integrate_factor_precisely(
    model: Prototype, counts: NDArray, prior: FloatArray, num_draws: int, rng: np.random.Generator
) -> LogIntegral:
    """Integrate with more draws while the effective sample size is too small for its error.

    Values that occur once under a prior far below one have posteriors with long tails.
    """
    most = num_draws * MAX_DRAWS_FACTOR
    found = _integrate_factor(model, counts, prior, num_draws, rng)
    while found.effective_draws < MIN_EFFECTIVE_DRAWS and num_draws < most:
        num_draws *= 4
        found = _integrate_factor(model, counts, prior, num_draws, rng)
    return found


def prototype_factors(
    model: Prototype,
    counts: GroupCounts,
    num_draws: int = 4000,
    seed: int = 0,
    progress: bool | None = None,
) -> list[LogIntegral]:
    """Return the integral of every (label, feature) pair, labels outermost."""
    schema = counts.schema
    prior = model.feature_parameters(schema)
    seeds = np.random.SeedSequence(seed).spawn(schema.num_labels * schema.num_features)
    pairs = [(y, f) for y in range(schema.num_labels) for f in range(schema.num_features)]
    cache_key = (model, prior, counts.features, num_draws, seed)
    with (
        checkpointed_task("prototype", *cache_key) as written,
        progress_bar("prototype evidence", len(pairs), progress) as tick,
    ):
        factors = [LogIntegral(*piece["integral"].tolist()) for piece in written.pieces]
        tick(len(factors))
        for label, feature in pairs[len(factors) :]:
            cells = schema.cells_of(feature)
            rng = np.random.default_rng(seeds[len(factors)])
            values = counts.features[:, label, cells]
            if schema.num_values[feature] == 1 or not values.any():
                factors.append(LogIntegral(0.0, 0.0, float(num_draws)))
            else:
                factors.append(
                    _integrate_factor_precisely(model, values, prior[label, cells], num_draws, rng)
                )
            written.update(dict, {"integral": np.asarray(factors[-1])})
            tick()
        written.finish()
    return factors


def num_draws_for_precision(counts: GroupCounts, error: float, precision: float) -> int:
    """Return the number of draws per integral for a precision, if 4,000 draws gave ``error``.

    The number is at most 16 times as large, and smaller for large tables.

    Examples
    --------
    >>> import bayes_lcs as bl
    >>> data, _ = bl.NoSharing().simulate(bl.Schema(2, (2,)), [3, 2], seed=0)
    >>> [num_draws_for_precision(data.counts(), error, 0.01) for error in (0.001, 0.02, 1.0)]
    [4000, 16000, 64000]
    """
    schema = counts.schema
    terms = sum(
        CountHistograms(counts.features[:, label, schema.cells_of(feature)]).num_terms
        for label in range(schema.num_labels)
        for feature in range(schema.num_features)
    )
    most = min(MAX_DRAWS_FACTOR * TRIAL_DRAWS, MAX_TERMS / max(terms, 1))
    return int(max(min(TRIAL_DRAWS * (error / precision) ** 2, most), TRIAL_DRAWS))


def prototype_log_evidence(
    model: Prototype,
    counts: GroupCounts,
    num_draws: int = 4000,
    seed: int = 0,
    progress: bool | None = None,
) -> LogIntegral:
    """Return ``log P(X, Y)``: the sum of the log factors, with errors added in quadrature."""
    factors = prototype_factors(model, counts, num_draws, seed, progress)
    labels = float(log_label_marginal(counts.labels, model.label_parameters(counts.schema)).sum())
    return LogIntegral(
        labels + sum(f.value for f in factors),
        float(np.sqrt(sum(f.standard_error**2 for f in factors))),
        min((f.effective_draws for f in factors), default=float(num_draws)),
    )
