"""Learned feature prior: Metropolis updates of one symmetric ``beta``.

Invariant distribution: ``p(beta | clusters)`` proportional to ``Gamma(beta; shape, rate)`` times
the marginals ``m(T | beta)`` of all clusters.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from bayes_lcs.core.dirichlet_jax import log_rising
from bayes_lcs.core.priors import Gamma
from bayes_lcs.inference.mcmc.cluster_marginals import CountLayout
from bayes_lcs.inference.mcmc.log_random_walk import walk_log

__all__ = ["FeaturePriorInfo", "FeaturePriorState", "build_kernel", "init", "symmetric_layout"]


class FeaturePriorState(NamedTuple):
    """The symmetric Dirichlet parameter, a positive scalar."""

    beta: jax.Array


class FeaturePriorInfo(NamedTuple):
    """Acceptance rate of the proposals."""

    acceptance: jax.Array


Kernel = Callable[..., tuple[FeaturePriorState, FeaturePriorInfo]]


def init(prior: Gamma) -> FeaturePriorState:
    """Start at the prior mean."""
    return FeaturePriorState(jnp.asarray(prior.mean, dtype=float))


def symmetric_layout(
    layout: CountLayout, scales: np.ndarray, max_count: int, beta: jax.Array
) -> CountLayout:
    """Return the layout for the prior ``beta`` times each scale, with new tables.

    ``scales`` are the distinct scales in increasing order, the order of the tables in a layout
    built for a symmetric prior.
    """
    prior = layout.scale * beta
    if not layout.table.size:
        return layout._replace(prior=prior)
    starts = jnp.asarray(scales)[:, None] * beta
    table = log_rising(starts, jnp.arange(max_count + 1))
    return layout._replace(prior=prior, table=table.reshape(-1))


def build_kernel(prior: Gamma, layout: CountLayout, reverse: bool = False) -> Kernel:
    """Build the update ``kernel(rng_key, state, cluster_counts, temperature)``.

    Cluster counts are ``(K, D)``. At a temperature ``t`` every ``m`` is raised to the power ``t``;
    with ``reverse`` the steps are made in the opposite order.
    """

    def kernel(
        rng_key: jax.Array,
        state: FeaturePriorState,
        cluster_counts: jax.Array,
        temperature: Any = 1.0,
    ) -> tuple[FeaturePriorState, FeaturePriorInfo]:
        def log_target(log_beta: jax.Array) -> jax.Array:
            starts = layout.scale * jnp.exp(log_beta)
            likelihood = (log_rising(starts, cluster_counts) @ layout.sign).sum()
            density = prior.shape * log_beta - prior.rate * jnp.exp(log_beta)
            return temperature * likelihood + density

        beta, acceptance = walk_log(rng_key, state.beta, log_target, reverse)
        return FeaturePriorState(beta), FeaturePriorInfo(acceptance)

    return kernel
