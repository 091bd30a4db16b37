"""Counts of a cluster as one flat vector, and ``log m(T)`` as one gather over it.

The samplers store the counts ``n_{y,f,x}`` of a cluster and its totals ``n_{y,f,.}`` side by side
on one axis of ``D`` dimensions. With ``sign = +1`` for cells and ``-1`` for totals and
``log (a)_n`` tabulated for every distinct prior ``a``,

    log m(T) = sum_d sign_d * table[offset_d + n_d],

a single gather, the same for a cell and a total. Adding a group to a cluster adds its vector.
One dummy dimension at the end, with sign zero, takes the missing cells of rows.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from bayes_lcs.core.counts import GroupCounts, count_dtype
from bayes_lcs.core.dirichlet import MAX_TABLE_ENTRIES, log_rising_table
from bayes_lcs.core.dirichlet_jax import log_rising
from bayes_lcs.core.schema import Schema

__all__ = [
    "CountLayout",
    "count_layout",
    "group_vectors",
    "log_marginal",
    "row_dimensions",
    "row_presence",
]

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]


class CountLayout(NamedTuple):
    """Dimensions of the count vectors, their priors and the look-up tables.

    Attributes
    ----------
    sign : (D,)
        +1 for a cell, -1 for a feature total, 0 for the dummy.
    prior : (D,)
        ``beta_{y,f,x}`` of a cell, ``sum_x beta_{y,f,x}`` of a total.
    scale : (D,)
        ``prior`` in units of a symmetric ``beta``: 1 for a cell, ``V_f`` for a total.
    offset : (D,)
        Index in ``table`` at which the entries of this dimension begin.
    table : (T,)
        ``log (a)_n`` for every distinct prior, concatenated; empty if counts are too large to
        tabulate.
    """

    sign: jax.Array
    prior: jax.Array
    scale: jax.Array
    offset: jax.Array
    table: jax.Array


def _with_totals(schema: Schema, cells: NDArray) -> NDArray:
    """Flatten ``(..., L, C)`` to ``(..., L*C + L*F + 1)``: cells, totals, dummy."""
    lead = cells.shape[:-2]
    parts = [cells, schema.sum_values(cells)]
    flat = [part.reshape(*lead, -1) for part in parts]
    return np.concatenate([*flat, np.zeros((*lead, 1), dtype=cells.dtype)], axis=-1)


def count_layout(
    schema: Schema, feature_prior: FloatArray, max_count: int, max_entries: int = MAX_TABLE_ENTRIES
) -> CountLayout:
    """Build the layout for counts up to ``max_count`` under priors ``(L, C)``."""
    prior = _with_totals(schema, feature_prior)
    scale = _with_totals(schema, np.ones_like(feature_prior))
    sign = np.ones(prior.size)
    sign[schema.num_labels * schema.num_cells :] = -1.0
    # The dummy looks like a cell, so that a symmetric prior has one table for each scale.
    sign[-1], prior[-1], scale[-1] = 0.0, prior[0], scale[0]
    starts, which = np.unique(prior, return_inverse=True)
    length = max_count + 1
    if len(starts) * length <= max_entries:
        table = np.concatenate([log_rising_table(start, max_count) for start in starts])
    else:
        length, table = 0, np.zeros(0)  # without tables, offsets of them might not fit their type
    return CountLayout(
        jnp.asarray(sign),
        jnp.asarray(prior),
        jnp.asarray(scale),
        jnp.asarray(which.reshape(-1) * length, dtype=jnp.int32),
        jnp.asarray(table),
    )


def group_vectors(counts: GroupCounts, num_latent: int = 0) -> NDArray[np.signedinteger]:
    """Return the counts of every group as vectors ``(U, D)``.

    They are int32 if the sums over all groups, with ``num_latent`` more rows, fit, else int64.
    """
    vectors = _with_totals(counts.schema, counts.features)
    largest = int(vectors.sum(axis=0).max(initial=0)) + num_latent
    return vectors.astype(count_dtype(largest), copy=False)


def row_dimensions(schema: Schema, features: NDArray) -> NDArray[np.int32]:
    """Return the dimensions to which each row adds one under each label, ``(M, L, 2F)``.

    Missing cells point to the dummy dimension.
    """
    codes = np.asarray(features, dtype=np.int64)
    num_labels, num_cells, num_features = (
        schema.num_labels,
        schema.num_cells,
        schema.num_features,
    )
    dummy = num_labels * (num_cells + num_features)
    label = np.arange(num_labels)[None, :, None]
    seen = (codes >= 0)[:, None, :]
    cell = label * num_cells + schema.offsets[:-1] + np.maximum(codes, 0)[:, None, :]
    total = num_labels * num_cells + label * num_features + np.arange(num_features)
    both = np.concatenate([np.where(seen, cell, dummy), np.where(seen, total, dummy)], axis=-1)
    return both.astype(np.int32)


def row_presence(schema: Schema, features: NDArray) -> NDArray[np.int8]:
    """Return an indicator of the cells and features of each row, ``(M, C + F)``.

    It does not depend on the label of the row.
    """
    codes = np.asarray(features, dtype=np.int64)
    presence = np.zeros((len(codes), schema.num_cells + schema.num_features), dtype=np.int8)
    row, feature = np.nonzero(codes >= 0)
    presence[row, schema.offsets[feature] + codes[row, feature]] = 1
    presence[row, schema.num_cells + feature] = 1
    return presence


def log_marginal(layout: CountLayout, counts: jax.Array) -> jax.Array:
    """Return ``log m`` of clusters with counts ``(..., D)``."""
    if layout.table.size:
        # Counts never exceed their table; bounds checks would cost more than the look-up.
        where = layout.offset + counts
        terms = layout.table.at[where].get(mode="promise_in_bounds", wrap_negative_indices=False)
    else:
        terms = log_rising(layout.prior, counts)
    return terms @ layout.sign
