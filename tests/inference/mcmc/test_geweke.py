"""Geweke's joint-distribution test of the whole sweep (Geweke 2004), by independent chains.

Everything, data included, is drawn from the prior; then each chain alternates a sweep of the
sampler with new data given what was sampled. If the sweep leaves the posterior of *every* data set
invariant, the joint distribution never changes: after many rounds the states are again draws
from the prior, independent of each other, and a two-sample test compares them with fresh ones.
The seeds are fixed; each comparison has a false-alarm rate of 1e-4.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import chi2_contingency, ks_2samp

import bayes_lcs as bl
from bayes_lcs.inference.mcmc import collapsed_gibbs, prototype
from bayes_lcs.inference.mcmc.label_gibbs import LabelState, LatentRows

FALSE_ALARM = 1e-4
NUM_CHAINS, ROUNDS = 4000, 25
SCHEMA = bl.Schema(2, (2, 3))
GROUPS = np.repeat(np.arange(4), [4, 3, 5, 4])
LATENT = np.arange(len(GROUPS)) % 4 == 1
ALPHA = np.array([0.7, 1.5])


class Everything(NamedTuple):
    """One draw of all there is, data included."""

    z: jax.Array
    concentration: jax.Array
    beta: jax.Array
    log_scatter: jax.Array
    labels: jax.Array
    features: jax.Array


def template() -> bl.GroupedTable:
    """A table of the right shape: which rows have a label is all that matters."""
    labels = np.where(LATENT, -1, 0)
    features = np.zeros((len(GROUPS), SCHEMA.num_features), dtype=int)
    return bl.GroupedTable.from_arrays(
        features, labels, GROUPS, num_values=SCHEMA.num_values, num_labels=SCHEMA.num_labels
    )


def draw_data(key: jax.Array, state: Everything, theta_of: Any) -> Everything:
    """New known labels given the latent ones, and new features given all labels."""
    key_phi, key_label, key_theta, key_value = jax.random.split(key, 4)
    latent_counts = jnp.zeros((4, 2)).at[GROUPS, state.labels].add(LATENT.astype(float))
    phi = jax.random.dirichlet(key_phi, ALPHA + latent_counts)
    fresh = jax.random.categorical(key_label, jnp.log(phi)[GROUPS])
    labels = jnp.where(LATENT, state.labels, fresh)
    columns = []
    for feature, size in enumerate(SCHEMA.num_values):
        log_theta = theta_of(jax.random.fold_in(key_theta, feature), state, feature, size)
        logits = log_theta[GROUPS, labels]
        columns.append(jax.random.categorical(jax.random.fold_in(key_value, feature), logits))
    return state._replace(labels=labels, features=jnp.stack(columns, axis=1))


def shared_theta(key: jax.Array, state: Everything, feature: int, size: int) -> jax.Array:
    """Log parameters of every group under its partition: one draw a block."""
    gammas = jax.random.loggamma(key, state.beta, (4, 2, size))
    return jax.nn.log_softmax(gammas)[state.z]


def scattered_theta(key: jax.Array, state: Everything, feature: int, size: int) -> jax.Array:
    """Log parameters of every group around the prototype."""
    pairs = np.arange(2) * SCHEMA.num_features + feature
    scatter = jnp.exp(state.log_scatter[pairs, :size])
    return jax.nn.log_softmax(jax.random.loggamma(key, scatter, (4, 2, size)))


def row_dimensions(features: jax.Array) -> jax.Array:
    """Where a row counts under each label, ``(N, L, 2F)``; nothing is missing here."""
    label = jnp.arange(2)[None, :, None]
    cell = label * SCHEMA.num_cells + SCHEMA.offsets[:-1] + features[:, None, :]
    total = 2 * SCHEMA.num_cells + label * SCHEMA.num_features + jnp.arange(SCHEMA.num_features)
    return jnp.concatenate([cell, jnp.broadcast_to(total, cell.shape)], axis=-1)


def presence(features: jax.Array) -> jax.Array:
    """The cells in which a row counts, and its features, ``(N, C + F)``."""
    cells = (SCHEMA.offsets[:-1] + features)[:, :, None] == jnp.arange(SCHEMA.num_cells)
    seen = jnp.ones((len(features), SCHEMA.num_features), dtype=jnp.int8)
    return jnp.concatenate([cells.any(axis=1).astype(jnp.int8), seen], axis=1)


def counted(state: Everything, which: np.ndarray) -> tuple[jax.Array, jax.Array]:
    """Label counts and count vectors of some of the rows."""
    rows = np.flatnonzero(which)
    size = 2 * (SCHEMA.num_cells + SCHEMA.num_features) + 1
    own = row_dimensions(state.features)[rows, state.labels[rows]]
    vectors = jnp.zeros((4, size), dtype=jnp.int32).at[GROUPS[rows][:, None], own].add(1)
    labels = jnp.zeros((4, 2), dtype=jnp.int32).at[GROUPS[rows], state.labels[rows]].add(1)
    return labels, vectors


def with_data(data: Any, state: Everything) -> tuple[Any, LabelState]:
    """The sampler's data and label state for the present rows."""
    rows = LatentRows(
        jnp.asarray(GROUPS[LATENT], dtype=jnp.int32),
        jnp.asarray(GROUPS[LATENT], dtype=jnp.int32),
        row_dimensions(state.features)[np.flatnonzero(LATENT)].astype(jnp.int32),
        presence(state.features)[np.flatnonzero(LATENT)],
    )
    labels, vectors = counted(state, ~LATENT)
    all_labels, all_vectors = counted(state, np.ones_like(LATENT))
    data = data._replace(vectors=vectors, label_counts=labels, rows=rows)
    own = state.labels[np.flatnonzero(LATENT)].astype(jnp.int32)
    return data, LabelState(own, all_labels, all_vectors)


