"""Importance sampling around the mode, on integrals that are known."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import cauchy, kstest, multivariate_normal, norm, t

from bayes_lcs.inference.laplace import LogIntegral, WideProposal, log_integral

FALSE_ALARM = 1e-4
"""Chance that one of the tests of calibration fails for a correct estimator, with other seeds."""

Z_LIMIT = 4.0  # a normal variate exceeds it with probability 6e-5


def normal_broad(dims: int, scale: float, centre: float = 0.0) -> WideProposal:
    density = multivariate_normal(np.full(dims, centre), scale**2 * np.eye(dims))
    return WideProposal(
        lambda size, rng: rng.normal(centre, scale, (size, dims)),
        lambda x: np.atleast_1d(density.logpdf(x)),
    )


def estimate(log_density, dims, broad, seed=0, num_draws=4000, start=None) -> LogIntegral:
    origin = np.zeros(dims) if start is None else np.asarray(start, dtype=float)
    return log_integral(log_density, origin, broad, num_draws, np.random.default_rng(seed))


def assert_within_errors(found: LogIntegral, truth: float, largest_error: float = 0.1) -> None:
    assert 0 < found.standard_error < largest_error
    assert abs(found.value - truth) < Z_LIMIT * found.standard_error


@pytest.mark.parametrize("dims", [1, 2, 5])
def test_gaussians(dims):
    """A correlated Gaussian times 7, far from where the search begins."""
    root = np.tril(np.ones((dims, dims)))
    precision = np.linalg.inv(root @ root.T)
    centre = np.arange(1.0, dims + 1.0)

    def log_density(x):
        return np.log(7.0) - 0.5 * np.einsum("ni,ij,nj->n", x - centre, precision, x - centre)

    truth = np.log(7.0) + 0.5 * dims * np.log(2 * np.pi)  # the determinant of root root' is one
    found = estimate(log_density, dims, normal_broad(dims, 4.0), start=np.full(dims, -3.0))
    assert_within_errors(found, truth, 0.03)
    # Four fifths of the draws come from something close to the target itself.
    assert found.effective_draws > 1500


def test_constants_are_not_dropped():
    broad = normal_broad(1, 3.0)
    low = estimate(lambda x: norm.logpdf(x[:, 0]) - 5000.0, 1, broad)
    high = estimate(lambda x: norm.logpdf(x[:, 0]) + 5000.0, 1, broad)
    assert low.value == pytest.approx(-5000.0, abs=0.1)
    assert high.value == pytest.approx(5000.0, abs=0.1)


def test_a_second_mode_far_away():
    """The search finds one of two modes; the broad part finds the other and the error says so."""

    def log_density(x):
        return np.logaddexp(norm.logpdf(x[:, 0], -8, 0.5), norm.logpdf(x[:, 0], 8, 0.5))

    found = estimate(log_density, 1, normal_broad(1, 8.0), start=[-7.0], num_draws=20_000)
    assert_within_errors(found, np.log(2.0), 0.1)
    # The half that the mode search missed is not small: an estimate of one mode would say 0.
    assert found.value > 0.4


def test_heavy_tails():
    """A Cauchy density under a normal peak: the t part has to cover it."""
    broad = WideProposal(
        lambda size, rng: t.rvs(2, scale=5, size=(size, 1), random_state=rng),
        lambda x: t.logpdf(x[:, 0], 2, scale=5),
    )
    found = estimate(lambda x: cauchy.logpdf(x[:, 0]), 1, broad)
    assert_within_errors(found, 0.0, 0.1)


def test_no_curvature_at_the_mode():
    """Flat on top: the curvature is zero there and the peak is proposed as wide as allowed."""
    found = estimate(lambda x: -(x[:, 0] ** 6), 1, normal_broad(1, 1.0))
    assert_within_errors(found, np.log(2 * 0.9277193336300392), 0.1)  # 2 Gamma(7/6)


def test_regions_without_density():
    """Half a Gaussian: weights of zero count as zero, and are not dropped."""

    def log_density(x):
        return np.where(x[:, 0] > 0, norm.logpdf(x[:, 0] - 1.0), -np.inf)

    found = estimate(log_density, 1, normal_broad(1, 3.0), start=[1.0])
    assert_within_errors(found, float(norm.logcdf(1.0)))


def test_draws_and_error():
    """The error falls with the square root of the draws; the seed decides the value."""
    broad = normal_broad(1, 3.0)

    def log_density(x):
        return t.logpdf(x[:, 0], 4)

    few = estimate(log_density, 1, broad, num_draws=1000)
    many = estimate(log_density, 1, broad, num_draws=100_000)
    assert few.standard_error / many.standard_error == pytest.approx(10.0, rel=0.2)
    assert few.effective_draws < 1000
    assert many.effective_draws / few.effective_draws == pytest.approx(100.0, rel=0.2)
    assert estimate(log_density, 1, broad, seed=3) == estimate(log_density, 1, broad, seed=3)
    assert estimate(log_density, 1, broad, seed=3) != estimate(log_density, 1, broad, seed=4)


def test_standard_errors_are_calibrated():
    """300 seeds on a skewed density: errors over standard errors are standard normal."""
    truth = 0.5 * np.log(np.pi / 3.0)

    def log_density(x):
        skew = np.log1p(np.tanh(x[:, 0]))  # odd about zero: it adds nothing to the integral
        return -3.0 * x[:, 0] ** 2 + skew

    runs = [estimate(log_density, 1, normal_broad(1, 1.0), seed=s) for s in range(300)]
    z = np.array([(run.value - truth) / run.standard_error for run in runs])
    assert kstest(z, "norm").pvalue > FALSE_ALARM
    # Mean square of 300 normals: 1 with a standard error of 0.08; five of them.
    assert abs((z**2).mean() - 1.0) < 5 * np.sqrt(2 / 300)
