"""Evidence by annealing from a guide: against the exact sum, against temperatures, as bounds."""

from __future__ import annotations

import warnings
from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom

import bayes_lcs as bl
from bayes_lcs.inference.ais.fit_mean_field import choose_anchors
from bayes_lcs.model_evidence import mean_field_ais as guided
from bayes_lcs.model_evidence.bidirectional import (
    BidirectionalEstimate,
    bidirectional_estimate,
    summarize,
)
from bayes_lcs.model_evidence.compare import Comparison
from bayes_lcs.model_evidence.log_evidence import Bracket, EvidenceWarning, LogEvidence, MeanWeight
from bayes_lcs.runtime.interrupts import PartialResultInterrupt

MODEL = bl.ClusteredNaiveBayes(concentration=1.5, feature_prior=0.7)
SEEDS = 40


@cache
def few_groups() -> tuple[bl.GroupedTable, float]:
    """Ten groups whose partition stays open, and their evidence."""
    data, _ = MODEL.simulate(bl.Schema(2, (3, 2, 2)), [4] * 10, seed=3)
    return data, bl.exact(MODEL, data, progress=False).log_evidence


def estimates(**options: int | float) -> list[LogEvidence]:
    data, _ = few_groups()
    with warnings.catch_warnings():
        # Few effective runs are what some of these are about; and one pair of ends in 370 is more
        # than three errors apart.
        warnings.simplefilter("ignore", EvidenceWarning)
        return [
            bl.evidence(MODEL, data, "guided", seed=seed, progress=False, **options)
            for seed in range(SEEDS)
        ]


def misses_allowed(chance: float) -> int:
    """More of all seeds miss with probability 1e-3 at most."""
    return int(binom.isf(1e-3, SEEDS, chance))


@pytest.mark.slow
def test_an_estimate_is_near_the_exact_sum():
    data, truth = few_groups()
    found = bl.evidence(MODEL, data, "guided", precision=0.1, progress=False)
    assert found.method == "guided"
    assert found.bracket is not None
    assert found.standard_error < 0.15
    left_out = found.bracket.left_out
    assert -4.0 * found.standard_error - left_out < found.value - truth < 4.0 * found.standard_error
    reverse = found.bracket.reverse
    assert abs(reverse.value - truth) < 4.0 * reverse.standard_error


@pytest.mark.slow
def test_intervals_hold_the_exact_sum():
    truth = few_groups()[1]
    found = estimates(precision=0.1)
    assert not any(one.bracket.forward.is_bound for one in found if one.bracket)
    missed = sum(not one.lower < truth < one.upper for one in found)
    assert missed <= misses_allowed(0.05)


@pytest.mark.slow
def test_bounds_hold_the_exact_sum_and_say_that_they_are_bounds(monkeypatch: pytest.MonkeyPatch):
    """Two temperatures and eight chains: nothing that could be called an estimate."""
    monkeypatch.setattr(guided, "MIN_TEMPERATURES", 2)
    monkeypatch.setattr(guided, "MAX_TEMPERATURES", 2)
    monkeypatch.setattr(guided, "TRIAL_CHAINS", 10**9)  # too many to be afforded: no trial
    truth = few_groups()[1]
    found = estimates(max_chains=8)
    assert all("8 chains over 2 temperatures" in one.how for one in found)
    assert all("bounds" in one.how for one in found)
    assert all(one.upper - one.lower > 2 * np.log(40) - 1.0 for one in found)
    for missed in (
        sum(one.lower > truth for one in found),
        sum(one.upper < truth for one in found),
    ):
        assert missed <= misses_allowed(0.025)


@pytest.mark.slow
def test_more_groups_than_can_be_summed_over():
    """From a guide and from the prior are two ways to one number."""
    data, _ = MODEL.simulate(bl.Schema(2, (3, 2, 2)), [6] * 40, seed=2)
    found = bl.evidence(MODEL, data, "guided", precision=0.05)
    other = bl.evidence(MODEL, data, "ais", precision=0.1)
    assert found.bracket is not None
    error = np.hypot(found.standard_error, other.standard_error)
    assert -4.0 * error - found.bracket.left_out < found.value - other.value < 4.0 * error
    assert found.bracket.agrees


@pytest.mark.slow
def test_an_interval_of_hundreds_of_groups_is_narrow_and_above_a_single_partition():
    """Any one partition bounds the evidence from below for certain: here that of the simulation."""
    model = bl.ClusteredNaiveBayes(concentration=2.0, feature_prior=0.5)
    data, truth = model.simulate(bl.Schema(2, (3, 3, 2, 2)), [12] * 300, seed=5)
    found = bl.evidence(model, data)
    assert found.method == "guided"
    assert found.upper > model.log_joint(data.counts(), truth.partition)
    assert found.upper - found.lower < 5.0


def weights(value: float, effective: float = 100.0, error: float = 0.1) -> MeanWeight:
    return MeanWeight(value, error, effective)


def test_few_effective_runs_make_bounds():
    low, high = weights(-100.0, 3.0, 0.8), weights(-90.0, 4.0, 0.7)
    found = LogEvidence.estimated(low, "guided", "m", bracket=Bracket(low, high, False))
    assert found.lower == pytest.approx(-100.0 - np.log(40))
    assert found.upper == pytest.approx(-90.0 + np.log(40))
    assert found.standard_error * 1.96 == pytest.approx(np.log(40), rel=1e-4)


