"""Collapsed Gibbs updates of missing labels, row by row.

Invariant distribution: ``P(Y_missing | X, Y_known, z)``. With parameters integrated out (thesis
A.45, A.46; in A.47 the label counts are the group's own, since ``phi_u`` is not shared),

    P(Y_{u,i} = y | rest)  proportional to
        (m_{u,y} + alpha_y) prod_f (n_{z_u,y,f,x} + beta_{y,f,x}) / (n_{z_u,y,f,.} + sum beta),

all counts without the row itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from bayes_lcs.inference.block_layout import BlockLayout, log_marginal
from bayes_lcs.inference.partition_gibbs import PartitionState, draw_index

__all__ = ["LabelInfo", "LabelState", "LatentRows", "build_kernel", "init"]


class LatentRows(NamedTuple):
    """The rows without a label.

    Attributes
    ----------
    group : (M,)
        Group of each row.
    owner : (M,)
        Whose label counts it belongs to: its group, or 0 where all share one ``phi``.
    dimensions : (M, L, 2F)
        From :func:`bayes_lcs.inference.block_layout.row_dimensions`.
    """

    group: jax.Array
    owner: jax.Array
    dimensions: jax.Array


class LabelState(NamedTuple):
    """Current labels of the rows without one, and the counts that include them.

    Attributes
    ----------
    labels : (M,)
        Current label of each latent row.
    label_counts : (U, L)
        ``m_{u,y}``, latent rows included.
    vectors : (U, D)
        Counts of each group, latent rows included.
    """

    labels: jax.Array
    label_counts: jax.Array
    vectors: jax.Array


class LabelInfo(NamedTuple):
    """Conditional probabilities from which each label was drawn, ``(M, L)``."""

    probabilities: jax.Array


Kernel = Callable[
    [jax.Array, LabelState, PartitionState, jax.Array],
    tuple[LabelState, PartitionState, LabelInfo],
]


def init(
    rows: LatentRows, label_counts: jax.Array, vectors: jax.Array, labels: jax.Array
) -> LabelState:
    """Add the latent rows, at the given labels, to the counts of the labelled ones."""
    own = jnp.take_along_axis(rows.dimensions, labels[:, None, None], axis=1)[:, 0]
    return LabelState(
        labels.astype(jnp.int32),
        label_counts.at[rows.owner, labels].add(1),
        vectors.at[rows.group[:, None], own].add(1),
    )


def build_kernel(layout: BlockLayout, rows: LatentRows, label_prior: jax.Array) -> Kernel:
    """One pass over the latent rows, as ``kernel(rng_key, labels, partition, prior)``.

    ``prior`` ``(D,)`` holds the Dirichlet parameters of the cells and of the totals.
    """

    def update(
        carry: tuple[LabelState, PartitionState], step: tuple[jax.Array, ...], prior: jax.Array
    ) -> tuple[tuple[LabelState, PartitionState], jax.Array]:
        labels, partition = carry
        row, group, owner, dimensions, uniform = step
        slot = partition.z[group]
        old = labels.labels[row]
        label_counts = labels.label_counts.at[owner, old].add(-1)
        vectors = labels.vectors.at[group, dimensions[old]].add(-1)
        blocks = partition.blocks.at[slot, dimensions[old]].add(-1)
        terms = layout.sign[dimensions] * jnp.log(blocks[slot, dimensions] + prior[dimensions])
        # The dummy dimension has sign 0, and its count may be anything: its log must not be NaN.
        terms = jnp.where(layout.sign[dimensions] == 0.0, 0.0, terms)
        scores = jnp.log(label_counts[owner] + label_prior) + terms.sum(axis=-1)
        new = draw_index(uniform, scores)
        labels = LabelState(
            labels.labels.at[row].set(new),
            label_counts.at[owner, new].add(1),
            vectors.at[group, dimensions[new]].add(1),
        )
        partition = partition._replace(blocks=blocks.at[slot, dimensions[new]].add(1))
        return (labels, partition), jax.nn.softmax(scores)

    def kernel(
        rng_key: jax.Array, labels: LabelState, partition: PartitionState, prior: jax.Array
    ) -> tuple[LabelState, PartitionState, LabelInfo]:
        num_rows = rows.group.size
        uniforms = jax.random.uniform(rng_key, (num_rows,), dtype=prior.dtype)
        steps = (jnp.arange(num_rows), rows.group, rows.owner, rows.dimensions, uniforms)
        (labels, partition), probabilities = jax.lax.scan(
            lambda carry, step: update(carry, step, prior), (labels, partition), steps
        )
        partition = partition._replace(log_marginals=log_marginal(layout, partition.blocks))
        return labels, partition, LabelInfo(probabilities)

    return kernel
