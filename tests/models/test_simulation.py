"""Draws have the distribution that the models say.

Every statistical test here has a fixed seed and fails for at most one seed in 10,000.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from scipy import stats

from bayes_lcs.core.counts import count_rows
from bayes_lcs.core.partitions import first_occurrence, log_crp
from bayes_lcs.core.priors import Gamma
from bayes_lcs.core.schema import Schema
from bayes_lcs.models.clustered_naive_bayes import ClusteredNaiveBayes
from bayes_lcs.models.complete_sharing import CompleteSharing
from bayes_lcs.models.no_sharing import NoSharing
from bayes_lcs.models.prototype import Prototype
from bayes_lcs.models.simulation import draw_cells, draw_crp, draw_labels, draw_number, draw_table
from tests.models.prototype_grid import grid_log_evidence
from tests.oracles import all_partitions, brute_force_posterior

FALSE_ALARM = 1e-4


@pytest.mark.parametrize("concentration", [0.5, 3.0])
def test_the_crp_draws_every_partition_as_often_as_it_should(concentration: float) -> None:
    draws = draw_crp(np.random.default_rng(1), concentration, 4, 20_000)
    np.testing.assert_array_equal(draws, first_occurrence(draws))
    every = list(all_partitions(4))
    index = {z: i for i, z in enumerate(every)}
    observed = np.bincount([index[tuple(z)] for z in draws.tolist()], minlength=15)
    expected = 20_000 * np.exp([log_crp(z, concentration) for z in every])
    assert stats.chisquare(observed, expected * (20_000 / expected.sum())).pvalue > FALSE_ALARM


def test_the_crp_has_the_right_number_of_clusters_at_many_groups() -> None:
    num_groups, concentration, num_draws = 300, 2.5, 4000
    draws = draw_crp(np.random.default_rng(2), concentration, num_groups, num_draws)
    opens = concentration / (concentration + np.arange(num_groups))
    standard_error = np.sqrt((opens * (1 - opens)).sum() / num_draws)
    z_score = (draws.max(axis=1) + 1 - opens.sum()).mean() / standard_error
    assert abs(z_score) < stats.norm.isf(FALSE_ALARM / 2)


def test_one_partition_is_a_vector_and_none_is_empty() -> None:
    rng = np.random.default_rng(0)
    assert draw_crp(rng, 1.0, 5).shape == (5,)
    assert draw_crp(rng, 1.0, 0).shape == (0,)
    assert draw_crp(rng, 1e-12, 6).tolist() == [0] * 6
    assert draw_crp(rng, 1e12, 6).tolist() == list(range(6))


def test_dirichlet_draws_have_beta_marginals() -> None:
    schema = Schema(1, (3, 2))
    prior = np.array([0.3, 1.0, 4.0, 0.4, 2.0])
    draws = draw_cells(np.random.default_rng(3), schema, np.broadcast_to(prior, (20_000, 5)))
    np.testing.assert_allclose(schema.sum_values(draws), 1.0)
    totals = schema.sum_values(prior)[schema.cell_feature]
    for cell in range(5):
        law = stats.beta(prior[cell], totals[cell] - prior[cell])
        # Five tests, so a fifth of the rate for each.
        assert stats.kstest(draws[:, cell], law.cdf).pvalue > FALSE_ALARM / 5


def test_dirichlet_draws_survive_tiny_parameters() -> None:
    schema = Schema(1, (3,))
    rng = np.random.default_rng(0)
    for prior in (1e-3, 1e-8, 1e-300, 0.0):
        draws = draw_cells(rng, schema, np.full((100, 3), prior))
        assert np.isfinite(draws).all()
        np.testing.assert_allclose(draws.sum(axis=-1), 1.0)


def test_label_draws_have_the_prior_mean() -> None:
    prior = np.array([1.0, 2.0, 5.0])
    draws = draw_labels(np.random.default_rng(5), prior, 20_000)
    law = stats.dirichlet(prior)
    z_scores = (draws.mean(axis=0) - law.mean()) / np.sqrt(law.var() / len(draws))
    assert np.abs(z_scores).max() < stats.norm.isf(FALSE_ALARM / 2 / 3)


def test_numbers_are_themselves_or_gamma_draws() -> None:
    rng = np.random.default_rng(6)
    assert draw_number(rng, 2.5) == 2.5
    draws = [draw_number(rng, Gamma(3.0, 2.0)) for _ in range(3000)]
    assert stats.kstest(draws, stats.gamma(3.0, scale=0.5).cdf).pvalue > FALSE_ALARM
    assert draw_number(rng, Gamma(1e-5, 1.0)) > 0


def test_rows_follow_their_probabilities_and_are_lost_at_random() -> None:
    schema = Schema(2, (3,))
    phi = np.array([[0.3, 0.7], [0.9, 0.1]])
    theta = np.array([[[0.2, 0.5, 0.3], [0.0, 0.4, 0.6]], [[1.0, 0.0, 0.0], [0.1, 0.1, 0.8]]])
    table = draw_table(
        np.random.default_rng(7),
        schema,
        [30_000, 10_000],
        phi,
        theta,
        missing=0.0,
        missing_labels=0.0,
    )
    counts = table.counts().features
    expected = np.array([30_000, 10_000])[:, None, None] * phi[:, :, None] * theta
    assert (counts[expected == 0] == 0).all()
    possible = expected > 0
    statistic = ((counts - expected)[possible] ** 2 / expected[possible]).sum()
    # Nine possible cells in two groups of fixed size: 9 - 2 degrees of freedom.
    assert stats.chi2.sf(statistic, possible.sum() - 2) > FALSE_ALARM
    table = draw_table(
        np.random.default_rng(8),
        schema,
        [30_000, 10_000],
        phi,
        theta,
        missing=0.25,
        missing_labels=0.1,
    )
    for lost, share in ((table.features < 0, 0.25), (table.labels < 0, 0.1)):
        assert stats.binomtest(int(lost.sum()), 40_000, share).pvalue > FALSE_ALARM


OUTCOMES = list(itertools.product(range(2), repeat=6))  # labels of three rows, then features
TINY = Schema(2, (2,))


def log_probability(model: Any, outcome: tuple[int, ...]) -> float:
    counts = count_rows(TINY, 2, [0, 0, 1], outcome[:3], np.array(outcome[3:])[:, None])
    if isinstance(model, Prototype):
        return grid_log_evidence(model, counts)
    if isinstance(model, ClusteredNaiveBayes):
        return brute_force_posterior(counts, model.concentration).log_evidence
    return model.log_marginal(counts)


@pytest.mark.parametrize(
    "model",
    [
        NoSharing(),
        NoSharing(feature_prior=Gamma(1.0, 2.0)),
        CompleteSharing(),
        CompleteSharing(feature_prior=Gamma(1.0, 2.0)),
        Prototype(strength_prior=Gamma(1.0, 0.5)),
        ClusteredNaiveBayes(concentration=0.5),
    ],
    ids=lambda model: f"{model.name} {model.feature_prior}",
)
def test_every_tiny_table_is_drawn_as_often_as_its_evidence_says(model: Any) -> None:
    probabilities = np.exp([log_probability(model, outcome) for outcome in OUTCOMES])
    assert probabilities.sum() == pytest.approx(1.0, abs=1e-8)
    num_draws = 2000
    observed = np.zeros(len(OUTCOMES))
    for seed in range(num_draws):
        table, _ = model.simulate(TINY, [2, 1], seed=seed)
        bits = [*table.labels.tolist(), *table.features[:, 0].tolist()]
        observed[int("".join(map(str, bits)), 2)] += 1
    expected = num_draws * probabilities / probabilities.sum()
    assert expected.min() > 5
    assert stats.chisquare(observed, expected).pvalue > FALSE_ALARM


def test_truths_say_what_was_drawn() -> None:
    schema = Schema(2, (3, 2))
    model = ClusteredNaiveBayes(concentration=Gamma(5.0, 1.0), feature_prior=Gamma(2.0, 1.0))
    _, truth = model.simulate(schema, [1] * 40, seed=1)
    assert truth.concentration > 0
    assert len(np.unique(truth.feature_prior)) == 1
    same = truth.partition[:, None] == truth.partition
    np.testing.assert_array_equal((truth.theta[:, None] == truth.theta).all(axis=(2, 3)), same)
    assert 1 < truth.partition.max() + 1 < 40
    _, truth = Prototype(strength_prior=Gamma(1e9, 1.0)).simulate(schema, [1] * 3, seed=1)
    assert truth.concentration is None
    np.testing.assert_allclose(truth.theta, np.broadcast_to(truth.prototype, (3, 2, 5)), atol=1e-3)
