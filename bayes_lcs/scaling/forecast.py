"""The rest of a learning curve, with its uncertainty, from its beginning.

Bayesian model averaging over the shapes of `bayes_lcs.scaling.curve_families`. Given a shape, the
scale of the rise and the size of the noise, scores are linear in the end of the curve and in its
rise, both Gaussian a priori with the rise cut off at zero: evidence and posterior have closed
forms. The scales of rise and noise are averaged over grids even in the logarithm, so that none is
preferred. Scores enter relative to what was gained over the baseline so far; nothing depends on
their unit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bayes_lcs.scaling.curve_families import Shape, shapes

__all__ = ["Forecast", "forecast"]

RISES = np.geomspace(1e-4, 1.0, 9)
"""Scales of the rise, relative to the gain over the baseline so far."""

NOISES = np.geomspace(1e-5, 3e-2, 8)
"""Standard deviations of a score around its curve, on the same scale."""

_END = 10.0  # standard deviation of the end of the curve: as good as flat


@dataclass(frozen=True)
class Forecast:
    """Draws of the curve at future sizes.

    Attributes
    ----------
    sizes
        The sizes, the last of which is all rows.
    draws
        Scores, shape ``(draws, sizes)``: the curve itself, without noise.
    noise
        Standard deviation of a measured score around the curve, for each draw.
    families
        Posterior probability of each family of shapes.
    """

    sizes: tuple[int, ...]
    draws: NDArray[np.float64]
    noise: NDArray[np.float64]
    families: dict[str, float]

    def at(self, size: int) -> NDArray[np.float64]:
        """Draws of the score at one size."""
        return self.draws[:, self.sizes.index(size)]

    def mean_and_sd(self, size: int) -> tuple[float, float]:
        """Mean and standard deviation of the curve at one size."""
        draws = self.at(size)
        return float(draws.mean()), float(draws.std())

    def surprise(self, size: int, score: float) -> float:
        """How many standard deviations a measured score lies from what was foreseen."""
        draws = self.at(size)
        sd = float(np.sqrt(draws.var() + (self.noise**2).mean()))
        return abs(score - float(draws.mean())) / sd


def forecast(
    sizes: Sequence[int],
    scores: Sequence[float],
    base: float,
    future: Sequence[int],
    total: int,
    *,
    draws: int = 2000,
    seed: int = 0,
) -> Forecast:
    """Draw curves given the stages so far.

    Parameters
    ----------
    sizes, scores
        The stages so far. Of one alone only the prior knows how the curve goes on.
    base
        Score of the baseline; some score must exceed it.
    future
        The sizes to foresee.
    total
        All rows; foreseen too.
    draws, seed
        Number of draws, and their seed.

    Examples
    --------
    >>> sizes = [1000, 2000, 4000, 8000]
    >>> curve = forecast(sizes, [-1 - n**-0.5 for n in sizes], -2.0, [16_000], 32_000)
    >>> bool(abs(curve.mean_and_sd(16_000)[0] - (-1 - 16_000**-0.5)) < 1e-3)
    True
    """
    from scipy.special import ndtri

    scale = max(scores) - base
    if scale <= 0:
        raise ValueError("a forecast needs a score above the baseline")
    rng = np.random.default_rng(seed)
    asked = tuple(dict.fromkeys([*(int(n) for n in future), int(total)]))
    every = shapes([*sizes, *asked], int(sizes[0]), int(total))
    seen = (np.asarray(scores, np.float64) - scores[0]) / scale
    cells = _posteriors(every, seen)
    weight = cells.weight / cells.weight.sum()
    chosen = rng.choice(weight.size, draws, p=weight)
    mean, covariance = cells.mean[chosen], cells.covariance[chosen]
    # The rise, above zero; then the end of the curve given the rise.
    sd = np.sqrt(covariance[:, 1, 1])
    below = _below_zero(mean[:, 1] / sd)
    rise = mean[:, 1] + sd * ndtri(below + (1.0 - below) * rng.uniform(1e-12, 1.0 - 1e-12, draws))
    slope = covariance[:, 0, 1] / covariance[:, 1, 1]
    left = np.maximum(covariance[:, 0, 0] - slope * covariance[:, 0, 1], 0.0)
    end = mean[:, 0] + slope * (rise - mean[:, 1]) + np.sqrt(left) * rng.standard_normal(draws)
    height = np.stack([shape.height[len(sizes) :] for shape in every])[cells.shape[chosen]]
    curves = scores[0] + scale * (end[:, None] - np.maximum(rise, 0.0)[:, None] * height)
    families: dict[str, float] = {}
    for place, shape in enumerate(every):
        share = float(weight[cells.shape == place].sum())
        families[shape.family] = families.get(shape.family, 0.0) + share
    return Forecast(asked, curves, scale * cells.noise[chosen], families)


@dataclass(frozen=True)
class _Cells:
    """Every combination of shape, scale of rise and noise, with its weight and posterior."""

    shape: NDArray[np.int64]
    noise: NDArray[np.float64]
    weight: NDArray[np.float64]
    mean: NDArray[np.float64]  # (cells, 2): end and rise
    covariance: NDArray[np.float64]  # (cells, 2, 2)


def _posteriors(every: list[Shape], seen: NDArray[np.float64]) -> _Cells:
    """Closed forms of the Gaussian linear model ``seen = end - rise · height + noise``."""
    from scipy.special import log_ndtr

    num = seen.size
    place, rise, noise = (
        grid.ravel() for grid in np.meshgrid(range(len(every)), RISES, NOISES, indexing="ij")
    )
    place = place.astype(np.int64)
    heights = np.stack([shape.height[:num] for shape in every])
    design = np.stack([np.ones((len(place), num)), -heights[place]], axis=2)  # (cells, num, 2)
    prior = np.stack([np.full(len(place), _END**2), rise**2], axis=1)  # (cells, 2)
    spread = np.einsum("cni,ci,cmi->cnm", design, prior, design)
    spread += (noise**2)[:, None, None] * np.eye(num)
    factor = np.linalg.cholesky(spread)
    white = np.linalg.solve(factor, np.broadcast_to(seen[:, None], (len(place), num, 1)))[..., 0]
    log_evidence = -0.5 * (white**2).sum(axis=1)
    log_evidence -= np.log(np.einsum("cnn->cn", factor)).sum(axis=1)
    precision = np.einsum("cni,cnj->cij", design, design) / (noise**2)[:, None, None]
    precision += np.einsum("ci,ij->cij", 1.0 / prior, np.eye(2))
    covariance = np.linalg.inv(precision)
    towards = np.einsum("cni,n->ci", design, seen) / (noise**2)[:, None]
    mean = np.einsum("cij,cj->ci", covariance, towards)
    # Cutting the rise off at zero multiplies the evidence by P(rise > 0 | seen) / P(rise > 0).
    log_evidence += log_ndtr(mean[:, 1] / np.sqrt(covariance[:, 1, 1])) + np.log(2.0)
    log_weight = log_evidence + np.log([every[p].prior for p in place])
    return _Cells(place, noise, np.exp(log_weight - log_weight.max()), mean, covariance)


def _below_zero(standardised: NDArray[np.float64]) -> NDArray[np.float64]:
    from scipy.special import ndtr

    return np.minimum(ndtr(-standardised), 1.0 - 1e-9)
