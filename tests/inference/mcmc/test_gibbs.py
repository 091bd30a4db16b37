"""The samplers against enumeration: every partition and labeling as often as its probability.

Each test draws from many independent chains and compares with a chi-square test. The seeds are
fixed and the threshold is 1e-4: one wrong alarm in ten thousand changes of the seeds.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import bayes_lcs as bl
from bayes_lcs.core.partitions import first_occurrence
from bayes_lcs.inference.chain_driver import run_chains
from bayes_lcs.inference.mcmc import collapsed_gibbs, crp_gibbs, split_merge
from bayes_lcs.inference.mcmc.cluster_marginals import (
    count_layout,
    group_vectors,
    log_marginal,
    row_dimensions,
)
from bayes_lcs.inference.mcmc.collapsed_gibbs import build_problem, starting_partitions
from tests.inference.mcmc.gibbs_oracle import State, enumerate_posterior, fit_p_value

FALSE_ALARM = 1e-4
NUM_CHAINS = 2000


def small_table(missing_labels: int, seed: int = 3) -> bl.GroupedTable:
    """Four groups of unequal size, one row short of a feature, some rows short of a label."""
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(4), [4, 3, 5, 2])
    labels = rng.integers(0, 2, len(groups))
    features = np.column_stack([rng.integers(0, 2, len(groups)), rng.integers(0, 3, len(groups))])
    features[5, 1] = -1
    labels[rng.choice(len(groups), missing_labels, replace=False)] = -1
    return bl.GroupedTable.from_arrays(features, labels, groups, num_values=(2, 3), num_labels=2)


def final_states(model: object, table: bl.GroupedTable, **options: int) -> list[State]:
    """The last draw of many chains: independent of each other."""
    split = options.pop("split_merge", 1)
    with jax.enable_x64(True):
        problem = build_problem(model, table, split)
    info = run_chains(
        problem, draws=1, warmup=60, chains=NUM_CHAINS, thin=1, seed=11, progress=False
    ).info
    return [
        (tuple(z), tuple(y))
        for z, y in zip(
            first_occurrence(info["z"][:, -1]).tolist(), info["labels"][:, -1].tolist(), strict=True
        )
    ]


@pytest.mark.parametrize("missing_labels", [0, 4])
@pytest.mark.parametrize("split", [0, 2])
def test_every_partition_and_labeling_as_often_as_it_should(missing_labels: int, split: int):
    table = small_table(missing_labels)
    exact = enumerate_posterior(table, concentration=1.5, feature_prior=0.7)
    model = bl.ClusteredNaiveBayes(concentration=1.5, feature_prior=0.7)
    draws = final_states(model, table, split_merge=split)
    assert fit_p_value(draws, exact) > FALSE_ALARM


def test_split_merge_alone_has_the_posterior_as_its_invariant_distribution():
    table = small_table(0)
    counts = table.counts()
    exact = enumerate_posterior(table, concentration=0.8)
    with jax.enable_x64(True):
        layout = count_layout(counts.schema, np.ones((2, 5)), int(counts.labels.sum()))
        vectors = jnp.asarray(group_vectors(counts))
        kernel = split_merge.build_kernel(layout)

        def run(key: jax.Array, z: jax.Array) -> jax.Array:
            state = crp_gibbs.init(layout, vectors, z, 5)

            def step(i: jax.Array, state: crp_gibbs.PartitionState):
                return kernel(jax.random.fold_in(key, i), state, vectors, jnp.asarray(0.8))[0]

            return jax.lax.fori_loop(0, 80, step, state).z

        starts = starting_partitions(4, NUM_CHAINS, np.random.default_rng(0))
        keys = jax.random.split(jax.random.key(5), NUM_CHAINS)
        z = first_occurrence(np.asarray(jax.jit(jax.vmap(run))(keys, jnp.asarray(starts))))
    assert fit_p_value([(tuple(row), ()) for row in z.tolist()], exact) > FALSE_ALARM


@pytest.mark.parametrize("model", [bl.NoSharing(), bl.CompleteSharing()], ids=lambda m: m.name)
def test_missing_labels_of_known_partitions(model: object):
    table = small_table(4)
    missing = np.flatnonzero(table.labels < 0)
    weights = {}
    for code in range(2 ** len(missing)):
        labeling = tuple(code >> i & 1 for i in range(len(missing)))
        labels = table.labels.copy()
        labels[missing] = labeling
        weights[labeling] = model.log_marginal(table.with_labels(labels).counts())
    top = max(weights.values())
    total = sum(np.exp(v - top) for v in weights.values())
    exact = {((), y): float(np.exp(v - top) / total) for y, v in weights.items()}
    draws = [((), y) for _, y in final_states(model, table)]
    assert fit_p_value(draws, exact) > FALSE_ALARM


@pytest.mark.filterwarnings("ignore::bayes_lcs.SamplingWarning")
def test_slots_that_run_out_change_nothing(monkeypatch: pytest.MonkeyPatch):
    table, _ = bl.ClusteredNaiveBayes(concentration=20.0).simulate(
        bl.Schema(2, (3, 4)), [6] * 30, seed=0
    )
    model = bl.ClusteredNaiveBayes(concentration=20.0)
    options = {"draws": 40, "warmup": 10, "chains": 3, "seed": 2, "progress": False}
    monkeypatch.setattr(
        collapsed_gibbs,
        "starting_partitions",
        lambda groups, chains, rng: np.zeros((chains, groups), dtype=np.int64),
    )
    sizes, with_num_slots = [], collapsed_gibbs.with_num_slots
    monkeypatch.setattr(
        collapsed_gibbs,
        "with_num_slots",
        lambda state, slots: sizes.append(slots) or with_num_slots(state, slots),
    )
    monkeypatch.setattr(collapsed_gibbs, "SPARE_SLOTS", 0)
    tight = bl.sample(model, table, **options)
    assert sizes, "the tight run never ran out of slots"
    monkeypatch.setattr(collapsed_gibbs, "SPARE_SLOTS", 40)
    spacious = bl.sample(model, table, **options)
    assert int(spacious.datatree["sample_stats"]["num_clusters"].max()) > 8
    np.testing.assert_array_equal(
        tight.datatree["posterior"]["z"], spacious.datatree["posterior"]["z"]
    )


def test_the_same_seed_gives_the_same_draws_and_another_seed_others():
    table = small_table(3)
    options = {"draws": 20, "warmup": 5, "chains": 2, "progress": False}
    with pytest.warns(bl.SamplingWarning, match="effective draws"):
        a, b, c = (
            bl.sample(bl.ClusteredNaiveBayes(), table, seed=seed, **options) for seed in (1, 1, 2)
        )
    z = [np.asarray(post.datatree["posterior"]["z"]) for post in (a, b, c)]
    np.testing.assert_array_equal(z[0], z[1])
    assert (z[0] != z[2]).any()


def test_log_joint_and_counts_stay_consistent_over_a_run():
    table = small_table(4)
    with jax.enable_x64(True):
        problem = build_problem(bl.ClusteredNaiveBayes(concentration=2.0), table)
    info = run_chains(problem, draws=30, warmup=0, chains=2, thin=1, seed=0, progress=False).info
    model = bl.ClusteredNaiveBayes(concentration=2.0)
    labels = table.labels.copy()
    for chain in range(2):
        for draw in range(30):
            labels[table.labels < 0] = info["labels"][chain, draw]
            expected = model.log_joint(table.with_labels(labels).counts(), info["z"][chain, draw])
            assert info["log_joint"][chain, draw] == pytest.approx(expected, abs=1e-8)


def test_layout_agrees_with_the_integrals_with_and_without_tables():
    table = small_table(0)
    counts = table.counts()
    beta = np.random.default_rng(0).gamma(1.0, size=(2, 5))
    expected = [
        bl.NoSharing(feature_prior=beta).log_marginal(counts.take([u]))
        - bl.NoSharing().log_marginal(
            type(counts)(counts.schema, counts.labels[[u]], 0 * counts.features[[u]])
        )
        for u in range(4)
    ]
    with jax.enable_x64(True):
        for entries in (10**6, 1):
            layout = count_layout(counts.schema, beta, int(counts.labels.sum()), entries)
            got = log_marginal(layout, jnp.asarray(group_vectors(counts)))
            np.testing.assert_allclose(got, expected, atol=1e-10)


def test_vectors_are_wide_enough_for_all_groups_and_latent_rows():
    """Blocks add up vectors, and latent rows are added to them."""
    counts = small_table(0).counts()
    assert group_vectors(counts).dtype == np.int32
    largest = np.iinfo(np.int32).max - group_vectors(counts).sum(axis=0).max()
    assert group_vectors(counts, largest).dtype == np.int32
    assert group_vectors(counts, largest + 1).dtype == np.int64
    layout = count_layout(counts.schema, np.random.default_rng(0).gamma(1.0, size=(2, 5)), 2**33)
    assert not layout.table.size
    assert not layout.offset.any()


def test_rows_add_up_to_the_vectors_of_their_groups():
    table = small_table(0)
    dimensions = row_dimensions(table.schema, table.features)
    vectors = np.zeros_like(group_vectors(table.counts()))
    for row, (group, label) in enumerate(zip(table.groups, table.labels, strict=True)):
        np.add.at(vectors[group], dimensions[row, label], 1)
    np.testing.assert_array_equal(vectors[:, :-1], group_vectors(table.counts())[:, :-1])


def test_scores_that_are_kept_are_those_that_would_be_computed():
    """A sweep after splits and merges makes the same moves whether it remembers scores or not."""
    model = bl.ClusteredNaiveBayes(concentration=3.0)
    table, _ = model.simulate(bl.Schema(2, (2, 3)), [3, 2, 4, 3, 2, 3, 4], seed=1)
    counts = table.counts()
    with jax.enable_x64(True):
        layout = count_layout(counts.schema, np.ones((2, 5)), int(counts.labels.sum()))
        vectors = jnp.asarray(group_vectors(counts))
        gibbs, split = crp_gibbs.build_kernel(layout), split_merge.build_kernel(layout)
        concentration = jnp.asarray(3.0)

        def run(key: jax.Array, forgetful: bool) -> tuple[jax.Array, jax.Array]:
            start = crp_gibbs.init(layout, vectors, jnp.zeros(7, dtype=jnp.int32), 8)

            def sweep(state: crp_gibbs.PartitionState, i: jax.Array):
                keys = jax.random.split(jax.random.fold_in(key, i), 4)
                accepted = jnp.zeros((), dtype=int)
                for one in keys[1:]:
                    state, info = split(one, state, vectors, concentration)
                    accepted += info.accepted
                if forgetful:
                    state = crp_gibbs.invalidate_scores(layout, vectors, state)
                state, _ = gibbs(keys[0], state, vectors, concentration)
                return state, (state.z, accepted)

            return jax.lax.scan(sweep, start, jnp.arange(40))[1]

        keys = jax.random.split(jax.random.key(2), 50)
        kept, accepted = jax.jit(jax.vmap(lambda key: run(key, False)))(keys)
        anew, _ = jax.jit(jax.vmap(lambda key: run(key, True)))(keys)
    assert np.asarray(accepted).sum() > 200, "too few splits and merges to test anything"
    np.testing.assert_array_equal(np.asarray(kept), np.asarray(anew))


def test_sweeps_that_are_not_made_would_have_changed_nothing():
    """The same draws with and without the short cut, while concentration and temperature change."""
    model = bl.ClusteredNaiveBayes(concentration=1.0)
    table, _ = model.simulate(bl.Schema(2, (2, 3)), [40, 30, 35, 40, 30, 25], seed=4)
    counts = table.counts()
    with jax.enable_x64(True):
        layout = count_layout(counts.schema, np.ones((2, 5)), int(counts.labels.sum()))
        vectors = jnp.asarray(group_vectors(counts))
        gibbs = crp_gibbs.build_kernel(layout)

        def run(key: jax.Array, restless: bool) -> tuple[jax.Array, jax.Array]:
            start = crp_gibbs.init(layout, vectors, jnp.zeros(6, dtype=jnp.int32), 8)

            def sweep(state: crp_gibbs.PartitionState, i: jax.Array):
                if restless:
                    state = crp_gibbs.invalidate_scores(layout, vectors, state)
                # For twenty sweeps each, one of the two is changed.
                concentration = jnp.where(i // 20 % 4 == 1, 5.0, 1.0)
                temperature = jnp.where(i // 20 % 4 == 3, 0.3, 1.0)
                one = jax.random.fold_in(key, i)
                after, _ = gibbs(one, state, vectors, concentration, temperature)
                short = (state.stay_intervals.version == after.stay_intervals.version) & (
                    state.stay_intervals.version >= 0
                )
                return after, (after.z, short)

            return jax.lax.scan(sweep, start, jnp.arange(160))[1]

        keys = jax.random.split(jax.random.key(5), 40)
        short_cut, short = jax.jit(jax.vmap(lambda key: run(key, False)))(keys)
        in_full, _ = jax.jit(jax.vmap(lambda key: run(key, True)))(keys)
    assert 0.1 < np.asarray(short).mean() < 0.9
    np.testing.assert_array_equal(np.asarray(short_cut), np.asarray(in_full))