def statistics(state: Everything) -> dict[str, np.ndarray]:
    """What is compared: of the unknowns, and of the unknowns and the data together."""
    labels, features = np.asarray(state.labels), np.asarray(state.features)
    together = np.asarray(state.z[:, 0] == state.z[:, 1]).astype(int)
    alike = (features[:, 0, 0] == features[:, 4, 0]) & (labels[:, 0] == labels[:, 4])
    return {
        "clusters": np.array([len(set(z)) for z in np.asarray(state.z).tolist()]),
        "pair together": together,
        "pair together and alike": together * 2 + alike,
        "concentration": np.asarray(state.concentration),
        "beta": np.asarray(state.beta),
        "strength": np.exp(np.asarray(state.log_scatter)).sum(axis=2)[:, 0],
        "first value": np.asarray(state.log_scatter)[:, 1, 0],
        "latent labels": labels[:, LATENT].sum(axis=1),
        "labels and values": (labels * features[:, :, 0]).sum(axis=1),
    }


def assert_same(first: Everything, last: Everything) -> None:
    tested = 0
    for name, before in statistics(first).items():
        after = statistics(last)[name]
        if np.ptp(before) == 0:
            continue
        if before.dtype.kind == "f":
            p_value = ks_2samp(before, after).pvalue
        else:
            values = np.unique(np.concatenate([before, after]))
            table = np.array([[(x == v).sum() for v in values] for x in (before, after)])
            p_value = chi2_contingency(table[:, table.sum(axis=0) >= 10]).pvalue
        assert p_value > FALSE_ALARM, name
        tested += 1
    assert tested >= 4


def prior_draws(seed: int, concentration: bl.Gamma, beta: bl.Gamma, strength: bl.Gamma):
    rng = np.random.default_rng(seed)
    a = rng.gamma(concentration.shape, 1 / concentration.rate, NUM_CHAINS)
    b = rng.gamma(beta.shape, 1 / beta.rate, NUM_CHAINS)
    z = np.zeros((NUM_CHAINS, 4), dtype=int)
    for chain in range(NUM_CHAINS):
        for group in range(1, 4):
            sizes = np.bincount(z[chain, :group])
            weights = np.append(sizes, a[chain])
            z[chain, group] = rng.choice(len(weights), p=weights / weights.sum())
    sizes = np.tile(SCHEMA.num_values, 2)
    log_scatter = np.full((NUM_CHAINS, 4, 3), -np.inf)
    for pair, size in enumerate(sizes):
        bar = np.stack([rng.dirichlet(np.full(size, value)) for value in b])
        k = rng.gamma(strength.shape, 1 / strength.rate, NUM_CHAINS)
        log_scatter[:, pair, :size] = np.log(np.maximum(bar, 1e-30)) + np.log(k)[:, None]
    phi = rng.dirichlet(ALPHA, (NUM_CHAINS, 4))
    labels = (rng.random((NUM_CHAINS, len(GROUPS))) < phi[:, GROUPS, 1]).astype(int)
    features = np.zeros((NUM_CHAINS, len(GROUPS), 2), dtype=int)
    parts = (z, a, b, log_scatter, labels, features)
    return Everything(*(jnp.asarray(part) for part in parts))


