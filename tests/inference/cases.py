"""Small tables that know everything about themselves by brute force, rows and all.

Built on `tests.oracles`. Where that starts from counts, this starts from rows: probabilities are
products of predictive fractions ``(count + prior) / (total + prior total)``, row by row in plain
Python, so that counting, missing values and predictions are checked as well.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

import bayes_lcs as bl
from bayes_lcs.core.schema import Schema
from tests.oracles import all_partitions, sequential_log_crp, sequential_log_marginal


@cache
def partitions(num_groups: int) -> tuple[tuple[int, ...], ...]:
    """Every partition of the groups, kept: as first-occurrence block numbers."""
    return tuple(all_partitions(num_groups))


def log_sum(values: Iterable[float]) -> float:
    terms = list(values)
    largest = max(terms)
    return largest + math.log(math.fsum(math.exp(term - largest) for term in terms))


@dataclass(frozen=True, eq=False)
class Case:
    """A small table with its priors, and everything about it by brute force."""

    schema: Schema
    num_groups: int
    groups: NDArray[np.int64]  # (N,)
    labels: NDArray[np.int64]  # (N,)
    features: NDArray[np.int64]  # (N, F), -1 missing
    label_prior: NDArray[np.float64]  # (L,)
    feature_prior: NDArray[np.float64]  # (L, C)
    concentration: float = 1.0

    @property
    def table(self) -> bl.GroupedTable:
        return bl.GroupedTable.from_arrays(
            self.features,
            self.labels,
            self.groups,
            num_values=self.schema.num_values,
            num_labels=self.schema.num_labels,
            num_groups=self.num_groups,
        )

    @property
    def model(self) -> bl.ClusteredNaiveBayes:
        return bl.ClusteredNaiveBayes(
            label_prior=self.label_prior,
            feature_prior=self.feature_prior,
            concentration=self.concentration,
        )

    def with_row(self, group: int, label: int, features: Iterable[int]) -> Case:
        """One more row; a group beyond the last is a new one."""
        return replace(
            self,
            num_groups=max(self.num_groups, group + 1),
            groups=np.append(self.groups, group),
            labels=np.append(self.labels, label),
            features=np.vstack([self.features, np.asarray(list(features))[None]]),
        )

    def log_block(self, inside: Iterable[int]) -> float:
        """``log P(features of some groups | labels)`` when those groups share parameters."""
        rows = np.flatnonzero(np.isin(self.groups, list(inside)))
        counts: Counter[tuple[int, int, int]] = Counter()
        totals: Counter[tuple[int, int]] = Counter()
        terms = []
        starts = np.concatenate([[0], np.cumsum(self.schema.num_values)])
        prior = self.feature_prior.tolist()
        prior_total = [[math.fsum(row[a:b]) for a, b in pairwise(starts)] for row in prior]
        for label, row in zip(
            self.labels[rows].tolist(), self.features[rows].tolist(), strict=True
        ):
            for feature, value in enumerate(row):
                if value < 0:
                    continue
                ahead = counts[label, feature, value] + prior[label][starts[feature] + value]
                terms.append(
                    math.log(ahead / (totals[label, feature] + prior_total[label][feature]))
                )
                counts[label, feature, value] += 1
                totals[label, feature] += 1
        return math.fsum(terms)

    @cached_property
    def log_blocks(self) -> list[float]:
        """`log_block` of every subset, by bit mask."""
        return [
            self.log_block(u for u in range(self.num_groups) if mask >> u & 1)
            for mask in range(1 << self.num_groups)
        ]

    def log_labels(self, together: bool = False) -> float:
        """``log P(labels)``, each group by itself or all groups as one."""
        sequences = [self.labels] if together else self.labels_by_group
        return math.fsum(
            sequential_log_marginal(sequence.tolist(), self.label_prior.tolist())
            for sequence in sequences
        )

    @property
    def labels_by_group(self) -> list[NDArray[np.int64]]:
        return [self.labels[self.groups == u] for u in range(self.num_groups)]

    @cached_property
    def log_joints(self) -> NDArray[np.float64]:
        """``log P(labels, features, z)`` of every partition ``z``."""
        labels, blocks = self.log_labels(), self.log_blocks
        result = []
        for z in partitions(self.num_groups):
            masks: Counter[int] = Counter()
            for u, block in enumerate(z):
                masks[block] += 1 << u
            inside = math.fsum(blocks[mask] for mask in masks.values())
            result.append(labels + sequential_log_crp(z, self.concentration) + inside)
        return np.array(result)

    @cached_property
    def log_evidence(self) -> float:
        return log_sum(self.log_joints.tolist())

    @cached_property
    def probabilities(self) -> NDArray[np.float64]:
        """Posterior probability of every partition."""
        return np.exp(self.log_joints - self.log_evidence)

    def coclustering(self) -> NDArray[np.float64]:
        z = np.array(partitions(self.num_groups))
        together = z[:, :, None] == z[:, None, :]
        return np.einsum("p,puv->uv", self.probabilities, together)

    def num_clusters(self) -> NDArray[np.float64]:
        blocks = np.array(partitions(self.num_groups)).max(axis=1) + 1
        return np.bincount(blocks, self.probabilities, minlength=self.num_groups + 1)

    def predict(self, group: int, features: Iterable[int]) -> NDArray[np.float64]:
        """Label probabilities of one more row, by the chain rule: a ratio of evidences."""
        row = list(features)
        where = group if group >= 0 else self.num_groups
        joints = [
            self.with_row(where, label, row).log_evidence for label in range(self.schema.num_labels)
        ]
        return np.exp(np.array(joints) - log_sum(joints))


def random_case(
    seed: int,
    *,
    num_groups: int,
    num_labels: int = 2,
    num_values: tuple[int, ...] = (2, 3),
    rows: int | list[int] = 6,
    missing: float = 0.0,
    concentration: float = 1.0,
    clusters: int = 2,
) -> Case:
    """Groups drawn from a few clusters that differ, with priors that are not uniform."""
    rng = np.random.default_rng(seed)
    schema = Schema(num_labels, num_values)
    sizes = np.broadcast_to(rows, (num_groups,))
    groups = np.repeat(np.arange(num_groups), sizes)
    labels = rng.integers(num_labels, size=groups.size)
    cluster = rng.integers(clusters, size=num_groups)
    features = np.empty((groups.size, len(num_values)), dtype=np.int64)
    for feature, width in enumerate(num_values):
        theta = rng.dirichlet(np.full(width, 0.6), size=(clusters, num_labels))
        chances = theta[cluster[groups], labels].cumsum(axis=1)
        drawn = (rng.random((groups.size, 1)) > chances).sum(axis=1)
        features[:, feature] = np.minimum(drawn, width - 1)
    features[rng.random(features.shape) < missing] = -1
    return Case(
        schema,
        num_groups,
        groups,
        labels,
        features,
        rng.uniform(0.3, 3.0, num_labels),
        rng.uniform(0.2, 3.0, (num_labels, schema.num_cells)),
        concentration,
    )
