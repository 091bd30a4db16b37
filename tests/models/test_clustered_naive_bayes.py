from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

from bayes_lcs.core.counts import GroupCounts, merge_groups
from bayes_lcs.core.partitions import log_crp
from bayes_lcs.core.priors import Gamma
from bayes_lcs.core.schema import Schema
from bayes_lcs.models.clustered_naive_bayes import ClusteredNaiveBayes
from bayes_lcs.models.complete_sharing import CompleteSharing
from bayes_lcs.models.no_sharing import NoSharing
from tests.oracles import all_partitions, brute_force_posterior
from tests.strategies import SmallTable, priors, small_tables


@settings(max_examples=30)
@given(small_tables(), st.data())
def test_the_joint_of_every_partition_equals_brute_force(table: SmallTable, data) -> None:
    counts = table.counts()
    alpha, beta = data.draw(priors(table.schema))
    model = ClusteredNaiveBayes(label_prior=alpha, feature_prior=beta, concentration=0.7)
    truth = brute_force_posterior(counts, 0.7, alpha, beta)
    for z, probability in truth.probs.items():
        log_posterior = model.log_joint(counts, z) - truth.log_evidence
        assert log_posterior == pytest.approx(math.log(probability), abs=1e-9)


def test_the_oracle_is_consistent_with_itself() -> None:
    table, _ = ClusteredNaiveBayes().simulate(Schema(2, (2, 3)), [4, 5, 3, 6, 2], seed=1)
    truth = brute_force_posterior(table.counts())
    assert len(truth.probs) == 52
    assert math.fsum(truth.probs.values()) == pytest.approx(1.0, abs=1e-12)
    assert truth.num_clusters.sum() == pytest.approx(1.0, abs=1e-12)
    assert truth.num_clusters[0] == 0.0
    np.testing.assert_allclose(np.diag(truth.coclustering), 1.0)
    assert truth.probs[truth.map_partition] == max(truth.probs.values())
    assert truth.num_clusters[1] == pytest.approx(truth.probs[(0,) * 5])


@pytest.mark.parametrize("feature_prior", [0.5, Gamma(2.0, 1.0)])
def test_the_two_extreme_partitions_are_the_other_models(feature_prior) -> None:
    table, _ = NoSharing().simulate(Schema(2, (2, 3)), [4, 5, 3], seed=1, missing=0.1)
    counts = table.counts()
    model = ClusteredNaiveBayes(feature_prior=feature_prior)
    alone = NoSharing(feature_prior=feature_prior)
    shared = CompleteSharing(feature_prior=feature_prior)
    assert model.log_marginal(counts, [0, 1, 2]) == pytest.approx(alone.log_marginal(counts))
    # One block shares theta and not phi.
    labels = model.log_label_marginal(counts)
    pooled = GroupCounts(counts.schema, *_pooled(counts))
    pooled_labels = ClusteredNaiveBayes().log_label_marginal(pooled)
    assert model.log_marginal(counts, [7, 7, 7]) - labels == pytest.approx(
        shared.log_marginal(counts) - pooled_labels
    )


def _pooled(counts: GroupCounts):
    return counts.labels.sum(axis=0, keepdims=True), counts.features.sum(axis=0, keepdims=True)


@given(small_tables(), st.data())
def test_labels_of_blocks_mean_nothing_and_moving_back_changes_nothing(
    table: SmallTable, data
) -> None:
    counts = table.counts()
    model = ClusteredNaiveBayes(concentration=2.0)
    num_groups = counts.num_groups
    z = data.draw(st.lists(st.integers(0, 3), min_size=num_groups, max_size=num_groups))
    before = model.log_joint(counts, z)
    assert model.log_joint(counts, [10 - k for k in z]) == pytest.approx(before, abs=1e-11)
    u = data.draw(st.integers(0, num_groups - 1))
    moved = list(z)
    moved[u] = 99
    away = model.log_joint(counts, moved)
    moved[u] = z[u]
    assert model.log_joint(counts, moved) == before
    # Moving u to a block of its own changes the joint by the Gibbs ratio of the two blocks.
    others = [v for v in range(num_groups) if z[v] == z[u] and v != u]
    if others:
        with_u, without = (
            ClusteredNaiveBayes().log_marginal(counts.take(g), [0] * len(g))
            - model.log_label_marginal(counts.take(g))
            for g in ([*others, u], others)
        )
        alone = model.log_marginal(counts.take([u]), [0]) - model.log_label_marginal(
            counts.take([u])
        )
        expected = math.log(len(others) / 2.0) + with_u - without - alone
        assert before - away == pytest.approx(expected, abs=1e-9)


def test_labels_come_from_the_group_and_features_from_its_block() -> None:
    """Thesis (A.47) takes the block's label counts; phi_u is not shared, so they are u's own."""
    schema = Schema(2, (2,))
    labels = np.array([[8, 0], [0, 8], [1, 1]])
    features = np.array([[[8, 0], [0, 0]], [[0, 0], [0, 8]], [[1, 0], [1, 0]]])
    counts = GroupCounts(schema, labels, features)
    logs = ClusteredNaiveBayes().log_predictive(counts, [[0]], [0, 0, 1])
    expected = np.array(
        [
            [9 / 10 * 9 / 10, 1 / 10 * 1 / 10],
            [1 / 10 * 9 / 10, 9 / 10 * 1 / 10],
            [2 / 4 * 2 / 3, 2 / 4 * 2 / 3],
        ]
    )
    np.testing.assert_allclose(np.exp(logs[:, 0]), expected, rtol=1e-12)
    phi, theta = ClusteredNaiveBayes().posterior_mode(counts, [0, 0, 1])
    np.testing.assert_allclose(phi, [[0.9, 0.1], [0.1, 0.9], [0.5, 0.5]])
    np.testing.assert_allclose(theta[0], theta[1])
    merged = merge_groups(counts, [0, 0, 1])
    np.testing.assert_allclose(theta[0], (merged.features[0] + 1) / 10)


def test_a_learned_concentration_is_integrated_out_of_the_prior() -> None:
    prior = Gamma(1.5, 0.8)
    model = ClusteredNaiveBayes(concentration=prior)
    for z in ([0, 0, 0, 0], [0, 1, 0, 2], [0, 1, 2, 3]):
        exact, _ = integrate.quad(
            lambda a, z=z: math.exp(log_crp(z, a)) * stats.gamma.pdf(a, 1.5, scale=1 / 0.8),
            0,
            np.inf,
            epsabs=0,
            epsrel=1e-11,
        )
        assert model.log_prior(z) == pytest.approx(math.log(exact), abs=1e-9)
    total = math.fsum(math.exp(model.log_prior(z)) for z in all_partitions(6))
    assert total == pytest.approx(1.0, abs=1e-10)


def test_truncation_errors_shrink_with_sticks_and_grow_with_groups() -> None:
    model = ClusteredNaiveBayes()
    assert model.truncation_error(10, 21) == pytest.approx(20 * 2.0**-20)
    assert model.truncation_error(10**9, 2) == 2.0
