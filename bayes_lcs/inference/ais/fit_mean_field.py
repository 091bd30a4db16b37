"""Fit the mean-field base distribution of AIS over partitions to posterior draws.

Anchors are groups that hardly any draw puts into the same cluster, at most one from each cluster of
the best draw. The base is the mean, over sweeps that start at the best draw, of the probabilities
from which the groups' slots were drawn.
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
    MeanFieldConfig,
    MeanFieldData,
    MeanFieldProblem,
    MeanFieldState,
)
from bayes_lcs.inference.mcmc import collapsed_gibbs
from bayes_lcs.runtime.checkpoints import checkpointed_task
from bayes_lcs.runtime.interrupts import run_interruptibly
from bayes_lcs.runtime.progress import progress_bar

if TYPE_CHECKING:
    from bayes_lcs.core.model_protocols import PartitionModel
    from bayes_lcs.data.grouped_table import GroupedTable

__all__ = ["AnchoredLabelling", "choose_anchors", "fit_mean_field"]

IntArray = NDArray[np.int64]

MIN_SHARE_APART = 0.85
"""Minimum share of draws with all anchors in different clusters. Partitions that are left out then
change the log evidence by at most 0.16."""

SPARE_SLOTS = 4
"""Slots beyond the largest number of clusters of the draws."""

MIN_LOG_PROBABILITY = -20.0
"""Lower bound of a slot's log probability in the base, since the model excludes no slot."""


class AnchoredLabelling(NamedTuple):
    """Labelling of clusters by slots, identified by anchors.

    Attributes
    ----------
    order : (U,)
        The groups, anchors first.
    num_anchors, num_slots
        The slots after those of the anchors are spare.
    start : (U,)
        Slots of the groups at the best draw, in the new order of groups.
    """

    order: IntArray
    num_anchors: int
    num_slots: int
    start: NDArray[np.int32]

    def slots(self, z: IntArray, rng: np.random.Generator) -> NDArray[np.int32] | None:
        """Return the slots of a partition's groups, in their new order; None if it does not fit.

        Clusters without an anchor take random spare slots.
        """
        labels = first_occurrence(z[self.order])
        # Anchors come first: if their clusters differ, first-occurrence labels equal their slots.
        if not np.array_equal(labels[: self.num_anchors], np.arange(self.num_anchors)):
            return None
        num_clusters = int(labels.max()) + 1
        if num_clusters > self.num_slots:
            return None
        spare = rng.permutation(np.arange(self.num_anchors, self.num_slots))
        named = np.concatenate([np.arange(self.num_anchors), spare])
        return named[labels].astype(np.int32)


def _find_typical_member(draws: IntArray, members: IntArray, anchors: list[int]) -> int:
    """Return the member of a cluster that is most often with its majority and without an anchor."""
    own = draws[:, members]
    majority = np.array([np.bincount(labels).argmax() for labels in own])
    typical = own == majority[:, None]
    for anchor in anchors:
        typical &= own != draws[:, [anchor]]
    return int(members[typical.sum(axis=0).argmax()])


def choose_anchors(draws: IntArray, best: int) -> AnchoredLabelling:
    """Choose anchors and slots from draws ``(S, U)`` of partitions, of which one is the best.

    Examples
    --------
    >>> labelling = choose_anchors(np.array([[0, 0, 1, 1], [0, 0, 1, 2]]), best=0)
    >>> labelling.order[: labelling.num_anchors].tolist(), labelling.start.tolist()
    ([0, 2], [0, 1, 0, 1])
    """
    z = first_occurrence(draws[best])
    sizes = np.bincount(z)
    anchors: list[int] = []
    for cluster in np.argsort(-sizes, kind="stable"):
        new = _find_typical_member(draws, np.flatnonzero(z == cluster), anchors)
        taken = np.sort(draws[:, [*anchors, new]], axis=1)
        if (np.diff(taken, axis=1) != 0).all(axis=1).mean() >= MIN_SHARE_APART:
            anchors.append(new)
    others = np.setdiff1d(np.arange(z.size), anchors)
    order = np.concatenate([np.asarray(anchors, dtype=np.int64), others])
    most = max(int(labels.max()) + 1 for labels in (first_occurrence(row) for row in draws))
    slots = min(most + SPARE_SLOTS, z.size)
    labelling = AnchoredLabelling(order, len(anchors), slots, np.zeros(0, dtype=np.int32))
    start = labelling.slots(z, np.random.default_rng(0))
    assert start is not None  # one anchor from each of its clusters at most
    return labelling._replace(start=start)


