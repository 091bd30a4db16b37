"""One sweep of the collapsed sampler for the sharing models with conjugate clusters.

Invariant distribution: the posterior of the partition (clustered naive Bayes), missing labels, the
concentration and the feature prior, with ``phi`` and ``theta`` integrated out. The sweep composes
the kernels of this folder; quantities that the model fixes are skipped.

`build_problem` builds the problem from a sharing model and a table, including the initial states
of the chains and the number of slots for clusters. `build_kernel` builds the sweep.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from bayes_lcs.core.counts import count_dtype
from bayes_lcs.core.dirichlet_jax import (
    log_dirichlet_multinomial,
    log_gamma_density,
    log_rising,
)
from bayes_lcs.core.model_protocols import KnownPartitionModel, PartitionModel
from bayes_lcs.core.priors import Gamma
from bayes_lcs.inference.chain_driver import ChainProblem
from bayes_lcs.inference.mcmc import crp_concentration as concentration_update
from bayes_lcs.inference.mcmc import crp_gibbs, dirichlet_concentration, label_gibbs, split_merge
from bayes_lcs.inference.mcmc.cluster_marginals import (
    CountLayout,
    count_layout,
    group_vectors,
    log_marginal,
    row_dimensions,
    row_presence,
)
from bayes_lcs.inference.mcmc.crp_gibbs import PartitionState
from bayes_lcs.inference.mcmc.label_gibbs import LabelState, LatentRows
from bayes_lcs.inference.mcmc.subsample_annealing import grow_partitions

if TYPE_CHECKING:
    from bayes_lcs.data.grouped_table import GroupedTable

__all__ = [
    "ProblemData",
    "SharingProblem",
    "SweepConfig",
    "SweepInfo",
    "SweepState",
    "build_kernel",
    "build_problem",
    "init",
    "latent_rows",
    "resolve_start",
    "starting_partitions",
]


class SweepState(NamedTuple):
    """Current values of all unknown quantities, and the counts that depend on them."""

    partition: PartitionState
    labels: LabelState | None
    concentration: jax.Array
    beta: jax.Array


class SweepInfo(NamedTuple):
    """Values recorded after each sweep.

    Attributes
    ----------
    z : (U,)
        Slot of each group.
    num_clusters
        Number of clusters.
    largest
        Size of the largest cluster.
    entropy
        Entropy of the cluster sizes in nats.
    log_joint
        ``log P(X, Y, z)`` plus the log prior densities of the learned hyper-parameters.
    labels : (M,)
        Current labels of the rows without one.
    label_probabilities : (M, L)
        Conditional probabilities from which they were drawn.
    moved, split_merge_accepted
        Number of groups that changed their cluster; number of accepted split-merge moves.
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


Kernel = Callable[..., tuple[SweepState, SweepInfo]]


@dataclass(frozen=True)
class SweepConfig:
    """Static configuration of the sweep; it determines the compiled program.

    Attributes
    ----------
    has_known_partition
        True if the model fixes the partition.
    concentration, feature_prior
        Priors of learned hyper-parameters; None where they are fixed.
    scales
        Distinct scales of a symmetric feature prior, for its tables.
    max_count
        Upper bound of all counts.
    num_split_merge
        Split-merge proposals per sweep.
    """

    num_groups: int
    num_labels: int
    has_known_partition: bool
    concentration: Gamma | None
    feature_prior: Gamma | None
    scales: tuple[float, ...]
    max_count: int
    num_split_merge: int

    def kernel(self, data: ProblemData) -> Kernel:
        """Build the sweep over these data."""
        return build_kernel(self, data)


class ProblemData(NamedTuple):
    """Constant arrays of the sweeps.

    Attributes
    ----------
    layout
        Dimensions and tables, at the prior mean if the feature prior is learned.
    vectors : (U, D)
        Counts of the labelled rows of each group.
    label_counts : (U, L)
        Label counts of each group; if the model shares ``phi``, all are in the first row.
    label_prior : (L,)
        Dirichlet parameters of the labels.
    rows
        The rows without a label, or None.
    """

    layout: CountLayout
    vectors: jax.Array
    label_counts: jax.Array
    label_prior: jax.Array
    rows: LatentRows | None


