"""Grown starts: drawn as they say, and chains sample the same from them.

Chi-square tests have fixed seeds and a threshold of 1e-4: one wrong alarm in ten thousand changes
of the seeds.
"""

from __future__ import annotations

import itertools
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import bayes_lcs as bl
from bayes_lcs.core.partitions import first_occurrence, log_crp
from bayes_lcs.inference.chain_driver import run_chains
from bayes_lcs.inference.draw_posterior import draw_posterior
from bayes_lcs.inference.mcmc import collapsed_gibbs, subsample_annealing
from bayes_lcs.inference.mcmc.cluster_marginals import log_marginal
from bayes_lcs.inference.mcmc.subsample_annealing import grow_partitions, visit_schedule
from bayes_lcs.runtime.executors.local import LocalExecutor
from tests.inference.mcmc.gibbs_oracle import enumerate_posterior, fit_p_value
from tests.inference.mcmc.test_gibbs import FALSE_ALARM, NUM_CHAINS, small_table

MODEL = bl.ClusteredNaiveBayes(concentration=1.5, feature_prior=0.7)


def clustered(num_groups, num_clusters, rows, seed=0, flatness=0.3, sizes=(3, 4, 5, 3)):
    """Groups of some clusters, and which."""
    rng = np.random.default_rng(seed)
    z = rng.integers(0, num_clusters, num_groups)
    groups = np.repeat(np.arange(num_groups), rows)
    labels = rng.integers(0, 2, len(groups))
    features = np.empty((len(groups), len(sizes)), dtype=np.int64)
    for f, size in enumerate(sizes):
        running = rng.dirichlet(np.full(size, flatness), (num_clusters, 2)).cumsum(axis=-1)
        uniforms = rng.random(len(groups))[:, None]
        features[:, f] = (uniforms > running[z[groups], labels, :-1]).sum(axis=1)
    table = bl.GroupedTable.from_arrays(features, labels, groups, num_values=sizes, num_labels=2)
    return table, z


def visited(table, visits, chains):
    """Final states of many chains that make the same visits."""
    with jax.enable_x64(True):
        problem = collapsed_gibbs.build_problem(MODEL, table)
        arrays = problem.data

        def run(key):
            return subsample_annealing._visit(
                arrays.layout,
                arrays.vectors,
                jnp.asarray(problem.concentration),
                subsample_annealing.init(arrays.vectors, 5),
                jnp.asarray(visits),
                jnp.asarray(len(visits)),
                key,
            )

        return problem, jax.vmap(run)(jax.random.split(jax.random.key(7), chains))


def as_states(z):
    return [(tuple(each), ()) for each in first_occurrence(np.asarray(z)).tolist()]


def test_groups_are_placed_given_those_before():
    """In a given order: the product of what each is placed by, multiplied out by hand."""
    table = small_table(0)
    order = (2, 0, 3, 1)
    problem, states = visited(table, order, NUM_CHAINS)

    with jax.enable_x64(True):
        vectors = problem.data.vectors

        def log_block(members):
            summed = vectors[np.array(members)].sum(axis=0)
            return float(log_marginal(problem.data.layout, summed))

        expected = {}
        for choice in itertools.product(range(4), repeat=4):
            z = dict(zip(order, choice, strict=True))
            if tuple(first_occurrence([z[u] for u in order])) != choice:
                continue
            log_q, blocks = 0.0, []
            for u in order:
                options = [
                    np.log(len(block)) + log_block([*block, u]) - log_block(block)
                    for block in blocks
                ] + [np.log(problem.concentration) + log_block([u])]
                log_q += options[z[u]] - np.logaddexp.reduce(options)
                if z[u] == len(blocks):
                    blocks.append([u])
                else:
                    blocks[z[u]].append(u)
            expected[tuple(first_occurrence([z[u] for u in range(4)]).tolist()), ()] = log_q
    assert len(expected) == 15
    probabilities = {key: float(np.exp(value)) for key, value in expected.items()}
    assert sum(probabilities.values()) == pytest.approx(1.0)
    assert fit_p_value(as_states(states.z), probabilities) > FALSE_ALARM


def test_visits_of_all_leave_the_posterior_invariant():
    table = small_table(0)
    exact = enumerate_posterior(table, concentration=1.5, feature_prior=0.7)
    problem, states = visited(table, np.tile([3, 1, 0, 2], 30), NUM_CHAINS)
    assert fit_p_value(as_states(states.z), exact) > FALSE_ALARM
    with jax.enable_x64(True):
        blocks = jax.vmap(lambda z: jax.ops.segment_sum(problem.data.vectors, z, 5))(states.z)
        np.testing.assert_array_equal(states.cluster_counts, blocks)
        kept = np.asarray(states.log_marginals)
        np.testing.assert_allclose(kept, log_marginal(problem.data.layout, blocks), atol=1e-9)
        sizes = (np.asarray(states.z)[:, :, None] == np.arange(5)).sum(axis=1)
        np.testing.assert_array_equal(states.sizes, sizes)


