"""No-Sharing and Complete-Sharing: closed forms, with given and with learned feature priors."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayes_lcs.core.counts import merge_groups
from bayes_lcs.core.priors import Gamma
from bayes_lcs.core.schema import Schema
from bayes_lcs.models.base import symmetric_prior_posterior
from bayes_lcs.models.complete_sharing import CompleteSharing
from bayes_lcs.models.no_sharing import NoSharing
from tests.oracles import as_sequence, block_log_marginal, sequential_log_marginal
from tests.strategies import SmallTable, priors, small_tables


@given(small_tables(), st.data())
def test_evidence_equals_sequential_predictives(table: SmallTable, data) -> None:
    counts = table.counts()
    alpha, beta = data.draw(priors(table.schema))
    everybody = range(counts.num_groups)
    pooled = as_sequence(counts.labels.sum(axis=0))
    separate = sum(
        sequential_log_marginal(as_sequence(counts.labels[u]), alpha)
        + block_log_marginal(counts, [u], beta)
        for u in everybody
    )
    together = sequential_log_marginal(pooled, alpha) + block_log_marginal(counts, everybody, beta)
    arguments = {"label_prior": alpha, "feature_prior": beta}
    assert NoSharing(**arguments).log_marginal(counts) == pytest.approx(separate, abs=1e-9)
    assert CompleteSharing(**arguments).log_marginal(counts) == pytest.approx(together, abs=1e-9)


@settings(max_examples=40)
@given(small_tables(), st.sampled_from([1.0, 0.3, Gamma(2.0, 1.0)]))
def test_complete_sharing_is_no_sharing_with_one_group(table: SmallTable, feature_prior) -> None:
    counts = table.counts()
    one = merge_groups(counts, np.zeros(counts.num_groups, dtype=int))
    shared = CompleteSharing(feature_prior=feature_prior)
    alone = NoSharing(feature_prior=feature_prior)
    assert shared.log_marginal(counts) == pytest.approx(alone.log_marginal(one), abs=1e-12)
    rows = table.features[:3]
    for group in shared.log_predictive(counts, rows):
        np.testing.assert_allclose(group, alone.log_predictive(one, rows)[0], atol=1e-12)
    for got, expected in zip(shared.posterior_mode(counts), alone.posterior_mode(one), strict=True):
        np.testing.assert_allclose(got, np.repeat(expected, counts.num_groups, axis=0))


def test_who_informs_whom() -> None:
    table, _ = NoSharing().simulate(Schema(2, (3,)), [5, 7], seed=0)
    counts = table.counts()
    alone, shared = NoSharing(), CompleteSharing()
    assert alone.partition(3).tolist() == [0, 1, 2]
    assert shared.partition(3).tolist() == [0, 0, 0]
    rows = table.features[:2]
    everybody = shared.log_predictive(counts, rows)[0]
    for groups in ([-1], [1]):
        np.testing.assert_allclose(shared.log_predictive(counts, rows, groups)[0], everybody)
    np.testing.assert_allclose(
        alone.log_predictive(counts, rows, [1, -1]),
        np.stack([alone.log_predictive(counts, rows)[1], np.full((2, 2), np.log(1 / 6))]),
    )
    assert (alone.shares_labels, shared.shares_labels) == (False, True)


def exact_learned_log_marginal(prior: Gamma, counts, members_of_blocks) -> float:
    """Integral over b by mpmath, of products of sequential predictive probabilities."""
    schema = counts.schema
    shape = (schema.num_labels, schema.num_cells)

    def integrand(log_b) -> mpmath.mpf:
        b = float(mpmath.exp(log_b))
        log_likelihood = sum(
            block_log_marginal(counts, members, np.full(shape, b)) for members in members_of_blocks
        )
        density = prior.shape * log_b - prior.rate * mpmath.exp(log_b)
        return mpmath.exp(log_likelihood + density)

    with mpmath.workdps(20):
        integral = mpmath.quad(integrand, [-25, -8, -4, -2, 0, 1, 2, 3, 5])
        constant = prior.shape * mpmath.log(prior.rate) - mpmath.loggamma(prior.shape)
        return float(mpmath.log(integral) + constant)


def test_a_learned_feature_prior_is_integrated_out() -> None:
    prior = Gamma(2.0, 1.5)
    table, _ = NoSharing().simulate(Schema(2, (2, 3)), [4, 3], seed=2, missing=0.2)
    counts = table.counts()
    alone = NoSharing(feature_prior=prior).log_marginal(counts)
    shared = CompleteSharing(feature_prior=prior).log_marginal(counts)
    labels = [as_sequence(row) for row in counts.labels]
    by_group = sum(sequential_log_marginal(sequence, [1.0, 1.0]) for sequence in labels)
    pooled = sequential_log_marginal(labels[0] + labels[1], [1.0, 1.0])
    expected = exact_learned_log_marginal(prior, counts, [[0], [1]])
    assert alone - by_group == pytest.approx(expected, abs=1e-9)
    expected = exact_learned_log_marginal(prior, counts, [[0, 1]])
    assert shared - pooled == pytest.approx(expected, abs=1e-9)


def test_a_sharp_prior_is_a_fixed_one() -> None:
    table, _ = NoSharing().simulate(Schema(2, (2, 3)), [20, 30], seed=2)
    counts = table.counts()
    sharp = NoSharing(feature_prior=Gamma(7e7, 1e8))
    fixed = NoSharing(feature_prior=0.7)
    assert sharp.log_marginal(counts) == pytest.approx(fixed.log_marginal(counts), abs=1e-6)
    np.testing.assert_allclose(
        sharp.log_predictive(counts, [[0, 1]]), fixed.log_predictive(counts, [[0, 1]]), atol=1e-6
    )
    np.testing.assert_allclose(
        sharp.posterior_mode(counts).theta, fixed.posterior_mode(counts).theta, atol=1e-4
    )


def test_the_learned_prior_finds_its_value_from_many_groups() -> None:
    table, _ = NoSharing(feature_prior=0.3).simulate(Schema(2, (4, 4, 4)), [60] * 150, seed=4)
    posterior = symmetric_prior_posterior(Gamma(1.0, 1.0), table.schema, table.counts().features)
    weights = np.exp(posterior.log_weights)
    mean = float(weights @ posterior.nodes)
    deviation = float(np.sqrt(weights @ (posterior.nodes - mean) ** 2))
    assert deviation < 0.05
    # A posterior is off by more than five of its deviations once in 1.7 million seeds.
    assert abs(mean - np.log(0.3)) < 5 * deviation
