from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.special import gammaln

from bayes_lcs.core.errors import DataError
from bayes_lcs.data.grouped_table import GroupedTable
from bayes_lcs.data.simulated_meetings import meeting_requests


def test_shape_of_the_thesis() -> None:
    table, truth = meeting_requests()
    assert (table.num_rows, table.num_groups, table.num_features) == (21 * 180, 21, 15)
    assert table.num_values == (5, 4, 6, 6, 7, 5, 5, 5, 6, 6, 7, 2, 6, 4, 6)
    assert table.label_values == ("reject", "accept")
    assert table.group_names[0] == "person-01"
    assert table.group_names[-1] == "person-21"
    blocks = [set(np.flatnonzero(truth.partition == k) + 1) for k in range(9)]
    assert blocks == [
        {1, 2, 3, 5, 6, 8},
        {4, 7},
        {9, 11},
        {10, 14, 15, 21},
        {12, 17, 20},
        {13},
        {16},
        {18},
        {19},
    ]
    assert {truth.institutions[person - 1] for person in (1, 4, 8)} == {"military"}
    assert {truth.institutions[person - 1] for person in (10, 13, 18)} == {"SRI"}
    assert {truth.institutions[person - 1] for person in (9, 12, 16, 19)} == {"professors"}


def test_seed_decides_everything() -> None:
    assert meeting_requests(3, 20)[0] == meeting_requests(3, 20)[0]
    assert meeting_requests(3, 20)[0] != meeting_requests(4, 20)[0]


def test_truth_is_made_of_distributions_that_the_rows_follow() -> None:
    table, truth = meeting_requests(seed=1, rows_per_person=4000)
    schema = table.schema
    assert truth.theta.shape == (9, 2, schema.num_cells)
    assert np.allclose(schema.sum_values(truth.theta), 1)
    assert np.allclose(truth.phi.sum(axis=1), 1)
    counts = table.counts()
    shares = np.asarray(counts.labels) / 4000
    assert np.abs(shares - truth.phi).max() < 5 * np.sqrt(0.25 / 4000)
    block = np.asarray(counts.features)[truth.partition == 0].sum(axis=0)
    totals = schema.sum_values(block)[:, schema.cell_feature]
    error = np.abs(block / totals - truth.theta[0]) / np.sqrt(0.25 / totals)
    assert error.max() < 5


def test_label_rates_differ_between_people_of_one_block() -> None:
    _, truth = meeting_requests()
    assert np.ptp(truth.phi[truth.partition == 0, 1]) > 0.1


def test_unequal_sizes_and_missing_cells() -> None:
    sizes = [0, 1, *range(10, 29)]
    table, _ = meeting_requests(rows_per_person=sizes, missing_fraction=0.25)
    assert table.group_sizes.tolist() == sizes
    assert abs((table.features < 0).mean() - 0.25) < 0.03
    full, _ = meeting_requests(rows_per_person=sizes)
    seen = table.features >= 0
    assert (table.features[seen] == full.features[seen]).all()


@pytest.mark.parametrize(
    "options",
    [{"rows_per_person": -1}, {"strength": 0}, {"missing_fraction": 1.0}],
)
def test_wrong_options(options: dict[str, float]) -> None:
    with pytest.raises(DataError, match=next(iter(options))):
        meeting_requests(**options)  # type: ignore[arg-type]


def log_marginal(table: GroupedTable, counts: np.ndarray) -> float:
    """Log marginal likelihood of one block's features under uniform Dirichlet priors."""
    schema = table.schema
    totals = schema.sum_values(counts)
    sizes = np.array(schema.num_values)
    return float(gammaln(counts + 1).sum() + (gammaln(sizes) - gammaln(totals + sizes)).sum())


@pytest.mark.parametrize("seed", range(3))
def test_blocks_can_be_recovered_but_neighbours_are_close(seed: int) -> None:
    table, truth = meeting_requests(seed)
    counts = np.asarray(table.counts().features)
    blocks = [np.flatnonzero(truth.partition == k) for k in range(9)]
    homes = [truth.institutions[block[0]] for block in blocks]
    scores = [log_marginal(table, counts[block].sum(axis=0)) for block in blocks]
    alike, apart = [], []
    for i, j in itertools.combinations(range(9), 2):
        merged = log_marginal(table, counts[[*blocks[i], *blocks[j]]].sum(axis=0))
        (alike if homes[i] == homes[j] else apart).append(scores[i] + scores[j] - merged)
    assert min(alike) > 5  # every block is worth keeping apart,
    assert min(alike) < 100  # the closest pair by a modest margin,
    assert np.median(alike) < np.median(apart) / 2  # and colleagues resemble each other
    people = sum(log_marginal(table, person) for person in counts)
    assert sum(scores) > people
    assert sum(scores) > log_marginal(table, counts.sum(axis=0))
