"""One sweep of the collapsed sampler for the sharing models with conjugate blocks.

Invariant distribution: the posterior of all that is unknown, with ``phi`` and ``theta`` integrated
out: the partition (clustered naive Bayes), missing labels, the concentration, the feature prior.
The sweep composes the kernels of this folder; what a model does not leave open is skipped.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from bayes_lcs.core.dirichlet_jax import (
    log_dirichlet_multinomial,
    log_gamma_density,
    log_rising,
)
from bayes_lcs.core.priors import Gamma
from bayes_lcs.inference import (
    concentration as concentration_update,
)
from bayes_lcs.inference import (
    feature_prior_update,
    label_gibbs,
    partition_gibbs,
    split_merge,
)
from bayes_lcs.inference.block_layout import BlockLayout, log_marginal
from bayes_lcs.inference.label_gibbs import LabelState, LatentRows
from bayes_lcs.inference.partition_gibbs import PartitionState

__all__ = [
    "Design",
    "ProblemData",
    "SweepInfo",
    "SweepState",
    "build_kernel",
    "init",
]


class SweepState(NamedTuple):
    """Everything unknown, and the counts that go with it."""

    partition: PartitionState
    labels: LabelState | None
    concentration: jax.Array
    beta: jax.Array


class SweepInfo(NamedTuple):
    """What is kept of each sweep.

    Attributes
    ----------
    z : (U,)
        Slot of each group.
    num_clusters
        Number of blocks.
    largest
        Size of the largest block.
    entropy
        Entropy of the block sizes in nats.
    log_joint
        ``log P(X, Y, z)`` and the log densities of what is learned.
    labels : (M,)
        Current labels of the rows without one.
    label_probabilities : (M, L)
        Conditional probabilities from which they were drawn.
    moved, split_merge_accepted
        Groups that changed their block; accepted split-merge moves.
    """

    z: jax.Array
    num_clusters: jax.Array
    largest: jax.Array
    entropy: jax.Array
    log_joint: jax.Array
    concentration: jax.Array
    beta: jax.Array
    labels: jax.Array
    label_probabilities: jax.Array
    moved: jax.Array
    split_merge_accepted: jax.Array


Kernel = Callable[[jax.Array, SweepState], tuple[SweepState, SweepInfo]]


@dataclass(frozen=True)
class Design:
    """What is unknown, and shapes: everything that decides which program is compiled.

    Attributes
    ----------
    knows_partition
        Whether the model fixes the partition.
    concentration, feature_prior
        The priors of what is learned, or None.
    scales
        Distinct scales of a symmetric feature prior, for its tables.
    max_count
        Largest count there can be.
    num_split_merge
        Split-merge proposals a sweep.
    """

    num_groups: int
    num_labels: int
    knows_partition: bool
    concentration: Gamma | None
    feature_prior: Gamma | None
    scales: tuple[float, ...]
    max_count: int
    num_split_merge: int

    def kernel(self, data: ProblemData) -> Kernel:
        """The sweep over these data."""
        return build_kernel(self, data)


class ProblemData(NamedTuple):
    """The arrays that the sweeps read and never change.

    Attributes
    ----------
    layout
        Dimensions and tables; of the prior mean where the feature prior is learned.
    vectors : (U, D)
        Counts of the labelled rows of each group.
    label_counts : (U, L)
        Their labels; the first row carries all where the model shares ``phi``.
    label_prior : (L,)
        Dirichlet parameters of the labels.
    rows
        The rows without a label, or None.
    """

    layout: BlockLayout
    vectors: jax.Array
    label_counts: jax.Array
    label_prior: jax.Array
    rows: LatentRows | None


def init(
    design: Design,
    data: ProblemData,
    partition: jax.Array,
    concentration: jax.Array | float,
    num_slots: int,
    rng_key: jax.Array,
) -> SweepState:
    """Start at a partition, with missing labels drawn evenly."""
    labels, vectors = None, data.vectors
    if data.rows is not None:
        drawn = jax.random.randint(rng_key, data.rows.group.shape, 0, design.num_labels)
        labels = label_gibbs.init(data.rows, data.label_counts, vectors, drawn)
        vectors = labels.vectors
    return SweepState(
        partition_gibbs.init(data.layout, vectors, partition, num_slots),
        labels,
        jnp.asarray(concentration, dtype=float),
        jnp.asarray(design.feature_prior.mean if design.feature_prior else 1.0, dtype=float),
    )


def build_kernel(design: Design, data: ProblemData) -> Kernel:
    """The whole sweep, as ``kernel(rng_key, state)``."""
    learned = design.feature_prior
    gamma = design.concentration

    def kernel(rng_key: jax.Array, state: SweepState) -> tuple[SweepState, SweepInfo]:
        keys = iter(jax.random.split(rng_key, 4 + design.num_split_merge))
        partition, labels = state.partition, state.labels
        concentration, beta = state.concentration, state.beta
        layout = data.layout
        if learned is not None:
            layout = feature_prior_update.symmetric_layout(
                layout, np.asarray(design.scales), design.max_count, beta
            )
            partition = partition._replace(log_marginals=log_marginal(layout, partition.blocks))
        vectors = data.vectors if labels is None else labels.vectors
        moved = accepted = jnp.zeros((), dtype=jnp.int32)
        if not design.knows_partition:
            if learned is not None or labels is not None:
                partition = partition_gibbs.forget(layout, vectors, partition)
            partition, info = partition_gibbs.build_kernel(layout)(
                next(keys), partition, vectors, concentration
            )
            moved = info.num_moved.astype(jnp.int32)
            if design.num_groups > 1:
                propose = split_merge.build_kernel(layout)
                for _ in range(design.num_split_merge):
                    partition, outcome = propose(next(keys), partition, vectors, concentration)
                    accepted += outcome.accepted.astype(jnp.int32)
        probabilities = jnp.zeros((0, design.num_labels))
        if labels is not None and data.rows is not None:
            update = label_gibbs.build_kernel(layout, data.rows, data.label_prior)
            labels, partition, drawn = update(next(keys), labels, partition, layout.prior)
            probabilities = drawn.probabilities
        if gamma is not None:
            move = concentration_update.build_kernel(gamma, design.num_groups)
            concentration = move(
                next(keys),
                concentration_update.ConcentrationState(concentration),
                (partition.sizes > 0).sum(),
            )[0].concentration
        if learned is not None:
            walk = feature_prior_update.build_kernel(learned, layout)
            beta = walk(next(keys), feature_prior_update.FeaturePriorState(beta), partition.blocks)[
                0
            ].beta
            layout = feature_prior_update.symmetric_layout(
                layout, np.asarray(design.scales), design.max_count, beta
            )
            partition = partition._replace(log_marginals=log_marginal(layout, partition.blocks))
        state = SweepState(partition, labels, concentration, beta)
        return state, _info(design, data, state, probabilities, moved, accepted)

    return kernel


def _info(
    design: Design,
    data: ProblemData,
    state: SweepState,
    probabilities: jax.Array,
    moved: jax.Array,
    accepted: jax.Array,
) -> SweepInfo:
    sizes = state.partition.sizes
    share = sizes / design.num_groups
    entropy = -jnp.where(sizes > 0, share * jnp.log(jnp.where(sizes > 0, share, 1.0)), 0.0).sum()
    return SweepInfo(
        z=state.partition.z.astype(jnp.uint16 if sizes.size < 2**16 else jnp.uint32),
        num_clusters=(sizes > 0).sum(),
        largest=sizes.max(),
        entropy=entropy,
        log_joint=_log_joint(design, data, state),
        concentration=state.concentration,
        beta=state.beta,
        labels=jnp.zeros(0, dtype=jnp.int32) if state.labels is None else state.labels.labels,
        label_probabilities=probabilities,
        moved=moved,
        split_merge_accepted=accepted,
    )


def _log_joint(design: Design, data: ProblemData, state: SweepState) -> jax.Array:
    """``log P(X, Y, z)``, with the log prior densities of what is learned."""
    label_counts = data.label_counts if state.labels is None else state.labels.label_counts
    total = log_dirichlet_multinomial(label_counts, data.label_prior).sum()
    total += state.partition.log_marginals.sum()
    if not design.knows_partition:
        sizes = state.partition.sizes
        a = state.concentration
        inside = jnp.log(a) + log_rising(1.0, jnp.maximum(sizes, 1) - 1)
        total += jnp.where(sizes > 0, inside, 0.0).sum() - log_rising(a, design.num_groups)
    if design.concentration is not None:
        gamma = design.concentration
        total += log_gamma_density(state.concentration, gamma.shape, gamma.rate)
    if design.feature_prior is not None:
        gamma = design.feature_prior
        total += log_gamma_density(state.beta, gamma.shape, gamma.rate)
    return total
