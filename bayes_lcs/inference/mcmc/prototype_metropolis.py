"""Metropolis updates of prototypes and strengths, all (label, feature) pairs at once.

Given the labels, the posterior of the prototype model (Roy 2006, section 2.4) is a product over
pairs. For a pair with ``V`` values the coordinates are ``l_v = log(K theta_bar_v)``. With
``a = exp(l)`` and ``A = sum a = K``, their log density, including the Jacobian, is

    sum_v beta_v l_v + (gamma_1 - sum beta) log A - gamma_2 A
    + sum_v sum_u log (a_v)_{n_{u,v}} - sum_u log (A)_{n_{u,.}}.

This is the invariant distribution. A round first updates one coordinate after the other, which
changes one value and the total, and then shifts all coordinates together, which changes the
strength. Step widths are adapted to an acceptance rate of 0.44 during the first ``num_adapt``
rounds and are fixed from then on.

The sum over groups depends on the counts only through the number of groups above each count,

    sum_u log (a)_{n_u} = sum_j #{u: n_u > j} log(a + j),

so its cost is proportional to the largest count instead of the number of groups, if that is less.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from bayes_lcs.core.dirichlet_jax import log_rising
from bayes_lcs.core.priors import Gamma

__all__ = ["TailCounts", "WalkState", "build_kernel", "count_tails", "init", "log_likelihood"]

TARGET_ACCEPTANCE = 0.44
FIRST_WIDTH = 0.5
COST_OF_LGAMMA = 14  # of both lgammas, in logarithms
MIN_SCATTER = 1e-300


class TailCounts(NamedTuple):
    """Counts of all groups, in the form in which their sum is computed fastest.

    Attributes
    ----------
    cells : (B, V, J) or (B, V, U)
        Number of groups whose count of each value exceeds ``j``, or the counts themselves.
    totals : (B, J) or (B, U)
        The same for the totals.
    """

    cells: jax.Array
    totals: jax.Array


class WalkState(NamedTuple):
    """Position of the random walk and widths of its steps.

    Attributes
    ----------
    log_scatter : (B, V)
        ``log(K theta_bar)``; minus infinity where a pair has fewer than ``V`` values.
    log_widths : (V + 1, B)
        Log widths of the steps of every coordinate, and of the strength.
    rounds
        Number of rounds made.
    """

    log_scatter: jax.Array
    log_widths: jax.Array
    rounds: jax.Array


def tail_length(max_count: int, num_groups: int) -> int:
    """Return the number of thresholds if tail counts are cheaper than counts, else 0."""
    return max_count if max_count <= COST_OF_LGAMMA * num_groups else 0


def count_tails(counts: jax.Array, length: int) -> TailCounts:
    """Compute the tail counts of counts ``(U, B, V)``; ``length`` is from :func:`tail_length`."""
    totals = counts.sum(axis=-1)
    if not length:
        return TailCounts(jnp.moveaxis(counts, 0, -1), totals.T)
    pairs, values = jnp.arange(counts.shape[1]), jnp.arange(counts.shape[2])
    at_cells = jnp.zeros((*counts.shape[1:], length + 1))
    at_cells = at_cells.at[pairs[:, None], values, counts].add(1.0)
    at_totals = jnp.zeros((counts.shape[1], length + 1)).at[pairs, totals].add(1.0)

    def above(histogram: jax.Array) -> jax.Array:
        return jnp.flip(jnp.cumsum(jnp.flip(histogram, -1), -1), -1)[..., 1:]

    return TailCounts(above(at_cells), above(at_totals))


def log_likelihood(scatter: jax.Array, tail_counts: jax.Array, length: int) -> jax.Array:
    """Return ``sum_u log (a)_{n_u}`` for parameters ``(...)`` and one field of `TailCounts`."""
    # The parameter underflows to zero in the far tail, and is zero in the padding.
    a = jnp.maximum(scatter, MIN_SCATTER)[..., None]
    if not length:
        return log_rising(a, tail_counts).sum(axis=-1)
    return (tail_counts * jnp.log(a + jnp.arange(length))).sum(axis=-1)


def init(log_scatter: jax.Array) -> WalkState:
    """Return the state at parameters ``(B, V)``."""
    pairs, values = log_scatter.shape
    widths = jnp.full((values + 1, pairs), jnp.log(FIRST_WIDTH))
    return WalkState(log_scatter, widths, jnp.zeros((), dtype=jnp.int32))


Kernel = Callable[..., tuple[WalkState, jax.Array]]


def build_kernel(strength: Gamma, length: int, num_adapt: int, reverse: bool = False) -> Kernel:
    """Build a round of Metropolis steps.

    It is called as ``kernel(rng_key, state, tail_counts, prior, temperature)`` and returns the new
    state and the acceptance rate.

    ``prior`` is ``(B, V)``, zero where a pair has fewer than ``V`` values. At a temperature ``t``
    the log likelihood is multiplied by ``t``; with ``reverse`` the strength is updated first, then
    the values from the last to the first.
    """

    def tune(
        log_width: jax.Array, log_ratio: jax.Array, rounds: jax.Array
    ) -> tuple[jax.Array, jax.Array]:
        """Return the adapted width after a proposal, and its acceptance probability."""
        probability = jnp.exp(jnp.minimum(log_ratio, 0.0))
        # Robbins-Monro steps, which decrease so that the widths converge.
        gain = (rounds + 1.0) ** -0.6
        tuned = jnp.clip(log_width + gain * (probability - TARGET_ACCEPTANCE), -12.0, 3.0)
        return jnp.where(rounds < num_adapt, tuned, log_width), probability

    def kernel(
        rng_key: jax.Array,
        state: WalkState,
        tail_counts: TailCounts,
        prior: jax.Array,
        temperature: Any = 1.0,
    ) -> tuple[WalkState, jax.Array]:
        num_values = prior.shape[-1]
        total_prior = prior.sum(axis=-1)
        key_move, key_accept = jax.random.split(rng_key)
        normals = jax.random.normal(key_move, (num_values + 1, len(prior)), dtype=prior.dtype)
        logs = jnp.log(
            jax.random.uniform(key_accept, (num_values + 1, len(prior)), dtype=prior.dtype)
        )

        def coordinate(
            carry: tuple[jax.Array, jax.Array], step: tuple[jax.Array, ...]
        ) -> tuple[tuple[jax.Array, jax.Array], tuple[jax.Array, jax.Array]]:
            # `of_total` caches the log likelihood term of the totals.
            log_scatter, of_total = carry
            v, log_width, normal, log_uniform, beta, cells = step
            now = log_scatter[:, v]
            proposed = now + jnp.exp(log_width) * normal
            moved = log_scatter.at[:, v].set(proposed)
            total, new_total = jnp.exp(log_scatter).sum(axis=-1), jnp.exp(moved).sum(axis=-1)
            of_new_total = log_likelihood(new_total, tail_counts.totals, length)
            likelihood = (
                log_likelihood(jnp.exp(proposed), cells, length)
                - log_likelihood(jnp.exp(now), cells, length)
                - of_new_total
                + of_total
            )
            ratio = (
                beta * (proposed - now)
                + (strength.shape - total_prior) * (jnp.log(new_total) - jnp.log(total))
                - strength.rate * (new_total - total)
                + temperature * likelihood
            )
            exists = beta > 0
            ratio = jnp.where(exists & (new_total > 0) & jnp.isfinite(ratio), ratio, -jnp.inf)
            accept = log_uniform < ratio
            tuned, probability = tune(log_width, ratio, state.rounds)
            log_scatter = jnp.where(accept[:, None], moved, log_scatter)
            of_total = jnp.where(accept, of_new_total, of_total)
            return (log_scatter, of_total), (
                jnp.where(exists, tuned, log_width),
                probability * exists,
            )

        def values(log_scatter: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
            """Update one value after the other; return new widths and acceptance probabilities."""
            of_total = log_likelihood(jnp.exp(log_scatter).sum(axis=-1), tail_counts.totals, length)
            steps: tuple[jax.Array, ...] = (
                jnp.arange(num_values),
                state.log_widths[:-1],
                normals[:-1],
                logs[:-1],
                prior.T,
                jnp.moveaxis(tail_counts.cells, 1, 0),
            )
            (log_scatter, _), (widths, probabilities) = jax.lax.scan(
                coordinate, (log_scatter, of_total), steps, reverse=reverse
            )
            return log_scatter, widths, probabilities.sum()

        def all_together(log_scatter: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
            """Update the strength; return its new width and acceptance probabilities."""
            scatter = jnp.exp(log_scatter)
            total = scatter.sum(axis=-1)
            step = jnp.exp(state.log_widths[-1]) * normals[-1]

            def height(shift: jax.Array) -> jax.Array:
                factor = jnp.exp(shift)
                cells = log_likelihood(scatter * factor[:, None], tail_counts.cells, length)
                totals = log_likelihood(total * factor, tail_counts.totals, length)
                density = strength.shape * shift - strength.rate * total * factor
                return density + temperature * (cells.sum(axis=-1) - totals)

            ratio = height(step) - height(jnp.zeros_like(step))
            ratio = jnp.where(jnp.isnan(ratio), -jnp.inf, ratio)
            accept = logs[-1] < ratio
            log_scatter = jnp.where(accept[:, None], log_scatter + step[:, None], log_scatter)
            tuned, probability = tune(state.log_widths[-1], ratio, state.rounds)
            return log_scatter, tuned[None], probability.sum()

        log_scatter = state.log_scatter
        if reverse:
            log_scatter, width, probability = all_together(log_scatter)
            log_scatter, widths, probabilities = values(log_scatter)
        else:
            log_scatter, widths, probabilities = values(log_scatter)
            log_scatter, width, probability = all_together(log_scatter)
        acceptance = (probabilities + probability) / ((prior > 0).sum() + len(prior))
        widths = jnp.concatenate([widths, width])
        return WalkState(log_scatter, widths, state.rounds + 1), acceptance

    return kernel
