"""Samplers of log evidence in other packages, each at its defaults, and ours.

A contestant takes a problem and returns ``run(seed)``, which may be called again; what a first call
compiles, later calls keep if the package can keep it. None of the packages is needed to import this
module. `Estimate.standard_error` is None where a package states none.

*PyMC*      ``sample_smc``: independent Metropolis-Hastings, 2,000 particles, two chains. It builds
            its functions in every call; that time is `Estimate.building`.
*blackjax*  ``adaptive_tempered_smc``, 2,000 particles, ten moves a temperature. Of a factor, random
            walks in unconstrained coordinates with the covariance of the particles; of a partition,
            one group seated anew at a time, which the package allows.
*jaxns*     ``NestedSampler`` on the unit cube.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
from scipy.special import logsumexp

import bayes_lcs as bl
from experiments.benchmarks.evidence_problems import (
    STRENGTH_RATE,
    Factor,
    Partition,
    cube_to_factor,
    cube_to_partition,
    log_blocks,
    log_factor,
)

Problem = Factor | Partition
PARTICLES = 2_000
PRECISION = 0.05  # of our annealing


class Estimate(NamedTuple):
    """A log evidence, its stated error, and CPU seconds of compilation where a call states them."""

    value: float
    standard_error: float | None
    building: float = 0.0


Run = Callable[[int], Estimate]


def cpu_seconds() -> float:
    """Of this process, all threads, and of its children."""
    return sum(os.times()[:4])


def ours(method: str) -> Callable[[Problem], Run]:
    """Our own, without the reversed chains that no peer has."""

    def prepare(problem: Problem) -> Run:
        data, model = problem.data, problem.model

        def run(seed: int) -> Estimate:
            found = bl.evidence(
                model, data, method, precision=PRECISION, bracket=False, seed=seed, progress=False
            )
            return Estimate(found.value, found.standard_error)

        return run

    return prepare


# PyMC ---------------------------------------------------------------------------------------------


def pymc_factor(problem: Factor) -> Any:
    import pymc as pm
    import pytensor.tensor as pt

    counts = problem.counts.astype(float)
    with pm.Model() as model:
        prototype = pm.Dirichlet("prototype", np.ones(problem.num_values))
        strength = pm.Gamma("strength", 1.0, STRENGTH_RATE)
        scatter = strength * prototype
        each = pt.gammaln(counts + scatter) - pt.gammaln(scatter)
        total = pt.gammaln(counts.sum(axis=1) + strength) - pt.gammaln(strength)
        pm.Potential("likelihood", each.sum() - total.sum())
    return model


def pymc_partition(problem: Partition) -> Any:
    import pymc as pm
    import pytensor.tensor as pt

    groups = problem.num_groups
    counts = problem.counts.astype(float)
    num_values = counts.shape[-1]
    with pm.Model() as model:
        cube = pm.Uniform("cube", shape=groups)
        sizes = pt.zeros(groups)
        seats = []
        for group in range(groups):
            weights = sizes + pt.eq(np.arange(groups), pt.gt(sizes, 0).sum())
            running = pt.cumsum(weights)
            passed = pt.gt(running, cube[group] * running[-1]).astype("float64")
            seat = pt.concatenate([passed[:1], passed[1:] - passed[:-1]])
            seats.append(seat)
            sizes = sizes + seat
        blocks = pt.stack(seats).T @ counts.reshape(groups, -1)
        cells = blocks.reshape((-1, num_values))
        total = pt.gammaln(cells.sum(axis=1) + num_values) - pt.gammaln(float(num_values))
        pm.Potential("likelihood", pt.gammaln(cells + 1.0).sum() - total.sum())
    return model


def pymc_smc(problem: Problem) -> Run:
    import logging

    import pymc as pm

    logging.getLogger("pymc").setLevel(logging.ERROR)
    is_factor = isinstance(problem, Factor)
    model = pymc_factor(problem) if is_factor else pymc_partition(problem)
    base = 0.0 if is_factor else problem.log_labels

    class Clocked(pm.smc.kernels.IMH):
        building = 0.0

        def __init__(self, *args: Any, **kwargs: Any) -> None:
            before = cpu_seconds()
            super().__init__(*args, **kwargs)
            Clocked.building = cpu_seconds() - before

    def run(seed: int) -> Estimate:
        with model:
            found = pm.sample_smc(
                PARTICLES,
                kernel=Clocked,
                chains=2,
                cores=1,
                random_seed=seed,
                progressbar=False,
                compute_convergence_checks=False,
                return_inferencedata=False,
            )
        last = [float(np.asarray(one, dtype=float)[-1]) for one in stages(found)]
        return Estimate(base + float(logsumexp(last) - np.log(len(last))), None, Clocked.building)

    return run


def stages(trace: Any) -> list[Any]:
    """Log marginal likelihood after every stage, of each chain."""
    return list(trace.report.log_marginal_likelihood)


# blackjax -----------------------------------------------------------------------------------------


def blackjax_smc(problem: Problem) -> Run:
    import jax

    jax.config.update("jax_enable_x64", True)
    import blackjax
    import jax.numpy as jnp
    from blackjax.smc import extend_params, resampling
    from blackjax.smc.tuning.from_particles import particles_covariance_matrix

    counts = jnp.asarray(problem.counts, dtype=float)
    common: dict[str, Any] = {
        "resampling_fn": resampling.systematic,
        "target_ess": 0.5,
        "num_mcmc_steps": 10,
    }
    if isinstance(problem, Factor):
        base, dims = 0.0, problem.num_values

        def values(point: jax.Array) -> tuple[jax.Array, jax.Array]:
            ratios = jnp.concatenate([point[1:], jnp.zeros(1)])
            return jax.nn.log_softmax(ratios), point[0]

        def log_prior(point: jax.Array) -> jax.Array:
            log_prototype, log_strength = values(point)
            constant = jax.lax.lgamma(float(dims)) + jnp.log(STRENGTH_RATE)
            scale = log_strength - STRENGTH_RATE * jnp.exp(log_strength)
            return constant + log_prototype.sum() + scale

        def log_likelihood(point: jax.Array) -> jax.Array:
            log_prototype, log_strength = values(point)
            return log_factor(counts, jnp.exp(log_prototype), jnp.exp(log_strength))

        def begin(key: jax.Array) -> jax.Array:
            prototype, strength = jax.vmap(cube_to_factor)(
                jax.random.uniform(key, (PARTICLES, dims), minval=1e-12)
            )
            ratios = jnp.log(prototype[:, :-1]) - jnp.log(prototype[:, -1:])
            return jnp.concatenate([jnp.log(strength)[:, None], ratios], axis=1)

        walk = blackjax.additive_step_random_walk.build_kernel()

        def step(key: jax.Array, state: Any, log_density: Any, covariance: jax.Array) -> Any:
            factor = jnp.linalg.cholesky(2.38**2 / dims * covariance)
            return walk(
                key, state, log_density, lambda k, _: factor @ jax.random.normal(k, (dims,))
            )

        def tuned(_key: Any, state: Any, _info: Any) -> dict[str, jax.Array]:
            return extend_params({"covariance": particles_covariance_matrix(state.particles)})

        def prepared(particles: jax.Array) -> Any:
            return {"covariance": particles_covariance_matrix(particles)}

        def algorithm(particles: jax.Array) -> Any:
            return blackjax.inner_kernel_tuning(
                smc_algorithm=blackjax.adaptive_tempered_smc,
                logprior_fn=log_prior,
                loglikelihood_fn=log_likelihood,
                mcmc_step_fn=step,
                mcmc_init_fn=blackjax.additive_step_random_walk.init,
                mcmc_parameter_update_fn=tuned,
                initial_parameter_value=extend_params(prepared(particles)),
                **common,
            )
    else:
        base, groups = problem.log_labels, problem.num_groups
        # A partition into K blocks has U! / (U - K)! labelings by U slots, all with equal shares.
        shares = -jnp.cumsum(jnp.log(jnp.arange(groups, 0, -1.0)))

        def log_prior(z: jax.Array) -> jax.Array:
            sizes = jnp.zeros(groups).at[z].add(1.0)
            used = sizes > 0
            seats = jnp.where(used, jax.lax.lgamma(jnp.maximum(sizes, 1.0)), 0.0).sum()
            return seats - jax.lax.lgamma(groups + 1.0) + shares[used.sum() - 1]

        def log_likelihood(z: jax.Array) -> jax.Array:
            return log_blocks(counts, z)

        def begin(key: jax.Array) -> jax.Array:
            key_cube, key_slots = jax.random.split(key)
            z = jax.vmap(cube_to_partition)(jax.random.uniform(key_cube, (PARTICLES, groups)))
            slots = jax.vmap(lambda k: jax.random.permutation(k, groups))(
                jax.random.split(key_slots, PARTICLES)
            )
            return jnp.take_along_axis(slots, z, axis=1)

        kernel = blackjax.rmh.build_kernel()

        def propose(key: jax.Array, z: jax.Array) -> jax.Array:
            key_group, key_slot = jax.random.split(key)
            group = jax.random.randint(key_group, (), 0, groups)
            return z.at[group].set(jax.random.randint(key_slot, (), 0, groups, dtype=z.dtype))

        def step(key: jax.Array, state: Any, log_density: Any) -> Any:
            return kernel(key, state, log_density, propose)

        def algorithm(_particles: jax.Array) -> Any:
            return blackjax.adaptive_tempered_smc(
                log_prior, log_likelihood, step, blackjax.rmh.init, {}, **common
            )

    first = begin(jax.random.key(0))
    advance = jax.jit(algorithm(first).step)
    draw = jax.jit(begin)

    def run(seed: int) -> Estimate:
        root = jax.random.key(seed)
        particles = draw(jax.random.fold_in(root, 0))
        state = algorithm(particles).init(particles)
        total, number = base, 0
        while float(getattr(state, "sampler_state", state).tempering_param) < 1.0:
            number += 1
            state, info = advance(jax.random.fold_in(root, number), state)
            total += float(info.log_likelihood_increment)
        return Estimate(total, None)

    return run


# jaxns --------------------------------------------------------------------------------------------


def jaxns_nested(problem: Problem) -> Run:
    import jax

    jax.config.update("jax_enable_x64", True)
    import jax.numpy as jnp
    from jaxns.core import NestedSampler
    from jaxns.model import Model
    from jaxns.priors import Prior
    from tensorflow_probability.substrates import jax as tfp

    is_factor = isinstance(problem, Factor)
    dims = problem.num_values if is_factor else problem.num_groups
    base = 0.0 if is_factor else problem.log_labels

    def posed(counts: jax.Array) -> jax.Array:
        uniform = tfp.distributions.Uniform(jnp.zeros(dims), jnp.ones(dims))
        cube = Prior(uniform, name="cube").realise()
        if is_factor:
            return log_factor(counts, *cube_to_factor(cube))
        return log_blocks(counts, cube_to_partition(cube))

    sampler = NestedSampler(model=Model(prior_model=posed))
    arguments = (jnp.asarray(problem.counts, dtype=float),)

    def run(seed: int) -> Estimate:
        found = sampler.run(key=jax.random.PRNGKey(seed), args=arguments).to_result().trim()
        return Estimate(base + float(found.log_Z_mean), float(found.log_Z_uncert))

    return run


CONTESTANTS: dict[str, tuple[str, Callable[[Problem], Run]]] = {
    "ours, importance": ("bayes_lcs", ours("importance")),
    "ours, AIS": ("bayes_lcs", ours("ais")),
    "ours, particles": ("bayes_lcs", ours("particles")),
    "ours, exact": ("bayes_lcs", ours("exact")),
    "PyMC SMC": ("pymc", pymc_smc),
    "blackjax SMC": ("blackjax", blackjax_smc),
    "jaxns": ("jaxns", jaxns_nested),
}


def installed(contestant: str) -> bool:
    return find_spec(CONTESTANTS[contestant][0]) is not None
