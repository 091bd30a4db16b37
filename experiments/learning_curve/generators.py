"""Data shaped like the paper's three sets, which cannot be had in full: seeded, of any size.

A few main kinds of rows are far apart, and each has many variants with shares of a heavy tail. A
mixture of 25 clusters finds the kinds in a small sample and goes on to tell variants apart as rows
become more, as on real data; rows from 25 clusters would be known after the first sample.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

NUM_KINDS, NUM_VARIANTS = 15, 20
NUM_CLUSTERS = NUM_KINDS * NUM_VARIANTS
TAIL = 1.0
"""The ``k``-th kind, and the ``k``-th variant of each, have shares that fall as ``k^-TAIL``."""


def _clusters(num_rows: int, rng: np.random.Generator) -> NDArray[np.int64]:
    kinds = np.arange(1, NUM_KINDS + 1) ** -TAIL
    variants = np.arange(1, NUM_VARIANTS + 1) ** -TAIL
    share = np.outer(kinds, variants).ravel()
    return rng.choice(NUM_CLUSTERS, num_rows, p=share / share.sum())


def _profiles(
    common: NDArray[np.float64], apart: float, alike: float, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Distributions of all clusters: kinds around a common one, variants around their kind.

    Each is a Dirichlet draw; ``apart`` and ``alike`` are how many observations of the common one,
    and of the kind, the prior counts for: few leave much freedom.
    """
    tiny = 1e-3
    kinds = rng.gamma(apart * common + tiny, size=(NUM_KINDS, common.size)) + 1e-12
    kinds /= kinds.sum(axis=1, keepdims=True)
    around = np.repeat(kinds, NUM_VARIANTS, axis=0)
    variants = rng.gamma(alike * around + tiny) + 1e-12
    return variants / variants.sum(axis=1, keepdims=True)


def web_log(num_rows: int, num_items: int, mean_items: float, seed: int) -> sparse.csr_array:
    """Who saw which items: a few of hundreds, by popularity and by the visitor's cluster.

    Popularity is Zipf's; a visitor sees one item and a geometric number of further ones.
    """
    rng = np.random.default_rng(seed)
    popularity = np.arange(1, num_items + 1) ** -0.8
    popularity = rng.permutation(popularity / popularity.sum())
    cumulative = np.cumsum(_profiles(popularity, 8.0, 30.0, rng), axis=1)
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
    """Records of categorical columns of 2 to 10 values."""
    rng = np.random.default_rng(seed)
    cluster = _clusters(num_rows, rng)
    rows = np.empty((num_rows, num_columns), np.int8, order="F")
    for column in range(num_columns):
        common = rng.dirichlet(np.full(int(rng.integers(2, 11)), 0.7))
        cumulative = np.cumsum(_profiles(common, 4.0, 15.0, rng), axis=1)
        drawn = rng.random(num_rows)
        value = np.zeros(num_rows, np.int8)
        for place in range(common.size - 1):
            value += drawn > cumulative[cluster, place]
        rows[:, column] = value
    return rows
