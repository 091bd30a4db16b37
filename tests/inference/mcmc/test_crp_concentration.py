"""The concentration update leaves its conditional invariant.

Goodness-of-fit tests have fixed seeds and a false-alarm rate of one seed in 10,000 each.
"""

from __future__ import annotations

import jax
import numpy as np
import pytest
from scipy import stats
from scipy.special import gammaln

from bayes_lcs.core.priors import Gamma
from bayes_lcs.inference.mcmc.crp_concentration import ConcentrationState, build_kernel, init

FALSE_ALARM = 1e-4


def exact_cdf(prior: Gamma, num_clusters: int, num_groups: int):
    """Distribution function of p(a | K, U) by a fine sum in log a."""
    t = np.linspace(-30.0, 8.0, 400_001)
    a = np.exp(t)
    logs = (prior.shape + num_clusters) * t - prior.rate * a + gammaln(a) - gammaln(a + num_groups)
    density = np.exp(logs - logs.max())
    total = np.concatenate([[0.0], np.cumsum((density[1:] + density[:-1]) / 2)])
    return lambda x: np.interp(np.log(x), t, total / total[-1])


@pytest.mark.parametrize(
    ("prior", "num_clusters", "num_groups"),
    [
        (Gamma(1.0, 1.0), 9, 21),
        pytest.param(Gamma(0.5, 0.1), 1, 1, marks=pytest.mark.slow),
        pytest.param(Gamma(2.0, 0.5), 1, 21, marks=pytest.mark.slow),
        pytest.param(Gamma(0.5, 0.1), 30, 40, marks=pytest.mark.slow),
        pytest.param(Gamma(1.0, 0.2), 12, 5000, marks=pytest.mark.slow),
    ],
)
def test_chains_converge_to_the_exact_conditional(prior, num_clusters, num_groups) -> None:
    """4,000 chains of 30 steps from the prior mean: only the last draws, which are independent."""
    kernel = build_kernel(prior, num_groups)

    def chain(rng_key):
        def step(state, key):
            return kernel(key, state, num_clusters)[0], None

        return jax.lax.scan(step, init(prior), jax.random.split(rng_key, 30))[0].concentration

    with jax.enable_x64(True):
        draws = np.asarray(jax.jit(jax.vmap(chain))(jax.random.split(jax.random.key(7), 4000)))
    cdf = exact_cdf(prior, num_clusters, num_groups)
    assert stats.kstest(draws, cdf).pvalue > FALSE_ALARM


def test_one_step_leaves_the_exact_conditional_invariant() -> None:
    """Start from exact draws, take one step: also a kernel that mixes slowly must pass."""
    prior, num_clusters, num_groups = Gamma(1.0, 0.5), 5, 15
    cdf = exact_cdf(prior, num_clusters, num_groups)
    grid = np.exp(np.linspace(-12.0, 5.0, 200_001))
    uniform = np.random.default_rng(0).random(20_000)
    exact = np.interp(uniform, cdf(grid), grid)
    kernel = build_kernel(prior, num_groups)
    with jax.enable_x64(True):
        states, info = jax.jit(jax.vmap(kernel, in_axes=(0, 0, None)))(
            jax.random.split(jax.random.key(3), len(exact)),
            ConcentrationState(jax.numpy.asarray(exact)),
            num_clusters,
        )
        draws, weight, log_eta = map(np.asarray, (states.concentration, info.weight, info.log_eta))
    assert stats.kstest(draws, cdf).pvalue > FALSE_ALARM
    assert ((weight > 0) & (weight < 1)).all()
    assert (log_eta < 0).all()


def test_geweke_with_the_number_of_clusters() -> None:
    """Alternate K | a and a | K: the concentration must return to its prior."""
    prior, num_groups = Gamma(2.0, 1.0), 12
    kernel = build_kernel(prior, num_groups)
    order = np.arange(num_groups)

    def chain(rng_key):
        def step(state, key):
            key_k, key_a = jax.random.split(key)
            a = state.concentration
            opens = jax.random.uniform(key_k, (num_groups,)) < a / (a + order)
            return kernel(key_a, state, opens.sum())[0], None

        return jax.lax.scan(step, init(prior), jax.random.split(rng_key, 40))[0].concentration

    with jax.enable_x64(True):
        draws = np.asarray(jax.jit(jax.vmap(chain))(jax.random.split(jax.random.key(5), 4000)))
    assert stats.kstest(draws, stats.gamma(2.0).cdf).pvalue > FALSE_ALARM


def test_draws_stay_positive_in_single_precision() -> None:
    prior = Gamma(0.01, 0.01)
    kernel = jax.jit(build_kernel(prior, 1000))
    keys = jax.random.split(jax.random.key(0), 500)
    states, _ = jax.vmap(kernel, in_axes=(0, None, None))(keys, init(prior), 1)
    values = np.asarray(states.concentration)
    assert values.dtype == np.float32
    assert (values > 0).all()
    assert np.isfinite(values).all()


def test_it_needs_at_least_one_group() -> None:
    with pytest.raises(ValueError, match="num_groups must be at least 1, got 0"):
        build_kernel(Gamma(), 0)
