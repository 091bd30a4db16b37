"""Online k-means: one row at a time, several restarts together.

A row ``x`` of weight ``w`` moves the centre nearest to it, ``mu <- mu + eta (x - mu)``. The steps
of each centre must add up to infinity and their squares must not: ``eta = w / n`` with ``n`` the
weight that the centre has been given so far (MacQueen 1967), or ``eta = w (n + 1) ** -decay`` with
``decay`` between a half and one, which forgets where it began sooner.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

__all__ = ["OnlineState", "init", "online_pass"]

BLOCK_ROWS = 4096


class OnlineState(NamedTuple):
    """Centres ``(R, K, d)`` of ``R`` restarts, and the weight given to each ``(R, K)``."""

    centers: NDArray[np.float64]
    held: NDArray[np.float64]


def init(starts: NDArray[np.float64]) -> OnlineState:
    """Centres that have been given nothing yet."""
    return OnlineState(starts, np.zeros(starts.shape[:2]))


def online_pass(
    state: OnlineState,
    rows: NDArray[np.float64],
    weights: NDArray[np.float64],
    decay: float = 1.0,
) -> OnlineState:
    """Go over rows once, in their order."""
    # Distances come from products, which lose digits far from the origin: move it to the centres.
    # The median is not moved by a few centres far from the others.
    origin = np.median(state.centers, axis=(0, 1))
    centers = state.centers - origin
    with jax.enable_x64(True):
        packed = np.concatenate(
            [centers, (centers**2).sum(axis=-1, keepdims=True), state.held[..., None]], axis=-1
        )
        for first in range(0, len(rows), BLOCK_ROWS):
            block, weight = rows[first : first + BLOCK_ROWS], weights[first : first + BLOCK_ROWS]
            # Few lengths, so that few programs are compiled; a row of weight 0 moves nothing.
            missing = (1 << max(len(block) - 1, 63).bit_length()) - len(block)
            block = np.pad(block - origin, ((0, missing), (0, 0)))
            packed = _block_pass(packed, block, np.pad(weight, (0, missing)), decay)
        moved = np.asarray(packed)
    return OnlineState(moved[..., :-2] + origin, moved[..., -1].copy())


@jax.jit
def _block_pass(
    packed: jax.Array, rows: jax.Array, weights: jax.Array, decay: jax.Array
) -> jax.Array:
    """A pass over states ``(R, K, d + 2)``: a centre, its squared norm, the weight given to it.

    Packed so, a row takes one product for all distances, one look-up and one update.
    """
    restarts = jnp.arange(packed.shape[0])

    def step(packed: jax.Array, row: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, None]:
        point, weight = row
        # Squared distances, less the squared norm of the point, which is the same for all.
        chosen = (packed @ jnp.concatenate([-2.0 * point, jnp.array([1.0, 0.0])])).argmin(axis=-1)
        own = packed.at[restarts, chosen].get(mode="promise_in_bounds")
        center, held = own[:, :-2], own[:, -1:] + weight
        plain = weight / jnp.maximum(held, 1e-300)
        eta = jnp.where(decay == 1.0, plain, jnp.minimum(weight * (held + 1.0) ** -decay, 1.0))
        center = center + eta * (point - center)
        moved = jnp.concatenate([center, (center**2).sum(axis=1, keepdims=True), held], axis=1)
        place = packed.at[restarts, chosen]
        return place.set(moved, mode="promise_in_bounds", unique_indices=True), None

    return jax.lax.scan(step, packed, (rows, weights))[0]
