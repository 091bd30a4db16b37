"""A table under a model that knows its partition, in parts whose missing labels sum up apart."""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from bayes_lcs.core.model_protocols import KnownPartitionModel
from bayes_lcs.inference.mcmc.sharing_problem import rounded_up
from bayes_lcs.inference.smc.labels import LabelParticles, Part
from bayes_lcs.inference.smc.smc import Posed, reading

if TYPE_CHECKING:
    from bayes_lcs.data.grouped_table import GroupedTable

__all__ = ["pose"]


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
