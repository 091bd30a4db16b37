"""Rows predicted without themselves, against fitting again without them."""

from __future__ import annotations

import warnings
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import norm, t

import bayes_lcs as bl
from bayes_lcs.core.naive_bayes import log_label_marginal, normalise_log
from bayes_lcs.core.schema import Schema
from bayes_lcs.evaluation import exact_loo
from bayes_lcs.inference.datatree import draws_datatree
from bayes_lcs.inference.draw_posterior import draw_posterior
from bayes_lcs.inference.exact import posterior as exact_posterior
from bayes_lcs.inference.posterior_draws import PosteriorDraws
from tests.inference.cases import Case, random_case
from tests.model_evidence.prototype_quadrature import log_factor_integral

ERROR = 1e-9  # of a probability; blocks left out may cost LEAVE_OUT_ERROR = 1e-10

FALSE_ALARM = 1e-4
"""Chance that a test of draws fails for correct code, with other seeds."""


def a_case(seed: int = 2, num_groups: int = 5, **options) -> Case:
    settings = {"num_labels": 3, "num_values": (2, 4, 3), "rows": [7, 1, 5, 9, 3][:num_groups]}
    return random_case(seed, num_groups=num_groups, missing=0.2, **(settings | options))


def fitted_again(model, table: bl.GroupedTable) -> np.ndarray:
    """Every row predicted by a posterior that has not seen it."""
    rows = np.arange(table.num_rows)
    return np.concatenate(
        [
            bl.exact(model, table.take(np.delete(rows, row))).predict_proba(table.take([row]))
            for row in rows
        ]
    )


# Exactly ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", [bl.NoSharing, bl.CompleteSharing])
def test_known_partitions(family):
    case = a_case()
    model = family(label_prior=case.label_prior, feature_prior=case.feature_prior)
    found = bl.leave_one_out(bl.exact(model, case.table))
    assert found.method == "closed form"
    assert found.effective_draws is None
    np.testing.assert_allclose(
        found.probabilities, fitted_again(model, case.table), rtol=0, atol=1e-12
    )


@pytest.mark.parametrize("family", [bl.NoSharing, bl.CompleteSharing])
def test_known_partitions_with_a_learned_prior(family):
    case = a_case()
    model = family(feature_prior=bl.Gamma(2.0, 3.0))
    found = bl.leave_one_out(bl.exact(model, case.table))
    assert found.method == "quadrature"
    np.testing.assert_allclose(
        found.probabilities, fitted_again(model, case.table), rtol=0, atol=ERROR
    )