def init(
    config: SweepConfig,
    data: ProblemData,
    partition: jax.Array,
    concentration: jax.Array | float,
    num_slots: int,
    rng_key: jax.Array,
) -> SweepState:
    """Return the state at a partition, with missing labels drawn given the known ones."""
    drawn = label_gibbs.draw_labels(rng_key, data.rows, data.label_counts, data.label_prior)
    labels, vectors = label_gibbs.init(data.rows, data.label_counts, data.vectors, drawn)
    return SweepState(
        crp_gibbs.init(data.layout, vectors, partition, num_slots),
        labels,
        jnp.asarray(concentration, dtype=float),
        jnp.asarray(config.feature_prior.mean if config.feature_prior else 1.0, dtype=float),
    )


class _Tally(NamedTuple):
    """Statistics of the moves of one sweep."""

    moved: jax.Array
    accepted: jax.Array
    probabilities: jax.Array


Move = Callable[[jax.Array, SweepState, _Tally], tuple[SweepState, _Tally]]


def layout_of(config: SweepConfig, data: ProblemData, beta: jax.Array) -> CountLayout:
    """Return the layout, with tables for the current ``beta`` if the feature prior is learned."""
    if config.feature_prior is None:
        return data.layout
    scales = np.asarray(config.scales)
    return dirichlet_concentration.symmetric_layout(data.layout, scales, config.max_count, beta)


def _conjugate_moves(
    config: SweepConfig, data: ProblemData, layout: CountLayout, temperature: Any, reverse: bool
) -> list[Move]:
    """Return the moves of the partition and of missing labels, which use the layout's tables."""
    moves: list[Move] = []

    def vectors_of(state: SweepState) -> jax.Array:
        return data.vectors if state.labels is None else state.labels.vectors

    def sweep(key: jax.Array, state: SweepState, tally: _Tally) -> tuple[SweepState, _Tally]:
        partition, vectors = state.partition, vectors_of(state)
        if config.feature_prior is not None or state.labels is not None:
            partition = crp_gibbs.invalidate_scores(layout, vectors, partition)
        update = crp_gibbs.build_kernel(layout, reverse)
        partition, info = update(key, partition, vectors, state.concentration, temperature)
        tally = tally._replace(moved=info.num_moved.astype(jnp.int32))
        return state._replace(partition=partition), tally

    def split(key: jax.Array, state: SweepState, tally: _Tally) -> tuple[SweepState, _Tally]:
        propose = split_merge.build_kernel(layout)
        partition, info = propose(
            key, state.partition, vectors_of(state), state.concentration, temperature
        )
        accepted = tally.accepted + info.accepted.astype(jnp.int32)
        return state._replace(partition=partition), tally._replace(accepted=accepted)

    def label(key: jax.Array, state: SweepState, tally: _Tally) -> tuple[SweepState, _Tally]:
        assert state.labels is not None
        assert data.rows is not None
        update = label_gibbs.build_kernel(layout, data.rows, data.label_prior, reverse)
        labels, partition, info = update(
            key, state.labels, state.partition, layout.prior, temperature
        )
        state = state._replace(partition=partition, labels=labels)
        return state, tally._replace(probabilities=info.probabilities)

    if not config.has_known_partition:
        moves.append(sweep)
        if config.num_groups > 1:
            moves += [split] * config.num_split_merge
    if data.rows is not None:
        moves.append(label)
    return moves


