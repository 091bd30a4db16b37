from __future__ import annotations

import mpmath
import numpy as np
import pytest
from scipy import integrate, special, stats

from bayes_lcs.core.quadrature import integrate_log_density


@pytest.mark.parametrize("scale", [1e-4, 0.01, 1.0, 30.0])
@pytest.mark.parametrize("mean", [-40.0, 0.3, 123.456])
def test_normal_densities(mean: float, scale: float) -> None:
    result = integrate_log_density(lambda t: -0.5 * ((t - mean) / scale) ** 2 + 1000.0)
    exact = 1000.0 + np.log(scale) + 0.5 * np.log(2 * np.pi)
    assert result.log_integral == pytest.approx(exact, abs=1e-10)
    assert result.mode == pytest.approx(mean, abs=1e-6 * max(1.0, scale, abs(mean)))
    weights = np.exp(result.log_weights)
    assert weights.sum() == pytest.approx(1.0, abs=1e-11)
    assert weights @ result.nodes == pytest.approx(mean, abs=1e-9 * max(1.0, scale))
    variance = weights @ (result.nodes - mean) ** 2
    assert variance == pytest.approx(scale**2, rel=1e-9)
    assert (np.diff(result.nodes) > 0).all()


@pytest.mark.parametrize("shape", [0.01, 0.5, 1.0, 20.0, 1e4])
@pytest.mark.parametrize("rate", [1e-3, 1.0, 1e5])
def test_gamma_densities_in_logs_from_heavy_to_sharp(shape: float, rate: float) -> None:
    result = integrate_log_density(lambda t: shape * t - rate * np.exp(t))
    with mpmath.workdps(30):
        exact = float(mpmath.loggamma(shape) - shape * mpmath.log(rate))
    assert result.log_integral == pytest.approx(exact, rel=1e-12, abs=1e-10)


def test_two_peaks_of_unequal_width() -> None:
    def log_density(t):
        return np.logaddexp(
            stats.norm.logpdf(t, -5.0, 0.7), np.log(3.0) + stats.norm.logpdf(t, 6.0, 2.0)
        )

    assert integrate_log_density(log_density).log_integral == pytest.approx(np.log(4), abs=1e-11)


def test_against_scipy_on_a_beta_binomial_hyper_parameter() -> None:
    heads, tosses = np.array([3, 0, 9, 5]), np.array([10, 4, 10, 6])

    def log_density(t):
        b = np.exp(t)[..., None]
        likelihood = special.betaln(heads + b, tosses - heads + b) - special.betaln(b, b)
        return likelihood.sum(-1) + 2.0 * t - np.exp(t)

    exact, error = integrate.quad(
        lambda t: float(np.exp(log_density(np.float64(t)))),
        -30,
        8,
        epsabs=0,
        epsrel=1e-12,
        limit=500,
    )
    assert error < 1e-10 * exact
    result = integrate_log_density(log_density)
    assert result.log_integral == pytest.approx(np.log(exact), abs=1e-9)
    mean, _ = integrate.quad(
        lambda t: float(np.exp(log_density(np.float64(t)) + t)),
        -30,
        8,
        epsabs=0,
        epsrel=1e-12,
        limit=500,
    )
    assert np.exp(result.log_weights + result.nodes).sum() == pytest.approx(mean / exact, rel=1e-9)


def test_a_density_that_lost_its_digits_is_summed_as_well_as_they_allow() -> None:
    shape, rate = 7e10, 1e11
    result = integrate_log_density(lambda t: shape * t - rate * np.exp(t))
    with mpmath.workdps(30):
        exact = float(mpmath.loggamma(shape) - shape * mpmath.log(rate))
    assert result.log_integral == pytest.approx(exact, abs=1e-3)
    assert len(result.nodes) < 5000


def test_improper_and_empty_densities_are_refused() -> None:
    with pytest.raises(ArithmeticError, match="not smooth enough"):
        integrate_log_density(lambda t: -0.5 * t**2 + np.sin(1e9 * t))
    with pytest.raises(ArithmeticError, match="does not fall off"):
        integrate_log_density(np.zeros_like)
    with pytest.raises(ArithmeticError, match="zero, infinite or not a number"):
        integrate_log_density(lambda t: np.full_like(t, -np.inf))
