"""Annealed importance sampling over labels *and* parameters, as in the thesis (Roy 2006, A.2).

The target at temperature ``t`` is ``p(phi, theta) P(X, Y | phi, theta)^t`` over the missing labels
and the parameters. At ``t = 0`` labels are uniform and the normaliser is ``|L|^M`` with ``M``
missing labels (the thesis has ``1/Z_0 = 2^|L|``, A.55); at ``t = 1`` it is ``P(X, Y_known)``. One
move draws

    Y_n | phi, theta   proportional to  (phi_y prod_f theta_{y,f,x})^t    (A.61 corrected: with phi)
    phi, theta | Y     Dirichlet(alpha + t m), Dirichlet(beta + t n).

It serves for comparison: the collapsed sampler of :mod:`bayes_lcs.inference.ais.partition` has
fewer unknowns and needs fewer temperatures. For no sharing and complete sharing, as in the thesis.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from bayes_lcs.core.model_protocols import KnownPartitionModel
from bayes_lcs.core.schema import Schema

if TYPE_CHECKING:
    from bayes_lcs.data.grouped_table import GroupedTable

__all__ = [
    "UncollapsedConfig",
    "UncollapsedData",
    "UncollapsedProblem",
    "build_problem",
    "log_base",
]


class UncollapsedState(NamedTuple):
    """All labels ``(N,)`` and log parameters ``(K, L)``, ``(K, L, C)``."""

    labels: jax.Array
    log_phi: jax.Array
    log_theta: jax.Array


class UncollapsedData(NamedTuple):
    """Rows and priors.

    Attributes
    ----------
    cells : (N, F)
        Cell of each value; ``C`` if it is missing.
    clusters : (N,)
        Cluster of each row.
    labels : (N,)
        Label of each row; -1 if it is missing.
    label_prior, feature_prior : (L,), (L, C)
        Dirichlet parameters.
    """

    cells: jax.Array
    clusters: jax.Array
    labels: jax.Array
    label_prior: jax.Array
    feature_prior: jax.Array


@dataclass(frozen=True)
class UncollapsedConfig:
    """Static configuration of the annealing target."""

    schema: Schema
    num_clusters: int

    def begin(self, data: UncollapsedData, rng_key: jax.Array) -> UncollapsedState:
        """Draw parameters from their prior, and missing labels uniformly."""
        key_y, key_rest = jax.random.split(rng_key)
        drawn = jax.random.randint(key_y, data.labels.shape, 0, self.schema.num_labels)
        labels = jnp.where(data.labels >= 0, data.labels, drawn)
        return self._draw_parameters(data, key_rest, labels, jnp.zeros(()))

    def _draw_parameters(
        self, data: UncollapsedData, rng_key: jax.Array, labels: jax.Array, temperature: jax.Array
    ) -> UncollapsedState:
        key_phi, key_theta = jax.random.split(rng_key)
        schema = self.schema
        own = jnp.zeros((self.num_clusters, schema.num_labels)).at[data.clusters, labels].add(1.0)
        shape = (self.num_clusters, schema.num_labels, schema.num_cells + 1)
        counts = jnp.zeros(shape).at[data.clusters[:, None], labels[:, None], data.cells].add(1.0)
        gammas = jax.random.loggamma(key_phi, data.label_prior + temperature * own)
        log_phi = jax.nn.log_softmax(gammas, axis=-1)
        pseudo = data.feature_prior + temperature * counts[..., :-1]
        gammas = jax.random.loggamma(key_theta, pseudo)
        parts = [
            jax.nn.log_softmax(gammas[..., schema.cells_of(f)], axis=-1)
            for f in range(schema.num_features)
        ]
        log_theta = jnp.concatenate(parts, axis=-1) if parts else gammas
        return UncollapsedState(labels, log_phi, log_theta)

    def _log_rows(self, data: UncollapsedData, state: UncollapsedState) -> jax.Array:
        """Return ``log phi_y + sum_f log theta_{y,f,x}`` of every row and label, ``(N, L)``."""
        nothing = jnp.zeros((*state.log_theta.shape[:-1], 1))
        padded = jnp.concatenate([state.log_theta, nothing], axis=-1)
        terms = jnp.moveaxis(padded, -1, 1)[data.clusters[:, None], data.cells]
        return state.log_phi[data.clusters] + terms.sum(axis=1)

    def transition(
        self, data: UncollapsedData, reverse: bool
    ) -> Callable[[jax.Array, UncollapsedState, jax.Array], UncollapsedState]:
        """Build the move at a temperature: labels, then parameters; the opposite in reverse."""

        def draw_labels(
            key: jax.Array, state: UncollapsedState, temperature: jax.Array
        ) -> jax.Array:
            drawn = jax.random.categorical(key, temperature * self._log_rows(data, state))
            return jnp.where(data.labels >= 0, data.labels, drawn)

        def move(
            rng_key: jax.Array, state: UncollapsedState, temperature: jax.Array
        ) -> UncollapsedState:
            key_y, key_theta = jax.random.split(rng_key)
            if not reverse:
                labels = draw_labels(key_y, state, temperature)
                return self._draw_parameters(data, key_theta, labels, temperature)
            state = self._draw_parameters(data, key_theta, state.labels, temperature)
            return state._replace(labels=draw_labels(key_y, state, temperature))

        return move

    def log_likelihood(self, data: UncollapsedData, state: UncollapsedState) -> jax.Array:
        """Return ``log P(X, Y | phi, theta)`` of every cluster."""
        logs = self._log_rows(data, state)
        own = jnp.take_along_axis(logs, state.labels[:, None], axis=1)[:, 0]
        return jax.ops.segment_sum(own, data.clusters, self.num_clusters)

    def out_of_slots(self, state: UncollapsedState) -> jax.Array:  # noqa: ARG002
        """Return False: there are no slots."""
        return jnp.asarray(False)


@dataclass(frozen=True)
class UncollapsedProblem:
    """Annealing problem of a model and a table, over labels and parameters."""

    config: UncollapsedConfig
    data: UncollapsedData

    def with_more_slots(self) -> UncollapsedProblem:
        """Return the problem unchanged: it has no slots."""
        return self


def log_base(data: GroupedTable) -> float:
    """Return ``log Z_0 = M log |L|``: missing labels are uniform at temperature zero."""
    return float((data.labels < 0).sum() * np.log(data.num_labels))


def build_problem(model: Any, data: GroupedTable) -> UncollapsedProblem:
    """Build the annealing problem of a model with known partition and a table.

    Each cluster has one ``phi`` and one ``theta``, so labels must be shared exactly where features
    are.
    """
    known = isinstance(model, KnownPartitionModel)
    if not known or (not model.shares_labels and len(set(model.partition(2).tolist())) < 2):
        raise TypeError(
            f"variant='thesis' is for NoSharing and CompleteSharing, not for {model.name}; "
            "use variant='collapsed'"
        )
    data.require_rows()
    schema = data.schema
    codes = np.asarray(data.features, dtype=np.int64)
    cells = np.where(codes >= 0, schema.offsets[:-1] + codes, schema.num_cells)
    partition = model.partition(data.num_groups)
    with jax.enable_x64(True):
        arrays = UncollapsedData(
            jnp.asarray(cells),
            jnp.asarray(partition[data.groups]),
            jnp.asarray(data.labels.astype(np.int64)),
            jnp.asarray(model.label_parameters(schema)),
            jnp.asarray(model.feature_parameters(schema)),
        )
    return UncollapsedProblem(UncollapsedConfig(schema, int(partition.max(initial=0)) + 1), arrays)
