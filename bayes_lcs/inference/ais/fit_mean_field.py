"""Fit the mean-field base distribution of AIS over partitions to posterior draws.

Anchors are groups that hardly any draw puts together, one from each block of the best draw as far
as they can be had. The guide itself is the mean, over sweeps from there, of the probabilities from
which the groups' slots were drawn.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from bayes_lcs.core.partitions import first_occurrence
from bayes_lcs.inference.ais.partition_mean_field import (
    GuidedData,
    GuidedDesign,
    GuidedProblem,
    GuidedState,
)
from bayes_lcs.inference.mcmc import collapsed_gibbs
from bayes_lcs.runtime.checkpoints import checkpointed_task
from bayes_lcs.runtime.interrupts import run_interruptibly
from bayes_lcs.runtime.progress import progress_bar

if TYPE_CHECKING:
    from bayes_lcs.core.model_protocols import PartitionModel
    from bayes_lcs.data.grouped_table import GroupedTable

__all__ = ["Arrangement", "arrangement", "guided_problem"]

IntArray = NDArray[np.int64]

LEAST_APART = 0.85
"""Of the draws must have all anchors apart: 0.16 of the log evidence may be left out."""

MORE_SPARE = 4
"""Slots beyond those that any of the draws needs."""

LEAST_LOG_CHANCE = -20.0
"""Of a slot under the guide: what is impossible under it is still possible under the model."""


class Arrangement(NamedTuple):
    """Which groups are anchors, and how many slots there are.

    Attributes
    ----------
    order : (U,)
        The groups, anchors first.
    num_anchors, num_slots
        Slots behind those of the anchors are spare.
    start : (U,)
        Slots of the groups, in their new order, at the best of the draws.
    """

    order: IntArray
    num_anchors: int
    num_slots: int
    start: NDArray[np.int32]

    def slots(self, z: IntArray, rng: np.random.Generator) -> NDArray[np.int32] | None:
        """Slots of the groups, in their new order, of a partition; None if it has no place.

        Blocks without an anchor are dealt to the spare slots at random.
        """
        labels = first_occurrence(z[self.order])
        # Anchors come first: if they are apart, first occurrence numbers them as their slots are.
        if not np.array_equal(labels[: self.num_anchors], np.arange(self.num_anchors)):
            return None
        num_blocks = int(labels.max()) + 1
        if num_blocks > self.num_slots:
            return None
        spare = rng.permutation(np.arange(self.num_anchors, self.num_slots))
        named = np.concatenate([np.arange(self.num_anchors), spare])
        return named[labels].astype(np.int32)


def _most_typical(draws: IntArray, members: IntArray, anchors: list[int]) -> int:
    """The member of a block that is most often where most of the block is, and no anchor is."""
    own = draws[:, members]
    majority = np.array([np.bincount(labels).argmax() for labels in own])
    typical = own == majority[:, None]
    for anchor in anchors:
        typical &= own != draws[:, [anchor]]
    return int(members[typical.sum(axis=0).argmax()])


def arrangement(draws: IntArray, best: int) -> Arrangement:
    """Anchors and slots from draws ``(S, U)`` of partitions, of which one is the best.

    Examples
    --------
    >>> found = arrangement(np.array([[0, 0, 1, 1], [0, 0, 1, 2]]), best=0)
    >>> found.order[: found.num_anchors].tolist(), found.start.tolist()
    ([0, 2], [0, 1, 0, 1])
    """
    z = first_occurrence(draws[best])
    sizes = np.bincount(z)
    anchors: list[int] = []
    for block in np.argsort(-sizes, kind="stable"):
        new = _most_typical(draws, np.flatnonzero(z == block), anchors)
        taken = np.sort(draws[:, [*anchors, new]], axis=1)
        if (np.diff(taken, axis=1) != 0).all(axis=1).mean() >= LEAST_APART:
            anchors.append(new)
    others = np.setdiff1d(np.arange(z.size), anchors)
    order = np.concatenate([np.asarray(anchors, dtype=np.int64), others])
    most = max(int(labels.max()) + 1 for labels in (first_occurrence(row) for row in draws))
    slots = min(most + MORE_SPARE, z.size)
    found = Arrangement(order, len(anchors), slots, np.zeros(0, dtype=np.int32))
    start = found.slots(z, np.random.default_rng(0))
    assert start is not None  # one anchor from each of its blocks at most
    return found._replace(start=start)


@partial(jax.jit, static_argnames="design")
def _some_sweeps(
    design: GuidedDesign,
    data: GuidedData,
    key: jax.Array,
    state: GuidedState,
    total: jax.Array,
    first: jax.Array,
    number: jax.Array,
) -> tuple[GuidedState, jax.Array]:
    """So many sweeps at temperature one; adds up the chances ``(U - A, K)``."""

    def sweep(i: jax.Array, carry: tuple[GuidedState, jax.Array]) -> tuple[GuidedState, jax.Array]:
        state, total = carry
        state, chances = design.sweep(data, jax.random.fold_in(key, first + i), state, 1.0)
        return state, total + chances

    return jax.lax.fori_loop(0, number, sweep, (state, total))


def _log_guide(chances: NDArray[np.float64], num_anchors: int) -> NDArray[np.float64]:
    """``log q``, the same for all spare slots, nowhere zero."""
    chances = chances.copy()
    chances[:, num_anchors:] = chances[:, num_anchors:].mean(axis=1, keepdims=True)
    chances /= chances.sum(axis=1, keepdims=True)
    with np.errstate(divide="ignore"):
        logs = np.maximum(np.log(chances), LEAST_LOG_CHANCE)
    result: NDArray[np.float64] = logs - np.log(np.exp(logs).sum(axis=1, keepdims=True))
    return result


def guided_problem(
    model: PartitionModel,
    data: GroupedTable,
    found: Arrangement,
    *,
    sweeps: int,
    seed: int,
    progress: bool | None = None,
) -> GuidedProblem:
    """The guide that so many sweeps leave, and all that is annealed from it."""
    design = GuidedDesign(found.num_anchors, found.num_slots)
    rest = data.num_groups - found.num_anchors
    with jax.enable_x64(True):
        problem = collapsed_gibbs.pose(model, data)
        arrays = GuidedData(
            problem.data.layout,
            problem.data.vectors[found.order],
            jnp.asarray(problem.concentration, dtype=float),
            jnp.zeros((data.num_groups, found.num_slots)),
        )
        key = jax.random.key(seed)
        state = design.state(arrays, jnp.asarray(found.start))
        total = jnp.zeros((rest, found.num_slots))
        decisive = (design, jax.tree.leaves(arrays), found.start, sweeps, seed)
        with (
            checkpointed_task("guide", *decisive) as written,
            progress_bar("guide", sweeps, progress) as tick,
        ):
            made = 0
            if written.state is not None:
                made = int(written.state["made"])
                state = design.state(arrays, jnp.asarray(written.state["z"]))
                total = jnp.asarray(written.state["total"])
                tick(made)
            while made < sweeps:
                some = run_interruptibly(partial(_in_x64, design, arrays, key, state, total, made))
                state, total = some
                made += 1
                now = {"made": np.asarray(made), "z": state.z, "total": total}
                written.update(partial(dict, now))
                tick()
            written.finish(partial(dict, now))
        log_guide = np.zeros((data.num_groups, found.num_slots))
        log_guide[found.num_anchors :] = _log_guide(np.asarray(total), found.num_anchors)
        return GuidedProblem(design, arrays._replace(log_guide=jnp.asarray(log_guide)))


def _in_x64(
    design: GuidedDesign,
    arrays: GuidedData,
    key: jax.Array,
    state: GuidedState,
    total: jax.Array,
    made: int,
) -> tuple[GuidedState, jax.Array]:
    with jax.enable_x64(True):
        done = _some_sweeps(design, arrays, key, state, total, jnp.asarray(made), jnp.asarray(1))
        return jax.tree.map(lambda leaf: leaf.block_until_ready(), done)
