"""SMC over partitions of the groups (:mod:`bayes_lcs.inference.smc.smc`).

It estimates ``P(X | Y)`` of clustered naive Bayes with all labels known: the sum over all
partitions. A cluster for a group has the weight

    |T| / (a + n) m(T + u) / m(T)   for a cluster of previous groups,    a / (a + n) m({u})   else,

after ``n`` groups. Partitions of the first few groups are explored quickly, and after many groups
the predictive probability of the next one hardly differs between particles: the estimate for a
thousand groups takes little more than a thousand times the time for one. This holds if groups have
few rows. If they have many, the first groups soon share a cluster that one-by-one moves cannot
split, and runs differ by thousands of nats; use
:mod:`bayes_lcs.inference.ais.partition_mean_field` for these.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from bayes_lcs.inference.mcmc import collapsed_gibbs
from bayes_lcs.inference.mcmc.cluster_marginals import CountLayout, log_marginal
from bayes_lcs.inference.smc.smc import SMCProblem, smc_schedule

if TYPE_CHECKING:
    from bayes_lcs.core.model_protocols import PartitionModel
    from bayes_lcs.data.grouped_table import GroupedTable

__all__ = ["PartitionConfig", "build_problem"]

FIRST_SLOTS = 8


class SMCData(NamedTuple):
    """Counts of the groups, and hyper-parameters.

    Attributes
    ----------
    layout
        Dimensions and tables of the counts.
    vectors : (U, D)
        Counts of each group.
    concentration
        Concentration of the Chinese restaurant process.
    """

    layout: CountLayout
    vectors: jax.Array
    concentration: jax.Array


class ParticleState(NamedTuple):
    """Clusters of every particle.

    Attributes
    ----------
    cluster_counts : (K, P, D)
        Counts of each slot.
    sizes : (K, P)
        Number of groups in each slot.
    log_marginals : (K, P)
        ``log m`` of each slot.
    full : (P,)
        True if any particle has ever used all of its slots.
    """

    cluster_counts: jax.Array
    sizes: jax.Array
    log_marginals: jax.Array
    full: jax.Array


def _sum_chosen(cluster_counts: jax.Array, mask: jax.Array) -> jax.Array:
    """Return the counts ``(P, D)`` of the slot in ``mask`` ``(K, P)``, zero for an empty mask."""
    return jnp.where(mask[..., None], cluster_counts, 0).sum(axis=0, dtype=cluster_counts.dtype)


@dataclass(frozen=True)
class PartitionConfig:
    """Configuration of SMC over partitions.

    Attributes
    ----------
    num_choices
        Slots for clusters; their number changes no draw as long as one slot is free.
    num_groups
        Number of groups.
    """

    num_choices: int
    num_groups: int

    def begin(self, data: SMCData, num_particles: int) -> ParticleState:
        """Return particles without clusters."""
        slots, dimensions = self.num_choices, data.vectors.shape[1]
        return ParticleState(
            jnp.zeros((slots, num_particles, dimensions), dtype=data.vectors.dtype),
            jnp.zeros((slots, num_particles)),
            jnp.zeros((slots, num_particles)),
            jnp.zeros(num_particles, dtype=bool),
        )

    def scores(
        self, data: SMCData, particles: ParticleState, item: jax.Array, own: jax.Array
    ) -> jax.Array:
        """Return the log probabilities of each cluster for a group, and of its rows, ``(K, P)``."""
        vector = data.vectors[item]
        is_own = own > 0
        left = log_marginal(
            data.layout,
            _sum_chosen(particles.cluster_counts, is_own) - vector * is_own.any(axis=0)[:, None],
        )
        before = jnp.where(is_own, left, particles.log_marginals)
        joined = particles.cluster_counts + jnp.where(is_own[..., None], 0, vector)
        gain = log_marginal(data.layout, joined) - before
        sizes = particles.sizes - own
        slots = jnp.arange(self.num_choices)[:, None]
        is_free = slots == jnp.argmin(sizes > 0, axis=0)
        weights = jnp.where(is_free, data.concentration, sizes)
        # Only the first empty slot stands for a new cluster; the others have weight zero.
        return jnp.log(weights) + gain - jnp.log(sizes.sum(axis=0) + data.concentration)

    def reassign(
        self,
        data: SMCData,
        particles: ParticleState,
        item: jax.Array,
        own: jax.Array,
        new: jax.Array,
    ) -> ParticleState:
        """Return the clusters after a group has moved from ``own`` to ``new``."""
        vector = data.vectors[item]
        cluster_counts = (
            particles.cluster_counts
            + (new - own).astype(particles.cluster_counts.dtype)[..., None] * vector
        )
        sizes = particles.sizes + new - own
        log_marginals = particles.log_marginals
        for change in (own > 0, new > 0):
            log_changed = log_marginal(data.layout, _sum_chosen(cluster_counts, change))
            log_marginals = jnp.where(change, log_changed, log_marginals)
        # A flag of all particles, since resampling may drop the one that ran out of slots.
        full = particles.full | (sizes > 0).all(axis=0).any()
        return ParticleState(cluster_counts, sizes, log_marginals, full)

    def reorder(self, data: SMCData, order: jax.Array) -> SMCData:
        """Return the data with the groups in another order."""
        return data._replace(vectors=data.vectors[order])

    def select(self, particles: ParticleState, chosen: jax.Array) -> ParticleState:
        """Return the particles at indices ``chosen``."""
        return ParticleState(
            particles.cluster_counts[:, chosen],
            particles.sizes[:, chosen],
            particles.log_marginals[:, chosen],
            particles.full[chosen],
        )

    def out_of_slots(self, particles: ParticleState) -> jax.Array:
        """Return True if a particle has used all of its slots."""
        return particles.full.any()

    def with_more_slots(self) -> PartitionConfig:
        """Return the configuration with 50 % more slots, at most one more than there are groups."""
        more = -(-self.num_choices // 8) * 4
        return replace(self, num_choices=min(self.num_choices + more, self.num_groups + 1))


def build_problem(model: PartitionModel, data: GroupedTable) -> SMCProblem:
    """Build the problem of all groups of a table."""
    num_groups = data.num_groups
    with jax.enable_x64(True):
        problem = collapsed_gibbs.build_problem(model, data)
        concentration = jnp.asarray(problem.concentration, dtype=float)
        schedule = smc_schedule(num_groups)
    slots = min(FIRST_SLOTS, num_groups + 1)
    config = PartitionConfig(slots, num_groups)
    arrays = SMCData(problem.data.layout, problem.data.vectors, concentration)
    return SMCProblem(config, arrays, schedule, np.arange(num_groups), num_groups)
