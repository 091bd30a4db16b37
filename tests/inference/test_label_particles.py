"""Particles that sum over missing labels, against the sum itself.

Few particles, many runs: the mean of the estimates must be right however bad each of them is.
Comparisons are within four standard errors, one false alarm in 16,000 at fixed seeds.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import logsumexp

import bayes_lcs as bl
from bayes_lcs.inference import label_particles
from bayes_lcs.inference.label_parts import pose

RUNS = 4000
SCHEMA = bl.Schema(2, (3, 2))
MODELS = {
    "no sharing": bl.NoSharing(feature_prior=0.4, label_prior=[0.5, 1.5]),
    "complete sharing": bl.CompleteSharing(feature_prior=0.4, label_prior=[0.5, 1.5]),
}


def table() -> bl.GroupedTable:
    """Two groups; the second has labelled rows too, and rows that lack a value."""
    data, _ = MODELS["no sharing"].simulate(SCHEMA, [6, 9], seed=8, missing=0.15)
    return data.mask_labels([0, 1, 2, 3, 4, 5, 6, 8, 9, 11])


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
    model: Any, data: bl.GroupedTable, ends: NDArray | None = None, particles: int = 3
) -> NDArray:
    """Log estimates of ``P(X | X and Y of labelled rows)``, parts added up."""
    total = np.zeros(RUNS)
    for number, posed in enumerate(pose(model, data)):
        own = None
        if ends is not None:
            own = np.zeros((RUNS, len(posed.part.cells)), dtype=np.int64)
            own[:, : len(posed.rows)] = ends[:, posed.rows]
        total += label_particles.estimate(
            posed.part, posed.stages, runs=RUNS, num_particles=particles, seed=number, ends=own
        )
    return total


def assert_mean_is_one(ratios: NDArray) -> None:
    error = ratios.std(ddof=1) / np.sqrt(len(ratios))
    assert error < 0.05
    assert abs(ratios.mean() - 1.0) < 4.0 * error


@pytest.mark.parametrize("name", MODELS)
def test_forwards_the_mean_is_the_sum_over_labelings(name: str):
    model, data = MODELS[name], table()
    _, logs = labelings(model, data)
    expected = logsumexp(logs) - model.log_marginal(data.counts())
    assert_mean_is_one(np.exp(run(model, data) - expected))


@pytest.mark.parametrize("name", MODELS)
def test_backwards_the_mean_of_the_inverse_is_the_inverse(name: str):
    model, data = MODELS[name], table()
    every, logs = labelings(model, data)
    expected = logsumexp(logs) - model.log_marginal(data.counts())
    rng = np.random.default_rng(4)
    drawn = rng.choice(len(every), RUNS, p=np.exp(logs - logsumexp(logs)))
    assert_mean_is_one(np.exp(expected - run(model, data, every[drawn])))


def test_more_particles_spread_less():
    model, data = MODELS["complete sharing"], table()
    few, many = (run(model, data, particles=particles).var() for particles in (3, 48))
    assert many < few / 4


def test_stages_grow_with_the_rows_and_end_with_the_last():
    stages = label_particles.reading(300, stages=200)
    ends = np.asarray(stages.ends)
    assert ends[0] == 1
    assert (np.diff(ends) >= 0).all()
    assert len(ends) == 200
    assert ends[-1] == 300
    inside = ends[ends < 300]
    assert (np.diff(inside) <= np.maximum(1, 0.05 * inside[:-1])).all()
    assert not np.asarray(stages.renews)[ends == 300].any()
