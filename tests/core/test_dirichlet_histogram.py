"""Marginal likelihoods by how often counts occur are those of the vectors one by one."""

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from bayes_lcs.core import dirichlet
from bayes_lcs.core.dirichlet import CountHistograms, log_dirichlet_multinomial


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
    monkeypatch.setattr(dirichlet, "MAX_TERMS_PER_CALL", 100)
    np.testing.assert_allclose(CountHistograms(counts).log_marginal(a), whole, rtol=1e-13)


def test_many_vectors_have_few_counts():
    counts = np.random.default_rng(0).poisson(2.0, (100_000, 4))
    different = sum(len(np.unique(column[column > 0])) for column in counts.T)
    totals = len(np.unique(counts.sum(axis=1))) - 1
    assert CountHistograms(counts).num_terms == different + totals
    assert different + totals < 100


def test_nothing_counted_says_nothing():
    assert CountHistograms(np.zeros((3, 2), int)).log_marginal([1.0, 2.0]) == pytest.approx(0.0)


def test_what_does_not_depend_on_parameters_is_set_aside():
    """Differences between parameters are good to 1e-12 where the logs themselves are to 1e-5."""
    counts = np.array([[5_000_000_000, 20_000_000, 7], [30, 4_000_000, 0]])
    points = np.array([[1.5, 0.5, 0.25], [1.5, 0.5, 0.2500001]])
    shifted, whole = CountHistograms(counts, shifted=True), CountHistograms(counts)
    assert shifted.shift == whole.shift != 0.0
    found = shifted.log_marginal(points)
    np.testing.assert_array_equal(found + shifted.shift, whole.log_marginal(points))

    def log_marginal(point):
        total = mpmath.mpf(0)
        for row in counts.tolist():
            for n, a in zip(row, point, strict=True):
                total += mpmath.loggamma(mpmath.mpf(a) + n) - mpmath.loggamma(a)
            a = mpmath.fsum(point.tolist())
            total -= mpmath.loggamma(a + sum(row)) - mpmath.loggamma(a)
        return total

    with mpmath.workdps(40):
        low, high = (log_marginal(point) for point in points)
        assert np.diff(found)[0] == pytest.approx(float(high - low), rel=1e-6)
        np.testing.assert_allclose(
            whole.log_marginal(points), [float(low), float(high)], rtol=1e-13
        )


def test_nothing_is_set_aside_of_small_counts():
    counts = np.random.default_rng(0).integers(0, 2**20, (9, 3))
    assert CountHistograms(counts[:, :2] // 2, shifted=True).shift == 0.0
