"""Particles that sum over missing labels, against the sum itself.

Few particles, many runs: the mean of the estimates must be right however bad each of them is.
Comparisons are within four standard errors, one false alarm in 16,000 at fixed seeds.
"""

from __future__ import annotations

import itertools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import logsumexp
from scipy.stats import chisquare

import bayes_lcs as bl
from bayes_lcs.inference.smc import smc
from bayes_lcs.inference.smc.labels import LabelConfig, SMCData, build_problem

RUNS = 4000
SCHEMA = bl.Schema(2, (3, 2, 2, 3, 2))
MODELS = {
    "no sharing": bl.NoSharing(feature_prior=0.3, label_prior=[0.5, 1.5]),
    "complete sharing": bl.CompleteSharing(feature_prior=0.3, label_prior=[0.5, 1.5]),
}


def table() -> bl.GroupedTable:
    """Two groups; the second has a labelled row too, and some rows lack a value."""
    data, _ = MODELS["complete sharing"].simulate(SCHEMA, [7, 5], seed=8, missing=0.1)
    return data.mask_labels(np.arange(11))


def labelings(model: Any, data: bl.GroupedTable) -> tuple[NDArray, NDArray]:
    """All labels of the rows without one, and ``log P(X, Y)`` with each."""
    missing = np.flatnonzero(data.labels < 0)
    every = np.array(list(itertools.product(range(2), repeat=len(missing))))
    logs = []
    for labeling in every:
        labels = data.labels.copy()
        labels[missing] = labeling
        logs.append(model.log_marginal(data.with_labels(labels).counts()))
    return every, np.array(logs)


def run(
    model: Any,
    data: bl.GroupedTable,
    ends: NDArray | None = None,
    particles: int = 4,
    renewals: str = "often",
) -> NDArray:
    """Log estimates of ``P(X | X and Y of labelled rows)``, parts added up."""
    total = np.zeros(RUNS)
    for number, problem in enumerate(build_problem(model, data)):
        if renewals == "rare":
            rejuvenates = np.arange(len(problem.schedule.ends)) == 3
            problem = problem._replace(schedule=problem.schedule._replace(rejuvenates=rejuvenates))
        own = None
        if ends is not None:
            own = np.zeros((RUNS, problem.length), dtype=np.int64)
            own[:, : len(problem.items)] = ends[:, problem.items]
        total += smc.estimate(
            problem, runs=RUNS, num_particles=particles, seed=number, posterior_draws=own
        )[1]
    return total


def assert_mean_is_one(ratios: NDArray) -> None:
    error = ratios.std(ddof=1) / np.sqrt(len(ratios))
    assert error < 0.05
    assert abs(ratios.mean() - 1.0) < 4.0 * error


@pytest.mark.parametrize("renewals", ["often", "rare"])
@pytest.mark.parametrize("name", MODELS)
def test_forwards_the_mean_is_the_sum_over_labelings(name: str, renewals: str):
    model, data = MODELS[name], table()
    _, logs = labelings(model, data)
    expected = logsumexp(logs) - model.log_marginal(data.counts())
    assert_mean_is_one(np.exp(run(model, data, renewals=renewals) - expected))


@pytest.mark.parametrize("renewals", ["often", "rare"])
@pytest.mark.parametrize("name", MODELS)
def test_backwards_the_mean_of_the_inverse_is_the_inverse(name: str, renewals: str):
    model, data = MODELS[name], table()
    every, logs = labelings(model, data)
    expected = logsumexp(logs) - model.log_marginal(data.counts())
    rng = np.random.default_rng(4)
    drawn = rng.choice(len(every), RUNS, p=np.exp(logs - logsumexp(logs)))
    assert_mean_is_one(np.exp(expected - run(model, data, every[drawn], renewals=renewals)))


