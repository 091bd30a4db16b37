"""Online k-means kernel: one row at a time, for several restarts together.

A row ``x`` of weight ``w`` moves the centre nearest to it, ``mu <- mu + eta (x - mu)``. For
convergence the sum of the steps of each centre must diverge and the sum of their squares converge:
``eta = w / n`` with ``n`` the total weight of the rows assigned to the centre so far (MacQueen
1967), or ``eta = w (n + 1) ** -decay`` with ``decay`` between a half and one, which forgets the
initial centre sooner.
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
    """Centres ``(R, K, d)`` of ``R`` restarts, and the weight assigned to each, ``(R, K)``."""

    centers: NDArray[np.float64]
    held: NDArray[np.float64]


def init(starts: NDArray[np.float64]) -> OnlineState:
    """Return the state with initial centres ``(R, K, d)`` and no rows assigned."""
    return OnlineState(starts, np.zeros(starts.shape[:2]))


def online_pass(
    state: OnlineState,
    rows: NDArray[np.float64],
    weights: NDArray[np.float64],
    decay: float = 1.0,
) -> OnlineState:
    """Update the state with rows, once and in order."""
    # Distances come from products, which lose digits far from the origin: centre at the median,
    # which is robust against a few far centres.
    origin = np.median(state.centers, axis=(0, 1))
    centers = state.centers - origin
    with jax.enable_x64(True):
        packed = np.concatenate(
            [centers, (centers**2).sum(axis=-1, keepdims=True), state.held[..., None]], axis=-1
        )
        for first in range(0, len(rows), BLOCK_ROWS):
            block, weight = rows[first : first + BLOCK_ROWS], weights[first : first + BLOCK_ROWS]
            # Pad to a power of two, so that few programs are compiled; rows of weight 0 do nothing.
            missing = (1 << max(len(block) - 1, 63).bit_length()) - len(block)
            block = np.pad(block - origin, ((0, missing), (0, 0)))
            packed = _block_pass(packed, block, np.pad(weight, (0, missing)), decay)
        moved = np.asarray(packed)
    return OnlineState(moved[..., :-2] + origin, moved[..., -1].copy())


@jax.jit
def _block_pass(
    packed: jax.Array, rows: jax.Array, weights: jax.Array, decay: jax.Array
) -> jax.Array:
    """Update packed states ``(R, K, d + 2)``: centre, its squared norm, its assigned weight.

    In this layout a row takes one product for all distances, one look-up and one update.
    """
    restarts = jnp.arange(packed.shape[0])

    def step(packed: jax.Array, row: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, None]:
        point, weight = row
        # |c|^2 - 2 x.c: squared distances less |x|^2, which is the same for all centres.
        chosen = (packed @ jnp.concatenate([-2.0 * point, jnp.array([1.0, 0.0])])).argmin(axis=-1)
        own = packed.at[restarts, chosen].get(mode="promise_in_bounds")
        center, held = own[:, :-2], own[:, -1:] + weight
        plain = weight / jnp.maximum(held, 1e-300)  # padding rows have no weight
        # At most 1, so that a heavy row cannot move a centre beyond itself.
        eta = jnp.where(decay == 1.0, plain, jnp.minimum(weight * (held + 1.0) ** -decay, 1.0))
        center = center + eta * (point - center)
        moved = jnp.concatenate([center, (center**2).sum(axis=1, keepdims=True), held], axis=1)
        place = packed.at[restarts, chosen]
        return place.set(moved, mode="promise_in_bounds", unique_indices=True), None

    return jax.lax.scan(step, packed, (rows, weights))[0]
