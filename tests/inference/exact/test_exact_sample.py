"""Independent draws of the partition from the exact posterior."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chisquare

import bayes_lcs as bl
from bayes_lcs.core.partitions import first_occurrence
from bayes_lcs.inference.exact import partition_function
from tests.inference.cases import partitions, random_case

FALSE_ALARM = 1e-4
"""Chance that a correct sampler would fail the goodness-of-fit test with another seed."""

DRAWS = 20_000


@pytest.mark.parametrize("arithmetic", ["scaled", "logs"])
@pytest.mark.parametrize("concentration", [0.5, 5.0])
def test_goodness_of_fit(arithmetic, concentration, monkeypatch):
    """All 52 partitions of five groups; those expected less than five times are pooled."""
    if arithmetic == "logs":
        monkeypatch.setattr(partition_function, "HUGE", 0.0)
    case = random_case(2, num_groups=5, rows=4, concentration=concentration)
    posterior = bl.exact(case.model, case.table)
    assert posterior.sums.arithmetic == arithmetic
    z = posterior.sample(DRAWS, seed=12)
    number = {partition: i for i, partition in enumerate(partitions(5))}
    found = np.bincount([number[tuple(row)] for row in z.tolist()], minlength=52)
    mean = DRAWS * case.probabilities
    rare = mean < 5
    observed = np.append(found[~rare], found[rare].sum())
    expected = np.append(mean[~rare], mean[rare].sum())
    if expected[-1] < 5:  # even the pool is too small: it joins the smallest cell
        observed[-2] += observed[-1]
        expected[-2] += expected[-1]
        observed, expected = observed[:-1], expected[:-1]
    assert expected.size > 20
    assert chisquare(observed, expected).pvalue > FALSE_ALARM


def test_draws_are_independent():
    """Neighbouring draws agree as often as two draws do: no run of copies."""
    case = random_case(2, num_groups=5, rows=4)
    z = bl.exact(case.model, case.table).sample(DRAWS, seed=3)
    same = (z[1:] == z[:-1]).all(axis=1).mean()
    chance = (case.probabilities**2).sum()
    # Five standard errors of a proportion, doubled for the dependence of overlapping pairs.
    assert abs(same - chance) < 10 * np.sqrt(chance * (1 - chance) / DRAWS)


def test_first_occurrence_labels():
    case = random_case(4, num_groups=8, clusters=4, concentration=3.0)
    z = bl.exact(case.model, case.table).sample(500, seed=0)
    assert z.shape == (500, 8)
    np.testing.assert_array_equal(z, first_occurrence(z))
    assert (z[:, 0] == 0).all()
    assert (np.diff(np.maximum.accumulate(z, axis=1), axis=1) <= 1).all()
    assert len(np.unique(z, axis=0)) > 20


def test_the_seed_decides():
    case = random_case(5, num_groups=6, concentration=3.0)
    posterior = bl.exact(case.model, case.table)
    again = bl.exact(case.model, case.table)
    np.testing.assert_array_equal(posterior.sample(200, seed=7), again.sample(200, seed=7))
    assert (posterior.sample(200, seed=7) != posterior.sample(200, seed=8)).any()
    assert posterior.sample().shape == (1000, 6)


def test_means_over_draws_are_the_exact_answers():
    """At 14 groups, where partitions are too many to count: pair by pair."""
    data, _ = bl.meeting_requests(seed=1, rows_per_person=12)
    posterior = bl.exact(bl.ClusteredNaiveBayes(), data.select_groups(range(14)))
    z = posterior.sample(DRAWS, seed=2)
    together = (z[:, :, None] == z[:, None, :]).mean(axis=0)
    exact = posterior.coclustering()
    error = np.sqrt(np.maximum(exact * (1 - exact), 0) / DRAWS)
    # 91 pairs at five and a half standard errors, and one draw for probabilities near 0 or 1.
    assert (np.abs(together - exact) <= 5.5 * error + 3 / DRAWS).all()
    clusters = np.bincount(z.max(axis=1) + 1, minlength=15) / DRAWS
    exact = posterior.num_clusters()
    error = np.sqrt(exact * (1 - exact) / DRAWS)
    assert (np.abs(clusters - exact) <= 5.5 * error + 3 / DRAWS).all()
