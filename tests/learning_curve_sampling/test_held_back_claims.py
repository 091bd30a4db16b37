"""Claims of learning-curve sampling against the truth, on real rows that only the tests see.

A condition is a data set, a number of components and a way to train the stages, each with a split
of its own. Seconds are counted, not measured: rows times iterations times components.
"""

from __future__ import annotations

import functools
import itertools

import numpy as np
import pytest
from scipy import stats

import bayes_lcs as bl
from bayes_lcs.core.errors import DatasetNotFound
from experiments.learning_curve.real_data import LOADERS
from tests.learning_curve_sampling.made import StepClock

NAMES = (
    *("adult", "bank_marketing", "default_credit", "income_esl", "kdd98", "mushroom"),
    *("nltcs", "nursery", "uscensus1990_sample"),
)
CONDITIONS = list(itertools.product(NAMES, (3, 12), (None, "fixed-1")))

FALSE_ALARMS = 1e-3
"""Chance that intervals which hold 95 % of the time are called wrong."""

TOLERANCE = 0.02
"""As stated in docs/learning_curve_sampling.md, beside the cost of the run's own time."""

COSTS = (0.0, 0.02, 0.2)
"""Cost of full training on all rows, in benefit."""


class Counted(bl.MixtureClusterer):
    """A mixture whose training moves a clock."""

    ticks = StepClock()

    def fit(self, X, y=None, sample_weight=None):
        super().fit(X, y, sample_weight)
        Counted.ticks.now += 1e-6 * self.n_components * self.n_iter_ * len(X)
        return self


@functools.cache
def rows_of(name):
    return LOADERS[name]()


def real_rows(name, num_rows, seed):
    """A random part of a data set, and the others, of which there are several times as many."""
    try:
        data = rows_of(name)
    except DatasetNotFound as absent:
        pytest.skip(str(absent))
    order = np.random.default_rng(seed).permutation(len(data))
    return data, data[order[:num_rows]], data[order[num_rows:]]


def claims(number, name, components, way):
    """Claimed and true values of one condition, for every cost."""
    data, source, test = real_rows(name, 3000, 1000 + number)
    estimator = Counted(
        components, random_state=number, categories=[np.unique(column) for column in data.T]
    )
    options = {
        "initial_size": 600,
        "holdout_size": 600,
        "random_state": number,
        "clock": Counted.ticks,
        "progress": False,
    }
    full = bl.learning_curve_sample(estimator, source, method="full", **options)
    # Rows are in random order already, so that any of them serve the baseline.
    base = bl.MixtureClusterer(1, categories=estimator.categories).fit(source[:2400])
    bottom, top = base.score_samples(test).mean(), full.model.score_samples(test).mean()
    for cost in COSTS:
        alpha = cost / (full.runtime_seconds / 3600)
        found = bl.learning_curve_sample(estimator, source, alpha=alpha, abbreviated=way, **options)
        score = found.model.score_samples(test).mean()
        truth = {"score": score, "gain": score - bottom}
        if top > bottom:
            truth["benefit"] = (score - bottom) / (top - bottom)
        yield cost, found, found.compared_with(full), truth


@pytest.mark.slow
def test_claims_hold_on_rows_held_back():
    """Intervals hold at their rate in 36 conditions, and utility is within its tolerance."""
    held = {"score": [], "gain": [], "benefit": []}
    behind = []
    for number, condition in enumerate(CONDITIONS):
        for cost, found, known, truth in claims(number, *condition):
            assert found.score == max(fit.score for fit in found.run.candidates)
            if cost == 0.0:
                assert found.stages[-1].fit.size == found.total_rows
            if found.abbreviated is not None or found.stages[-1].fit.size < found.total_rows:
                assert np.isnan(found.benefit)
                assert np.isnan(found.utility)
            if cost == COSTS[number % len(COSTS)]:  # one a split: they are not independent
                for key, value in truth.items():
                    low, high = getattr(known, f"{key}_interval")
                    assert low <= getattr(known, key) <= high
                    held[key].append(low <= value <= high)
            if "benefit" in truth:
                own = known.preferences.price(known.runtime_seconds)
                utility = truth["benefit"] - own
                behind.append((1.0 - cost) - utility - own)
    assert len(CONDITIONS) == 36
    for key, values in held.items():
        chance = stats.binomtest(sum(values), len(values), 0.95, "less").pvalue
        assert chance > FALSE_ALARMS, (key, sum(values), len(values))
    assert max(behind) <= TOLERANCE, max(behind)
