"""Sequential Monte Carlo estimates of sums over assignments of items to categories.

An item is a row that gets a label, or a group that gets a cluster. Every particle holds the
assignments of the items so far. A new item multiplies the weight of a particle by the predictive
probability of the item's data, a sum over its assignments, and its assignment is drawn from the
terms of that sum. Particles are resampled in proportion to their weights when these have become
uneven, and rejuvenated at times: every item is assigned again given all others. This is annealed
importance sampling with items in place of temperatures (Del Moral, Doucet and Jasra 2006): the mean
of the weights is unbiased for any order of the items and any number of particles.

Conditional SMC: let one particle follow a reference path that ends at a draw from the posterior and
was made by the reversed moves, and run the others as before. Then the inverse of the estimate is
unbiased for the inverse (Andrieu, Doucet and Holenstein 2010), which gives the upper end of a
bracket.
"""

from __future__ import annotations

from collections.abc import Hashable
from functools import partial
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

__all__ = ["ParticleConfig", "SMCProblem", "SMCSchedule", "estimate", "smc_schedule"]

MIN_EFFECTIVE_SHARE = 0.5
"""Share of effective particles below which they are resampled."""

GROWTH = 1.05
"""Factor by which the number of items grows from one check of the weights to the next."""

REJUVENATION_GROWTH = 1.1
"""Factor by which the number of items grows from one rejuvenation to the next."""


class ParticleConfig(Hashable, Protocol):
    """Static configuration of a model; it determines the compiled program.

    The state of all particles is one pytree of arrays, since all of them update the same item at
    once. Assignments of an item are one-hot ``(L, P)``, all zero for an item without one.
    """

    @property
    def num_choices(self) -> int:
        """Number of categories to which an item can be assigned."""

    def begin(self, data: Any, num_particles: int) -> Any:
        """Return the state of particles without any item."""

    def scores(self, data: Any, particles: Any, item: jax.Array, own: jax.Array) -> jax.Array:
        """Return the log weights ``(L, P)`` of all assignments of an item, which is now at ``own``.

        They sum to the predictive probability of the item given all others.
        """

    def reassign(
        self, data: Any, particles: Any, item: jax.Array, own: jax.Array, new: jax.Array
    ) -> Any:
        """Return the state after an item has moved from the assignment ``own`` to ``new``."""

    def reorder(self, data: Any, order: jax.Array) -> Any:
        """Return the data with the items in another order."""

    def select(self, particles: Any, chosen: jax.Array) -> Any:
        """Return the state of the particles at indices ``chosen`` ``(P,)``."""

    def out_of_slots(self, particles: Any) -> jax.Array:
        """Return True if a particle ran out of slots, which invalidates the run."""

    def with_more_slots(self) -> ParticleConfig:
        """Return the configuration with more slots."""


class SMCSchedule(NamedTuple):
    """Stages: the weights are checked at the end of each, and particles are rejuvenated after some.

    Attributes
    ----------
    ends : (S,)
        Number of items at the end of each stage.
    rejuvenates : (S,)
        True for stages that end with a rejuvenation.
    """

    ends: jax.Array
    rejuvenates: jax.Array


def smc_schedule(num_items: int, num_stages: int | None = None) -> SMCSchedule:
    """Return the schedule for ``num_items`` items, padded with empty stages to ``num_stages``.

    Examples
    --------
    >>> import jax
    >>> [int(end) for end in smc_schedule(12).ends]
    [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]
    """
    ends, rejuvenates, last = [], [], 1.0
    end = 0
    while end < num_items:
        end = min(max(end + 1, int(end * GROWTH)), num_items)
        ends.append(end)
        rejuvenates.append(end >= last * REJUVENATION_GROWTH and end < num_items)
        if rejuvenates[-1]:
            last = end
    empty = 0 if num_stages is None else num_stages - len(ends)
    return SMCSchedule(
        jnp.asarray(ends + [num_items] * empty, dtype=jnp.int32),
        jnp.asarray(rejuvenates + [False] * empty),
    )


class SMCProblem(NamedTuple):
    """Items whose assignments can be summed over independently of all others.

    Attributes
    ----------
    config
        Static configuration.
    data
        Arrays of the model, a pytree.
    schedule
        Stages in which the items are added.
    items : (n,)
        Indices of these items in the table; the arrays may be padded to more items.
    length
        Number of items in the padded arrays.
    """

    config: ParticleConfig
    data: Any
    schedule: SMCSchedule
    items: NDArray[np.int64]
    length: int


class SMCState(NamedTuple):
    """State of all particles.

    Attributes
    ----------
    particles
        State of the model for the items so far, a pytree.
    assignments : (N, P)
        Assignment of each item so far.
    log_weights : (P,)
        Log weights since the last resampling.
    log_mean
        Log of the product of the mean weights until then.
    """

    particles: Any
    assignments: jax.Array
    log_weights: jax.Array
    log_mean: jax.Array


def init(config: ParticleConfig, data: Any, length: int, num_particles: int) -> SMCState:
    """Return the state before the first item."""
    return SMCState(
        config.begin(data, num_particles),
        jnp.zeros((length, num_particles), dtype=_assignment_dtype(config)),
        jnp.zeros(num_particles),
        jnp.zeros(()),
    )


