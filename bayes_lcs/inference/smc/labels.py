"""Rows without a label, whose labels particles sum over (:mod:`bayes_lcs.inference.smc.smc`).

Estimated is ``P(X, Y_known) / P(Y_known)`` of rows whose features share one set of parameters: the
sum over all labelings of the rows without a label. The label of a row has the weight

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
from bayes_lcs.inference.mcmc.collapsed_gibbs import rounded_up
from bayes_lcs.inference.smc.smc import Posed, reading

if TYPE_CHECKING:
    from bayes_lcs.data.grouped_table import GroupedTable

__all__ = ["LabelParticles", "Part", "pose"]

FACTORS = 8
"""Probabilities multiplied before the logarithm is taken: far from underflow, fewer logarithms."""


class Part(NamedTuple):
    """Rows that share their parameters, and what the labelled rows have left behind.

    Attributes
    ----------
    cells : (N, F)
        Cell of each value of the rows without a label; the last cell where it is missing.
    present : (N, F)
        1 where there is a value.
    owner : (N,)
        Whose label counts a row belongs to.
    cell_weights : (C + 1, L)
        Labelled counts and prior of every cell.
    feature_weights : (F, L)
        The same, added over the values of each feature.
    label_weights : (O, L)
        Counts and prior of the labels of each owner.
    """

    cells: jax.Array
    present: jax.Array
    owner: jax.Array
    cell_weights: jax.Array
    feature_weights: jax.Array
    label_weights: jax.Array


class Held(NamedTuple):
    """Counts and prior of what particles have labelled.

    Attributes
    ----------
    cells : (C + 1, L, P)
        Of every cell.
    features : (F, L, P)
        The same, added over the values of each feature.
    owners : (O, L, P)
        Of the labels.
    """

    cells: jax.Array
    features: jax.Array
    owners: jax.Array


@dataclass(frozen=True)
class LabelParticles:
    """Rows get labels.

    Attributes
    ----------
    num_places
        Number of labels.
    """

    num_places: int

    def begin(self, part: Part, num_particles: int) -> Held:
        """What the labelled rows have left behind."""
        known = (part.cell_weights, part.feature_weights, part.label_weights)
        return Held(*(jnp.repeat(weights[..., None], num_particles, axis=-1) for weights in known))

    def scores(self, part: Part, held: Held, item: jax.Array, own: jax.Array) -> jax.Array:
        """Log of label and feature probabilities of a row, ``(L, P)``."""
        labels = held.owners[part.owner[item]] - own
        total = jnp.log(labels / labels.sum(axis=0))
        num_features = part.cells.shape[1]
        # Written out: slices of the counts then fuse with what is done to them.
        for first in range(0, num_features, FACTORS):
            product = jnp.ones_like(own)
            for feature in range(first, min(first + FACTORS, num_features)):
                cells = held.cells[part.cells[item, feature]] - own
                ratio = cells / (held.features[feature] - own)
                product *= jnp.where(part.present[item, feature], ratio, 1.0)
            total += jnp.log(product)
        return total

    def moved(
        self, part: Part, held: Held, item: jax.Array, own: jax.Array, new: jax.Array
    ) -> Held:
        """The counts after a row has got another label."""
        change = new - own

        def add(feature: jax.Array, cells: jax.Array) -> jax.Array:
            cell = part.cells[item, feature]
            return jax.lax.dynamic_update_index_in_dim(cells, cells[cell] + change, cell, 0)

        owner = part.owner[item]
        return Held(
            jax.lax.fori_loop(0, part.cells.shape[1], add, held.cells),
            held.features + part.present[item][:, None, None] * change,
            jax.lax.dynamic_update_index_in_dim(held.owners, held.owners[owner] + change, owner, 0),
        )

    def shuffled(self, part: Part, order: jax.Array) -> Part:
        """The part with its rows in another order."""
        return part._replace(
            cells=part.cells[order], present=part.present[order], owner=part.owner[order]
        )

    def drawn(self, held: Held, chosen: jax.Array) -> Held:
        """The particles at ``chosen``."""
        return Held(*(counts[..., chosen] for counts in held))

    def overflowed(self, held: Held) -> jax.Array:  # noqa: ARG002
        """Never: there are no more labels than these."""
        return jnp.asarray(False)

    def enlarged(self) -> LabelParticles:
        """The same: there is nothing to enlarge."""
        return self


def pose(model: KnownPartitionModel, data: GroupedTable) -> list[Posed]:
    """One part for every block with rows that have no label; all are filled up to one length."""
    counts = data.counts()
    partition = model.partition(counts.num_groups)
    latent = np.flatnonzero((data.labels < 0) & (data.groups >= 0))
    block_of_row = partition[data.groups[latent]]
    inside = [np.flatnonzero(block_of_row == block) for block in np.unique(block_of_row)]
    if not inside:
        return []
    length = rounded_up(max(len(rows) for rows in inside))
    num_stages = len(reading(length).ends)
    return [
        Posed(
            LabelParticles(data.num_labels),
            _part(model, data, partition, latent[rows], length),
            reading(len(rows), num_stages),
            rows,
            length,
        )
        for rows in inside
    ]


def _part(
    model: KnownPartitionModel,
    data: GroupedTable,
    partition: NDArray[np.int64],
    rows: NDArray[np.int64],
    length: int,
) -> Part:
    schema, counts = data.schema, data.counts()
    block = partition[data.groups[rows[0]]]
    members = np.flatnonzero(partition == block)
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
        return Part(
            jnp.asarray(np.pad(where, ((0, fill), (0, 0))), dtype=jnp.int32),
            jnp.asarray(np.pad(present, ((0, fill), (0, 0)))),
            jnp.asarray(np.pad(owner, (0, fill))),
            jnp.asarray(np.vstack([cells.T, np.ones((1, schema.num_labels))])),
            jnp.asarray(schema.sum_values(cells).T),
            jnp.asarray(labels, dtype=float),
        )
