"""Random-walk Metropolis steps for one positive number, on the log scale.

Invariant distribution: the one with the log density ``log_target`` over the *logarithm*. Steps of
three widths follow each other, so that neither a broad nor a sharp posterior needs tuning.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp

__all__ = ["walk_log"]

WIDTHS = (1.0, 0.2, 0.04)


def walk_log(
    rng_key: jax.Array,
    value: jax.Array,
    log_target: Callable[[jax.Array], jax.Array],
    reverse: bool = False,
) -> tuple[jax.Array, jax.Array]:
    """Return a new value and the share of proposals that were accepted.

    With ``reverse`` the narrowest step comes first.
    """
    current = jnp.log(value)
    height = log_target(current)
    accepted = jnp.zeros((), current.dtype)
    widths = reversed(WIDTHS) if reverse else WIDTHS
    for width, key in zip(widths, jax.random.split(rng_key, len(WIDTHS)), strict=True):
        key_move, key_accept = jax.random.split(key)
        proposal = current + width * jax.random.normal(key_move, dtype=current.dtype)
        proposed = log_target(proposal)
        accept = jnp.log(jax.random.uniform(key_accept, dtype=current.dtype)) < proposed - height
        current = jnp.where(accept, proposal, current)
        height = jnp.where(accept, proposed, height)
        accepted += accept
    return jnp.exp(current), accepted / len(WIDTHS)
