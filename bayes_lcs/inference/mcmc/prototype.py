"""One sweep of the collapsed sampler for the prototype model.

Invariant distribution: the posterior of prototypes, strengths, missing labels and a learned
feature prior, with ``phi`` and ``theta`` integrated out. The ``B = L F`` pairs of a label and a
feature form one axis, and values are padded to their largest number ``V``.
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
    log_dirichlet_normaliser,
    log_gamma_density,
)
from bayes_lcs.core.priors import Gamma
from bayes_lcs.core.schema import Schema
from bayes_lcs.inference.chain_driver import ChainProblem
from bayes_lcs.inference.mcmc import crp_gibbs, label_gibbs, prototype_metropolis
from bayes_lcs.inference.mcmc.cluster_marginals import CountLayout, count_layout, group_vectors
from bayes_lcs.inference.mcmc.collapsed_gibbs import latent_rows
from bayes_lcs.inference.mcmc.label_gibbs import LabelState, LatentRows
from bayes_lcs.inference.mcmc.log_random_walk import walk_log
from bayes_lcs.inference.mcmc.prototype_metropolis import TailCounts, WalkState

if TYPE_CHECKING:
    from bayes_lcs.core.model_protocols import PrototypeModel
    from bayes_lcs.data.grouped_table import GroupedTable

__all__ = [
    "PrototypeConfig",
    "PrototypeData",
    "PrototypeProblem",
    "build_kernel",
    "build_problem",
    "init",
]


ROUNDS = 2
"""Rounds of Metropolis steps in a sweep, since their draws are more correlated than Gibbs draws."""


class PrototypeState(NamedTuple):
    """Current values of all unknown quantities, and the counts that depend on them."""

    walk: WalkState
    labels: LabelState | None
    tail_counts: TailCounts
    beta: jax.Array


class PrototypeInfo(NamedTuple):
    """Values recorded after each sweep.

    Attributes
    ----------
    prototype : (L, C)
        ``theta_bar``.
    strength : (L, F)
        ``K``.
    log_joint
        ``log P(X, Y | theta_bar, K)`` plus the log prior densities of all unknown quantities.
    labels : (M,)
        Current labels of the rows without one.
    label_probabilities : (M, L)
        Conditional probabilities from which they were drawn.
    acceptance
        Acceptance rate of the proposals.
    """

    prototype: jax.Array
    strength: jax.Array
    log_joint: jax.Array
    beta: jax.Array
    labels: jax.Array
    label_probabilities: jax.Array
    acceptance: jax.Array


Kernel = Callable[..., tuple[PrototypeState, PrototypeInfo]]


@dataclass(frozen=True)
class PrototypeConfig:
    """Static configuration of the sweep; it determines the compiled program.

    Attributes
    ----------
    strength_prior, feature_prior
        Priors of the strengths, and of ``beta`` if it is learned.
    tail_length
        From :func:`bayes_lcs.inference.mcmc.prototype_metropolis.tail_length`.
    num_adapt
        Sweeps during which the widths of the steps are adapted.
    widths
        If given, every sweep makes one round with each of these widths, without adaptation.
    """

    schema: Schema
    num_groups: int
    strength_prior: Gamma
    feature_prior: Gamma | None
    tail_length: int
    num_adapt: int
    widths: tuple[float, ...] = ()

    def kernel(self, data: PrototypeData) -> Kernel:
        """Build the sweep over these data."""
        return build_kernel(self, data)


class PrototypeData(NamedTuple):
    """Constant arrays of the sweeps.

    Attributes
    ----------
    layout
        Dimensions of the counts, for the label updates.
    vectors : (U, D)
        Counts of the labelled rows of each group.
    label_counts : (U, L)
        Label counts of each group.
    label_prior : (L,)
        Dirichlet parameters of the labels.
    prior : (B, V)
        Dirichlet parameters of the prototypes, zero in the padding; ones if ``beta`` is learned.
    rows
        The rows without a label, or None.
    """

    layout: CountLayout
    vectors: jax.Array
    label_counts: jax.Array
    label_prior: jax.Array
    prior: jax.Array
    rows: LatentRows | None


def cell_of(schema: Schema) -> tuple[np.ndarray, np.ndarray]:
    """Return the flat index into ``L C`` of each (pair, value), and a mask of existing values."""
    widths = np.asarray(schema.num_values)
    values = np.arange(max(schema.num_values, default=1))
    exists = values < widths[:, None]
    cells = schema.offsets[:-1, None] + np.minimum(values, widths[:, None] - 1)
    labels = np.arange(schema.num_labels)[:, None, None] * schema.num_cells
    shape = (schema.num_labels * schema.num_features, len(values))
    return (labels + cells).reshape(shape), np.tile(exists, (schema.num_labels, 1))


def padded_counts(schema: Schema, vectors: jax.Array) -> jax.Array:
    """Rearrange counts ``(U, D)`` to ``(U, B, V)``, zero in the padding."""
    cell, exists = cell_of(schema)
    return jnp.where(exists, vectors[:, cell], 0)


def _flat(schema: Schema, padded: jax.Array) -> jax.Array:
    """Rearrange ``(B, V)`` to ``(L, C)``."""
    pair = np.arange(schema.num_labels)[:, None] * schema.num_features + schema.cell_feature
    value = np.arange(schema.num_cells) - schema.offsets[schema.cell_feature]
    return padded[pair, value]


def init(
    config: PrototypeConfig, data: PrototypeData, log_scatter: jax.Array, rng_key: jax.Array
) -> PrototypeState:
    """Return the state at parameters ``(B, V)``, with missing labels drawn given the known ones."""
    drawn = label_gibbs.draw_labels(rng_key, data.rows, data.label_counts, data.label_prior)
    labels, vectors = label_gibbs.init(data.rows, data.label_counts, data.vectors, drawn)
    counts = padded_counts(config.schema, vectors)
    tail_counts = prototype_metropolis.count_tails(counts, config.tail_length)
    beta = jnp.asarray(config.feature_prior.mean if config.feature_prior else 1.0, dtype=float)
    return PrototypeState(prototype_metropolis.init(log_scatter), labels, tail_counts, beta)


def build_kernel(config: PrototypeConfig, data: PrototypeData, reverse: bool = False) -> Kernel:
    """Build the whole sweep, ``kernel(rng_key, state, temperature=1.0)``.

    At a temperature ``t`` the invariant distribution has the likelihood of the features raised to
    the power ``t``. With ``reverse`` the same moves are made in the opposite order.
    """
    schema, learned = config.schema, config.feature_prior
    exists = jnp.asarray(cell_of(schema)[1])
    walk = prototype_metropolis.build_kernel(
        config.strength_prior, config.tail_length, ROUNDS * config.num_adapt, reverse
    )

    def walk_prototypes(
        key: jax.Array, state: PrototypeState, temperature: Any
    ) -> tuple[PrototypeState, jax.Array]:
        prior = data.prior * state.beta
        if config.widths:
            widths = jnp.log(jnp.asarray(config.widths[::-1] if reverse else config.widths))
            shape = state.walk.log_widths.shape
            steps = (jax.random.split(key, len(config.widths)), widths)

            def fixed(walked: WalkState, step: Any) -> tuple[WalkState, jax.Array]:
                walked = walked._replace(log_widths=jnp.full(shape, step[1]))
                return walk(step[0], walked, state.tail_counts, prior, temperature)

            walked, acceptance = jax.lax.scan(fixed, state.walk, steps)
        else:
            walked, acceptance = jax.lax.scan(
                lambda walked, key: walk(key, walked, state.tail_counts, prior, temperature),
                state.walk,
                jax.random.split(key, ROUNDS),
            )
        return state._replace(walk=walked), acceptance.mean()

    def draw_labels(
        key: jax.Array, state: PrototypeState, temperature: Any
    ) -> tuple[PrototypeState, jax.Array]:
        if state.labels is None:
            return state, jnp.zeros((0, schema.num_labels))
        scatter = jnp.exp(state.walk.log_scatter)
        labels, probabilities = _draw_labels(
            key, schema, data, state.labels, scatter, temperature, reverse
        )
        counts = padded_counts(schema, labels.vectors)
        tail_counts = prototype_metropolis.count_tails(counts, config.tail_length)
        return state._replace(labels=labels, tail_counts=tail_counts), probabilities

    def walk_beta(key: jax.Array, state: PrototypeState) -> PrototypeState:
        if learned is None:
            return state
        log_scatter = state.walk.log_scatter
        log_prototype = log_scatter - jnp.log(jnp.exp(log_scatter).sum(axis=-1, keepdims=True))

        def log_target(log_beta: jax.Array) -> jax.Array:
            density = _log_dirichlets(data.prior * jnp.exp(log_beta), exists, log_prototype)
            return density + learned.shape * log_beta - learned.rate * jnp.exp(log_beta)

        return state._replace(beta=walk_log(key, state.beta, log_target, reverse)[0])

    def kernel(
        rng_key: jax.Array, state: PrototypeState, temperature: Any = 1.0
    ) -> tuple[PrototypeState, PrototypeInfo]:
        key_walk, key_labels, key_beta = jax.random.split(rng_key, 3)
        if reverse:
            state = walk_beta(key_beta, state)
            state, probabilities = draw_labels(key_labels, state, temperature)
            state, acceptance = walk_prototypes(key_walk, state, temperature)
        else:
            state, acceptance = walk_prototypes(key_walk, state, temperature)
            state, probabilities = draw_labels(key_labels, state, temperature)
            state = walk_beta(key_beta, state)
        scatter = jnp.exp(state.walk.log_scatter)
        total = scatter.sum(axis=-1)
        labels = state.labels
        info = PrototypeInfo(
            prototype=_flat(schema, scatter / total[:, None]),
            strength=total.reshape(schema.num_labels, schema.num_features),
            log_joint=_log_joint(config, data, state, exists),
            beta=state.beta,
            labels=jnp.zeros(0, dtype=jnp.int32) if labels is None else labels.labels,
            label_probabilities=probabilities,
            acceptance=acceptance,
        )
        return state, info

    return kernel


def _draw_labels(
    rng_key: jax.Array,
    schema: Schema,
    data: PrototypeData,
    labels: LabelState,
    scatter: jax.Array,
    temperature: Any,
    reverse: bool,
) -> tuple[LabelState, jax.Array]:
    """Draw the missing labels; each group is a cluster of its own with the prototype as prior."""
    assert data.rows is not None
    partition = crp_gibbs.init(
        data.layout, labels.vectors, jnp.arange(len(data.vectors)), len(data.vectors)
    )
    cells = _flat(schema, scatter).reshape(-1)
    prior = jnp.concatenate([cells, scatter.sum(axis=-1), jnp.ones(1)])
    prior = jnp.maximum(prior, prototype_metropolis.MIN_SCATTER)
    update = label_gibbs.build_kernel(data.layout, data.rows, data.label_prior, reverse)
    labels, _, info = update(rng_key, labels, partition, prior, temperature)
    return labels, info.probabilities


def _log_dirichlets(prior: jax.Array, exists: jax.Array, log_prototype: jax.Array) -> jax.Array:
    """Return the log density of all prototypes, for priors and prototypes ``(B, V)``."""
    terms = jnp.where(exists, (prior - 1.0) * log_prototype, 0.0)
    return log_dirichlet_normaliser(prior, exists).sum() + terms.sum()


def _log_joint(
    config: PrototypeConfig, data: PrototypeData, state: PrototypeState, exists: jax.Array
) -> jax.Array:
    log_scatter, length = state.walk.log_scatter, config.tail_length
    scatter = jnp.exp(log_scatter)
    strength = scatter.sum(axis=-1)
    label_counts = data.label_counts if state.labels is None else state.labels.label_counts
    gamma = config.strength_prior
    total = log_dirichlet_multinomial(label_counts, data.label_prior).sum()
    total += prototype_metropolis.log_likelihood(scatter, state.tail_counts.cells, length).sum()
    total -= prototype_metropolis.log_likelihood(strength, state.tail_counts.totals, length).sum()
    log_prototype = log_scatter - jnp.log(strength)[:, None]
    total += _log_dirichlets(data.prior * state.beta, exists, log_prototype)
    total += log_gamma_density(strength, gamma.shape, gamma.rate).sum()
    if config.feature_prior is not None:
        gamma = config.feature_prior
        total += log_gamma_density(state.beta, gamma.shape, gamma.rate)
    return total


@partial(jax.jit, static_argnames="config")
def _init_chains(
    config: PrototypeConfig, data: PrototypeData, log_scatter: jax.Array, keys: jax.Array
) -> PrototypeState:
    """Return the initial states of all chains."""
    return jax.vmap(lambda start, key: init(config, data, start, key))(log_scatter, keys)


@dataclass(frozen=True)
class PrototypeProblem(ChainProblem):
    """Sampling problem of the prototype model, for the driver of chains; it has no slots."""

    config: PrototypeConfig
    data: PrototypeData

    def start(
        self,
        keys: jax.Array,
        rng: np.random.Generator,
        only: slice,
        progress: bool | None,  # noqa: ARG002
    ) -> PrototypeState:
        """Draw initial strengths from their prior, and prototypes around the pooled frequencies."""
        config, exists = self.config, cell_of(self.config.schema)[1]
        counts = np.asarray(padded_counts(config.schema, self.data.vectors).sum(axis=0))
        pseudo = np.where(exists, counts + 1.0, 0.0)
        shape = (len(keys), *pseudo.shape)
        noise = np.where(exists, rng.gamma(np.broadcast_to(np.maximum(pseudo, 1.0), shape)), 0.0)
        share = noise / noise.sum(axis=-1, keepdims=True)
        gamma = config.strength_prior
        strength = rng.gamma(gamma.shape, 1.0 / gamma.rate, (len(keys), len(pseudo)))
        with np.errstate(divide="ignore"):
            log_scatter = np.log(share) + np.log(np.maximum(strength, 1e-3))[..., None]
        return _init_chains(config, self.data, jnp.asarray(log_scatter[only]), keys[only])

    def status(self, info: dict[str, NDArray]) -> str:
        """Describe the last draws of all chains, for the progress bar."""
        strength, joint = np.median(info["strength"][:, -1]), info["log_joint"][:, -1]
        return f"median strength {strength:.1f}, log joint {joint.max():.1f}"


def build_problem(model: PrototypeModel, data: GroupedTable, num_adapt: int) -> PrototypeProblem:
    """Build the sampling problem of a prototype model and a table."""
    schema = data.schema
    counts = data.counts()
    rows = latent_rows(data, shares_labels=False)
    learned = model.feature_prior if isinstance(model.feature_prior, Gamma) else None
    cells = np.ones((schema.num_labels, schema.num_cells))
    if learned is None:
        cells = model.feature_parameters(schema)
    cell, exists = cell_of(schema)
    # Upper bound of all counts: a group's rows with one label plus its rows without a label.
    of_label, unlabelled = counts.labels, 0
    if rows is not None:
        unlabelled = len(rows.group)
        of_label = of_label + np.bincount(np.asarray(rows.group), minlength=len(of_label))[:, None]
    largest = int(of_label.max(initial=0))
    config = PrototypeConfig(
        schema=schema,
        num_groups=counts.num_groups,
        strength_prior=model.strength_prior,
        feature_prior=learned,
        tail_length=prototype_metropolis.tail_length(largest, counts.num_groups),
        num_adapt=num_adapt,
    )
    arrays = PrototypeData(
        count_layout(schema, cells, max(largest, 1)),
        jnp.asarray(group_vectors(counts, unlabelled)),
        jnp.asarray(counts.labels, dtype=count_dtype(int(counts.labels.sum()) + unlabelled)),
        jnp.asarray(model.label_parameters(schema)),
        jnp.asarray(np.where(exists, cells.reshape(-1)[cell], 0.0)),
        rows,
    )
    return PrototypeProblem(config, arrays)
