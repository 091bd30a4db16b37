"""The thesis's own annealed importance sampler, over labels *and* parameters (Roy 2006, A.2).

Annealed is ``p(phi, theta) P(X, Y | phi, theta)^t`` over the missing labels and the parameters. At
``t = 0`` labels are free and the normaliser is ``|L|^M`` with ``M`` missing labels (the thesis has
``1/Z_0 = 2^|L|``, A.55); at ``t = 1`` it is ``P(X, Y_known)``. One move draws

    Y_n | phi, theta   proportional to  (phi_y prod_f theta_{y,f,x})^t    (A.61 put right: with phi)
    phi, theta | Y     Dirichlet(alpha + t m), Dirichlet(beta + t n).

Kept for comparison: the collapsed sampler of :mod:`bayes_lcs.inference.ais.partition` has fewer
unknowns and needs fewer temperatures. For no sharing and complete sharing, as in the thesis.
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

__all__ = ["ThesisData", "ThesisDesign", "ThesisProblem", "log_base", "pose"]


class ThesisState(NamedTuple):
    """All labels ``(N,)`` and log parameters ``(K, L)``, ``(K, L, C)``."""

    labels: jax.Array
    log_phi: jax.Array
    log_theta: jax.Array


class ThesisData(NamedTuple):
    """The rows: cells ``(N, F)``, dummy cell ``C`` where missing; blocks; labels, -1 missing."""

    cells: jax.Array
    blocks: jax.Array
    labels: jax.Array
    label_prior: jax.Array
    feature_prior: jax.Array


@dataclass(frozen=True)
class ThesisDesign:
    """What decides the program."""

    schema: Schema
    num_blocks: int

    def begin(self, data: ThesisData, rng_key: jax.Array) -> ThesisState:
        """Parameters from their prior, missing labels evenly."""
        key_y, key_rest = jax.random.split(rng_key)
        drawn = jax.random.randint(key_y, data.labels.shape, 0, self.schema.num_labels)
        labels = jnp.where(data.labels >= 0, data.labels, drawn)
        return self._draw_parameters(data, key_rest, labels, jnp.zeros(()))

    def _draw_parameters(
        self, data: ThesisData, rng_key: jax.Array, labels: jax.Array, temperature: jax.Array
    ) -> ThesisState:
        key_phi, key_theta = jax.random.split(rng_key)
        schema = self.schema
        own = jnp.zeros((self.num_blocks, schema.num_labels)).at[data.blocks, labels].add(1.0)
        shape = (self.num_blocks, schema.num_labels, schema.num_cells + 1)
        counts = jnp.zeros(shape).at[data.blocks[:, None], labels[:, None], data.cells].add(1.0)
        gammas = jax.random.loggamma(key_phi, data.label_prior + temperature * own)
        log_phi = jax.nn.log_softmax(gammas, axis=-1)
        pseudo = data.feature_prior + temperature * counts[..., :-1]
        gammas = jax.random.loggamma(key_theta, pseudo)
        parts = [
            jax.nn.log_softmax(gammas[..., schema.cells_of(f)], axis=-1)
            for f in range(schema.num_features)
        ]
        log_theta = jnp.concatenate(parts, axis=-1) if parts else gammas
        return ThesisState(labels, log_phi, log_theta)

    def _log_rows(self, data: ThesisData, state: ThesisState) -> jax.Array:
        """``log phi_y + sum_f log theta_{y,f,x}`` of every row and label, ``(N, L)``."""
        nothing = jnp.zeros((*state.log_theta.shape[:-1], 1))
        padded = jnp.concatenate([state.log_theta, nothing], axis=-1)
        terms = jnp.moveaxis(padded, -1, 1)[data.blocks[:, None], data.cells]
        return state.log_phi[data.blocks] + terms.sum(axis=1)

    def transition(
        self, data: ThesisData, reverse: bool
    ) -> Callable[[jax.Array, ThesisState, jax.Array], ThesisState]:
        """Labels, then parameters, at a temperature; or the other way round."""

        def draw_labels(key: jax.Array, state: ThesisState, temperature: jax.Array) -> jax.Array:
            drawn = jax.random.categorical(key, temperature * self._log_rows(data, state))
            return jnp.where(data.labels >= 0, data.labels, drawn)

        def move(rng_key: jax.Array, state: ThesisState, temperature: jax.Array) -> ThesisState:
            key_y, key_theta = jax.random.split(rng_key)
            if not reverse:
                labels = draw_labels(key_y, state, temperature)
                return self._draw_parameters(data, key_theta, labels, temperature)
            state = self._draw_parameters(data, key_theta, state.labels, temperature)
            return state._replace(labels=draw_labels(key_y, state, temperature))

        return move

    def log_likelihood(self, data: ThesisData, state: ThesisState) -> jax.Array:
        """``log P(X, Y | phi, theta)`` of every block."""
        logs = self._log_rows(data, state)
        own = jnp.take_along_axis(logs, state.labels[:, None], axis=1)[:, 0]
        return jax.ops.segment_sum(own, data.blocks, self.num_blocks)

    def overflowed(self, state: ThesisState) -> jax.Array:  # noqa: ARG002
        """Never."""
        return jnp.asarray(False)


@dataclass(frozen=True)
class ThesisProblem:
    """A model and a table, ready to be annealed as in the thesis."""

    design: ThesisDesign
    data: ThesisData

    def enlarged(self) -> ThesisProblem:
        """The problem itself: nothing of it needs room."""
        return self


def log_base(data: GroupedTable) -> float:
    """``log Z_0 = M log |L|``: the missing labels are free at temperature zero."""
    return float((data.labels < 0).sum() * np.log(data.num_labels))


def pose(model: Any, data: GroupedTable) -> ThesisProblem:
    """Lay out a model whose partition is known, and a table.

    Blocks have their ``phi`` as they have their ``theta``, so the labels must be shared just where
    the features are.
    """
    known = isinstance(model, KnownPartitionModel)
    if not known or (not model.shares_labels and len(set(model.partition(2).tolist())) < 2):
        raise TypeError(
            f"the thesis's sampler is for NoSharing and CompleteSharing, not for {model.name}; "
            "use variant='collapsed'"
        )
    data.require_rows()
    schema = data.schema
    codes = np.asarray(data.features, dtype=np.int64)
    cells = np.where(codes >= 0, schema.offsets[:-1] + codes, schema.num_cells)
    partition = model.partition(data.num_groups)
    with jax.enable_x64(True):
        arrays = ThesisData(
            jnp.asarray(cells),
            jnp.asarray(partition[data.groups]),
            jnp.asarray(data.labels.astype(np.int64)),
            jnp.asarray(model.label_parameters(schema)),
            jnp.asarray(model.feature_parameters(schema)),
        )
    return ThesisProblem(ThesisDesign(schema, int(partition.max(initial=0)) + 1), arrays)
