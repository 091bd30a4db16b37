"""Small integrals whose value is known, posed so that samplers of other packages can take them.

*Factor*     one (label, feature) pair of the prototype model, 21 groups: prototype and strength
             are unknown, what the groups have for themselves is integrated out. Two values: a grid
             in two dimensions is the truth. Four: a very long run of importance sampling, whose
             own error is stated.
*Partition*  clustered naive Bayes on 8 groups of 6 rows; the sum over all partitions is the truth.
             Unknown is the partition alone, ``theta`` is integrated out.

Peers that want numbers and no partitions get eight uniform ones, from which groups are seated one
after the other as the Chinese restaurant process has it: the same integral, without truncation.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

import bayes_lcs as bl
from bayes_lcs.core.dirichlet_jax import log_dirichlet_multinomial
from bayes_lcs.model_evidence.prototype import prototype_factors
from experiments.benchmarks.simulated import clustered_groups

NUM_GROUPS = 21
ROWS = 20  # a group, of a factor
STRENGTH_RATE = 0.1  # of the exponential prior of the strength, the default of the model
LONG_RUN = 400_000


@dataclass(frozen=True)
class Truth:
    """A log evidence and its own error, 0 where it is exact."""

    value: float
    error: float


@dataclass(frozen=True)
class Factor:
    """One integral of the prototype model over a feature of ``num_values`` values."""

    num_values: int

    @property
    def data(self) -> bl.GroupedTable:
        """One label, one feature: the evidence of the table is the factor."""
        schema = bl.Schema(1, (self.num_values,))
        return bl.Prototype().simulate(schema, [ROWS] * NUM_GROUPS, seed=3)[0]

    @property
    def model(self) -> bl.Prototype:
        return bl.Prototype()

    @property
    def counts(self) -> NDArray[np.int64]:
        """``(U, V)``."""
        return self.data.counts().features[:, 0]

    def truth(self) -> Truth:
        if self.num_values == 2:
            return Truth(grid_integral(self.counts), 0.0)
        (found,) = prototype_factors(
            self.model, self.data.counts(), num_draws=LONG_RUN, seed=12345, progress=False
        )
        return Truth(found.value, found.standard_error)


def grid_integral(counts: NDArray[np.int64], points: int = 801) -> float:
    """The factor of a two-valued feature by the trapezium rule in log strength and log odds.

    Both densities fall off on either side within the grid, where the rule converges faster than
    any power of its step.
    """
    log_strength = np.linspace(-12.0, 7.0, points)
    log_odds = np.linspace(-16.0, 16.0, points)
    first = -np.logaddexp(0.0, -log_odds)
    second = -np.logaddexp(0.0, log_odds)
    prototype = np.exp(np.stack([first, second], axis=1))
    rows = []
    for value in log_strength:
        strength = np.exp(value)
        likelihood = bl.Prototype.log_factor(counts, prototype, np.full(points, strength))
        prior = np.log(STRENGTH_RATE) - STRENGTH_RATE * strength + value + first + second
        rows.append(logsumexp(likelihood + prior))
    steps = (log_strength[1] - log_strength[0]) * (log_odds[1] - log_odds[0])
    return float(logsumexp(rows) + np.log(steps))


@dataclass(frozen=True)
class Partition:
    """The partition of eight groups."""

    num_groups: int = 8

    @property
    def data(self) -> bl.GroupedTable:
        return clustered_groups(
            self.num_groups, num_clusters=3, rows_per_group=6, num_features=3, evenness=1.0
        )[0]

    @property
    def model(self) -> bl.ClusteredNaiveBayes:
        return bl.ClusteredNaiveBayes()

    @property
    def counts(self) -> NDArray[np.int64]:
        """``(U, L, F, V)``: all features have as many values."""
        counts = self.data.counts()
        shape = (self.num_groups, counts.schema.num_labels, counts.schema.num_features, -1)
        return counts.features.reshape(shape)

    @property
    def log_labels(self) -> float:
        """``log P(Y)``: the same in every partition, so peers need not look at it."""
        return no_sharing_labels(self.data)

    def truth(self) -> Truth:
        return Truth(bl.exact(self.model, self.data, progress=False).log_evidence, 0.0)


@lru_cache(maxsize=1)
def no_sharing_labels(data: bl.GroupedTable) -> float:
    from bayes_lcs.model_evidence.ais import log_known_labels

    return log_known_labels(bl.ClusteredNaiveBayes(), data)


PROBLEMS: dict[str, Factor | Partition] = {
    "factor, 2 values": Factor(2),
    "factor, 4 values": Factor(4),
    "partition, 8 groups": Partition(),
}


# For peers that are written in JAX ----------------------------------------------------------------


def log_factor(counts: jax.Array, prototype: jax.Array, strength: jax.Array) -> jax.Array:
    """Log likelihood of prototype ``(V,)`` and strength."""
    scatter = jnp.maximum(strength * prototype, jnp.finfo(prototype.dtype).tiny)
    return log_dirichlet_multinomial(counts, scatter).sum()


def log_blocks(counts: jax.Array, z: jax.Array) -> jax.Array:
    """``log P(X | Y, z)`` of counts ``(U, L, F, V)``."""
    blocks = jnp.zeros_like(counts).at[z].add(counts)
    return log_dirichlet_multinomial(blocks, jnp.ones(counts.shape[-1])).sum()


def cube_to_factor(cube: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Uniform numbers ``(V,)`` to a prototype under ``Dirichlet(1)`` and a strength."""
    num_values = len(cube)
    shares = 1.0 - (1.0 - cube[1:]) ** (1.0 / jnp.arange(num_values - 1, 0, -1))
    left = jnp.concatenate([jnp.ones(1), jnp.cumprod(1.0 - shares)])
    prototype = left * jnp.concatenate([shares, jnp.ones(1)])
    return prototype, -jnp.log1p(-cube[0]) / STRENGTH_RATE


def cube_to_partition(cube: jax.Array) -> jax.Array:
    """Uniform numbers ``(U,)`` to a draw of the Chinese restaurant process of concentration 1."""
    slots = jnp.arange(len(cube))

    def seat(sizes: jax.Array, uniform: jax.Array) -> tuple[jax.Array, jax.Array]:
        weights = sizes + (slots == (sizes > 0).sum())
        running = jnp.cumsum(weights)
        slot = jnp.argmax(running > uniform * running[-1])
        return sizes + (slots == slot), slot

    return jax.lax.scan(seat, jnp.zeros(len(cube)), cube)[1]
