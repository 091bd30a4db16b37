"""Annealed importance sampling against sums over everything it averages.

Every comparison is in standard errors: four of them, one false alarm in 16,000 at fixed seeds.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from scipy.special import logsumexp

import bayes_lcs as bl
from bayes_lcs.model_evidence.bidirectional import posterior_starts
from bayes_lcs.model_evidence.log_evidence import Bracket, MeanWeight
from experiments.clustered_naive_bayes.evidence_bounds import (
    bound_from_partitions,
    bound_from_singletons,
)
from tests.models.prototype_grid import grid_log_evidence
from tests.oracles import all_partitions

BINARY = bl.Schema(2, (2, 2))
PROTOTYPE = bl.Prototype(strength_prior=bl.Gamma(2.0, 0.2))
MODELS = {
    "no sharing": bl.NoSharing(feature_prior=0.7),
    "complete sharing": bl.CompleteSharing(label_prior=[0.5, 1.5]),
    "clustered": bl.ClusteredNaiveBayes(concentration=1.5, feature_prior=0.7),
    "prototype": PROTOTYPE,
}


def log_evidence(model: Any, data: bl.GroupedTable) -> float:
    """Of a table with all its labels."""
    if isinstance(model, bl.Prototype):
        return grid_log_evidence(model, data.counts())
    return bl.exact(model, data, progress=False).log_evidence


def summed_over_labels(model: Any, data: bl.GroupedTable) -> float:
    """``log P`` of the observed part: the sum over all labels of the rows without one."""
    missing = np.flatnonzero(data.labels < 0)
    terms = []
    for labeling in itertools.product(range(data.num_labels), repeat=len(missing)):
        labels = data.labels.copy()
        labels[missing] = labeling
        terms.append(log_evidence(model, data.with_labels(labels)))
    return float(logsumexp(terms))


def assert_estimates(found: bl.LogEvidence, expected: float, within: float) -> None:
    assert 0.0 < found.standard_error < within
    assert abs(found.value - expected) < 4.0 * found.standard_error
    if found.bracket is not None:
        up = found.bracket.reverse
        assert abs(up.value - expected) < 4.0 * max(up.standard_error, 1e-3)


@pytest.mark.slow
def test_partitions_with_exact_draws_at_the_other_end():
    data, _ = MODELS["clustered"].simulate(bl.Schema(2, (3, 2)), [5, 7, 4, 6, 8], seed=3)
    expected = log_evidence(MODELS["clustered"], data)
    found = bl.evidence(MODELS["clustered"], data, "ais", precision=0.03)
    assert_estimates(found, expected, 0.04)
    assert found.method == "ais"
    assert found.bracket is not None
    assert found.bracket.rigorous
    assert found.bracket.agrees
    assert found.lower < expected < found.upper
    again = bl.evidence(MODELS["clustered"], data, "ais", precision=0.03)
    assert again == found


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_missing_labels_are_summed_over(name: str):
    model = MODELS[name]
    data, _ = model.simulate(BINARY, [5, 4, 3], seed=6, missing=0.1)
    masked = data.mask_labels([0, 3, 5, 9])
    found = bl.evidence(model, masked, "ais", precision=0.03)
    assert found.method == "ais"
    assert_estimates(found, summed_over_labels(model, masked), 0.04)


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize(("hidden", "missing"), [([], 0.0), ([2, 7], 0.2)])
def test_labels_given_features(name: str, hidden: list[int], missing: float):
    """Against the sum over all labelings of ten rows, within 0.05 nat and four standard errors."""
    model = MODELS[name]
    data, _ = model.simulate(BINARY, [4, 4, 2], seed=1, missing=missing)
    data = data.mask_labels(hidden)
    nothing = data.mask_labels(np.arange(data.num_rows))
    expected = summed_over_labels(model, data) - summed_over_labels(model, nothing)
    found = bl.conditional_evidence(model, data, precision=0.012, max_chains=4096, bracket=False)
    assert abs(found.value - expected) < 4.0 * found.standard_error
    assert abs(found.value - expected) < 0.05
    assert found.lower < found.value < found.upper


@pytest.mark.slow
def test_learned_hyper_parameters_are_integrated_out():
    model = bl.ClusteredNaiveBayes(concentration=bl.Gamma(2.0, 1.0), feature_prior=bl.Gamma(2, 2))
    data, _ = model.simulate(bl.Schema(2, (3, 2)), [5, 7, 4, 6], seed=3)
    counts = data.counts()
    expected = logsumexp([model.log_joint(counts, z) for z in all_partitions(4)])
    found = bl.evidence(model, data, precision=0.04)
    assert found.method == "ais"
    assert_estimates(found, float(expected), 0.05)


@pytest.mark.parametrize("kind", [bl.NoSharing, bl.CompleteSharing, bl.ClusteredNaiveBayes])
def test_chains_backwards_begin_at_draws_of_all_that_is_learned(kind: Any):
    """An exact posterior knows the evidence under a learned prior, but has no draws of it."""
    model = kind(feature_prior=bl.Gamma(2.0, 1.5))
    data, _ = model.simulate(BINARY, [3, 2], seed=1)
    starts, is_rigorous = posterior_starts(model, data, 16, 0, False)
    assert len(np.unique(starts["beta"])) > 8
    assert not is_rigorous


@pytest.mark.slow
@pytest.mark.parametrize("kind", [bl.NoSharing, bl.CompleteSharing])
def test_a_learned_feature_prior_is_integrated_out(kind: Any):
    """Given ``beta`` there is a closed form; what is left is an integral in one dimension.

    The package takes it by quadrature of its own; annealing must agree with both.
    """
    prior = bl.Gamma(2.0, 1.5)
    data, _ = kind(feature_prior=prior).simulate(bl.Schema(2, (3, 2)), [5, 7, 4], seed=5)
    logs = np.linspace(-12.0, 5.0, 400)
    given = [log_evidence(kind(feature_prior=float(beta)), data) for beta in np.exp(logs)]
    weights = prior.log_density_of_log(logs) + np.log(logs[1] - logs[0])
    expected = float(logsumexp(given + weights))
    closed = bl.evidence(kind(feature_prior=prior), data)
    assert closed.is_exact
    assert closed.value == pytest.approx(expected, abs=1e-6)
    found = bl.evidence(kind(feature_prior=prior), data, "ais", precision=0.03)
    assert_estimates(found, expected, 0.04)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["no sharing", "complete sharing"])
def test_nothing_unknown_leaves_the_closed_form(name: str):
    """With all labels known every weight is the likelihood itself, at both ends."""
    data, _ = MODELS[name].simulate(BINARY, [5, 4, 3], seed=6, missing=0.1)
    found = bl.evidence(MODELS[name], data, "ais", max_chains=32)
    expected = bl.evidence(MODELS[name], data)
    assert expected.method == "closed-form"
    assert found.value == pytest.approx(expected.value, abs=1e-9)
    assert found.standard_error < 1e-9
    assert found.bracket is not None
    assert found.bracket.reverse.value == pytest.approx(expected.value, abs=1e-9)


@pytest.mark.slow
def test_factors_of_the_prototype():
    data, _ = PROTOTYPE.simulate(BINARY, [9, 6, 12, 5], seed=2, missing=0.1)
    found = bl.evidence(PROTOTYPE, data, "ais", precision=0.04)
    expected = log_evidence(PROTOTYPE, data)
    assert_estimates(found, expected, 0.05)
    other = bl.evidence(PROTOTYPE, data, "importance")
    assert_estimates(other, expected, 0.05)


def test_mean_weights_of_independent_parts_multiply():
    rng = np.random.default_rng(0)
    logs = rng.normal(size=(1000, 2))
    both = MeanWeight.of(logs)
    one, two = MeanWeight.of(logs[:, :1]), MeanWeight.of(logs[:, 1:])
    assert both.value == pytest.approx(one.value + two.value)
    assert both.standard_error == pytest.approx(np.hypot(one.standard_error, two.standard_error))
    worst = min(one.effective_draws, two.effective_draws)
    assert both.effective_draws == pytest.approx(worst)
    # The mean of a log-normal weight is exp(1/2).
    assert abs(one.value - 0.5) < 4 * one.standard_error


def test_ends_that_lie_apart_disagree():
    low, high = MeanWeight(-10.0, 0.1, 50.0), MeanWeight(-9.0, 0.1, 50.0)
    assert not Bracket(low, high, True).agrees
    assert Bracket(low, MeanWeight(-9.8, 0.1, 50.0), True).agrees
    found = bl.LogEvidence.estimated(low, "ais", "x", bracket=Bracket(low, high, True))
    assert found.upper > -9.0


def test_rounding_is_no_disagreement():
    one, other = MeanWeight(-6.2, 3e-17, 64.0), MeanWeight(-6.2 * (1 + 4e-16), 3e-17, 64.0)
    assert one.value != other.value
    assert Bracket(one, other, True).agrees


@pytest.mark.slow
@pytest.mark.parametrize("name", ["no sharing", "complete sharing"])
def test_the_sampler_of_the_thesis_agrees(name: str):
    model = MODELS[name]
    data, _ = model.simulate(BINARY, [5, 4, 3], seed=6, missing=0.1)
    masked = data.mask_labels([0, 3, 5, 9])
    found = bl.evidence(model, masked, precision=0.05, variant="thesis")
    assert_estimates(found, summed_over_labels(model, masked), 0.06)
    assert "thesis" in found.how


@pytest.mark.slow
@pytest.mark.parametrize("name", ["no sharing", "complete sharing"])
def test_the_sampler_of_the_thesis_finds_closed_forms(name: str):
    """All labels known, parameters sampled that the closed form integrates."""
    model = MODELS[name]
    data, _ = model.simulate(BINARY, [5, 4, 3], seed=6, missing=0.1)
    found = bl.evidence(model, data, "ais", precision=0.05, variant="thesis")
    assert_estimates(found, bl.evidence(model, data).value, 0.06)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["no sharing", "complete sharing"])
def test_both_samplers_agree_on_labels_given_features(name: str):
    """On more rows than can be summed over: 60, none of them with a label."""
    model = MODELS[name]
    data, _ = model.simulate(BINARY, [20, 20, 20], seed=8, missing=0.1)
    one, other = (
        bl.conditional_evidence(model, data, precision=0.05, variant=variant, bracket=False)
        for variant in ("collapsed", "thesis")
    )
    assert abs(one.value - other.value) < 4.0 * np.hypot(one.standard_error, other.standard_error)
    assert max(one.standard_error, other.standard_error) < 0.1


def test_variants_that_do_not_fit():
    data, _ = MODELS["clustered"].simulate(BINARY, [5, 4, 3], seed=6)
    with pytest.raises(ValueError, match="'collapsed' or 'thesis'"):
        bl.evidence(bl.NoSharing(), data, "ais", variant="other")
    with pytest.raises(TypeError, match="NoSharing and CompleteSharing, not for Clustered"):
        bl.evidence(MODELS["clustered"], data, "ais", variant="thesis")


def test_the_sampler_of_the_thesis_refuses_blocks_whose_labels_are_not_shared():
    """It draws one ``phi`` a block: under such a model it would be wrong without a word."""

    class OneBlock(bl.NoSharing):
        def partition(self, num_groups: int) -> np.ndarray:
            return np.zeros(num_groups, dtype=np.int64)

    data, _ = bl.NoSharing().simulate(BINARY, [5, 4, 3], seed=6)
    with pytest.raises(TypeError, match="NoSharing and CompleteSharing, not for"):
        bl.evidence(OneBlock(), data, "ais", variant="thesis")


def test_certain_lower_bounds():
    model = MODELS["clustered"]
    data, _ = model.simulate(bl.Schema(2, (3, 2)), [5, 7, 4, 6], seed=3)
    exact = bl.exact(model, data)
    everything = bound_from_partitions(model, data, list(all_partitions(4)))
    assert everything == pytest.approx(exact.log_evidence, abs=1e-10)
    some = bound_from_partitions(model, data, exact.sample(3, seed=0))
    assert bound_from_singletons(model, data) < exact.log_evidence
    assert some < exact.log_evidence
    alone = bl.NoSharing(feature_prior=0.7)
    prior = model.log_prior(range(4))
    assert bound_from_singletons(model, data) == pytest.approx(
        bl.evidence(alone, data).value + prior, abs=1e-10
    )