PRIORS = (bl.Gamma(2.0, 1.0), bl.Gamma(4.0, 3.0), bl.Gamma(3.0, 0.5))


def run(sweep: Any, theta_of: Any) -> tuple[Everything, Everything]:
    """Fresh draws of everything, and others after many rounds of sweep and new data."""

    def chain(key: jax.Array, state: Everything) -> Everything:
        state = draw_data(jax.random.fold_in(key, ROUNDS), state, theta_of)

        def step(i: jax.Array, state: Everything) -> Everything:
            key_sweep, key_data = jax.random.split(jax.random.fold_in(key, i))
            return draw_data(key_data, sweep(key_sweep, state), theta_of)

        return jax.lax.fori_loop(0, ROUNDS, step, state)

    def begin(key: jax.Array, state: Everything) -> Everything:
        return draw_data(key, state, theta_of)

    keys = jax.random.split(jax.random.key(1), NUM_CHAINS)
    first = jax.jit(jax.vmap(begin))(keys, prior_draws(0, *PRIORS))
    last = jax.jit(jax.vmap(chain))(keys, prior_draws(1, *PRIORS))
    return first, last


@pytest.mark.slow
def test_the_sweep_of_the_sharing_models_keeps_the_joint_distribution():
    model = bl.ClusteredNaiveBayes(
        label_prior=ALPHA, concentration=PRIORS[0], feature_prior=PRIORS[1]
    )
    with jax.enable_x64(True):
        problem = collapsed_gibbs.build_problem(model, template(), 1)

        def sweep(key: jax.Array, state: Everything) -> Everything:
            data, labels = with_data(problem.data, state)
            begun = collapsed_gibbs.init(problem.config, data, state.z, state.concentration, 5, key)
            partition = begun.partition._replace(
                cluster_counts=jax.ops.segment_sum(labels.vectors, state.z, 5)
            )
            begun = begun._replace(partition=partition, labels=labels, beta=state.beta)
            _, info = collapsed_gibbs.build_kernel(problem.config, data)(key, begun)
            return state._replace(
                z=info.z.astype(state.z.dtype),
                concentration=info.concentration,
                beta=info.beta,
                labels=state.labels.at[np.flatnonzero(LATENT)].set(info.labels),
            )

        assert_same(*run(sweep, shared_theta))


@pytest.mark.slow
@pytest.mark.parametrize("many_groups", [True, False])
def test_the_sweep_of_the_prototype_model_keeps_the_joint_distribution(
    many_groups: bool, monkeypatch: pytest.MonkeyPatch
):
    if not many_groups:  # sums over groups by their counts, not by how many exceed each count
        monkeypatch.setattr(prototype.prototype_metropolis, "COST_OF_LGAMMA", 0)
    model = bl.Prototype(label_prior=ALPHA, feature_prior=PRIORS[1], strength_prior=PRIORS[2])
    with jax.enable_x64(True):
        problem = prototype.build_problem(model, template(), num_adapt=0)
        assert bool(problem.config.tail_length) == many_groups

        def sweep(key: jax.Array, state: Everything) -> Everything:
            data, labels = with_data(problem.data, state)
            begun = prototype.init(problem.config, data, state.log_scatter, key)
            counts = prototype.padded_counts(SCHEMA, labels.vectors)
            exceed = prototype.prototype_metropolis.count_tails(counts, problem.config.tail_length)
            begun = begun._replace(labels=labels, tail_counts=exceed, beta=state.beta)
            after, info = prototype.build_kernel(problem.config, data)(key, begun)
            return state._replace(
                log_scatter=after.walk.log_scatter,
                beta=info.beta,
                labels=state.labels.at[np.flatnonzero(LATENT)].set(info.labels),
            )

        assert_same(*run(sweep, scattered_theta))
