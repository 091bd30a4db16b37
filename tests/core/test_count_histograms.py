"""Marginal likelihoods by how often counts occur are those of the vectors one by one."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from bayes_lcs.core import count_histograms
from bayes_lcs.core.count_histograms import CountHistograms
from bayes_lcs.core.dirichlet import log_dirichlet_multinomial


@given(
    arrays(np.int32, st.tuples(st.integers(1, 30), st.integers(1, 5)), elements=st.integers(0, 40)),
    st.integers(0, 2**32 - 1),
)
def test_they_are_the_sum_over_vectors(counts, seed):
    a = np.random.default_rng(seed).gamma(0.5, 3.0, size=(4, 2, counts.shape[1])) + 1e-3
    expected = np.array(
        [[log_dirichlet_multinomial(counts, one).sum() for one in two] for two in a]
    )
    found = CountHistograms(counts).log_marginal(a)
    assert found.shape == (4, 2)
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-9)


def test_points_are_looked_at_some_at_a_time(monkeypatch):
    rng = np.random.default_rng(0)
    counts, a = rng.integers(0, 9, (50, 3)), rng.gamma(2.0, 1.0, (101, 3))
    whole = CountHistograms(counts).log_marginal(a)
    monkeypatch.setattr(count_histograms, "TERMS_AT_ONCE", 100)
    np.testing.assert_allclose(CountHistograms(counts).log_marginal(a), whole, rtol=1e-13)


def test_many_vectors_have_few_counts():
    counts = np.random.default_rng(0).poisson(2.0, (100_000, 4))
    different = sum(len(np.unique(column[column > 0])) for column in counts.T)
    totals = len(np.unique(counts.sum(axis=1))) - 1
    assert CountHistograms(counts).num_terms == different + totals
    assert different + totals < 100


def test_nothing_counted_says_nothing():
    assert CountHistograms(np.zeros((3, 2), int)).log_marginal([1.0, 2.0]) == pytest.approx(0.0)
