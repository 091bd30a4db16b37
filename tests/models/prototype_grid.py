"""Evidence of the Prototype model for binary features, summed on a fine grid."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from bayes_lcs.core.counts import GroupCounts
from bayes_lcs.models.prototype import Prototype


class Grid(NamedTuple):
    prototype: NDArray[np.float64]  # (P, 1), the probability of value 0
    strength: NDArray[np.float64]  # (1, K)
    log_weights: NDArray[np.float64]  # (P, K), prior density times cell size


def prior_grid(model: Prototype) -> Grid:
    """Gauss-Legendre in the probability (a uniform prior), a trapezoid in the log strength."""
    assert model.feature_prior == 1.0
    points, weights = np.polynomial.legendre.leggauss(50)
    log_k = np.linspace(-25.0, 8.0, 500)
    log_prior = model.strength_prior.log_density_of_log(log_k) + np.log(log_k[1] - log_k[0])
    return Grid(
        (points[:, None] + 1) / 2, np.exp(log_k)[None], np.log(weights / 2)[:, None] + log_prior
    )


def log_factor_grid(grid: Grid, counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """Log of prior times likelihood of binary counts ``(U, 2)`` on the grid."""
    both = np.stack([grid.prototype, 1.0 - grid.prototype], axis=-1)
    return grid.log_weights + Prototype.log_factor(counts, both, grid.strength)


@cache
def _log_factor(model: Prototype, counts: tuple[tuple[int, ...], ...]) -> float:
    return float(logsumexp(log_factor_grid(prior_grid(model), np.array(counts))))


def grid_log_evidence(model: Prototype, counts: GroupCounts) -> float:
    schema = counts.schema
    total = model.log_label_marginal(counts)
    for label in range(schema.num_labels):
        for feature in range(schema.num_features):
            cells = counts.features[:, label, schema.cells_of(feature)]
            total += _log_factor(model, tuple(map(tuple, cells.tolist())))
    return total