def test_drawing_labels_again_leaves_their_posterior_as_it_is():
    """Particles at exact draws, every label drawn again, against the probabilities themselves."""
    model = MODELS["complete sharing"]
    data, _ = model.simulate(SCHEMA, [5, 3], seed=2, missing=0.1)
    data = data.mask_labels([0, 1, 3, 4, 6])
    every, logs = labelings(model, data)
    probabilities = np.exp(logs - logsumexp(logs))
    num_particles = 40_000
    rng = np.random.default_rng(7)
    drawn = every[rng.choice(len(every), num_particles, p=probabilities)]
    config, data, _, _, length = build_problem(model, data)[0]
    free = jnp.asarray(-1)
    with jax.enable_x64(True):
        state = smc.init(config, data, length, num_particles)
        keys = jax.random.split(jax.random.key(3), 5)
        particles = state.particles
        for row in range(5):
            particles = config.reassign(
                data, particles, row, one_hot(drawn[:, row] - 2), one_hot(drawn[:, row])
            )
        state = state._replace(
            particles=particles, assignments=state.assignments.at[:5].set(drawn.T.astype(np.int16))
        )
        for row in range(5):
            state, _ = smc._assign(config, data, keys[row], state, row, False, free)
    codes = np.asarray(state.assignments)[:5].T @ (2 ** np.arange(4, -1, -1))
    observed = np.bincount(codes, minlength=32)
    expected = num_particles * probabilities
    common = expected >= 5
    pooled = [np.append(v[common], v[~common].sum()) for v in (observed, expected)]
    assert chisquare(*pooled).pvalue > 1e-4
    assert (drawn != np.asarray(state.assignments)[:5].T).any(axis=1).mean() > 0.2


def one_hot(labels: NDArray) -> NDArray:
    return (np.arange(2)[:, None] == labels).astype(float)


def test_drawn_anew_in_proportion_to_their_weights_and_the_leader_stays_first():
    weights = np.array([0.1, 0.4, 0.3, 0.2])
    config, data, _, _, length = build_problem(MODELS["complete sharing"], table())[0]
    with jax.enable_x64(True):
        state = smc.init(config, data, length, 4)._replace(log_weights=jnp.log(weights))
        owners = jnp.broadcast_to(jnp.arange(4.0), state.particles.owners.shape)
        state = state._replace(particles=state.particles._replace(owners=owners))
        keys = jax.random.split(jax.random.key(1), 3000)

        def chosen(is_led: bool) -> NDArray:
            draw = jax.vmap(lambda key: smc._resample(config, key, state, is_led))
            return np.asarray(draw(keys).particles.owners[:, 0, 0]).astype(int)

        free, led = chosen(jnp.asarray(False)), chosen(jnp.asarray(True))
    assert (led[:, 0] == 0).all()
    for drawn in (free.ravel(), led[:, 1:].ravel()):
        counts = np.bincount(drawn, minlength=4)
        assert chisquare(counts, weights * drawn.size).pvalue > 1e-4


def test_more_particles_spread_less():
    model, data = MODELS["complete sharing"], table()
    few, many = (run(model, data, particles=particles).var() for particles in (4, 64))
    assert many < few / 4


def test_stages_grow_with_the_rows_and_end_with_the_last():
    schedule = smc.smc_schedule(300, num_stages=200)
    ends = np.asarray(schedule.ends)
    assert ends[0] == 1
    assert (np.diff(ends) >= 0).all()
    assert len(ends) == 200
    assert ends[-1] == 300
    inside = ends[ends < 300]
    assert (np.diff(inside) <= np.maximum(1, 0.05 * inside[:-1])).all()
    assert not np.asarray(schedule.rejuvenates)[ends == 300].any()


@pytest.mark.parametrize("num_choices", [2, 40_000])
def test_places_are_numbered_however_many_there_are(num_choices):
    """A particle that is led to the last place is there: 16 bits do not hold 40,000."""
    config = LabelConfig(num_choices)
    with jax.enable_x64(True):
        data = SMCData(
            cells=jnp.zeros((1, 1), dtype=jnp.int32),
            present=jnp.ones((1, 1), dtype=bool),
            owner=jnp.zeros(1, dtype=jnp.int32),
            cell_weights=jnp.ones((2, num_choices)),
            feature_weights=jnp.ones((1, num_choices)),
            label_weights=jnp.ones((1, num_choices)),
        )
        start = smc.init(config, data, 1, 1)
        last = jnp.asarray(num_choices - 1)
        state, _ = smc._assign(config, data, jax.random.key(0), start, jnp.asarray(0), True, last)
    assert state.assignments.tolist() == [[num_choices - 1]]
    assert np.asarray(state.particles.owners)[0, -1, 0] == 2.0
