from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayes_lcs.core.counts import GroupCounts, count_rows
from bayes_lcs.core.naive_bayes import (
    dirichlet_mean,
    log_feature_likelihood,
    log_feature_marginal,
    log_label_marginal,
    log_row_predictive,
    posterior_parameters,
)
from bayes_lcs.core.schema import Schema
from tests.oracles import block_log_marginal
from tests.strategies import SmallTable, priors, small_tables


@given(small_tables(), st.data())
def test_block_marginals_equal_sequential_predictives(table: SmallTable, data) -> None:
    counts = table.counts()
    _, beta = data.draw(priors(table.schema))
    result = log_feature_marginal(table.schema, counts.features, beta)
    expected = [block_log_marginal(counts, [u], beta) for u in range(counts.num_groups)]
    np.testing.assert_allclose(result, expected, rtol=1e-10, atol=1e-10)


@given(small_tables(max_groups=1), st.data())
def test_rows_in_any_order_multiply_up_to_the_marginal(table: SmallTable, data) -> None:
    """log P(rows) = sum of log P(next row | rows before), whatever the order."""
    alpha, beta = data.draw(priors(table.schema))
    labelled = np.flatnonzero(table.labels >= 0)
    order = np.array(data.draw(st.permutations(labelled.tolist())), dtype=np.int64)
    total = 0.0
    for step, row in enumerate(order):
        seen = order[:step]
        before = count_rows(
            table.schema, 1, table.groups[seen], table.labels[seen], table.features[seen]
        )
        logs = log_row_predictive(before, alpha, beta, table.features[[row]])
        total += logs[0, 0, table.labels[row]]
    counts = table.counts()
    marginal = (
        log_label_marginal(counts.labels, alpha).sum()
        + log_feature_marginal(table.schema, counts.features, beta).sum()
    )
    assert total == pytest.approx(float(marginal), rel=1e-10, abs=1e-10)


@given(small_tables(), st.data())
def test_adding_and_removing_a_group_changes_nothing(table: SmallTable, data) -> None:
    """m(T + u) / m(T) times m(T) / m(T + u) is one: counts are integers, so to the last bit."""
    counts = table.counts()
    _, beta = data.draw(priors(table.schema))
    u = data.draw(st.integers(0, counts.num_groups - 1))
    rest = counts.features.sum(axis=0) - counts.features[u]
    there_and_back = rest + counts.features[u] - counts.features[u]
    np.testing.assert_array_equal(there_and_back, rest)
    before = log_feature_marginal(table.schema, rest, beta)
    after = log_feature_marginal(table.schema, there_and_back, beta)
    assert before == after


def test_missing_values_enter_the_totals_not_the_label_counts() -> None:
    """Thesis (A.44), (A.46) divide by the label's count; with missing values that is wrong."""
    schema = Schema(1, (2,))
    counts = count_rows(schema, 1, [0, 0, 0], [0, 0, 0], [[0], [-1], [-1]])
    logs = log_row_predictive(counts, np.ones(1), np.ones((1, 2)), [[0]])
    assert np.exp(logs[0, 0, 0]) == pytest.approx(2 / 3, abs=1e-12)
    marginal = log_feature_marginal(schema, counts.features, np.ones((1, 2)))
    assert np.exp(marginal[0]) == pytest.approx(1 / 2, abs=1e-12)


@given(small_tables(), st.data())
def test_predictives_sum_to_one_over_labels_and_features(table: SmallTable, data) -> None:
    alpha, beta = data.draw(priors(table.schema))
    sizes = table.schema.num_values
    every_row = np.stack(np.meshgrid(*map(np.arange, sizes), indexing="ij"), -1).reshape(
        -1, len(sizes)
    )
    logs = log_row_predictive(table.counts(), alpha, beta, every_row)
    np.testing.assert_allclose(np.exp(logs).sum(axis=(1, 2)), 1.0, rtol=1e-12)


@given(small_tables(), st.data())
def test_a_missing_feature_is_summed_over(table: SmallTable, data) -> None:
    alpha, beta = data.draw(priors(table.schema))
    counts = table.counts()
    row = np.zeros((table.schema.num_values[0], table.schema.num_features), dtype=np.int64)
    row[:, 0] = np.arange(len(row))
    each = log_row_predictive(counts, alpha, beta, row)
    row[0, 0] = -1
    missing = log_row_predictive(counts, alpha, beta, row[:1])
    np.testing.assert_allclose(np.exp(each).sum(axis=1), np.exp(missing[:, 0]), rtol=1e-12)


def test_posterior_parameters_are_the_posterior_mean() -> None:
    schema = Schema(2, (2, 3))
    labels = np.array([[3, 1]])
    features = np.array([[[2, 1, 0, 0, 3], [0, 1, 1, 0, 0]]])
    phi, theta = posterior_parameters(
        GroupCounts(schema, labels, features), np.array([1.0, 2.0]), np.full((2, 5), 0.5)
    )
    np.testing.assert_allclose(phi, [[4 / 7, 3 / 7]])
    np.testing.assert_allclose(theta[0, 0], [2.5 / 4, 1.5 / 4, 0.5 / 4.5, 0.5 / 4.5, 3.5 / 4.5])
    np.testing.assert_allclose(theta, dirichlet_mean(schema, features, np.full((2, 5), 0.5)))


def test_feature_likelihood_equals_a_loop() -> None:
    schema = Schema(2, (2, 3))
    rng = np.random.default_rng(0)
    log_theta = rng.normal(size=(4, 2, 5))
    rows = np.array([[1, 2], [-1, 0], [-1, -1]])
    result = log_feature_likelihood(schema, log_theta, rows)
    assert result.shape == (4, 3, 2)
    np.testing.assert_allclose(result[:, 0], log_theta[:, :, 1] + log_theta[:, :, 4])
    np.testing.assert_allclose(result[:, 1], log_theta[:, :, 2])
    assert (result[:, 2] == 0).all()
