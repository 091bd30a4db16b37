"""Data shaped like the paper's three sets, which cannot be had in full: seeded, of any size.

Rows come from many more clusters than the 25 that are fitted, with sizes of a heavy tail and
profiles drawn around a common one, so that more rows keep showing more, as on real data; a mixture
of 25 clusters would be known after the first sample.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

NUM_CLUSTERS = 300
TAIL = 0.9
"""Cluster ``k`` has a share that falls as ``k^-TAIL``."""


def _clusters(num_rows: int, rng: np.random.Generator) -> NDArray[np.int64]:
    share = np.arange(1, NUM_CLUSTERS + 1) ** -TAIL
    return rng.choice(NUM_CLUSTERS, num_rows, p=share / share.sum())


def web_log(num_rows: int, num_items: int, mean_items: float, seed: int) -> sparse.csr_array:
    """Who saw which items: a few of hundreds, by popularity and by the visitor's cluster.

    Popularity is Zipf's; a cluster's taste is a Dirichlet draw around it; a visitor sees one item
    and a geometric number of further draws.
    """
    rng = np.random.default_rng(seed)
    popularity = np.arange(1, num_items + 1) ** -0.8
    popularity = rng.permutation(popularity / popularity.sum())
    taste = rng.gamma(12.0 * popularity + 1e-3, size=(NUM_CLUSTERS, num_items))
    taste /= taste.sum(axis=1, keepdims=True)
    cumulative = np.cumsum(taste, axis=1)
    cluster = _clusters(num_rows, rng)
    counts = rng.geometric(1.0 / mean_items, num_rows)
    visitor = np.repeat(np.arange(num_rows), counts)
    which = cluster[visitor]
    item = np.empty(visitor.size, np.int32)
    for k in range(NUM_CLUSTERS):
        own = np.flatnonzero(which == k)
        draws = np.searchsorted(cumulative[k], rng.random(own.size))
        item[own] = np.minimum(draws, num_items - 1)
    ones = np.ones(visitor.size, np.int8)
    seen = sparse.coo_array((ones, (visitor, item)), shape=(num_rows, num_items)).tocsr()
    seen.sum_duplicates()
    seen.data[:] = 1
    return seen


def census(num_rows: int, num_columns: int, seed: int) -> NDArray[np.int8]:
    """Records of categorical columns of 2 to 10 values, with clusters around common profiles."""
    rng = np.random.default_rng(seed)
    cluster = _clusters(num_rows, rng)
    rows = np.empty((num_rows, num_columns), np.int8, order="F")
    for column in range(num_columns):
        num_values = int(rng.integers(2, 11))
        common = rng.dirichlet(np.full(num_values, 0.7))
        profile = rng.gamma(2.0 * common + 1e-2, size=(NUM_CLUSTERS, num_values))
        cumulative = np.cumsum(profile / profile.sum(axis=1, keepdims=True), axis=1)
        drawn = rng.random(num_rows)
        value = np.zeros(num_rows, np.int8)
        for place in range(num_values - 1):
            value += drawn > cumulative[cluster, place]
        rows[:, column] = value
    return rows
