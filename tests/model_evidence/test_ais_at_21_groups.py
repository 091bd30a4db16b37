"""Annealed importance sampling against the exact sum over 475 trillion partitions of 21 groups.

Twenty tables from peaked (one partition has two thirds of the posterior) to flat (none that was
seen among 200 draws has a chance of one in ten million), with few rows in some groups, missing
values and concentrations from 0.5 to 8. All have one shape, so that one program serves them all.

The estimate must lie within 0.1 nat *and* within three of its standard errors of the exact value.
Seeds are fixed and were not chosen. They failed once: with the keys as they were derived before,
table 18 was 0.111 too low, five stated errors and four true ones (4,096 chains under that schedule:
0.0006 +- 0.006, and seven other seeds within 1.3). Keys were then derived differently, for another
reason, and all twenty pass; that is not proof that it was chance. At other seeds a correct
estimator would miss three standard errors somewhere among the twenty with probability 5 %. The sum
of squares, over all twenty, would fail with probability 1e-3.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chi2

import bayes_lcs as bl

NUM_TABLES = 20
NUM_GROUPS = 21
NUM_ROWS = 84
SCHEMA = bl.Schema(2, (3, 3, 2))
FALSE_ALARM = 1e-3


def problem(number: int) -> tuple[bl.ClusteredNaiveBayes, bl.GroupedTable]:
    """A model and a table, the clusters of which differ less from one number to the next."""
    rng = np.random.default_rng(number)
    evenness = (20.0, 2.0)[number % 2]
    share = rng.dirichlet(np.full(NUM_GROUPS, evenness))
    sizes = 1 + rng.multinomial(NUM_ROWS - NUM_GROUPS, share)
    truth = bl.ClusteredNaiveBayes(feature_prior=0.2 * 50.0 ** (number / (NUM_TABLES - 1)))
    data, _ = truth.simulate(SCHEMA, sizes, seed=number, missing=(0.0, 0.2, 0.5)[number % 3])
    return bl.ClusteredNaiveBayes(concentration=(0.5, 1.0, 3.0, 8.0)[number % 4]), data


@pytest.mark.slow
@pytest.mark.parametrize("half", [0, 1])
def test_within_a_tenth_of_a_nat_and_three_standard_errors(half: int):
    scores = []
    for number in range(half, NUM_TABLES, 2):
        model, data = problem(number)
        expected = bl.exact(model, data, progress=False).log_evidence
        found = bl.evidence(
            model, data, "ais", precision=0.03, max_chains=640, bracket=False, progress=False
        )
        error = found.value - expected
        assert abs(error) < 0.1, (number, error, found.standard_error)
        assert abs(error) < 3.0 * found.standard_error, (number, error, found.standard_error)
        scores.append(error / found.standard_error)
    assert chi2.sf(np.square(scores).sum(), len(scores)) > FALSE_ALARM / 2
