"""Grouped data with a known partition, drawn fast enough for millions of rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

import bayes_lcs as bl


def clustered_groups(
    num_groups: int,
    *,
    num_clusters: int = 16,
    rows_per_group: int = 30,
    num_features: int = 8,
    num_values: int = 4,
    evenness: float = 5.0,
    seed: int = 0,
) -> tuple[bl.GroupedTable, NDArray[np.int64]]:
    """Two labels, equally likely; ``theta ~ Dirichlet(evenness)`` in every cluster.

    The larger ``evenness``, the more alike the clusters are.
    """
    rng = np.random.default_rng(seed)
    partition = rng.integers(0, num_clusters, num_groups)
    shape = (num_features, 2 * num_clusters)
    upper = np.cumsum(rng.dirichlet(np.full(num_values, evenness), shape), axis=-1)
    groups = np.repeat(np.arange(num_groups, dtype=np.int32), rows_per_group)
    labels = rng.integers(0, 2, groups.size, dtype=np.int32)
    source = 2 * partition[groups] + labels
    features = np.zeros((groups.size, num_features), dtype=np.int32)
    for feature in range(num_features):
        uniform = rng.random(groups.size)
        for value in range(num_values - 1):
            features[:, feature] += uniform > upper[feature, source, value]
    table = bl.GroupedTable.from_arrays(
        features,
        labels,
        groups,
        num_values=[num_values] * num_features,
        num_labels=2,
        num_groups=num_groups,
    )
    return table, partition
