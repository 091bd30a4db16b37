"""Learned concentration of the Chinese restaurant process: the update of Escobar and West (1995).

Invariant distribution: the concentration ``a`` given the number of clusters ``K`` of ``U`` groups
under ``a ~ Gamma(shape, rate)``,

    p(a | K, U)  proportional to  Gamma(a; shape, rate) a^K Gamma(a) / Gamma(a + U),

which depends on the data through ``K`` alone. The ratio of Gamma functions is
``(1 + U / a) B(a + 1, U) / Gamma(U)``, so with ``eta | a ~ Beta(a + 1, U)`` (their section 6)

    a | eta, K  ~  w Gamma(shape + K, r) + (1 - w) Gamma(shape + K - 1, r),     r = rate - log eta,
    w / (1 - w) = (shape + K - 1) / (U r).

Both draws are exact: the kernel is a Gibbs step on ``(a, eta)``, with nothing to tune.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from bayes_lcs.core.priors import Gamma

__all__ = ["ConcentrationInfo", "ConcentrationState", "build_kernel", "init"]


class ConcentrationState(NamedTuple):
    """The concentration, a positive scalar."""

    concentration: jax.Array


class ConcentrationInfo(NamedTuple):
    """The auxiliary variable's log, and the weight of the larger shape in the mixture."""

    log_eta: jax.Array
    weight: jax.Array


Kernel = Callable[
    [jax.Array, ConcentrationState, jax.Array | int], tuple[ConcentrationState, ConcentrationInfo]
]


def init(prior: Gamma) -> ConcentrationState:
    """Start at the prior mean."""
    return ConcentrationState(jnp.asarray(prior.mean, dtype=float))


def build_kernel(prior: Gamma, num_groups: int) -> Kernel:
    """Build the update ``kernel(rng_key, state, num_clusters)`` for ``num_groups`` groups.

    The kernel is a pure function; it may be jitted, scanned and vmapped over chains.

    Examples
    --------
    >>> prior = Gamma(2.0, 1.0)
    >>> kernel = build_kernel(prior, num_groups=20)
    >>> state, info = kernel(jax.random.key(0), init(prior), num_clusters=4)
    >>> bool(state.concentration > 0), bool(info.log_eta < 0)
    (True, True)
    """
    if num_groups < 1:
        raise ValueError(f"num_groups must be at least 1, got {num_groups}")

    def kernel(
        rng_key: jax.Array, state: ConcentrationState, num_clusters: jax.Array | int
    ) -> tuple[ConcentrationState, ConcentrationInfo]:
        key_eta, key_shape, key_gamma = jax.random.split(rng_key, 3)
        log_eta = _log_beta(key_eta, state.concentration + 1.0, num_groups)
        shape = prior.shape + jnp.asarray(num_clusters, dtype=float)
        rate = prior.rate - log_eta
        odds = (shape - 1.0) / (num_groups * rate)
        weight = odds / (1.0 + odds)
        larger = jax.random.uniform(key_shape, dtype=weight.dtype) < weight
        chosen = jnp.where(larger, shape, shape - 1.0)
        # In logs: for K = 1 and a small prior shape, the draw itself may underflow.
        log_draw = jax.random.loggamma(key_gamma, chosen) - jnp.log(rate)
        smallest = np.finfo(log_draw.dtype).tiny
        drawn = jnp.maximum(jnp.exp(log_draw), smallest)
        return ConcentrationState(drawn), ConcentrationInfo(log_eta, weight)

    return kernel


def _log_beta(rng_key: jax.Array, a: jax.Array, b: float) -> jax.Array:
    """Return the log of a draw from ``Beta(a, b)``, accurate also for draws close to 1."""
    log_x, log_y = jax.random.loggamma(rng_key, jnp.stack([a, jnp.full_like(a, b)]))
    return -jnp.logaddexp(0.0, log_y - log_x)
