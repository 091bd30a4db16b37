"""SMC over the missing labels of rows (:mod:`bayes_lcs.inference.smc.smc`).

It estimates ``P(X, Y_known) / P(Y_known)`` of rows whose features share one set of parameters: the
sum over all labelings of the rows without a label. A label of a row has the weight

    P(y | labels so far) prod_f (n_{y,f,x} + beta_{y,f,x}) / (n_{y,f,.} + sum beta)

(label conditionals as thesis A.45, A.46).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from bayes_lcs.core.model_protocols import KnownPartitionModel
from bayes_lcs.inference.mcmc.collapsed_gibbs import round_up
from bayes_lcs.inference.smc.smc import SMCProblem, smc_schedule

if TYPE_CHECKING:
    from bayes_lcs.data.grouped_table import GroupedTable

__all__ = ["LabelConfig", "SMCData", "build_problem"]

FACTORS = 8
"""Number of probabilities that are multiplied before a logarithm is taken; too few to underflow."""


class SMCData(NamedTuple):
    """Rows that share their parameters, with counts and prior of the labelled rows.

    Attributes
    ----------
    cells : (N, F)
        Cell of each value of the rows without a label; the last cell if it is missing.
    present : (N, F)
        True for values that are not missing.
    owner : (N,)
        Index into ``label_weights`` for each row.
    cell_weights : (C + 1, L)
        Counts of labelled rows plus prior of every cell.
    feature_weights : (F, L)
        The same, summed over the values of each feature.
    label_weights : (O, L)
        Label counts plus prior of each owner of a label distribution.
    """

    cells: jax.Array
    present: jax.Array
    owner: jax.Array
    cell_weights: jax.Array
    feature_weights: jax.Array
    label_weights: jax.Array


class ParticleState(NamedTuple):
    """Counts plus prior of the rows labelled so far, for each particle.

    Attributes
    ----------
    cells : (C + 1, L, P)
        Counts of every cell.
    features : (F, L, P)
        The same, summed over the values of each feature.
    owners : (O, L, P)
        Label counts.
    """

    cells: jax.Array
    features: jax.Array
    owners: jax.Array


@dataclass(frozen=True)
class LabelConfig:
    """Configuration of SMC over labels.

    Attributes
    ----------
    num_choices
        Number of labels.
    """

    num_choices: int

    def begin(self, data: SMCData, num_particles: int) -> ParticleState:
        """Return the counts of the labelled rows, for each particle."""
        known = (data.cell_weights, data.feature_weights, data.label_weights)
        return ParticleState(
            *(jnp.repeat(weights[..., None], num_particles, axis=-1) for weights in known)
        )

    def scores(
        self, data: SMCData, particles: ParticleState, item: jax.Array, own: jax.Array
    ) -> jax.Array:
        """Return the log of label and feature probabilities of a row, ``(L, P)``."""
        labels = particles.owners[data.owner[item]] - own
        total = jnp.log(labels / labels.sum(axis=0))
        num_features = data.cells.shape[1]
        # Unrolled loop: slices of the counts then fuse with the arithmetic on them.
        for first in range(0, num_features, FACTORS):
            product = jnp.ones_like(own)
            for feature in range(first, min(first + FACTORS, num_features)):
                cells = particles.cells[data.cells[item, feature]] - own
                ratio = cells / (particles.features[feature] - own)
                product *= jnp.where(data.present[item, feature], ratio, 1.0)
            total += jnp.log(product)
        return total

    def reassign(
        self,
        data: SMCData,
        particles: ParticleState,
        item: jax.Array,
        own: jax.Array,
        new: jax.Array,
    ) -> ParticleState:
        """Return the counts after a row has changed its label from ``own`` to ``new``."""
        change = new - own

        def add(feature: jax.Array, cells: jax.Array) -> jax.Array:
            cell = data.cells[item, feature]
            return jax.lax.dynamic_update_index_in_dim(cells, cells[cell] + change, cell, 0)

        owner = data.owner[item]
        return ParticleState(
            jax.lax.fori_loop(0, data.cells.shape[1], add, particles.cells),
            particles.features + data.present[item][:, None, None] * change,
            jax.lax.dynamic_update_index_in_dim(
                particles.owners, particles.owners[owner] + change, owner, 0
            ),
        )

    def reorder(self, data: SMCData, order: jax.Array) -> SMCData:
        """Return the data with the rows in another order."""
        return data._replace(
            cells=data.cells[order], present=data.present[order], owner=data.owner[order]
        )

    def select(self, particles: ParticleState, chosen: jax.Array) -> ParticleState:
        """Return the particles at indices ``chosen``."""
        return ParticleState(*(counts[..., chosen] for counts in particles))

    def out_of_slots(self, particles: ParticleState) -> jax.Array:  # noqa: ARG002
        """Return False: the number of labels is fixed."""
        return jnp.asarray(False)

    def with_more_slots(self) -> LabelConfig:
        """Return the configuration unchanged: it has no slots."""
        return self


def build_problem(model: KnownPartitionModel, data: GroupedTable) -> list[SMCProblem]:
    """Build a problem for every cluster that has rows without a label, padded to one length."""
    counts = data.counts()
    partition = model.partition(counts.num_groups)
    latent = np.flatnonzero((data.labels < 0) & (data.groups >= 0))
    cluster_of_row = partition[data.groups[latent]]
    inside = [np.flatnonzero(cluster_of_row == cluster) for cluster in np.unique(cluster_of_row)]
    if not inside:
        return []
    length = round_up(max(len(rows) for rows in inside))
    num_stages = len(smc_schedule(length).ends)
    return [
        SMCProblem(
            LabelConfig(data.num_labels),
            _build_data(model, data, partition, latent[rows], length),
            smc_schedule(len(rows), num_stages),
            rows,
            length,
        )
        for rows in inside
    ]


def _build_data(
    model: KnownPartitionModel,
    data: GroupedTable,
    partition: NDArray[np.int64],
    rows: NDArray[np.int64],
    length: int,
) -> SMCData:
    schema, counts = data.schema, data.counts()
    cluster = partition[data.groups[rows[0]]]
    members = np.flatnonzero(partition == cluster)
    prior = model.feature_parameters(schema)
    cells = counts.features[members].sum(axis=0) + prior
    label_prior = model.label_parameters(schema)
    if model.shares_labels:
        labels = counts.labels.sum(axis=0, keepdims=True) + label_prior
        owner = np.zeros(len(rows), dtype=np.int32)
    else:
        labels = counts.labels[members] + label_prior
        owner = np.searchsorted(members, data.groups[rows]).astype(np.int32)
    codes = data.features[rows]
    present = codes >= 0
    where = np.where(present, schema.offsets[:-1] + np.maximum(codes, 0), schema.num_cells)
    fill = length - len(rows)
    with jax.enable_x64(True):
        return SMCData(
            jnp.asarray(np.pad(where, ((0, fill), (0, 0))), dtype=jnp.int32),
            jnp.asarray(np.pad(present, ((0, fill), (0, 0)))),
            jnp.asarray(np.pad(owner, (0, fill))),
            jnp.asarray(np.vstack([cells.T, np.ones((1, schema.num_labels))])),
            jnp.asarray(schema.sum_values(cells).T),
            jnp.asarray(labels, dtype=float),
        )
