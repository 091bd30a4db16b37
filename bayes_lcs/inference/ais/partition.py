"""Annealing targets of the sharing models with conjugate clusters.

With ``phi`` and ``theta`` integrated out, the target at temperature ``t`` is

    P(z) P(Y_missing | Y_known) p(learned hyper-parameters) P(X | Y, z)^t,

whose normaliser is 1 at ``t = 0`` and ``P(X, Y_known) / P(Y_known)`` at ``t = 1``. The moves are
sweeps of :mod:`bayes_lcs.inference.mcmc.collapsed_gibbs` at the temperature. If the partition is
known and no hyper-parameter is learned, clusters are independent and have separate weights.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from bayes_lcs.inference.mcmc import collapsed_gibbs, crp_gibbs, label_gibbs
from bayes_lcs.inference.mcmc.cluster_marginals import log_marginal
from bayes_lcs.inference.mcmc.collapsed_gibbs import (
    ProblemData,
    SweepConfig,
    SweepState,
    build_kernel,
    layout_of,
)

if TYPE_CHECKING:
    from bayes_lcs.core.priors import Gamma
    from bayes_lcs.data.grouped_table import GroupedTable

__all__ = [
    "AnnealedSharingConfig",
    "AnnealedSharingData",
    "AnnealedSharingProblem",
    "build_problem",
]


class AnnealedSharingData(NamedTuple):
    """Arrays of the sampler, and the concentration if it is fixed."""

    arrays: ProblemData
    concentration: jax.Array


def _draw(rng_key: jax.Array, prior: Gamma | None, value: jax.Array | float) -> jax.Array:
    """Draw from the prior; without a prior, return the value."""
    if prior is None:
        return jnp.asarray(value, dtype=float)
    drawn = jnp.exp(jax.random.loggamma(rng_key, jnp.asarray(prior.shape, dtype=float)))
    return jnp.maximum(drawn / prior.rate, 1e-290)


def _draw_partition(
    rng_key: jax.Array, concentration: jax.Array, num_groups: int, num_slots: int
) -> tuple[jax.Array, jax.Array]:
    """Draw from the Chinese restaurant process; return a flag for a lack of slots as well."""

    def assign(
        carry: tuple[jax.Array, jax.Array], uniform: jax.Array
    ) -> tuple[tuple[jax.Array, jax.Array], jax.Array]:
        sizes, full = carry
        used = (sizes > 0).sum()
        # The next free slot stands for a new cluster.
        is_next = jnp.arange(num_slots) == used
        weights = jnp.where(is_next, concentration, sizes)
        running = jnp.cumsum(weights)
        slot = jnp.argmax(running > uniform * running[-1])
        full |= used == num_slots
        return (sizes + (jnp.arange(num_slots) == slot), full), slot

    uniforms = jax.random.uniform(rng_key, (num_groups,), dtype=float)
    (_, full), z = jax.lax.scan(assign, (jnp.zeros(num_slots), jnp.asarray(False)), uniforms)
    return z, full


@dataclass(frozen=True)
class AnnealedSharingConfig:
    """Static configuration of the annealing target.

    Attributes
    ----------
    sweep
        Configuration of the sampler.
    num_slots
        Number of slots for clusters.
    partition
        The partition, if the model fixes it.
    """

    sweep: SweepConfig
    num_slots: int
    partition: tuple[int, ...] | None

    def begin(self, data: AnnealedSharingData, rng_key: jax.Array) -> SweepState:
        """Draw all unknown quantities from their prior, given the known labels."""
        key_a, key_b, key_z, key_y = jax.random.split(rng_key, 4)
        concentration = _draw(key_a, self.sweep.concentration, data.concentration)
        beta = _draw(key_b, self.sweep.feature_prior, 1.0)
        full = jnp.asarray(False)
        if self.partition is None:
            z, full = _draw_partition(key_z, concentration, self.sweep.num_groups, self.num_slots)
        else:
            z = jnp.asarray(self.partition)
        arrays = data.arrays
        drawn = label_gibbs.draw_labels(key_y, arrays.rows, arrays.label_counts, arrays.label_prior)
        state = self.state(data, z, drawn, concentration, beta)
        partition = state.partition._replace(overflow=full)
        return state._replace(partition=partition)

    def state(
        self,
        data: AnnealedSharingData,
        z: jax.Array,
        labels: jax.Array | None,
        concentration: jax.Array,
        beta: jax.Array,
    ) -> SweepState:
        """Return the state at given values of all unknown quantities."""
        arrays = data.arrays
        label_state, vectors = label_gibbs.init(
            arrays.rows, arrays.label_counts, arrays.vectors, labels
        )
        layout = layout_of(self.sweep, arrays, beta)
        partition = crp_gibbs.init(layout, vectors, z, self.num_slots)
        return SweepState(partition, label_state, concentration, beta)

    def transition(
        self, data: AnnealedSharingData, reverse: bool
    ) -> Callable[[jax.Array, SweepState, jax.Array], SweepState]:
        """Build a sweep at a temperature."""
        kernel = build_kernel(self.sweep, data.arrays, reverse)
        return lambda key, state, temperature: kernel(key, state, temperature)[0]

    def log_likelihood(self, data: AnnealedSharingData, state: SweepState) -> jax.Array:
        """Return ``log P(X | Y, z)``, for every cluster if clusters are independent."""
        layout = layout_of(self.sweep, data.arrays, state.beta)
        by_block = log_marginal(layout, state.partition.cluster_counts)
        independent = self.partition is not None and self.sweep.feature_prior is None
        return by_block if independent else by_block.sum(keepdims=True)

    def out_of_slots(self, state: SweepState) -> jax.Array:
        """Return True if a chain ran out of slots."""
        return state.partition.overflow


@dataclass(frozen=True)
class AnnealedSharingProblem:
    """Annealing problem of a sharing model and a table."""

    config: AnnealedSharingConfig
    data: AnnealedSharingData

    def with_more_slots(self) -> AnnealedSharingProblem:
        """Return the problem with twice as many slots."""
        most = self.config.sweep.num_groups + 1
        slots = min(2 * self.config.num_slots, most)
        return replace(self, config=replace(self.config, num_slots=slots))

    def states(self, unknown: dict[str, NDArray]) -> SweepState:
        """Return states at draws ``(chains, ...)``, given by name as a sampler returns them.

        The overflow flag is set for draws with more clusters than slots.
        """
        chains = len(unknown["z"])
        values = {
            "labels": unknown.get("latent_label"),
            "concentration": unknown.get(
                "concentration", np.full(chains, float(self.data.concentration))
            ),
            "beta": unknown.get("beta", np.ones(chains)),
        }
        with jax.enable_x64(True):
            arrays = {k: None if v is None else jnp.asarray(v) for k, v in values.items()}

            def state(z: jax.Array, given: dict[str, Any]) -> SweepState:
                made = self.config.state(
                    self.data, z, given["labels"], given["concentration"], given["beta"]
                )
                full = z.max() >= self.config.num_slots
                return made._replace(partition=made.partition._replace(overflow=full))

            return jax.vmap(state)(jnp.asarray(unknown["z"].astype(np.int32)), arrays)


def build_problem(
    model: Any, data: GroupedTable, num_split_merge: int = 1
) -> AnnealedSharingProblem:
    """Build the annealing problem of a sharing model and a table."""
    with jax.enable_x64(True):
        problem = collapsed_gibbs.build_problem(model, data, num_split_merge)
        arrays = AnnealedSharingData(problem.data, jnp.asarray(problem.concentration, dtype=float))
    partition, groups = problem.partition, problem.config.num_groups
    if partition is None:
        slots = min(groups + 1, 32)
    else:
        slots = int(partition.max()) + 1
    known = None if partition is None else tuple(partition.tolist())
    return AnnealedSharingProblem(AnnealedSharingConfig(problem.config, slots, known), arrays)