def _prior_moves(
    config: SweepConfig, data: ProblemData, temperature: Any, reverse: bool
) -> list[Move]:
    """Return the moves of the learned hyper-parameters."""
    moves: list[Move] = []
    gamma, learned = config.concentration, config.feature_prior

    def concentrate(key: jax.Array, state: SweepState, tally: _Tally) -> tuple[SweepState, _Tally]:
        assert gamma is not None
        move = concentration_update.build_kernel(gamma, config.num_groups)
        start = concentration_update.ConcentrationState(state.concentration)
        after, _ = move(key, start, (state.partition.sizes > 0).sum())
        return state._replace(concentration=after.concentration), tally

    def walk(key: jax.Array, state: SweepState, tally: _Tally) -> tuple[SweepState, _Tally]:
        assert learned is not None
        move = dirichlet_concentration.build_kernel(learned, data.layout, reverse)
        start = dirichlet_concentration.FeaturePriorState(state.beta)
        after, _ = move(key, start, state.partition.cluster_counts, temperature)
        layout = layout_of(config, data, after.beta)
        partition = state.partition._replace(
            log_marginals=log_marginal(layout, state.partition.cluster_counts)
        )
        return state._replace(beta=after.beta, partition=partition), tally

    if gamma is not None:
        moves.append(concentrate)
    if learned is not None:
        moves.append(walk)
    return moves


def build_kernel(config: SweepConfig, data: ProblemData, reverse: bool = False) -> Kernel:
    """Build the whole sweep, ``kernel(rng_key, state, temperature=1.0)``.

    At a temperature ``t`` the invariant distribution has the likelihood of the features raised to
    the power ``t``. With ``reverse`` the same moves are made in the opposite order, which is the
    time reversal of the sweep, since each single move is reversible.
    """
    log_joint = _build_log_joint(config, data)

    def kernel(
        rng_key: jax.Array, state: SweepState, temperature: Any = 1.0
    ) -> tuple[SweepState, SweepInfo]:
        keys = iter(jax.random.split(rng_key, 4 + config.num_split_merge))
        zero = jnp.zeros((), dtype=jnp.int32)
        tally = _Tally(zero, zero, jnp.zeros((0, config.num_labels)))
        priors = _prior_moves(config, data, temperature, reverse)
        if reverse:
            for move in reversed(priors):
                state, tally = move(next(keys), state, tally)
        layout = layout_of(config, data, state.beta)
        moves = _conjugate_moves(config, data, layout, temperature, reverse)
        for move in reversed(moves) if reverse else moves:
            state, tally = move(next(keys), state, tally)
        if not reverse:
            for move in priors:
                state, tally = move(next(keys), state, tally)
        return state, _info(config, state, tally, log_joint(state))

    return kernel


def _info(config: SweepConfig, state: SweepState, tally: _Tally, log_joint: jax.Array) -> SweepInfo:
    sizes = state.partition.sizes
    share = sizes.astype(float) / config.num_groups  # of int32 alone it would be float32
    entropy = -jnp.where(sizes > 0, share * jnp.log(jnp.where(sizes > 0, share, 1.0)), 0.0).sum()
    return SweepInfo(
        z=state.partition.z.astype(jnp.uint16 if sizes.size < 2**16 else jnp.uint32),
        num_clusters=(sizes > 0).sum(),
        largest=sizes.max(),
        entropy=entropy,
        log_joint=log_joint,
        concentration=state.concentration,
        beta=state.beta,
        labels=jnp.zeros(0, dtype=jnp.int32) if state.labels is None else state.labels.labels,
        label_probabilities=tally.probabilities,
        moved=tally.moved,
        split_merge_accepted=tally.accepted,
    )


def _build_log_joint(config: SweepConfig, data: ProblemData) -> Callable[[SweepState], jax.Array]:
    """Build the function for ``log P(X, Y, z)`` plus the log prior densities of learned parameters.

    Terms that no sweep changes are computed here, once.
    """

    def log_labels(label_counts: jax.Array) -> jax.Array:
        return log_dirichlet_multinomial(label_counts, data.label_prior).sum()

    log_known_labels = log_labels(data.label_counts)
    log_factorials = log_rising(1.0, jnp.arange(config.num_groups))

    def log_partition(state: SweepState) -> jax.Array:
        """Return ``log P(z | a)`` of the Chinese restaurant process."""
        sizes = state.partition.sizes
        a = state.concentration
        inside = jnp.log(a) + log_factorials[jnp.maximum(sizes, 1) - 1]
        return jnp.where(sizes > 0, inside, 0.0).sum() - log_rising(a, config.num_groups)

    def log_joint(state: SweepState) -> jax.Array:
        total = state.partition.log_marginals.sum()
        total += log_known_labels if state.labels is None else log_labels(state.labels.label_counts)
        if not config.has_known_partition:
            total += log_partition(state)
        for gamma, value in (
            (config.concentration, state.concentration),
            (config.feature_prior, state.beta),
        ):
            if gamma is not None:
                total += log_gamma_density(value, gamma.shape, gamma.rate)
        return total

    return log_joint