@pytest.mark.slow
@pytest.mark.parametrize("missing_labels", [0, 4])
def test_chains_sample_the_same_from_them(missing_labels):
    table = small_table(missing_labels)
    exact = enumerate_posterior(table, concentration=1.5, feature_prior=0.7)
    with jax.enable_x64(True):
        problem = collapsed_gibbs.build_problem(MODEL, table, 1, "grown")
    numbers = {"draws": 1, "warmup": 60, "chains": NUM_CHAINS, "thin": 1, "seed": 11}
    info = run_chains(problem, **numbers, progress=False).info
    z, labels = first_occurrence(info["z"][:, -1]), info["labels"][:, -1]
    draws = [(tuple(a), tuple(b)) for a, b in zip(z.tolist(), labels.tolist(), strict=True)]
    assert fit_p_value(draws, exact) > FALSE_ALARM


@pytest.mark.parametrize("num_groups", [1, 63, 64, 65, 1000, 5000])
def test_nobody_is_swept_over_before_all_of_a_stage_are_in(num_groups):
    visits = visit_schedule(num_groups, np.random.default_rng(1))
    _, first = np.unique(visits, return_index=True)
    assert len(first) == num_groups
    newcomers = np.zeros(len(visits), dtype=bool)
    newcomers[first] = True
    inside = 0
    for comes, run in itertools.groupby(newcomers.tolist()):
        size = len(list(run))
        if comes:
            inside += size
        else:
            assert size % inside == 0  # whole sweeps
            assert size >= inside
    assert inside == num_groups
    assert newcomers[-1]  # the sweeps of the chain follow
    # Sizes of all stages but the last, each twice the one before, add up to less than 2 U.
    assert len(visits) <= (1 + 2 * subsample_annealing.MAX_SWEEPS) * num_groups


def test_chains_start_apart_from_each_other_and_again_the_same():
    table, _ = clustered(300, 5, 8, flatness=1.0)
    with jax.enable_x64(True):
        arrays = collapsed_gibbs.build_problem(MODEL, table).data
        keys = jax.random.split(jax.random.key(3), 3)
        grow = partial(grow_partitions, arrays.layout, arrays.vectors, 1.0, progress=False)
        starts = grow(keys)
        np.testing.assert_array_equal(grow(keys[1:2])[0], starts[1])
    assert starts.shape == (3, 300)
    assert not (starts[0] == starts[1]).all()


def test_slots_grow_with_the_clusters():
    """More clusters than there were slots at first."""
    table, truth = clustered(300, 60, 60, flatness=0.1)
    with jax.enable_x64(True):
        arrays = collapsed_gibbs.build_problem(MODEL, table).data
        keys = jax.random.split(jax.random.key(0), 1)
        found = grow_partitions(arrays.layout, arrays.vectors, 1.0, keys, False)[0]
    assert found.max() + 1 > 1.5 * subsample_annealing.FIRST_SLOTS
    together = found[:, None] == found
    assert (together == (truth[:, None] == truth)).mean() > 0.99


def test_workers_grow_their_own_chain():
    # So flat that draws tell where they came from.
    table, _ = clustered(60, 4, 3, flatness=2.0)
    settings = {"draws": 4, "warmup": 0, "chains": 3, "seed": 1, "start": "grown"}
    plain = draw_posterior(MODEL, table, **settings, progress=False)
    with LocalExecutor() as executor:
        found = draw_posterior(MODEL, table, **settings, progress=False, executor=executor)
    np.testing.assert_array_equal(found.unknown["z"], plain.unknown["z"])


def test_many_groups_are_grown_unless_told():
    assert [collapsed_gibbs.resolve_start("auto", n) for n in (1000, 1001)] == ["apart", "grown"]
    assert collapsed_gibbs.resolve_start("apart", 10**6) == "apart"
    with pytest.raises(ValueError, match="start must be one of auto, apart, grown, got 'far'"):
        bl.sample(MODEL, small_table(0), start="far")


@pytest.mark.slow
def test_checkpoints_of_another_start_are_refused(tmp_path):
    table = small_table(0)
    settings = {"draws": 3, "chains": 1, "progress": False}
    with bl.checkpoints(tmp_path) as kept:
        kept.is_worth_saving = lambda seconds: True
        draw_posterior(MODEL, table, **settings, start="apart")
    with bl.checkpoints(tmp_path), pytest.raises(bl.DataError, match="another run"):
        draw_posterior(MODEL, table, **settings, start="grown")


@pytest.mark.slow
def test_clusters_are_found_where_not_all_starts_find_them():
    """Overlapping clusters: the truth says how high the log joint should be at least."""
    table, truth = clustered(3000, 20, 10, flatness=2.0, sizes=(3, 4, 5, 3, 5))
    model = bl.ClusteredNaiveBayes()
    settings = {"draws": 10, "warmup": 10, "chains": 2, "progress": False}
    levels = {}
    for start in ("apart", "grown"):
        found = draw_posterior(model, table, **settings, start=start)
        levels[start] = found.stats["log_joint"].mean(axis=1)
    at_truth = model.log_marginal(table.counts(), truth) + log_crp(truth, 1.0)
    assert levels["apart"].min() < at_truth - 100.0
    assert levels["grown"].min() > at_truth
