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
    with jax.enable_x64(True):
        moved = state
        for first in range(0, len(rows), BLOCK_ROWS):
            block, weight = rows[first : first + BLOCK_ROWS], weights[first : first + BLOCK_ROWS]
            # Few lengths, so that few programs are compiled; a row of weight 0 moves nothing.
            missing = (1 << max(len(block) - 1, 63).bit_length()) - len(block)
            block = np.pad(block, ((0, missing), (0, 0)))
            moved = _block_pass(moved, block, np.pad(weight, (0, missing)), decay)
        return OnlineState(*(np.asarray(leaf) for leaf in moved))


@jax.jit
def _block_pass(
    state: OnlineState, rows: jax.Array, weights: jax.Array, decay: jax.Array
) -> OnlineState:
    def step(state: OnlineState, row: tuple[jax.Array, jax.Array]) -> tuple[OnlineState, None]:
        point, weight = row
        away = point - state.centers
        squares = (away**2).sum(axis=-1)
        chosen = jax.nn.one_hot(squares.argmin(axis=-1), squares.shape[-1], dtype=away.dtype)
        held = state.held + weight * chosen
        plain = weight / jnp.maximum(held, 1e-300)
        eta = jnp.where(decay == 1.0, plain, jnp.minimum(weight * (held + 1.0) ** -decay, 1.0))
        centers = state.centers + (chosen * eta)[..., None] * away
        return OnlineState(centers, held), None

    return jax.lax.scan(step, state, (rows, weights))[0]
