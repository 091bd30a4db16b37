"""JAX versions of the integrals in :mod:`bayes_lcs.core.dirichlet`; imported only by kernels."""

from __future__ import annotations

import jax
import jax.numpy as jnp

__all__ = [
    "log_dirichlet_multinomial",
    "log_dirichlet_normaliser",
    "log_gamma_density",
    "log_rising",
]


def log_rising(start: jax.Array | float, count: jax.Array | float) -> jax.Array:
    """Return ``log Gamma(start + count) - log Gamma(start)``, exactly 0 where ``count`` is 0."""
    a, n = jnp.asarray(start, dtype=float), jnp.asarray(count, dtype=float)
    return jnp.where(n == 0.0, 0.0, jax.lax.lgamma(a + n) - jax.lax.lgamma(a))


def log_dirichlet_multinomial(counts: jax.Array, prior: jax.Array) -> jax.Array:
    """Return ``log B(counts + prior) - log B(prior)`` over the last axis."""
    return log_rising(prior, counts).sum(axis=-1) - log_rising(
        prior.sum(axis=-1), counts.sum(axis=-1)
    )


def log_gamma_density(x: jax.Array, shape: float, rate: float) -> jax.Array:
    """Return the log density of a Gamma distribution with the given shape and rate."""
    constant = shape * jnp.log(rate) - jax.lax.lgamma(jnp.asarray(shape, dtype=float))
    return constant + (shape - 1.0) * jnp.log(x) - rate * x


def log_dirichlet_normaliser(prior: jax.Array, where: jax.Array) -> jax.Array:
    """Return ``-log B(prior)`` over the last axis, of the entries in ``where`` only."""
    # The inner `where` keeps `lgamma`, and its gradient, finite at excluded entries.
    each = jnp.where(where, jax.lax.lgamma(jnp.where(where, prior, 1.0)), 0.0)
    total = jnp.where(where, prior, 0.0).sum(axis=-1)
    return jax.lax.lgamma(total) - each.sum(axis=-1)