def _assignment_dtype(config: ParticleConfig) -> Any:
    """Return the integer type of assignments, 16 bits if they fit."""
    return jnp.int16 if config.num_choices <= np.iinfo(np.int16).max else jnp.int32


def _one_hot(assignments: jax.Array, num_choices: int) -> jax.Array:
    return (jnp.arange(num_choices)[:, None] == assignments).astype(float)


def _assign(
    config: ParticleConfig,
    data: Any,
    rng_key: jax.Array,
    state: SMCState,
    item: jax.Array,
    is_new: bool,
    forced: jax.Array,
) -> tuple[SMCState, jax.Array]:
    """Draw the assignment of an item; if ``forced`` is not negative, the first particle takes it.

    Returns the state and the log predictive probabilities of the item ``(P,)``.
    """
    num_particles = state.log_weights.size
    nowhere = jnp.zeros((config.num_choices, num_particles))
    own = nowhere if is_new else _one_hot(state.assignments[item], config.num_choices)
    scores = config.scores(data, state.particles, item, own)
    top = scores.max(axis=0)
    # Categorical draws by inversion, for all particles at once.
    running = jnp.cumsum(jnp.exp(scores - top), axis=0)
    uniforms = jax.random.uniform(rng_key, (num_particles,), dtype=float)
    dtype = state.assignments.dtype
    assignments = (running[:-1] <= uniforms * running[-1]).sum(axis=0).astype(dtype)
    is_reference = (jnp.arange(num_particles) == 0) & (forced >= 0)
    assignments = jnp.where(is_reference, forced.astype(dtype), assignments)
    new = _one_hot(assignments, config.num_choices)
    state = state._replace(
        particles=config.reassign(data, state.particles, item, own, new),
        assignments=jax.lax.dynamic_update_index_in_dim(state.assignments, assignments, item, 0),
    )
    return state, top + jnp.log(running[-1])


def _resample(
    config: ParticleConfig, rng_key: jax.Array, state: SMCState, is_reference: jax.Array
) -> SMCState:
    """Resample particles in proportion to their weights; a reference particle stays the first."""
    size = state.log_weights.size
    top = state.log_weights.max()
    # Multinomial resampling.
    running = jnp.cumsum(jnp.exp(state.log_weights - top))
    uniforms = jax.random.uniform(rng_key, (size,), dtype=float)
    chosen = jnp.searchsorted(running, uniforms * running[-1], side="right")
    chosen = jnp.where((jnp.arange(size) == 0) & is_reference, 0, jnp.minimum(chosen, size - 1))
    return SMCState(
        config.select(state.particles, chosen),
        state.assignments[:, chosen],
        jnp.zeros_like(state.log_weights),
        state.log_mean + top + jnp.log(running[-1] / size),
    )


class ReferencePath(NamedTuple):
    """Assignments of the first particle in conditional SMC, ``(S, N)`` each; negative for none."""

    extension: jax.Array
    rejuvenation: jax.Array


def _run(
    config: ParticleConfig,
    data: Any,
    schedule: SMCSchedule,
    rng_key: jax.Array,
    path: ReferencePath,
    num_particles: int,
) -> tuple[jax.Array, jax.Array]:
    """Return the log of the mean weight after all items, added in the order given.

    Returns as well a flag that is True if a particle ran out of slots.
    """

    def stage(
        carry: tuple[SMCState, jax.Array],
        step: tuple[jax.Array, jax.Array, jax.Array, ReferencePath],
    ) -> tuple[tuple[SMCState, jax.Array], None]:
        state, start = carry
        number, end, rejuvenates, reference = step
        key = jax.random.fold_in(rng_key, number)
        extend_key, draw_key, rejuvenate_key = jax.random.split(key, 3)

        def extend(item: jax.Array, state: SMCState) -> SMCState:
            one = jax.random.fold_in(extend_key, item)
            state, gained = _assign(config, data, one, state, item, True, reference.extension[item])
            return state._replace(log_weights=state.log_weights + gained)

        def rejuvenate(item: jax.Array, state: SMCState) -> SMCState:
            one = jax.random.fold_in(rejuvenate_key, item)
            return _assign(config, data, one, state, item, False, reference.rejuvenation[item])[0]

        state = jax.lax.fori_loop(start, end, extend, state)
        weights = jnp.exp(state.log_weights - state.log_weights.max())
        # Effective sample size of the weights.
        effective = weights.sum() ** 2 / (weights**2).sum()
        state = jax.lax.cond(
            effective < MIN_EFFECTIVE_SHARE * num_particles,
            lambda: _resample(config, draw_key, state, reference.extension[0] >= 0),
            lambda: state,
        )
        state = jax.lax.fori_loop(0, jnp.where(rejuvenates, end, 0), rejuvenate, state)
        return (state, end), None

    numbers = jnp.arange(len(schedule.ends))
    start = init(config, data, path.extension.shape[1], num_particles)
    carry = (start, jnp.zeros((), dtype=jnp.int32))
    (state, _), _ = jax.lax.scan(stage, carry, (numbers, schedule.ends, schedule.rejuvenates, path))
    top = state.log_weights.max()
    value = state.log_mean + top + jnp.log(jnp.exp(state.log_weights - top).mean())
    return value, config.out_of_slots(state.particles)


