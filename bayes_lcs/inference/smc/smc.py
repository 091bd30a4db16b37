"""Sums over ways to place items, by particles that take in one item after the other.

An item is a row that gets a label, or a group that gets a block. Every particle has placed the
items read so far. A new item multiplies its weight by the predictive probability of what the item
shows, a sum over its places, and its place is drawn from the terms of that sum. When the weights
have become uneven, particles are drawn anew in proportion to them, and at times every item is
placed again given all others. Such sequential Monte Carlo is annealed importance sampling with
items in place of temperatures (Del Moral, Doucet and Jasra 2006): the mean of the weights is
unbiased, whatever the order of the items and the number of particles.

Backwards: let one particle follow a path that ends at a draw from the posterior and was made by
the reversed moves, and the others run as ever. Then the inverse of the estimate is unbiased for the
inverse (Andrieu, Doucet and Holenstein 2010), which gives the upper end of a bracket.
"""

from __future__ import annotations

from collections.abc import Hashable
from functools import partial
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

__all__ = ["ParticleDesign", "Posed", "Reading", "estimate", "reading"]

LEAST_EFFECTIVE = 0.5
"""Share of effective particles below which they are drawn anew."""

GROWTH = 1.05
"""By how much the items grow until the weights are looked at."""

RENEWAL = 1.1
"""By how much the items grow until all of them are placed again."""


class ParticleDesign(Hashable, Protocol):
    """What is placed where; everything that decides which program is compiled.

    What particles hold is a pytree of arrays with all particles together: all of them look at the
    same item. Places of an item are one-hot ``(L, P)``, all zero for none.
    """

    @property
    def num_places(self) -> int:
        """Most places that there are for an item."""

    def begin(self, part: Any, num_particles: int) -> Any:
        """What particles hold that have read nothing yet."""

    def scores(self, part: Any, held: Any, item: jax.Array, own: jax.Array) -> jax.Array:
        """Log weights ``(L, P)`` of the places of an item that is now at ``own``.

        They add up to the predictive probability of the item, given all others.
        """

    def moved(self, part: Any, held: Any, item: jax.Array, own: jax.Array, new: jax.Array) -> Any:
        """What particles hold after an item has gone from one place to another."""

    def shuffled(self, part: Any, order: jax.Array) -> Any:
        """The part with its items in another order."""

    def drawn(self, held: Any, chosen: jax.Array) -> Any:
        """What the particles at ``chosen`` ``(P,)`` hold."""

    def overflowed(self, held: Any) -> jax.Array:
        """Whether some particle has no room left, which voids the run."""

    def enlarged(self) -> ParticleDesign:
        """The same with more room."""


class Reading(NamedTuple):
    """How many items are read before the weights are looked at, and when they are placed again.

    Attributes
    ----------
    ends : (S,)
        Number of items read at the end of each stage.
    renews : (S,)
        Whether all of them are placed again then.
    """

    ends: jax.Array
    renews: jax.Array


def reading(num_items: int, stages: int | None = None) -> Reading:
    """The stages for so many items, filled up to ``stages`` with empty ones.

    Examples
    --------
    >>> import jax
    >>> [int(end) for end in reading(12).ends]
    [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]
    """
    ends, renews, last = [], [], 1.0
    end = 0
    while end < num_items:
        end = min(max(end + 1, int(end * GROWTH)), num_items)
        ends.append(end)
        renews.append(end >= last * RENEWAL and end < num_items)
        if renews[-1]:
            last = end
    empty = 0 if stages is None else stages - len(ends)
    return Reading(
        jnp.asarray(ends + [num_items] * empty, dtype=jnp.int32),
        jnp.asarray(renews + [False] * empty),
    )


class Posed(NamedTuple):
    """Items whose places sum up apart from all others.

    Attributes
    ----------
    design
        What is placed where.
    part
        The arrays that it reads.
    stages
        How the items are read.
    items : (n,)
        Which of the table's items are in this part; its arrays may be longer.
    length
        Number of items for which the arrays have room.
    """

    design: ParticleDesign
    part: Any
    stages: Reading
    items: NDArray[np.int64]
    length: int


class ParticleState(NamedTuple):
    """All particles.

    Attributes
    ----------
    held
        What the design makes of the items read so far.
    places : (N, P)
        Place of each item read so far.
    log_weights : (P,)
        Since the particles were last drawn anew.
    log_mean
        Log of the mean weights until then.
    """

    held: Any
    places: jax.Array
    log_weights: jax.Array
    log_mean: jax.Array


def init(design: ParticleDesign, part: Any, length: int, num_particles: int) -> ParticleState:
    """Particles that have read nothing yet."""
    return ParticleState(
        design.begin(part, num_particles),
        jnp.zeros((length, num_particles), dtype=_place_dtype(design)),
        jnp.zeros(num_particles),
        jnp.zeros(()),
    )