@partial(jax.jit, static_argnames="config")
def _run_sweeps(
    config: MeanFieldConfig,
    data: MeanFieldData,
    key: jax.Array,
    state: MeanFieldState,
    total: jax.Array,
    first: jax.Array,
    number: jax.Array,
) -> tuple[MeanFieldState, jax.Array]:
    """Make ``number`` sweeps at temperature one, and add their probabilities to ``total``."""

    def sweep(
        i: jax.Array, carry: tuple[MeanFieldState, jax.Array]
    ) -> tuple[MeanFieldState, jax.Array]:
        state, total = carry
        state, probabilities = config.sweep(data, jax.random.fold_in(key, first + i), state, 1.0)
        return state, total + probabilities

    return jax.lax.fori_loop(0, number, sweep, (state, total))


def _log_base(probabilities: NDArray[np.float64], num_anchors: int) -> NDArray[np.float64]:
    """Return ``log q``, equal for all spare slots and bounded below."""
    probabilities = probabilities.copy()
    probabilities[:, num_anchors:] = probabilities[:, num_anchors:].mean(axis=1, keepdims=True)
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    with np.errstate(divide="ignore"):
        logs = np.maximum(np.log(probabilities), MIN_LOG_PROBABILITY)
    result: NDArray[np.float64] = logs - np.log(np.exp(logs).sum(axis=1, keepdims=True))
    return result


def fit_mean_field(
    model: PartitionModel,
    data: GroupedTable,
    labelling: AnchoredLabelling,
    *,
    sweeps: int,
    seed: int,
    progress: bool | None = None,
) -> MeanFieldProblem:
    """Fit the base by ``sweeps`` sweeps, and build the annealing problem that starts from it.

    Parameters
    ----------
    labelling
        Anchors and slots from `choose_anchors`.
    """
    config = MeanFieldConfig(labelling.num_anchors, labelling.num_slots)
    rest = data.num_groups - labelling.num_anchors
    with jax.enable_x64(True):
        problem = collapsed_gibbs.build_problem(model, data)
        arrays = MeanFieldData(
            problem.data.layout,
            problem.data.vectors[labelling.order],
            jnp.asarray(problem.concentration, dtype=float),
            jnp.zeros((data.num_groups, labelling.num_slots)),
        )
        key = jax.random.key(seed)
        state = config.state(arrays, jnp.asarray(labelling.start))
        total = jnp.zeros((rest, labelling.num_slots))
        key_parts = (config, jax.tree.leaves(arrays), labelling.start, sweeps, seed)
        with (
            checkpointed_task("mean-field", *key_parts) as checkpoint,
            progress_bar("mean-field base", sweeps, progress) as tick,
        ):
            made = 0
            if checkpoint.state is not None:
                made = int(checkpoint.state["made"])
                state = config.state(arrays, jnp.asarray(checkpoint.state["z"]))
                total = jnp.asarray(checkpoint.state["total"])
                tick(made)
            while made < sweeps:
                some = run_interruptibly(
                    partial(_run_sweep, config, arrays, key, state, total, made)
                )
                state, total = some
                made += 1
                now = {"made": np.asarray(made), "z": state.z, "total": total}
                checkpoint.update(partial(dict, now))
                tick()
            checkpoint.finish(partial(dict, now))
        log_base = np.zeros((data.num_groups, labelling.num_slots))
        log_base[labelling.num_anchors :] = _log_base(np.asarray(total), labelling.num_anchors)
        return MeanFieldProblem(config, arrays._replace(log_base=jnp.asarray(log_base)))


def _run_sweep(
    config: MeanFieldConfig,
    arrays: MeanFieldData,
    key: jax.Array,
    state: MeanFieldState,
    total: jax.Array,
    made: int,
) -> tuple[MeanFieldState, jax.Array]:
    with jax.enable_x64(True):
        result = _run_sweeps(config, arrays, key, state, total, jnp.asarray(made), jnp.asarray(1))
        return jax.tree.map(lambda leaf: leaf.block_until_ready(), result)
