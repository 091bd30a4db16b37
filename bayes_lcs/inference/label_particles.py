"""The sum over missing labels by particles that take in one row after the other.

Estimated is ``P(X, Y_known) / P(Y_known)`` of rows whose features share one set of parameters: the
sum over all labelings of the rows without a label. Every particle is a labeling of the rows read
so far. A new row multiplies its weight by the predictive probability of the row's features,

    sum_y P(y | labels so far) prod_f (n_{y,f,x} + beta_{y,f,x}) / (n_{y,f,.} + sum beta),

and its label is drawn from the terms of that sum (label conditionals as thesis A.45, A.46). When
the weights have become uneven, particles are drawn anew in proportion to them, and at times every
label is drawn again given all others. Such sequential Monte Carlo is annealed importance sampling
with rows in place of temperatures (Del Moral, Doucet and Jasra 2006): the mean of the weights is
unbiased, whatever the order of the rows and the number of particles.

Backwards: let one particle follow a path that ends at a draw from the posterior and was made by
the reversed moves, and the others run as ever. Then the inverse of the estimate is unbiased for the
inverse (Andrieu, Doucet and Holenstein 2010), which gives the upper end of a bracket.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

__all__ = ["Part", "Reading", "estimate", "reading"]

LEAST_EFFECTIVE = 0.5
"""Share of effective particles below which they are drawn anew."""

GROWTH = 1.05
"""By how much the rows grow until the weights are looked at."""

RENEWAL = 1.1
"""By how much the rows grow until all labels are drawn again."""

FACTORS = 8
"""Probabilities multiplied before the logarithm is taken: far from underflow, fewer logarithms."""


class Part(NamedTuple):
    """Rows that share their parameters, and what the labelled rows have left behind.

    Attributes
    ----------
    cells : (N, F)
        Cell of each value of the rows without a label; the last cell where it is missing.
    present : (N, F)
        1 where there is a value.
    owner : (N,)
        Whose label counts a row belongs to.
    num_rows
        How many of the rows are there; the others only fill up the array.
    cell_weights : (C + 1, L)
        Labelled counts and prior of every cell.
    feature_weights : (F, L)
        The same, added over the values of each feature.
    label_weights : (O, L)
        Counts and prior of the labels of each owner.
    """

    cells: jax.Array
    present: jax.Array
    owner: jax.Array
    num_rows: jax.Array
    cell_weights: jax.Array
    feature_weights: jax.Array
    label_weights: jax.Array


class Reading(NamedTuple):
    """How many rows are read before the weights are looked at, and when labels are drawn again.

    Attributes
    ----------
    ends : (S,)
        Number of rows read at the end of each stage.
    renews : (S,)
        Whether all labels are drawn again then.
    """

    ends: jax.Array
    renews: jax.Array


def reading(num_rows: int, stages: int | None = None) -> Reading:
    """The stages for so many rows, filled up to ``stages`` with empty ones.

    Examples
    --------
    >>> import jax
    >>> [int(end) for end in reading(12).ends]
    [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]
    """
    ends, renews, last = [], [], 1.0
    end = 0
    while end < num_rows:
        end = min(max(end + 1, int(end * GROWTH)), num_rows)
        ends.append(end)
        renews.append(end >= last * RENEWAL and end < num_rows)
        if renews[-1]:
            last = end
    empty = 0 if stages is None else stages - len(ends)
    return Reading(
        jnp.asarray(ends + [num_rows] * empty, dtype=jnp.int32),
        jnp.asarray(renews + [False] * empty),
    )


class ParticleState(NamedTuple):
    """All particles, on the last axis: rows are the same for all of them, and lie together.

    Attributes
    ----------
    cells : (C + 1, L, P)
        Counts and prior of every cell.
    features : (F, L, P)
        The same, added over the values of each feature.
    owners : (O, L, P)
        Counts and prior of the labels.
    labels : (N, P)
        Label of each row read so far.
    log_weights : (P,)
        Since the particles were last drawn anew.
    log_mean
        Log of the mean weights until then.
    """

    cells: jax.Array
    features: jax.Array
    owners: jax.Array
    labels: jax.Array
    log_weights: jax.Array
    log_mean: jax.Array


def init(part: Part, num_particles: int) -> ParticleState:
    """Particles that have read nothing yet."""

    def spread(weights: jax.Array) -> jax.Array:
        return jnp.repeat(weights[..., None], num_particles, axis=-1)

    return ParticleState(
        spread(part.cell_weights),
        spread(part.feature_weights),
        spread(part.label_weights),
        jnp.zeros((len(part.cells), num_particles), dtype=jnp.int8),
        jnp.zeros(num_particles),
        jnp.zeros(()),
    )


def _label_scores(part: Part, state: ParticleState, row: jax.Array, held: jax.Array) -> jax.Array:
    """Log of label and feature probabilities of a row, ``(L, P)``; ``held`` is what it counts."""
    labels = state.owners[part.owner[row]] - held
    total = jnp.log(labels / labels.sum(axis=0))
    num_features = part.cells.shape[1]
    # Written out: slices of the counts then fuse with what is done to them.
    for first in range(0, num_features, FACTORS):
        product = jnp.ones_like(held)
        for feature in range(first, min(first + FACTORS, num_features)):
            cells = state.cells[part.cells[row, feature]] - held
            ratio = cells / (state.features[feature] - held)
            product *= jnp.where(part.present[row, feature], ratio, 1.0)
        total += jnp.log(product)
    return total


def _count(part: Part, state: ParticleState, row: jax.Array, change: jax.Array) -> ParticleState:
    """The counts after the labels of a row have changed by ``(L, P)``."""

    def add(feature: jax.Array, cells: jax.Array) -> jax.Array:
        cell = part.cells[row, feature]
        return jax.lax.dynamic_update_index_in_dim(cells, cells[cell] + change, cell, 0)

    owner = part.owner[row]
    return state._replace(
        cells=jax.lax.fori_loop(0, part.cells.shape[1], add, state.cells),
        features=state.features + part.present[row][:, None, None] * change,
        owners=jax.lax.dynamic_update_index_in_dim(
            state.owners, state.owners[owner] + change, owner, 0
        ),
    )


def _one_hot(labels: jax.Array, num_labels: int) -> jax.Array:
    return (jnp.arange(num_labels)[:, None] == labels).astype(float)


def _place(
    part: Part,
    rng_key: jax.Array,
    state: ParticleState,
    row: jax.Array,
    is_new: bool,
    forced: jax.Array,
) -> tuple[ParticleState, jax.Array]:
    """Draw the labels of a row; the first particle takes the forced one, unless it is negative."""
    num_labels, num_particles = state.owners.shape[1:]
    zeros = jnp.zeros((num_labels, num_particles))
    held = zeros if is_new else _one_hot(state.labels[row], num_labels)
    scores = _label_scores(part, state, row, held)
    top = scores.max(axis=0)
    running = jnp.cumsum(jnp.exp(scores - top), axis=0)
    uniforms = jax.random.uniform(rng_key, (num_particles,), dtype=float)
    labels = (running[:-1] <= uniforms * running[-1]).sum(axis=0).astype(jnp.int8)
    is_led = (jnp.arange(num_particles) == 0) & (forced >= 0)
    labels = jnp.where(is_led, forced.astype(jnp.int8), labels)
    state = _count(part, state, row, _one_hot(labels, num_labels) - held)
    state = state._replace(labels=jax.lax.dynamic_update_index_in_dim(state.labels, labels, row, 0))
    return state, top + jnp.log(running[-1])


def _drawn_anew(rng_key: jax.Array, state: ParticleState, is_led: jax.Array) -> ParticleState:
    """Particles in proportion to their weights, all of weight one; a led one stays the first."""
    size = state.log_weights.size
    top = state.log_weights.max()
    running = jnp.cumsum(jnp.exp(state.log_weights - top))
    uniforms = jax.random.uniform(rng_key, (size,), dtype=float)
    chosen = jnp.searchsorted(running, uniforms * running[-1], side="right")
    chosen = jnp.where((jnp.arange(size) == 0) & is_led, 0, jnp.minimum(chosen, size - 1))
    return ParticleState(
        state.cells[..., chosen],
        state.features[..., chosen],
        state.owners[..., chosen],
        state.labels[..., chosen],
        jnp.zeros_like(state.log_weights),
        state.log_mean + top + jnp.log(running[-1] / size),
    )


class _Lead(NamedTuple):
    """The labels that the first particle takes, ``(S, N)`` each; negative for none."""

    read: jax.Array
    renewed: jax.Array


def _run(
    part: Part, stages: Reading, rng_key: jax.Array, lead: _Lead, num_particles: int
) -> jax.Array:
    """Log of the mean weight of particles that have read all rows in the order given."""

    def stage(
        carry: tuple[ParticleState, jax.Array],
        step: tuple[jax.Array, jax.Array, jax.Array, _Lead],
    ) -> tuple[tuple[ParticleState, jax.Array], None]:
        state, start = carry
        number, end, renews, led = step
        key = jax.random.fold_in(rng_key, number)
        read_key, draw_key, renew_key = jax.random.split(key, 3)

        def read(row: jax.Array, state: ParticleState) -> ParticleState:
            one = jax.random.fold_in(read_key, row)
            state, gained = _place(part, one, state, row, True, led.read[row])
            return state._replace(log_weights=state.log_weights + gained)

        def renew(row: jax.Array, state: ParticleState) -> ParticleState:
            one = jax.random.fold_in(renew_key, row)
            return _place(part, one, state, row, False, led.renewed[row])[0]

        state = jax.lax.fori_loop(start, end, read, state)
        weights = jnp.exp(state.log_weights - state.log_weights.max())
        effective = weights.sum() ** 2 / (weights**2).sum()
        state = jax.lax.cond(
            effective < LEAST_EFFECTIVE * num_particles,
            lambda: _drawn_anew(draw_key, state, led.read[0] >= 0),
            lambda: state,
        )
        state = jax.lax.fori_loop(0, jnp.where(renews, end, 0), renew, state)
        return (state, end), None

    numbers = jnp.arange(len(stages.ends))
    carry = (init(part, num_particles), jnp.zeros((), dtype=jnp.int32))
    (state, _), _ = jax.lax.scan(stage, carry, (numbers, stages.ends, stages.renews, lead))
    top = state.log_weights.max()
    return state.log_mean + top + jnp.log(jnp.exp(state.log_weights - top).mean())


def _path_to(part: Part, stages: Reading, rng_key: jax.Array, labels: jax.Array) -> _Lead:
    """The labels of a path that ends at ``labels`` ``(N,)``, by the reversed moves."""
    rows = jnp.arange(len(labels))
    no_lead = jnp.asarray(-1)

    def put(row: jax.Array, state: ParticleState) -> ParticleState:
        here = labels[row].astype(jnp.int8)[None]
        state = _count(part, state, row, _one_hot(here, state.owners.shape[1]))
        return state._replace(
            labels=jax.lax.dynamic_update_index_in_dim(state.labels, here, row, 0)
        )

    def back(
        carry: tuple[ParticleState, jax.Array], step: tuple[jax.Array, jax.Array, jax.Array]
    ) -> tuple[tuple[ParticleState, jax.Array], _Lead]:
        state, end = carry
        number, start, renews = step
        after = state.labels[:, 0]
        key = jax.random.fold_in(rng_key, number)

        def renew(i: jax.Array, state: ParticleState) -> ParticleState:
            row = end - 1 - i
            one = jax.random.fold_in(key, row)
            return _place(part, one, state, row, False, no_lead)[0]

        state = jax.lax.fori_loop(0, jnp.where(renews, end, 0), renew, state)
        before = state.labels[:, 0]

        def take(row: jax.Array, state: ParticleState) -> ParticleState:
            held = _one_hot(state.labels[row], state.owners.shape[1])
            return _count(part, state, row, -held)

        state = jax.lax.fori_loop(start, end, take, state)
        return (state, start), _Lead(before, after)

    full = jax.lax.fori_loop(0, part.num_rows, put, init(part, 1))
    starts = jnp.concatenate([jnp.zeros(1, dtype=jnp.int32), stages.ends[:-1]])
    numbers = jnp.arange(len(stages.ends))
    carry = (full, stages.ends[-1])
    _, lead = jax.lax.scan(back, carry, (numbers, starts, stages.renews), reverse=True)
    there = rows < part.num_rows
    return _Lead(*(jnp.where(there, led, 0) for led in lead))


def _shuffled(part: Part, order: jax.Array) -> Part:
    return part._replace(
        cells=part.cells[order], present=part.present[order], owner=part.owner[order]
    )


@partial(jax.jit, static_argnames="num_particles")
def _estimates(
    part: Part,
    stages: Reading,
    keys: jax.Array,
    orders: jax.Array,
    ends: jax.Array | None,
    num_particles: int,
) -> jax.Array:
    """Independent estimates, one a key, each with an order of its own."""

    def one(run: tuple[jax.Array, jax.Array, jax.Array | None]) -> jax.Array:
        key, order, labels = run
        own = _shuffled(part, order)
        if labels is None:
            nothing = jnp.full((len(stages.ends), len(order)), -1, dtype=jnp.int8)
            lead = _Lead(nothing, nothing)
        else:
            path_key, key = jax.random.split(key)
            lead = _path_to(own, stages, path_key, labels[order])
        return _run(own, stages, key, lead, num_particles)

    return jax.lax.map(one, (keys, orders, ends))


def estimate(
    part: Part,
    stages: Reading,
    *,
    runs: int,
    num_particles: int,
    seed: int,
    ends: NDArray[np.int64] | None = None,
) -> NDArray[np.float64]:
    """Logs of ``runs`` independent estimates of ``P(X, Y_known) / P(Y_known)``.

    Parameters
    ----------
    ends : (runs, N), optional
        Labels drawn from the posterior. With them the estimates are those whose *inverse* is
        unbiased.
    """
    with jax.enable_x64(True):
        root = jax.random.fold_in(jax.random.key(seed), 0 if ends is None else 1)
        rng = np.random.default_rng([seed, 0 if ends is None else 1])
        num_rows, length = int(part.num_rows), len(part.cells)
        orders = np.tile(np.arange(length), (runs, 1))
        for order in orders:
            rng.shuffle(order[:num_rows])
        found = _estimates(
            part,
            stages,
            jax.random.split(root, runs),
            jnp.asarray(orders),
            None if ends is None else jnp.asarray(ends),
            num_particles,
        )
        return np.asarray(found)