@pytest.mark.parametrize("concentration", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("seed", [2, 3])
def test_clustered(seed, concentration):
    case = a_case(seed, concentration=concentration)
    found = bl.leave_one_out(bl.exact(case.model, case.table))
    assert found.method == "sum over partitions"
    np.testing.assert_allclose(
        found.probabilities, fitted_again(case.model, case.table), rtol=0, atol=ERROR
    )


def test_clustered_against_every_partition():
    case = a_case(num_groups=4)
    found = bl.leave_one_out(bl.exact(case.model, case.table)).probabilities
    for row in range(len(case.labels)):
        rest = np.delete(np.arange(len(case.labels)), row)
        without = replace(
            case,
            groups=case.groups[rest],
            labels=case.labels[rest],
            features=case.features[rest],
        )
        expected = without.predict(case.groups[row], case.features[row])
        np.testing.assert_allclose(found[row], expected, rtol=0, atol=ERROR)


def mislabelled_case() -> Case:
    """Six groups alike, but for a label: the first row has the other label's features.

    Nothing else is known of group 0. With the label it shares with nobody: all blocks but one
    have a probability below 1e-14 together. Without the label, they are all but certain.
    """
    rng = np.random.default_rng(0)
    num_groups, num_features = 6, 16
    groups = np.repeat(np.arange(num_groups), [2, 12, 12, 12, 12, 12])
    labels = rng.integers(2, size=groups.size)
    labels[:2] = 0, 1
    odd = rng.random((groups.size, num_features)) < 0.05
    features = np.where(odd, 1 - labels[:, None], labels[:, None])
    features[0], features[1] = 1, -1
    prior = np.full((2, 2 * num_features), 0.3)
    schema = Schema(2, (2,) * num_features)
    return Case(schema, num_groups, groups, labels, features, np.ones(2), prior)


def test_improbable_blocks_that_decide(monkeypatch):
    monkeypatch.setattr(exact_posterior, "FIRST_BATCH", 1)
    case = mislabelled_case()
    posterior = bl.exact(case.model, case.table)
    found = bl.leave_one_out(posterior).probabilities
    again = bl.exact(case.model, case.table.take(np.arange(1, len(case.labels))))
    expected = again.predict_proba(case.table.take([0]))[0]
    np.testing.assert_allclose(found[0], expected, rtol=0, atol=ERROR)
    # That the case is as hard as it claims: stopped by probability alone, the answer is another.
    assert 0 < posterior.coclustering()[0, 1:].max() < 1e-14
    monkeypatch.setattr(exact_loo, "_log_largest_ratio", lambda *given: np.zeros(len(given[-1])))
    careless = bl.leave_one_out(posterior).probabilities
    assert np.abs(careless[0] - expected).max() > 0.1


def test_the_bound_holds_for_every_block():
    case = a_case(num_groups=5)
    posterior = bl.exact(case.model, case.table)
    counts, rows = case.table.counts(), np.flatnonzero(case.groups == 3)
    features, labels = case.features[rows], case.labels[rows]
    priors = case.label_prior, case.feature_prior
    bound = exact_loo._log_largest_ratio(counts, 3, *priors, features, labels)
    largest = np.full(len(rows), -np.inf)
    num_blocks = 0
    for blocks in posterior.informing_blocks(3):
        ratios = exact_loo._log_ratios(blocks.counts, *priors, features, labels)
        largest = np.maximum(largest, logsumexp(ratios, axis=2).max(axis=0))
        num_blocks += len(blocks.probability)
    assert num_blocks == 16
    assert (bound >= largest - 1e-12).all()


def test_mediants_against_every_set():
    rng = np.random.default_rng(0)
    top, bottom = rng.random((2, 4)), rng.random((2, 4)) + 0.1
    more_top, more_bottom = rng.integers(0, 4, (2, 5, 2, 4)).astype(float)
    inside = (np.arange(32)[:, None] >> np.arange(5) & 1).astype(float)
    tops = top + np.tensordot(inside, more_top, axes=1)
    bottoms = bottom + np.tensordot(inside, more_bottom, axes=1)
    found = exact_loo._largest_mediant(top, bottom, more_top, more_bottom)
    np.testing.assert_allclose(found, (tops / bottoms).max(axis=0), rtol=1e-12)


def test_what_is_left_out_honours_the_error(monkeypatch):
    """A coarser error leaves more out, and the answer moves by no more than that."""
    monkeypatch.setattr(exact_posterior, "FIRST_BATCH", 1)
    case = random_case(1, num_groups=9, rows=4, concentration=2.0)
    posterior = bl.exact(case.model, case.table)
    fine = bl.leave_one_out(posterior).probabilities
    moved = []
    for error in (0.5, 1e-1, 1e-2, 1e-3):
        monkeypatch.setattr(exact_loo, "LEAVE_OUT_ERROR", error)
        moved.append(np.abs(bl.leave_one_out(posterior).probabilities - fine).max())
        assert moved[-1] <= error
    assert moved[0] > 1e-6, "nothing was left out: the rule is not at work"


def test_rows_without_a_label_are_not_predicted():
    case = a_case(num_groups=3)
    table = replace(case.table, features=np.where(np.arange(13)[:, None] == 4, -1, case.features))
    found = bl.leave_one_out(bl.exact(case.model, table.mask_labels([4])))
    assert found.rows.tolist() == [0, 1, 2, 3, *range(5, 13)]
    rest = bl.leave_one_out(bl.exact(case.model, table.take(found.rows)))
    np.testing.assert_allclose(found.probabilities, rest.probabilities, atol=1e-12)


def test_losses_of_rows_left_out():
    case = a_case()
    found = bl.leave_one_out(bl.exact(bl.NoSharing(), case.table))
    np.testing.assert_array_equal(found.labels, case.labels)
    np.testing.assert_array_equal(found.groups, case.groups)
    assert found.mean_loss("log") == bl.mean_loss(found.probabilities, case.labels, "log")
    by_group = found.loss_by_group("log")
    assert by_group["num_rows"].tolist() == [7, 1, 5, 9, 3]
    weighted = (by_group["loss"] * by_group["num_rows"]).sum() / by_group["num_rows"].sum()
    assert weighted == pytest.approx(found.mean_loss("log").value)
    assert by_group["standard_error"].isna().tolist() == [False, True, False, False, False]


def test_something_else():
    with pytest.raises(TypeError, match="posterior"):
        bl.leave_one_out(object())


# From draws -------------------------------------------------------------------------------------


def independent_draws(case: Case, num_draws: int) -> PosteriorDraws:
    z = bl.exact(case.model, case.table).sample(num_draws, seed=1)
    return PosteriorDraws(case.model, case.table, {"z": z[None]})


def test_independent_draws_agree_with_the_exact_answer():
    case = a_case(num_groups=4, num_labels=2)
    draws = independent_draws(case, 1500)
    found = bl.leave_one_out(draws, max_draws=None)
    assert found.method == "importance sampling"
    exact = bl.leave_one_out(bl.exact(case.model, case.table)).probabilities[:, 1]
    log_joint = np.array(
        [
            informants.log_joint(case.features, case.groups, left_out=case.labels)
            for informants in draws.informants()
        ]
    )  # (S, N, L)
    # The estimate is a ratio of means over draws, a / b: its error to first order.
    own = log_joint[:, np.arange(len(case.labels)), case.labels]
    ratios = np.exp(log_joint - own[..., None])
    a, b = ratios[..., 1], ratios.sum(axis=2)
    residual = a - (a.mean(axis=0) / b.mean(axis=0)) * b
    error = residual.std(axis=0, ddof=1) / b.mean(axis=0) / np.sqrt(draws.num_draws)
    error = np.maximum(error, ERROR)  # rows without features are the same in every draw
    limit = norm.isf(FALSE_ALARM / (2 * len(error)))
    assert (np.abs(found.probabilities[:, 1] - exact) / error).max() < limit
    # Weights matter: the draws as they are would be many standard errors off.
    plain = normalise_log(np.logaddexp.reduce(log_joint, axis=0))[:, 1]
    assert (np.abs(plain - exact) / error).max() > 1.5 * limit


def test_effective_draws_by_hand():
    """Two partitions, so two weights: each drawn its own number of times."""
    case = random_case(0, num_groups=2, rows=3)
    z = np.array([[0, 0]] * 30 + [[0, 1]] * 70)
    draws = PosteriorDraws(case.model, case.table, {"z": z[None]})
    with pytest.warns(bl.LeaveOutWarning, match="6 of 6 rows .* fewer than 100 effective draws"):
        found = bl.leave_one_out(draws)
    for row in range(6):
        weights = []
        for partition in ([0, 0], [0, 1]):
            log_joint = case.model.informants(case.table.counts(), partition).log_joint(
                case.features[[row]], case.groups[[row]], left_out=case.labels[[row]]
            )
            weights.append(np.exp(-log_joint[0, case.labels[row]]))
        w = np.repeat(weights, [30, 70])
        assert found.effective_draws[row] == pytest.approx(w.sum() ** 2 / (w**2).sum())


def test_even_weights_are_worth_every_draw():
    case = a_case(num_groups=3)
    z = np.zeros((1, 200, 3), dtype=int)
    found = bl.leave_one_out(PosteriorDraws(case.model, case.table, {"z": z}), max_draws=150)
    np.testing.assert_allclose(found.effective_draws, 150.0)
    complete = case.model.informants(case.table.counts(), [0, 0, 0])
    expected = complete.log_joint(case.features, case.groups, left_out=case.labels)
    np.testing.assert_allclose(found.probabilities, normalise_log(expected), atol=1e-12)


def test_a_sampled_posterior_is_taken_as_it_is():
    draws = independent_draws(a_case(num_groups=3), 150)
    stats = {"log_joint": np.zeros((1, 150))}
    tree = draws_datatree(replace(draws, stats=stats), 0)
    found = bl.leave_one_out(bl.Posterior(draws.model, draws.data, tree))
    np.testing.assert_array_equal(found.probabilities, bl.leave_one_out(draws).probabilities)


def test_prototype_against_quadrature():
    """``P(y | x_i, all others)`` is a ratio of evidences, which quadrature knows."""
    strength = bl.Gamma(2.0, 0.5)
    model = bl.Prototype(feature_prior=1.5, strength_prior=strength)
    table, _ = model.simulate(Schema(2, (2, 2)), [4, 5, 3], seed=3, missing=0.1)
    labels = table.labels

    @cache
    def log_factor(cells: tuple) -> float:
        return log_factor_integral(cells, [1.5, 1.5], strength.shape, strength.rate, step=0.1)

    def log_evidence(changed: np.ndarray) -> float:
        counts = table.with_labels(changed).counts()
        total = float(log_label_marginal(counts.labels, np.ones(2)).sum())
        for label in range(2):
            for feature in range(2):
                cells = counts.features[:, label, counts.schema.cells_of(feature)]
                total += log_factor(tuple(map(tuple, cells.tolist())))
        return total

    expected = np.empty(len(labels))
    for row in range(len(labels)):
        both = []
        for label in range(2):
            changed = labels.copy()
            changed[row] = label
            both.append(log_evidence(changed))
        expected[row] = normalise_log(np.array(both))[1]

    chains = 20
    draws = draw_posterior(model, table, draws=100, chains=chains, warmup=200, thin=6, seed=0)
    found = bl.leave_one_out(draws, max_draws=None).probabilities[:, 1]
    each = []
    for chain in range(chains):
        one = {name: values[chain : chain + 1] for name, values in draws.unknown.items()}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", bl.LeaveOutWarning)  # a twentieth of the draws
            each.append(bl.leave_one_out(replace(draws, unknown=one)).probabilities[:, 1])
    error = np.std(each, axis=0, ddof=1) / np.sqrt(chains)
    limit = t.isf(FALSE_ALARM / (2 * len(labels)), chains - 1)
    assert np.abs((found - expected) / error).max() < limit
    assert np.median(error) < 0.01, "too few draws to see anything; 0.002 is usual"
