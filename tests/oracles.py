"""Truth by enumeration: slow, short, and independent of the formulas under test.

Nothing here calls a Gamma function. Probabilities are products of predictive probabilities, one
observation and one group at a time, and sums run over all set partitions.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayes_lcs.core.counts import GroupCounts

BELL_NUMBERS = (1, 1, 2, 5, 15, 52, 203, 877, 4140, 21147)


def all_partitions(num_groups: int) -> Iterator[tuple[int, ...]]:
    """Every set partition once, as a restricted growth string (first-occurrence form)."""

    def extend(prefix: tuple[int, ...], num_blocks: int) -> Iterator[tuple[int, ...]]:
        if len(prefix) == num_groups:
            yield prefix
            return
        for block in range(num_blocks + 1):
            yield from extend((*prefix, block), max(num_blocks, block + 1))

    return extend((), 0)


def sequential_log_marginal(values: Sequence[int], prior: Sequence[float]) -> float:
    """Log probability of a sequence of values under a Dirichlet prior, value after value."""
    weights = [float(weight) for weight in prior]
    log_probability = 0.0
    for value in values:
        log_probability += math.log(weights[value] / math.fsum(weights))
        weights[value] += 1.0
    return log_probability


def as_sequence(counts: ArrayLike) -> list[int]:
    """Some sequence of values with these counts; by exchangeability any one will do."""
    flat = np.asarray(counts)
    return np.repeat(np.arange(len(flat)), flat).tolist()


def sequential_log_crp(partition: Sequence[int], concentration: float) -> float:
    """Log probability of a seating, customer after customer."""
    sizes: dict[int, int] = {}
    log_probability = 0.0
    for seated, block in enumerate(partition):
        weight = sizes.get(block, concentration)
        log_probability += math.log(weight / (concentration + seated))
        sizes[block] = sizes.get(block, 0) + 1
    return log_probability


def block_log_marginal(
    counts: GroupCounts, members: Sequence[int], feature_prior: ArrayLike
) -> float:
    """``log m(T)``: features of a block of groups given their labels, value after value."""
    prior = np.asarray(feature_prior, dtype=float)
    schema = counts.schema
    total = 0.0
    for label in range(schema.num_labels):
        start = 0
        for num_values in schema.num_values:
            cells = slice(start, start + num_values)
            sequence = []
            for group in members:
                sequence += as_sequence(counts.features[group, label, cells])
            total += sequential_log_marginal(sequence, prior[label, cells])
            start += num_values
    return total


class BruteForce(NamedTuple):
    """The posterior of Clustered Naive Bayes over all partitions.

    `log_evidence` is ``log P(X, Y)``; `num_clusters` has length ``U + 1``, its index is ``k``;
    `probs` maps every partition in first-occurrence form to its posterior probability.
    """

    log_evidence: float
    coclustering: NDArray[np.float64]
    num_clusters: NDArray[np.float64]
    map_partition: tuple[int, ...]
    probs: dict[tuple[int, ...], float]


def brute_force_posterior(
    counts: GroupCounts,
    concentration: float = 1.0,
    label_prior: float | ArrayLike = 1.0,
    feature_prior: float | ArrayLike = 1.0,
) -> BruteForce:
    """Enumerate every partition of at most nine groups."""
    schema, num_groups = counts.schema, counts.num_groups
    alpha = np.broadcast_to(np.asarray(label_prior, dtype=float), (schema.num_labels,))
    beta = np.broadcast_to(
        np.asarray(feature_prior, dtype=float), (schema.num_labels, schema.num_cells)
    )
    labels = sum(sequential_log_marginal(as_sequence(row), alpha) for row in counts.labels)
    known: dict[tuple[int, ...], float] = {}
    log_joints: dict[tuple[int, ...], float] = {}
    for partition in all_partitions(num_groups):
        log_joint = labels + sequential_log_crp(partition, concentration)
        for block in set(partition):
            members = tuple(u for u in range(num_groups) if partition[u] == block)
            if members not in known:
                known[members] = block_log_marginal(counts, members, beta)
            log_joint += known[members]
        log_joints[partition] = log_joint
    top = max(log_joints.values())
    log_evidence = top + math.log(math.fsum(math.exp(v - top) for v in log_joints.values()))
    probs = {z: math.exp(v - log_evidence) for z, v in log_joints.items()}
    together = np.zeros((num_groups, num_groups))
    num_clusters = np.zeros(num_groups + 1)
    for z, probability in probs.items():
        column = np.array(z)
        together += probability * (column[:, None] == column)
        num_clusters[max(z, default=-1) + 1] += probability
    return BruteForce(
        log_evidence, together, num_clusters, max(probs, key=probs.__getitem__), probs
    )
