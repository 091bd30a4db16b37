"""Groups whose blocks particles sum over (:mod:`bayes_lcs.inference.smc.smc`).

Estimated is ``P(X | Y)`` of clustered naive Bayes where all labels are known: the sum over all
partitions. The block of a group has the weight

    |T| / (a + n) m(T + u) / m(T)   for a block of groups read so far,    a / (a + n) m({u})   else,

with ``n`` groups read. The first groups are few and their partitions soon explored; when many have
been read, another one hardly differs between particles: the estimate of a thousand groups takes
little more than a thousand times that of one. That is so where a group has few rows. Of groups with
many, the first ones soon share a block that one-by-one moves cannot part, and runs differ by
thousands of nats: :mod:`bayes_lcs.inference.ais.partition_mean_field` is for these.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from bayes_lcs.inference.mcmc import collapsed_gibbs
from bayes_lcs.inference.mcmc.cluster_marginals import BlockLayout, log_marginal
from bayes_lcs.inference.smc.smc import Posed, reading

if TYPE_CHECKING:
    from bayes_lcs.core.model_protocols import PartitionModel
    from bayes_lcs.data.grouped_table import GroupedTable

__all__ = ["GroupParticles", "pose"]

FIRST_SLOTS = 8


class Part(NamedTuple):
    """The groups.

    Attributes
    ----------
    layout
        Dimensions and tables of the counts.
    vectors : (U, D)
        Counts of each group.
    concentration
        Of the Chinese restaurant.
    """

    layout: BlockLayout
    vectors: jax.Array
    concentration: jax.Array


class Held(NamedTuple):
    """The blocks of every particle.

    Attributes
    ----------
    blocks : (K, P, D)
        Counts of each slot.
    sizes : (K, P)
        Groups in each slot.
    log_marginals : (K, P)
        ``log m`` of each slot.
    full : (P,)
        Whether any particle has ever used all of its slots.
    """

    blocks: jax.Array
    sizes: jax.Array
    log_marginals: jax.Array
    full: jax.Array


def _chosen(blocks: jax.Array, mask: jax.Array) -> jax.Array:
    """Counts ``(P, D)`` of one slot of each particle, zero where ``mask`` ``(K, P)`` has none."""
    return jnp.where(mask[..., None], blocks, 0).sum(axis=0, dtype=blocks.dtype)


@dataclass(frozen=True)
class GroupParticles:
    """Groups get blocks.

    Attributes
    ----------
    num_places
        Slots for blocks; how many there are changes no draw as long as one is free.
    num_groups
        Number of groups.
    """

    num_places: int
    num_groups: int

    def begin(self, part: Part, num_particles: int) -> Held:
        """No blocks."""
        slots, dimensions = self.num_places, part.vectors.shape[1]
        return Held(
            jnp.zeros((slots, num_particles, dimensions), dtype=part.vectors.dtype),
            jnp.zeros((slots, num_particles)),
            jnp.zeros((slots, num_particles)),
            jnp.zeros(num_particles, dtype=bool),
        )

    def scores(self, part: Part, held: Held, item: jax.Array, own: jax.Array) -> jax.Array:
        """Log probabilities of the blocks of a group and its rows, ``(K, P)``."""
        vector = part.vectors[item]
        is_own = own > 0
        left = log_marginal(
            part.layout, _chosen(held.blocks, is_own) - vector * is_own.any(axis=0)[:, None]
        )
        before = jnp.where(is_own, left, held.log_marginals)
        joined = held.blocks + jnp.where(is_own[..., None], 0, vector)
        gain = log_marginal(part.layout, joined) - before
        sizes = held.sizes - own
        slots = jnp.arange(self.num_places)[:, None]
        is_free = slots == jnp.argmin(sizes > 0, axis=0)
        weights = jnp.where(is_free, part.concentration, sizes)
        # An empty slot that is not the first has weight zero.
        return jnp.log(weights) + gain - jnp.log(sizes.sum(axis=0) + part.concentration)

    def moved(
        self, part: Part, held: Held, item: jax.Array, own: jax.Array, new: jax.Array
    ) -> Held:
        """The blocks after a group has gone from one to another."""
        vector = part.vectors[item]
        blocks = held.blocks + (new - own).astype(held.blocks.dtype)[..., None] * vector
        sizes = held.sizes + new - own
        log_marginals = held.log_marginals
        for change in (own > 0, new > 0):
            log_changed = log_marginal(part.layout, _chosen(blocks, change))
            log_marginals = jnp.where(change, log_changed, log_marginals)
        # Of all particles: one that had no slot to spare may since have been left out.
        full = held.full | (sizes > 0).all(axis=0).any()
        return Held(blocks, sizes, log_marginals, full)

    def shuffled(self, part: Part, order: jax.Array) -> Part:
        """The part with its groups in another order."""
        return part._replace(vectors=part.vectors[order])

    def drawn(self, held: Held, chosen: jax.Array) -> Held:
        """The particles at ``chosen``."""
        return Held(
            held.blocks[:, chosen],
            held.sizes[:, chosen],
            held.log_marginals[:, chosen],
            held.full[chosen],
        )

    def overflowed(self, held: Held) -> jax.Array:
        """Whether some particle had no slot to spare."""
        return held.full.any()

    def enlarged(self) -> GroupParticles:
        """The same with half as many slots again; one more than groups is enough for all."""
        more = -(-self.num_places // 8) * 4
        return replace(self, num_places=min(self.num_places + more, self.num_groups + 1))


def pose(model: PartitionModel, data: GroupedTable) -> Posed:
    """All groups of a table, laid out for particles."""
    num_groups = data.num_groups
    with jax.enable_x64(True):
        problem = collapsed_gibbs.pose(model, data)
        arrays = problem.data
        part = Part(arrays.layout, arrays.vectors, jnp.asarray(problem.concentration, dtype=float))
        stages = reading(num_groups)
    slots = min(FIRST_SLOTS, num_groups + 1)
    design = GroupParticles(slots, num_groups)
    return Posed(design, part, stages, np.arange(num_groups), num_groups)