def test_bounds_by_markov_hold_whatever_the_weights_are():
    """Weights that are nearly always zero and seldom huge: a standard error would not notice."""
    rng = np.random.default_rng(0)
    size, runs = 8, 4_000
    logs = rng.normal(-8.0, 4.0, size=(runs, size, 1))  # mean weight one
    means = [MeanWeight.of(sample) for sample in logs]
    wrong = np.mean([mean.value - mean.margin > 0.0 for mean in means])
    assert wrong < 0.025
    assert all(mean.is_bound for mean in means)


def test_an_upper_end_below_the_lower_one_is_none():
    low, high = weights(-100.0), weights(-150.0)
    ends = Bracket(low, high, False)
    with pytest.warns(EvidenceWarning, match="disagree"):
        found = summarize(BidirectionalEstimate(low, ends), method="guided", model="m", how="so")
    assert found.upper == 0.0  # what no log of a probability exceeds
    assert "not from the posterior" in found.how


def test_draws_that_are_not_summed_over_widen_the_upper_end():
    forward = np.full((64, 1), -100.0)
    back = np.full((64, 1), -100.0)
    back[:16] = np.inf
    found = bidirectional_estimate(0.0, lambda: forward, lambda: (back, False))
    assert found.ends is not None
    assert found.ends.reverse.value == pytest.approx(-100.0 - np.log(0.75))
    assert found.ends.left_out == pytest.approx(-np.log(0.75))
    assert found.ends.agrees


def test_draws_that_have_no_place_are_counted():
    found = choose_anchors(np.array([[0, 0, 1, 1]] * 4), best=0)
    draws = np.array([[0, 0, 1, 1], [0, 0, 0, 0], [0, 1, 2, 2]])
    placed, missing = guided._backward_starts(found, draws, 3, seed=0)
    assert (len(placed), missing) == (2, 1)


def test_chains_a_few_at_a_time_are_all_different_and_kept_at_ctrl_c():
    """Annealing is invented here: which chains are asked for, and what becomes of their weights."""
    seeds, starts = [], np.arange(10, dtype=np.int32).reshape(5, 2)
    problem: Any = None

    def invented(problem: object, schedule: object, **given: Any) -> tuple[object, NDArray]:
        if len(seeds) == 2:
            raise PartialResultInterrupt(np.zeros((0, 0)))
        seeds.append(given["seed"])
        slots = given["starts"]["z"]
        assert len(slots) == given["chains"]
        return problem, slots[:, :1].astype(float)

    anneal: Any = invented
    with pytest.raises(PartialResultInterrupt) as cut:
        guided._run_chains(anneal, problem, guided._even_schedule(2), 2, False, 5, 0, starts)
    assert cut.value.log_weights.tolist() == [[0.0], [2.0], [4.0], [6.0]]
    assert len(set(seeds)) == 2
    seeds.clear()
    done = guided._run_chains(anneal, problem, guided._even_schedule(2), 3, False, 5, 0, starts)
    assert done.tolist() == starts[:, :1].tolist()


def test_where_no_draw_is_summed_over_there_is_no_upper_end():
    nowhere = np.full((8, 1), np.inf)
    found = bidirectional_estimate(0.0, lambda: np.full((64, 1), -5.0), lambda: (nowhere, False))
    with pytest.warns(EvidenceWarning, match="disagree"):
        one = summarize(found, method="guided", model="m", how="so")
    assert one.upper == 0.0
    assert "no upper bound" in one.how
    assert one.lower == pytest.approx(-5.0)


def test_a_rival_of_which_little_is_known_forbids_a_verdict():
    data, _ = few_groups()
    models = (bl.NoSharing(), bl.CompleteSharing(), MODEL)
    best, second = (LogEvidence.exact(value, "exact", "m") for value in (-100.0, -110.0))
    low, high = weights(-120.0), weights(-95.0)
    wide = LogEvidence.estimated(low, "guided", "m", bracket=Bracket(low, high, False))
    found = Comparison(models, data, (best, second, wide), np.full(3, 1 / 3), False, 0)
    assert found.verdict().startswith("No verdict: the intervals of No-Sharing and Clustered")
    disjoint = LogEvidence.estimated(weights(-120.0), "guided", "m")
    found = Comparison(models, data, (best, second, disjoint), np.full(3, 1 / 3), False, 0)
    assert "No-Sharing very strongly" in found.verdict()


def test_what_a_guide_cannot_do_is_refused():
    data, _ = few_groups()
    with pytest.raises(ValueError, match="known partition"):
        bl.evidence(bl.NoSharing(), data, "guided")
    with pytest.raises(ValueError, match="concentration"):
        bl.evidence(bl.ClusteredNaiveBayes(concentration=bl.Gamma(2.0, 1.0)), data, "guided")
    with pytest.raises(ValueError, match="missing"):
        bl.evidence(MODEL, data.mask_labels([0]), "guided")


def test_memory_is_asked_for_first(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("bayes_lcs.runtime.memory.available_memory", lambda: 1000)
    with pytest.raises(MemoryError, match="the evidence of 10 groups"):
        bl.evidence(MODEL, few_groups()[0], "guided")
