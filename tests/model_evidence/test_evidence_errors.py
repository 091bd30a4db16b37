"""Stated standard errors of annealed importance sampling, over runs that share only the data.

Errors of both ends of the bracket, divided by their stated standard errors, should be standard
normal. They nearly are: weights are skewed, so that a log of a mean of 64 of them lies low by half
its variance (Jensen) and has a stated error that is small where it lies low. Log-normal weights
with the variance of 0.25 that schedules aim at would have scores of mean -0.07 and mean square
1.07; tests of a mean square and of a mean, each at 1e-3 over 120 runs, can hardly see that.

Seeds 0 to 119 were set before any result. Over 1,000 groups of 64 chains under two schedules the
mean squares were 1.02 at the forward end and 1.14 at the reversed one, whose stated errors are thus
too small by a few per cent; tests over 120 runs can hardly see that either.
"""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import chi2, norm

import bayes_lcs as bl
from bayes_lcs.inference.ais import ais as annealing
from bayes_lcs.inference.ais.ais import Schedule
from bayes_lcs.model_evidence.ais import TRIAL_CHAINS
from bayes_lcs.model_evidence.bidirectional import MIN_CHAINS, num_chains_for_precision
from bayes_lcs.model_evidence.log_evidence import EvidenceWarning, MeanWeight

FALSE_ALARM = 1e-3
NUM_RUNS = 120
MODEL = bl.ClusteredNaiveBayes(concentration=1.5, feature_prior=0.7)


class Runs(NamedTuple):
    forward: NDArray[np.float64]  # (R,), errors
    reverse: NDArray[np.float64]
    scores: dict[str, NDArray[np.float64]]  # errors in standard errors
    covered: NDArray[np.bool_]


@pytest.fixture(scope="module")
def runs() -> Runs:
    data, _ = MODEL.simulate(bl.Schema(2, (3, 2)), [3] * 6, seed=3)
    truth = bl.exact(MODEL, data, progress=False).log_evidence
    ends, covered = [], []
    for seed in range(NUM_RUNS):
        with warnings.catch_warnings():
            # One pair of ends in 370 is more than three errors apart: the tests count that.
            warnings.simplefilter("ignore", EvidenceWarning)
            found = bl.evidence(MODEL, data, "ais", precision=0.1, seed=seed, progress=False)
        ends.append(found.bracket)
        covered.append(found.lower < truth < found.upper)
    values = np.array([(end.forward.value, end.reverse.value) for end in ends]) - truth
    errors = np.array([(end.forward.standard_error, end.reverse.standard_error) for end in ends])
    gaps = np.array([end.gap for end in ends]) / np.hypot(*errors.T)
    scores = {"forward": (values / errors)[:, 0], "reverse": (values / errors)[:, 1], "gap": gaps}
    return Runs(values[:, 0], values[:, 1], scores, np.array(covered))


@pytest.mark.slow
@pytest.mark.parametrize("end", ["forward", "reverse", "gap"])
def test_errors_are_as_large_as_they_say(runs: Runs, end: str):
    z = runs.scores[end]
    assert len(np.unique(z)) == NUM_RUNS, "runs share their chains"
    low, high = chi2.ppf([FALSE_ALARM / 2, 1 - FALSE_ALARM / 2], NUM_RUNS)
    assert low < np.square(z).sum() < high
    assert abs(z.mean()) * np.sqrt(NUM_RUNS) < norm.isf(FALSE_ALARM / 2)


@pytest.mark.slow
def test_weights_are_unbiased_at_both_ends(runs: Runs):
    """Not the logs: the means of ``w`` and of ``1/w`` themselves."""
    for ratio in (np.exp(runs.forward), np.exp(-runs.reverse)):
        error = ratio.std(ddof=1) / np.sqrt(NUM_RUNS)
        assert abs(ratio.mean() - 1.0) < norm.isf(FALSE_ALARM / 2) * error


@pytest.mark.slow
def test_intervals_hold_the_truth(runs: Runs):
    """16 or more of 120 intervals at 95 % miss with probability 3e-4; brackets only widen them."""
    assert (~runs.covered).sum() < 16


def test_errors_of_the_log_of_a_mean():
    """Stated errors are as large as those over 4,000 means of 64 log-normal weights, within 5 %.

    Four standard errors of a standard deviation over 4,000 runs are 4.5 %.
    """
    logs = np.random.default_rng(0).normal(-0.125, 0.5, size=(4000, 64, 1))
    found = [MeanWeight.of(sample) for sample in logs]
    values = np.array([mean.value for mean in found])
    stated = np.sqrt(np.mean([mean.standard_error**2 for mean in found]))
    assert values.std() == pytest.approx(stated, rel=0.05)
    assert np.exp(values).mean() == pytest.approx(1.0, abs=4 * stated / np.sqrt(4000))


def test_runs_with_seeds_side_by_side_share_no_chains(monkeypatch: pytest.MonkeyPatch):
    data, _ = MODEL.simulate(bl.Schema(2, (2,)), [2, 2], seed=0)
    seeds: list[int] = []

    def pilot(problem: Any, seed: int, progress: bool | None) -> tuple[Any, Schedule]:
        seeds.append(seed)
        return problem, Schedule(np.array([0.0, 1.0]), 0.1)

    def anneal(
        problem: Any,
        schedule: Schedule,
        *,
        chains: int,
        seed: int,
        **options: Any,
    ) -> tuple[Any, NDArray[np.float64]]:
        seeds.append(seed)
        return problem, np.zeros((chains, 1))

    monkeypatch.setattr(annealing, "pilot_schedule", pilot)
    monkeypatch.setattr(annealing, "anneal", anneal)
    for seed in range(3):
        bl.evidence(MODEL, data, "ais", seed=seed, progress=False)
    assert len(seeds) == 12
    assert len(set(seeds)) == 12


def test_the_number_of_chains_is_planned_from_log_weights():
    rng = np.random.default_rng(0)
    trial = rng.normal(0, 0.5, size=(TRIAL_CHAINS, 3))
    spread = np.expm1(trial.var(axis=0, ddof=1)).sum()
    wanted = num_chains_for_precision(trial, 0.03, 10_000)
    assert spread / wanted <= 0.03**2 / 1.25 < spread / (wanted - 32)
    assert num_chains_for_precision(trial, 10.0, 10_000) == MIN_CHAINS
    assert num_chains_for_precision(trial, 1e-6, 512) == 512
    assert num_chains_for_precision(trial, 1e-6, 20) == 32
    assert num_chains_for_precision(np.zeros((4, 1)), 0.1, 512) == MIN_CHAINS
    assert num_chains_for_precision(1e6 * trial, 0.1, 512) == 512