def _sample_reference_path(
    config: ParticleConfig,
    data: Any,
    schedule: SMCSchedule,
    rng_key: jax.Array,
    assignments: jax.Array,
) -> ReferencePath:
    """Draw a reference path that ends at ``assignments`` ``(N,)``, by the reversed moves."""
    length, num_items = len(assignments), schedule.ends[-1]
    free = jnp.asarray(-1)
    nowhere = jnp.zeros((config.num_choices, 1))

    def put(item: jax.Array, state: SMCState) -> SMCState:
        here = assignments[item].astype(state.assignments.dtype)[None]
        new = _one_hot(here, config.num_choices)
        return state._replace(
            particles=config.reassign(data, state.particles, item, nowhere, new),
            assignments=jax.lax.dynamic_update_index_in_dim(state.assignments, here, item, 0),
        )

    def step_back(
        carry: tuple[SMCState, jax.Array], step: tuple[jax.Array, jax.Array, jax.Array]
    ) -> tuple[tuple[SMCState, jax.Array], ReferencePath]:
        state, end = carry
        number, start, rejuvenates = step
        after = state.assignments[:, 0]
        key = jax.random.fold_in(rng_key, number)

        def rejuvenate(i: jax.Array, state: SMCState) -> SMCState:
            item = end - 1 - i
            one = jax.random.fold_in(key, item)
            return _assign(config, data, one, state, item, False, free)[0]

        state = jax.lax.fori_loop(0, jnp.where(rejuvenates, end, 0), rejuvenate, state)
        before = state.assignments[:, 0]

        def remove(item: jax.Array, state: SMCState) -> SMCState:
            own = _one_hot(state.assignments[item], config.num_choices)
            return state._replace(
                particles=config.reassign(data, state.particles, item, own, nowhere)
            )

        # Remove the items of this stage, as the state before the stage has none of them.
        state = jax.lax.fori_loop(start, end, remove, state)
        return (state, start), ReferencePath(before, after)

    full = jax.lax.fori_loop(0, num_items, put, init(config, data, length, 1))
    starts = jnp.concatenate([jnp.zeros(1, dtype=jnp.int32), schedule.ends[:-1]])
    numbers = jnp.arange(len(schedule.ends))
    carry = (full, num_items)
    _, path = jax.lax.scan(step_back, carry, (numbers, starts, schedule.rejuvenates), reverse=True)
    there = jnp.arange(length) < num_items
    return ReferencePath(*(jnp.where(there, reference, 0) for reference in path))


@partial(jax.jit, static_argnames=("config", "num_particles"))
def _estimates(
    config: ParticleConfig,
    data: Any,
    schedule: SMCSchedule,
    keys: jax.Array,
    orders: jax.Array,
    posterior_draws: jax.Array | None,
    num_particles: int,
) -> tuple[jax.Array, jax.Array]:
    """Return independent estimates, one for each key, each with its own order of items."""

    def one(
        run: tuple[jax.Array, jax.Array, jax.Array | None],
    ) -> tuple[jax.Array, jax.Array]:
        key, order, assignments = run
        own = config.reorder(data, order)
        if assignments is None:
            nothing = jnp.full(
                (len(schedule.ends), len(order)), -1, dtype=_assignment_dtype(config)
            )
            path = ReferencePath(nothing, nothing)
        else:
            path_key, key = jax.random.split(key)
            path = _sample_reference_path(config, own, schedule, path_key, assignments[order])
        return _run(config, own, schedule, key, path, num_particles)

    return jax.lax.map(one, (keys, orders, posterior_draws))


def estimate(
    problem: SMCProblem,
    *,
    runs: int,
    num_particles: int,
    seed: int,
    posterior_draws: NDArray[np.int64] | None = None,
) -> tuple[SMCProblem, NDArray[np.float64]]:
    """Return the logs of ``runs`` independent estimates of the sum over all assignments.

    Returns the problem as well, with more slots if particles needed them.

    Parameters
    ----------
    posterior_draws : (runs, N), optional
        Assignments drawn from the posterior, for conditional SMC: the *inverse* of each estimate
        is then unbiased.
    """
    with jax.enable_x64(True):
        root = jax.random.fold_in(jax.random.key(seed), 0 if posterior_draws is None else 1)
        rng = np.random.default_rng([seed, 0 if posterior_draws is None else 1])
        orders = np.tile(np.arange(problem.length), (runs, 1))
        for order in orders:
            rng.shuffle(order[: len(problem.items)])
        while True:
            found, out_of_slots = _estimates(
                problem.config,
                problem.data,
                problem.schedule,
                jax.random.split(root, runs),
                jnp.asarray(orders),
                None if posterior_draws is None else jnp.asarray(posterior_draws),
                num_particles,
            )
            if not bool(out_of_slots.any()):
                return problem, np.asarray(found)
            problem = problem._replace(config=problem.config.with_more_slots())