SPARE_SLOTS = 3
MAX_SINGLETONS = 256

STARTS = ("auto", "apart", "grown")
MAX_APART_GROUPS = 1000
"""With more groups than this, chains that start far apart do not mix, and ``"auto"`` grows them."""


def starting_partitions(num_groups: int, chains: int, rng: np.random.Generator) -> NDArray:
    """Return overdispersed partitions ``(chains, U)``: one cluster, singletons, random, random, ...

    Beyond 256 groups a random partition into 64 clusters takes the place of the singletons, since
    the time of an update is proportional to the number of clusters.
    """
    starts = np.zeros((chains, num_groups), dtype=np.int64)
    for chain in range(1, chains):
        if chain == 1 and num_groups <= MAX_SINGLETONS:
            starts[chain] = np.arange(num_groups)
        else:
            most = 64 if chain == 1 else int(rng.integers(2, max(min(num_groups, 64), 2) + 1))
            starts[chain] = rng.integers(0, most, num_groups)
    return starts


def slots_for(used: int, num_groups: int) -> int:
    """Return a number of slots for ``used`` clusters, with spare ones, in coarse steps.

    Coarse steps keep the number of compiled programs small.
    """
    wanted = used + SPARE_SLOTS
    step = 4 if wanted <= 64 else 32 if wanted <= 256 else 128
    return min(-(-wanted // step) * step, num_groups + 1)


def with_num_slots(state: SweepState, num_slots: int) -> SweepState:
    """Return all chains with ``num_slots`` slots; slots that are removed must be empty."""
    return state._replace(partition=crp_gibbs.with_num_slots(state.partition, num_slots))


def num_slots_of(state: SweepState) -> int:
    """Return the number of slots, which is the same in all chains."""
    return int(state.partition.sizes.shape[-1])


@partial(jax.jit, static_argnames=("config", "num_slots"))
def _init_chains(
    config: SweepConfig,
    data: ProblemData,
    starts: jax.Array,
    keys: jax.Array,
    concentration: jax.Array,
    num_slots: int,
) -> SweepState:
    """Return the initial states of all chains."""

    def begin(start: jax.Array, key: jax.Array) -> SweepState:
        return init(config, data, start, concentration, num_slots, key)

    return jax.vmap(begin)(starts, keys)


_relabel = jax.jit(jax.vmap(crp_gibbs.relabel))


@dataclass(frozen=True)
class SharingProblem(ChainProblem):
    """Sampling problem of a sharing model with conjugate clusters, for the driver of chains.

    Attributes
    ----------
    config, data
        Static configuration and arrays of the sweep.
    concentration
        Initial value of the concentration, or its fixed value.
    partition : (U,), optional
        The partition, if the model fixes it.
    start_kind
        Kind of initial partitions, ``"apart"`` or ``"grown"``; empty if the partition is known.
    """

    config: SweepConfig
    data: ProblemData
    concentration: float
    partition: NDArray | None
    start_kind: str = "apart"

    def start(
        self, keys: jax.Array, rng: np.random.Generator, only: slice, progress: bool | None
    ) -> SweepState:
        """Return the initial states of chains, one for each key, or only those of ``only``."""
        chains, num_groups = len(keys), self.config.num_groups
        keys = keys[only]
        if self.partition is not None:
            starts = np.tile(self.partition, (len(keys), 1))
        elif self.start_kind == "grown":
            arrays = self.data
            starts = grow_partitions(
                arrays.layout, arrays.vectors, self.concentration, keys, progress
            )
        else:
            starts = starting_partitions(num_groups, chains, rng)[only]
        slots = slots_for(int(starts.max()) + 1, num_groups)
        concentration = jnp.asarray(self.concentration)
        return _init_chains(self.config, self.data, jnp.asarray(starts), keys, concentration, slots)

    def out_of_slots(self, state: SweepState) -> bool:
        """Return True if a chain ran out of slots, which invalidates its last sweeps."""
        return bool(state.partition.overflow.any())

    def with_more_slots(self, state: SweepState) -> SweepState:
        """Return the state with 50 % more slots."""
        now = num_slots_of(state)
        return with_num_slots(state, slots_for(now + now // 2, self.config.num_groups))

    def compact(self, states: list[SweepState]) -> list[SweepState]:
        """Move occupied slots to the front, and drop slots if at least half of them are spare."""
        if self.config.has_known_partition:
            return states
        states = [state._replace(partition=_relabel(state.partition)) for state in states]
        sizes = np.concatenate([np.asarray(state.partition.sizes) for state in states])
        wanted = slots_for(int((sizes > 0).sum(axis=1).max()), self.config.num_groups)
        if 2 * wanted > num_slots_of(states[0]):
            return states
        return [with_num_slots(state, wanted) for state in states]

    def status(self, info: dict[str, NDArray]) -> str:
        """Describe the last draws of all chains, for the progress bar."""
        clusters, joint = info["num_clusters"][:, -1], info["log_joint"][:, -1]
        return f"clusters {clusters.min()}-{clusters.max()}, log joint {joint.max():.1f}"


def round_up(count: int) -> int:
    """Round up to a number with three leading bits, so that tables of similar size share a program.

    Examples
    --------
    >>> [round_up(count) for count in (5, 17, 100, 3780)]
    [5, 20, 112, 4096]
    """
    step = 2 ** max(count.bit_length() - 3, 0)
    return -(-count // step) * step


def latent_rows(data: GroupedTable, shares_labels: bool) -> LatentRows | None:
    """Return the rows without a label, or None if all rows have one."""
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


def resolve_start(start: str, num_groups: int) -> str:
    """Return the kind of initial partitions for the parameter ``start``."""
    if start not in STARTS:
        raise ValueError(f"start must be one of {', '.join(STARTS)}, got {start!r}")
    if start != "auto":
        return start
    return "apart" if num_groups <= MAX_APART_GROUPS else "grown"


def build_problem(
    model: Any, data: GroupedTable, num_split_merge: int = 1, start: str = "auto"
) -> SharingProblem:
    """Build the sampling problem of a sharing model and a table."""
    if not isinstance(model, KnownPartitionModel | PartitionModel):
        raise TypeError(
            f"{getattr(model, 'name', type(model).__name__)} cannot be sampled by collapsed Gibbs "
            "sampling; use NoSharing, CompleteSharing, ClusteredNaiveBayes or Prototype"
        )
    schema = data.schema
    counts = data.counts()
    rows = latent_rows(data, model.shares_labels)
    unlabelled = 0 if rows is None else len(rows.group)
    num_rows = int(counts.labels.sum()) + unlabelled
    max_count = round_up(num_rows)
    learned = model.feature_prior if isinstance(model.feature_prior, Gamma) else None
    prior = (
        np.full((schema.num_labels, schema.num_cells), learned.mean)
        if learned
        else model.feature_parameters(schema)
    )
    layout = count_layout(schema, prior, max_count)
    if not layout.table.size:
        # Counts are too large for tables. Tighter bound: the number of rows under one label.
        max_count = int(counts.labels.sum(axis=0).max()) + unlabelled
        layout = count_layout(schema, prior, max_count)
    partition = None
    if isinstance(model, KnownPartitionModel):
        partition = model.partition(counts.num_groups)
    label_counts = counts.labels
    if model.shares_labels:
        label_counts = np.zeros_like(counts.labels)
        label_counts[0] = counts.labels.sum(axis=0)
    spec = getattr(model, "concentration", 1.0)
    config = SweepConfig(
        num_groups=counts.num_groups,
        num_labels=schema.num_labels,
        has_known_partition=partition is not None,
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
    kind = resolve_start(start, counts.num_groups) if partition is None else ""
    return SharingProblem(config, arrays, float(first), partition, kind)