def _place_dtype(design: ParticleDesign) -> Any:
    """Return the type of places: few as they mostly are, in two bytes each."""
    return jnp.int16 if design.num_places <= np.iinfo(np.int16).max else jnp.int32


def _one_hot(places: jax.Array, num_places: int) -> jax.Array:
    return (jnp.arange(num_places)[:, None] == places).astype(float)


def _place(
    design: ParticleDesign,
    part: Any,
    rng_key: jax.Array,
    state: ParticleState,
    item: jax.Array,
    is_new: bool,
    forced: jax.Array,
) -> tuple[ParticleState, jax.Array]:
    """Draw the place of an item; the first particle takes the forced one, unless it is negative."""
    num_particles = state.log_weights.size
    nowhere = jnp.zeros((design.num_places, num_particles))
    own = nowhere if is_new else _one_hot(state.places[item], design.num_places)
    scores = design.scores(part, state.held, item, own)
    top = scores.max(axis=0)
    running = jnp.cumsum(jnp.exp(scores - top), axis=0)
    uniforms = jax.random.uniform(rng_key, (num_particles,), dtype=float)
    dtype = state.places.dtype
    places = (running[:-1] <= uniforms * running[-1]).sum(axis=0).astype(dtype)
    is_led = (jnp.arange(num_particles) == 0) & (forced >= 0)
    places = jnp.where(is_led, forced.astype(dtype), places)
    new = _one_hot(places, design.num_places)
    state = state._replace(
        held=design.moved(part, state.held, item, own, new),
        places=jax.lax.dynamic_update_index_in_dim(state.places, places, item, 0),
    )
    return state, top + jnp.log(running[-1])


def _drawn_anew(
    design: ParticleDesign, rng_key: jax.Array, state: ParticleState, is_led: jax.Array
) -> ParticleState:
    """Particles in proportion to their weights, all of weight one; a led one stays the first."""
    size = state.log_weights.size
    top = state.log_weights.max()
    running = jnp.cumsum(jnp.exp(state.log_weights - top))
    uniforms = jax.random.uniform(rng_key, (size,), dtype=float)
    chosen = jnp.searchsorted(running, uniforms * running[-1], side="right")
    chosen = jnp.where((jnp.arange(size) == 0) & is_led, 0, jnp.minimum(chosen, size - 1))
    return ParticleState(
        design.drawn(state.held, chosen),
        state.places[:, chosen],
        jnp.zeros_like(state.log_weights),
        state.log_mean + top + jnp.log(running[-1] / size),
    )


class _Lead(NamedTuple):
    """The places that the first particle takes, ``(S, N)`` each; negative for none."""

    read: jax.Array
    renewed: jax.Array


def _run(
    design: ParticleDesign,
    part: Any,
    stages: Reading,
    rng_key: jax.Array,
    lead: _Lead,
    num_particles: int,
) -> tuple[jax.Array, jax.Array]:
    """Log of the mean weight of particles that have read all items in the order given.

    Returns too whether some particle ran out of room.
    """

    def stage(
        carry: tuple[ParticleState, jax.Array],
        step: tuple[jax.Array, jax.Array, jax.Array, _Lead],
    ) -> tuple[tuple[ParticleState, jax.Array], None]:
        state, start = carry
        number, end, renews, led = step
        key = jax.random.fold_in(rng_key, number)
        read_key, draw_key, renew_key = jax.random.split(key, 3)

        def read(item: jax.Array, state: ParticleState) -> ParticleState:
            one = jax.random.fold_in(read_key, item)
            state, gained = _place(design, part, one, state, item, True, led.read[item])
            return state._replace(log_weights=state.log_weights + gained)

        def renew(item: jax.Array, state: ParticleState) -> ParticleState:
            one = jax.random.fold_in(renew_key, item)
            return _place(design, part, one, state, item, False, led.renewed[item])[0]

        state = jax.lax.fori_loop(start, end, read, state)
        weights = jnp.exp(state.log_weights - state.log_weights.max())
        effective = weights.sum() ** 2 / (weights**2).sum()
        state = jax.lax.cond(
            effective < LEAST_EFFECTIVE * num_particles,
            lambda: _drawn_anew(design, draw_key, state, led.read[0] >= 0),
            lambda: state,
        )
        state = jax.lax.fori_loop(0, jnp.where(renews, end, 0), renew, state)
        return (state, end), None

    numbers = jnp.arange(len(stages.ends))
    start = init(design, part, lead.read.shape[1], num_particles)
    carry = (start, jnp.zeros((), dtype=jnp.int32))
    (state, _), _ = jax.lax.scan(stage, carry, (numbers, stages.ends, stages.renews, lead))
    top = state.log_weights.max()
    value = state.log_mean + top + jnp.log(jnp.exp(state.log_weights - top).mean())
    return value, design.overflowed(state.held)


