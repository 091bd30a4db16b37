from __future__ import annotations

import itertools

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from bayes_lcs.core.dirichlet import (
    log_cells_marginal,
    log_dirichlet_density,
    log_dirichlet_multinomial,
    log_gamma_density,
    log_rising,
    log_rising_shifted,
    log_rising_table,
)
from bayes_lcs.core.schema import Schema
from tests.oracles import as_sequence, sequential_log_marginal

EPS = np.finfo(np.float64).eps
STARTS = [0.01, 0.1, 1 / 3, 0.5, 1.0, 2.0, 7.3]


def exact_log_rising(start: float, count: int) -> mpmath.mpf:
    with mpmath.workdps(50):
        return mpmath.loggamma(mpmath.mpf(start) + count) - mpmath.loggamma(mpmath.mpf(start))


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("count", [1, 2, 3, 10, 1000, 10**6, 10**8])
def test_log_rising_is_exact_to_a_few_units_in_the_last_place(start: float, count: int) -> None:
    exact = exact_log_rising(start, count)
    # Two lgammas are subtracted, so the units are those of the larger one.
    unit = EPS * max(abs(float(mpmath.loggamma(start))), abs(float(exact)), 1.0)
    assert abs(float(mpmath.mpf(float(log_rising(start, count))) - exact)) <= 4 * unit


@pytest.mark.parametrize("start", [1e-8, *STARTS, 1e4])
@pytest.mark.parametrize("count", [2000, 10**6, 10**10, 10**15])
def test_what_depends_on_the_start_keeps_its_digits(start: float, count: int) -> None:
    with mpmath.workdps(50):
        exact = exact_log_rising(start, count) - mpmath.loggamma(count)
        # Logs of the count and of Gamma(start) are added, each as often as ``start`` says.
        unit = EPS * max(abs(float(mpmath.loggamma(start))), start * float(mpmath.log(count)), 1.0)
        found = mpmath.mpf(float(log_rising_shifted(start, count)))
        assert abs(float(found - exact)) <= 4 * unit


@pytest.mark.parametrize("start", STARTS)
def test_tables_hold_log_rising_at_every_count(start: float) -> None:
    table = log_rising_table(start, 5000)
    assert len(table) == 5001
    assert table[0] == 0.0
    np.testing.assert_array_equal(table, log_rising(start, np.arange(5001)))
    assert not table.flags.writeable
    exact = [float(exact_log_rising(start, n)) for n in (1, 2, 3, 4999, 5000)]
    np.testing.assert_allclose(table[[1, 2, 3, 4999, 5000]], exact, rtol=1e-14, atol=4 * EPS)


@pytest.mark.parametrize("max_count", [0, 1, 2, 3, 4, 7, 8, 9, 1023, 1024, 1025])
def test_tables_are_long_enough_for_every_maximum(max_count: int) -> None:
    assert len(log_rising_table(0.5, max_count)) == max_count + 1


def test_a_count_of_zero_is_exactly_zero() -> None:
    assert (log_rising([1e-300, 0.1, 1e300], 0) == 0.0).all()


@given(
    st.lists(st.tuples(st.integers(0, 12), st.floats(0.01, 50.0)), min_size=1, max_size=5),
    st.randoms(use_true_random=False),
)
def test_any_order_of_the_sequence_has_the_same_marginal(cells, random) -> None:
    counts, prior = zip(*cells, strict=True)
    sequence = as_sequence(counts)
    random.shuffle(sequence)
    expected = sequential_log_marginal(sequence, prior)
    assert float(log_dirichlet_multinomial(counts, prior)) == pytest.approx(
        expected, rel=1e-11, abs=1e-11
    )


@pytest.mark.parametrize("prior", [(1.0, 1.0, 1.0), (0.2, 1.5, 3.0)])
def test_probabilities_of_all_sequences_sum_to_one(prior: tuple[float, ...]) -> None:
    total = sum(
        np.exp(log_dirichlet_multinomial(np.bincount(sequence, minlength=3), prior))
        for sequence in itertools.product(range(3), repeat=5)
    )
    assert float(total) == pytest.approx(1.0, abs=1e-13)


def test_the_marginal_is_the_integral_of_the_likelihood() -> None:
    counts, prior = [3, 1], [0.5, 2.0]
    with mpmath.workdps(30):
        integral = mpmath.quad(
            lambda p: p ** (counts[0] + prior[0] - 1) * (1 - p) ** (counts[1] + prior[1] - 1),
            [0, 0.5, 1],
        ) / mpmath.beta(*prior)
        expected = float(mpmath.log(integral))
    assert float(log_dirichlet_multinomial(counts, prior)) == pytest.approx(expected, abs=1e-12)


def test_large_counts_against_mpmath() -> None:
    counts, prior = [10**8, 3 * 10**7, 0, 5], [0.5, 1.0, 2.0, 0.25]
    with mpmath.workdps(50):
        exact = sum(exact_log_rising(a, n) for a, n in zip(prior, counts, strict=True))
        exact -= exact_log_rising(sum(prior), sum(counts))
    # The terms are of size 2e9, so float64 leaves about 1e-6 of the sum: 1e-14 of 7e7.
    assert float(log_dirichlet_multinomial(counts, prior)) == pytest.approx(float(exact), rel=1e-13)


def test_cells_are_the_sum_over_features() -> None:
    schema = Schema(2, (3, 1, 4))
    rng = np.random.default_rng(1)
    counts, prior = rng.integers(0, 30, (5, 2, 8)), rng.uniform(0.1, 3.0, (2, 8))
    expected = sum(
        log_dirichlet_multinomial(
            counts[..., schema.cells_of(f)],
            np.broadcast_to(prior[:, schema.cells_of(f)], counts[..., schema.cells_of(f)].shape),
        )
        for f in range(3)
    )
    result = log_cells_marginal(schema, counts, prior)
    assert result.shape == (5, 2)
    np.testing.assert_allclose(result, expected, rtol=1e-12)


def test_densities_equal_those_of_scipy() -> None:
    point, prior = np.array([0.2, 0.5, 0.3]), np.array([0.5, 2.0, 7.0])
    expected = stats.dirichlet(prior).logpdf(point)
    assert float(log_dirichlet_density(point, prior)) == pytest.approx(expected, rel=1e-12)
    x = np.array([0.01, 1.0, 40.0])
    np.testing.assert_allclose(
        log_gamma_density(x, 2.5, 0.7), stats.gamma(2.5, scale=1 / 0.7).logpdf(x), rtol=1e-12
    )


def test_the_uniform_dirichlet_is_uniform_at_its_edges_too() -> None:
    points = [[0.2, 0.3, 0.5], [0.0, 0.5, 0.5], [0.0, 0.0, 1.0]]
    np.testing.assert_allclose(log_dirichlet_density(points, 1.0), np.log(2.0))
