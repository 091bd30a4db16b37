"""A sharing model and a table laid out for the collapsed sampler, with room for its clusters.

Where chains start, and how many slots for clusters they have, is decided here; what a sweep does,
in :mod:`bayes_lcs.inference.mcmc.collapsed_gibbs`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from bayes_lcs.core.counts import count_dtype
from bayes_lcs.core.model_protocols import KnownPartitionModel, PartitionModel
from bayes_lcs.core.priors import Gamma
from bayes_lcs.inference.mcmc import crp_gibbs
from bayes_lcs.inference.mcmc.cluster_marginals import (
    block_layout,
    group_vectors,
    row_dimensions,
    row_presence,
)
from bayes_lcs.inference.mcmc.collapsed_gibbs import (
    Design,
    ProblemData,
    SweepInfo,
    SweepState,
    init,
)
from bayes_lcs.inference.mcmc.label_gibbs import LatentRows
from bayes_lcs.inference.mcmc.subsample_annealing import grown_partitions

if TYPE_CHECKING:
    from bayes_lcs.data.grouped_table import GroupedTable

__all__ = ["SharingProblem", "latent_rows", "pose", "start_of", "starting_partitions"]

SPARE_SLOTS = 3
MOST_SINGLETONS = 256

STARTS = ("auto", "apart", "grown")
MOST_APART = 1000
"""With more groups than this, chains that start apart do not find each other: they are grown."""


def starting_partitions(num_groups: int, chains: int, rng: np.random.Generator) -> NDArray:
    """Starts far apart, ``(chains, U)``: one block, singletons, random, random, ...

    Singletons only up to 256 groups; beyond, groups are dealt to 64 blocks, since every update
    costs time in proportion to the number of blocks.
    """
    starts = np.zeros((chains, num_groups), dtype=np.int64)
    for chain in range(1, chains):
        if chain == 1 and num_groups <= MOST_SINGLETONS:
            starts[chain] = np.arange(num_groups)
        else:
            most = 64 if chain == 1 else int(rng.integers(2, max(min(num_groups, 64), 2) + 1))
            starts[chain] = rng.integers(0, most, num_groups)
    return starts


def slots_for(used: int, num_groups: int) -> int:
    """Number of slots for ``used`` blocks: some to spare, in steps so that few are compiled."""
    wanted = used + SPARE_SLOTS
    step = 4 if wanted <= 64 else 32 if wanted <= 256 else 128
    return min(-(-wanted // step) * step, num_groups + 1)


def resized(state: SweepState, num_slots: int) -> SweepState:
    """All chains with ``num_slots`` slots; only empty ones may be cut."""
    change = crp_gibbs.resize if num_slots > num_slots_of(state) else crp_gibbs.cut
    return state._replace(partition=change(state.partition, num_slots))


def num_slots_of(state: SweepState) -> int:
    """Number of slots, the same in all chains."""
    return int(state.partition.sizes.shape[-1])


@partial(jax.jit, static_argnames=("design", "num_slots"))
def _begin(
    design: Design,
    data: ProblemData,
    starts: jax.Array,
    keys: jax.Array,
    concentration: jax.Array,
    num_slots: int,
) -> SweepState:
    """The first states of all chains."""

    def begin(start: jax.Array, key: jax.Array) -> SweepState:
        return init(design, data, start, concentration, num_slots, key)

    return jax.vmap(begin)(starts, keys)


_packed = jax.jit(jax.vmap(crp_gibbs.packed))


@dataclass(frozen=True)
class SharingProblem:
    """What the driver of chains asks of a model with conjugate blocks.

    Attributes
    ----------
    design, data
        What decides the program, and the arrays that it reads.
    concentration
        Where the concentration starts, or what it is.
    partition : (U,), optional
        The partition, where the model knows it.
    start_kind
        How chains start: ``"apart"`` or ``"grown"``; nothing where the partition is known.
    """

    design: Design
    data: ProblemData
    concentration: float
    partition: NDArray | None
    start_kind: str = "apart"

    def start(
        self, keys: jax.Array, rng: np.random.Generator, only: slice, progress: bool | None
    ) -> SweepState:
        """The first states of chains, one for each key, or just those of ``only``."""
        chains, num_groups = len(keys), self.design.num_groups
        keys = keys[only]
        if self.partition is not None:
            starts = np.tile(self.partition, (len(keys), 1))
        elif self.start_kind == "grown":
            arrays = self.data
            starts = grown_partitions(
                arrays.layout, arrays.vectors, self.concentration, keys, progress
            )
        else:
            starts = starting_partitions(num_groups, chains, rng)[only]
        slots = slots_for(int(starts.max()) + 1, num_groups)
        concentration = jnp.asarray(self.concentration)
        return _begin(self.design, self.data, jnp.asarray(starts), keys, concentration, slots)

    def overflowed(self, state: SweepState) -> bool:
        """Whether a chain ran out of slots, which voids the sweeps that led here."""
        return bool(state.partition.overflow.any())

    def enlarged(self, state: SweepState) -> SweepState:
        """The state with half as many slots again."""
        now = num_slots_of(state)
        return resized(state, slots_for(now + now // 2, self.design.num_groups))

    def tidied(self, states: list[SweepState]) -> list[SweepState]:
        """Occupied slots first, and fewer slots where most of them are empty."""
        if self.design.knows_partition:
            return states
        states = [state._replace(partition=_packed(state.partition)) for state in states]
        sizes = np.concatenate([np.asarray(state.partition.sizes) for state in states])
        wanted = slots_for(int((sizes > 0).sum(axis=1).max()), self.design.num_groups)
        if 2 * wanted > num_slots_of(states[0]):
            return states
        return [resized(state, wanted) for state in states]

    def status(self, info: SweepInfo) -> str:
        """The last draw of all chains in a few words."""
        clusters = np.asarray(info.num_clusters[:, -1])
        joint = np.asarray(info.log_joint[:, -1])
        return f"clusters {clusters.min()}-{clusters.max()}, log joint {joint.max():.1f}"


def rounded_up(count: int) -> int:
    """The next number with three leading bits: tables of nearly one size share a program.

    Examples
    --------
    >>> [rounded_up(count) for count in (5, 17, 100, 3780)]
    [5, 20, 112, 4096]
    """
    step = 2 ** max(count.bit_length() - 3, 0)
    return -(-count // step) * step


def latent_rows(data: GroupedTable, shares_labels: bool) -> LatentRows | None:
    """The rows without a label, or None if all have one."""
    latent = (data.labels < 0) & (data.groups >= 0)
    if not latent.any():
        return None
    group = data.groups[latent]
    return LatentRows(
        jnp.asarray(group),
        jnp.asarray(np.zeros_like(group) if shares_labels else group),
        jnp.asarray(row_dimensions(data.schema, data.features[latent])),
        jnp.asarray(row_presence(data.schema, data.features[latent])),
    )


def start_of(start: str, num_groups: int) -> str:
    """How chains start, by what was asked for."""
    if start not in STARTS:
        raise ValueError(f"start must be one of {', '.join(STARTS)}, got {start!r}")
    if start != "auto":
        return start
    return "apart" if num_groups <= MOST_APART else "grown"


def pose(
    model: Any, data: GroupedTable, num_split_merge: int = 1, start: str = "auto"
) -> SharingProblem:
    """Lay out a model and a table for sampling."""
    if not isinstance(model, KnownPartitionModel | PartitionModel):
        raise TypeError(
            f"{getattr(model, 'name', type(model).__name__)} cannot be sampled by this sampler, "
            "which is for NoSharing, CompleteSharing and ClusteredNaiveBayes"
        )
    schema = data.schema
    counts = data.counts()
    rows = latent_rows(data, model.shares_labels)
    unlabelled = 0 if rows is None else len(rows.group)
    num_rows = int(counts.labels.sum()) + unlabelled
    max_count = rounded_up(num_rows)
    learned = model.feature_prior if isinstance(model.feature_prior, Gamma) else None
    prior = (
        np.full((schema.num_labels, schema.num_cells), learned.mean)
        if learned
        else model.feature_parameters(schema)
    )
    layout = block_layout(schema, prior, max_count)
    if not layout.table.size:
        # Too long for tables; but no count exceeds the number of rows under one label.
        max_count = int(counts.labels.sum(axis=0).max()) + unlabelled
        layout = block_layout(schema, prior, max_count)
    partition = None
    if isinstance(model, KnownPartitionModel):
        partition = model.partition(counts.num_groups)
    label_counts = counts.labels
    if model.shares_labels:
        label_counts = np.zeros_like(counts.labels)
        label_counts[0] = counts.labels.sum(axis=0)
    spec = getattr(model, "concentration", 1.0)
    design = Design(
        num_groups=counts.num_groups,
        num_labels=schema.num_labels,
        knows_partition=partition is not None,
        concentration=spec if isinstance(spec, Gamma) else None,
        feature_prior=learned,
        scales=tuple(np.unique(np.asarray(layout.scale)).tolist()),
        max_count=max_count,
        num_split_merge=num_split_merge,
    )
    arrays = ProblemData(
        layout,
        jnp.asarray(group_vectors(counts, unlabelled)),
        jnp.asarray(label_counts, dtype=count_dtype(num_rows)),
        jnp.asarray(model.label_parameters(schema)),
        rows,
    )
    first = spec.mean if isinstance(spec, Gamma) else spec
    kind = start_of(start, counts.num_groups) if partition is None else ""
    return SharingProblem(design, arrays, float(first), partition, kind)