def _path_to(
    design: ParticleDesign, part: Any, stages: Reading, rng_key: jax.Array, places: jax.Array
) -> _Lead:
    """A path that ends at ``places`` ``(N,)``, by the reversed moves."""
    length, num_items = len(places), stages.ends[-1]
    free = jnp.asarray(-1)
    nowhere = jnp.zeros((design.num_places, 1))

    def put(item: jax.Array, state: ParticleState) -> ParticleState:
        here = places[item].astype(state.places.dtype)[None]
        new = _one_hot(here, design.num_places)
        return state._replace(
            held=design.moved(part, state.held, item, nowhere, new),
            places=jax.lax.dynamic_update_index_in_dim(state.places, here, item, 0),
        )

    def back(
        carry: tuple[ParticleState, jax.Array], step: tuple[jax.Array, jax.Array, jax.Array]
    ) -> tuple[tuple[ParticleState, jax.Array], _Lead]:
        state, end = carry
        number, start, renews = step
        after = state.places[:, 0]
        key = jax.random.fold_in(rng_key, number)

        def renew(i: jax.Array, state: ParticleState) -> ParticleState:
            item = end - 1 - i
            one = jax.random.fold_in(key, item)
            return _place(design, part, one, state, item, False, free)[0]

        state = jax.lax.fori_loop(0, jnp.where(renews, end, 0), renew, state)
        before = state.places[:, 0]

        def take(item: jax.Array, state: ParticleState) -> ParticleState:
            own = _one_hot(state.places[item], design.num_places)
            return state._replace(held=design.moved(part, state.held, item, own, nowhere))

        state = jax.lax.fori_loop(start, end, take, state)
        return (state, start), _Lead(before, after)

    full = jax.lax.fori_loop(0, num_items, put, init(design, part, length, 1))
    starts = jnp.concatenate([jnp.zeros(1, dtype=jnp.int32), stages.ends[:-1]])
    numbers = jnp.arange(len(stages.ends))
    carry = (full, num_items)
    _, lead = jax.lax.scan(back, carry, (numbers, starts, stages.renews), reverse=True)
    there = jnp.arange(length) < num_items
    return _Lead(*(jnp.where(there, led, 0) for led in lead))


@partial(jax.jit, static_argnames=("design", "num_particles"))
def _estimates(
    design: ParticleDesign,
    part: Any,
    stages: Reading,
    keys: jax.Array,
    orders: jax.Array,
    ends: jax.Array | None,
    num_particles: int,
) -> tuple[jax.Array, jax.Array]:
    """Independent estimates, one a key, each with an order of its own."""

    def one(
        run: tuple[jax.Array, jax.Array, jax.Array | None],
    ) -> tuple[jax.Array, jax.Array]:
        key, order, places = run
        own = design.shuffled(part, order)
        if places is None:
            nothing = jnp.full((len(stages.ends), len(order)), -1, dtype=_place_dtype(design))
            lead = _Lead(nothing, nothing)
        else:
            path_key, key = jax.random.split(key)
            lead = _path_to(design, own, stages, path_key, places[order])
        return _run(design, own, stages, key, lead, num_particles)

    return jax.lax.map(one, (keys, orders, ends))


def estimate(
    posed: Posed,
    *,
    runs: int,
    num_particles: int,
    seed: int,
    ends: NDArray[np.int64] | None = None,
) -> tuple[Posed, NDArray[np.float64]]:
    """Logs of ``runs`` independent estimates of the sum over all places.

    Returns the problem too, with more room if particles needed it.

    Parameters
    ----------
    ends : (runs, N), optional
        Places drawn from the posterior. With them the estimates are those whose *inverse* is
        unbiased.
    """
    with jax.enable_x64(True):
        root = jax.random.fold_in(jax.random.key(seed), 0 if ends is None else 1)
        rng = np.random.default_rng([seed, 0 if ends is None else 1])
        orders = np.tile(np.arange(posed.length), (runs, 1))
        for order in orders:
            rng.shuffle(order[: len(posed.items)])
        while True:
            found, overflowed = _estimates(
                posed.design,
                posed.part,
                posed.stages,
                jax.random.split(root, runs),
                jnp.asarray(orders),
                None if ends is None else jnp.asarray(ends),
                num_particles,
            )
            if not bool(overflowed.any()):
                return posed, np.asarray(found)
            posed = posed._replace(design=posed.design.enlarged())
