"""Collapsed Gibbs updates of missing labels, row by row.

Invariant distribution: ``P(Y_missing | X, Y_known, z)``. With parameters integrated out (thesis
A.45, A.46; in A.47 the label counts are the group's own, since ``phi_u`` is not shared),

    P(Y_{u,i} = y | rest)  proportional to
        (m_{u,y} + alpha_y) prod_f (n_{z_u,y,f,x} + beta_{y,f,x}) / (n_{z_u,y,f,.} + sum beta),

all counts without the row itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from bayes_lcs.inference.mcmc.cluster_marginals import CountLayout, log_marginal
from bayes_lcs.inference.mcmc.crp_gibbs import PartitionState, draw_index

__all__ = ["LabelInfo", "LabelState", "LatentRows", "build_kernel", "draw_labels", "init"]


class LatentRows(NamedTuple):
    """The rows without a label.

    Attributes
    ----------
    group : (M,)
        Group of each row.
    owner : (M,)
        Row of ``label_counts`` to which it belongs: its group, or 0 if all groups share ``phi``.
    dimensions : (M, L, 2F)
        From :func:`bayes_lcs.inference.mcmc.cluster_marginals.row_dimensions`.
    presence : (M, C + F)
        1 for the cells in which a row counts, and for the features it has; int8.
    """

    group: jax.Array
    owner: jax.Array
    dimensions: jax.Array
    presence: jax.Array


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


Kernel = Callable[..., tuple[LabelState, PartitionState, LabelInfo]]


def draw_labels(
    rng_key: jax.Array, rows: LatentRows | None, label_counts: jax.Array, label_prior: jax.Array
) -> jax.Array | None:
    """Draw labels from ``P(Y_missing | Y_known)``, ignoring the features of the rows; ``(M,)``.

    This is the base distribution of annealing, and the initial state of the samplers.
    """
    if rows is None:
        return None
    key_phi, key_label = jax.random.split(rng_key)
    log_phi = jax.random.loggamma(key_phi, label_counts + label_prior)  # up to a constant
    return jax.random.categorical(key_label, log_phi[rows.owner])


def init(
    rows: LatentRows | None,
    label_counts: jax.Array,
    vectors: jax.Array,
    labels: jax.Array | None,
) -> tuple[LabelState | None, jax.Array]:
    """Return the state at the given labels, and all counts.

    Without latent rows, the state is None and the counts are ``vectors``.
    """
    if rows is None:
        return None, vectors
    assert labels is not None
    own = jnp.take_along_axis(rows.dimensions, labels[:, None, None], axis=1)[:, 0]
    vectors = vectors.at[rows.group[:, None], own].add(1)
    label_counts = label_counts.at[rows.owner, labels].add(1)
    return LabelState(labels.astype(jnp.int32), label_counts, vectors), vectors


class _Carry(NamedTuple):
    """Counts that are carried from the update of one row to the next."""

    label_counts: jax.Array
    vectors: jax.Array
    cluster_counts: jax.Array


class _Row(NamedTuple):
    """The input of one update."""

    label: jax.Array
    group: jax.Array
    owner: jax.Array
    slot: jax.Array
    dimensions: jax.Array
    presence: jax.Array
    uniform: jax.Array


def _add_to_row(array: jax.Array, row: jax.Array, change: jax.Array) -> jax.Array:
    """Add ``change`` to ``array[row]`` in place."""
    added = array[row] + change.astype(array.dtype)
    return jax.lax.dynamic_update_index_in_dim(array, added, row, 0)


def build_kernel(
    layout: CountLayout, rows: LatentRows, label_prior: jax.Array, reverse: bool = False
) -> Kernel:
    """Build a pass over the latent rows.

    Its signature is ``kernel(rng_key, labels, partition, prior, temperature)``.
    ``prior`` ``(D,)`` holds the Dirichlet parameters of the cells and of the totals. At a
    temperature ``t`` the likelihood of the features is raised to the power ``t``; with ``reverse``
    the rows are updated from the last to the first.
    """
    num_labels = label_prior.size
    num_features = rows.dimensions.shape[-1] // 2
    num_cells = rows.presence.shape[-1] - num_features

    def update(
        carry: _Carry, row: _Row, prior: jax.Array, temperature: Any
    ) -> tuple[_Carry, tuple[jax.Array, jax.Array]]:
        is_old = jnp.arange(num_labels) == row.label
        own_labels = carry.label_counts[row.owner] - is_old
        sign = layout.sign[row.dimensions]
        counts = carry.cluster_counts[row.slot][row.dimensions] - is_old[:, None]
        # The dummy dimension has sign 0 and an arbitrary count, whose log must not give NaN.
        terms = jnp.where(sign == 0.0, 0.0, sign * jnp.log(counts + prior[row.dimensions]))
        scores = jnp.log(own_labels + label_prior) + temperature * terms.sum(axis=-1)
        new = draw_index(row.uniform, scores)
        # Dense and in place: subtract the row from its old label and add it to the new one.
        change = (jnp.arange(num_labels) == new).astype(jnp.int32) - is_old
        in_cells = change[:, None] * row.presence[:num_cells]
        in_totals = change[:, None] * row.presence[num_cells:]
        nothing = jnp.zeros(1, dtype=in_cells.dtype)
        moved = jnp.concatenate([in_cells.reshape(-1), in_totals.reshape(-1), nothing])
        carry = _Carry(
            _add_to_row(carry.label_counts, row.owner, change),
            _add_to_row(carry.vectors, row.group, moved),
            _add_to_row(carry.cluster_counts, row.slot, moved),
        )
        return carry, (new, jax.nn.softmax(scores))

    def kernel(
        rng_key: jax.Array,
        labels: LabelState,
        partition: PartitionState,
        prior: jax.Array,
        temperature: Any = 1.0,
    ) -> tuple[LabelState, PartitionState, LabelInfo]:
        num_rows = rows.group.size
        steps = _Row(
            labels.labels,
            rows.group,
            rows.owner,
            partition.z[rows.group],
            rows.dimensions,
            rows.presence,
            jax.random.uniform(rng_key, (num_rows,), dtype=prior.dtype),
        )
        carry, (drawn, probabilities) = jax.lax.scan(
            lambda carry, row: update(carry, row, prior, temperature),
            _Carry(labels.label_counts, labels.vectors, partition.cluster_counts),
            steps,
            reverse=reverse,
        )
        partition = partition._replace(
            cluster_counts=carry.cluster_counts,
            log_marginals=log_marginal(layout, carry.cluster_counts),
        )
        labels = LabelState(drawn, carry.label_counts, carry.vectors)
        return labels, partition, LabelInfo(probabilities)

    return kernel
