"""The cost model finds the constants, and foresees the next stage within a stated factor."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from bayes_lcs.learning_curve_sampling.controller import run_stages, stage_sizes
from bayes_lcs.learning_curve_sampling.cost_model import fit_cost_model
from bayes_lcs.learning_curve_sampling.rules import myopic
from bayes_lcs.learning_curve_sampling.time_cost import benefit_per_hour, rate_text, seconds_text
from bayes_lcs.learning_curve_sampling.training_run import TrainingRun
from bayes_lcs.learning_curve_sampling.utility import Preferences, relative_benefit
from tests.learning_curve_sampling.made import MadeTrainer, still

FACTOR = 1.5
"""With 10 % of noise on every time, the next stage is foreseen within this factor …"""

MISSES = 0.02
"""… but for this share of the stages at most …"""

FALSE_ALARMS = 1e-6
"""… judged over 300 curves with this chance of a false alarm."""


def take(size, iterations, components=1):
    """5e-7 s a row and iteration, 2e-6 s a row, 1e-3 s an iteration, 0.25 s a run."""
    each = 5e-7 * size + 1e-3
    return iterations * components * each + 2e-6 * size + 0.25


def test_constants_are_found():
    runs = [
        TrainingRun(n, "full", 0.0, steps, take(n, steps), 0.1)
        for n, steps in ((1000, 20), (5000, 1), (20_000, 35), (40_000, 2), (100_000, 25))
    ]
    model = fit_cost_model(runs)
    assert model.row_iteration == pytest.approx(5e-7, rel=1e-6)
    assert model.row == pytest.approx(2e-6, rel=1e-6)
    assert model.iteration == pytest.approx(1e-3, rel=1e-6)
    assert model.run == pytest.approx(0.25, rel=1e-6)
    assert model.seconds(10**6, 30) == pytest.approx(take(10**6, 30) + 0.1, rel=1e-6)


def test_the_first_run_of_a_size_costs_more():
    """Compilation takes 2 s a size; the first size is compiled beforehand."""
    runs = [
        TrainingRun(n, mode, 0.0, steps, take(n, steps) + 2.0 * first, 0.1, is_first=first)
        for n, mode, steps, first in (
            (1000, "full", 20, False),
            (1000, "abbreviated", 1, False),
            (2000, "abbreviated", 1, True),
            (2000, "final", 25, False),
            (4000, "abbreviated", 1, True),
            (8000, "abbreviated", 1, True),
            (8000, "final", 30, False),
        )
    ]
    model = fit_cost_model(runs)
    assert model.first == pytest.approx(2.0, rel=1e-6)
    known = take(16_000, 1) + 0.1
    assert model.seconds(16_000, 1, is_first=True) == pytest.approx(known + 2.0, rel=1e-6)
    assert model.seconds(16_000, 1) == pytest.approx(known, rel=1e-6)


def test_components_multiply_iterations():
    runs = [
        TrainingRun(n, "full", 0.0, 20, take(n, 20, k / 2), 0.1, components=k)
        for n, k in ((1000, 2), (1000, 4), (50_000, 4), (50_000, 8), (3000, 2))
    ]
    model = fit_cost_model(runs)
    assert model.seconds(80_000, 20, 16) == pytest.approx(take(80_000, 20, 8) + 0.1, rel=1e-6)


def test_one_run_is_put_down_to_rows_and_iterations():
    model = fit_cost_model([TrainingRun(1000, "full", 0.0, 10, 2.0, 0.5)])
    assert model.seconds(4000, 5) == pytest.approx(2.0 * 4 / 2 + 0.5)
    with pytest.raises(ValueError, match="at least one training run"):
        fit_cost_model([])


@pytest.mark.parametrize("abbreviated", [False, True])
def test_the_next_stage_is_foreseen_within_a_factor(abbreviated):
    rng = np.random.default_rng(5)
    sizes = stage_sizes(1000, 2, 64_000)
    foreseen = []
    for _ in range(300):
        iterations = {n: float(rng.integers(18, 23)) for n in sizes}
        trainer = MadeTrainer(
            lambda n: -1 - n**-0.5,
            iterations=iterations.__getitem__,
            abbreviated=abbreviated,
            short=3.0,
            noise=lambda: float(np.exp(0.1 * rng.standard_normal())),
        )
        found = run_stages(
            trainer,
            sizes,
            -2.0,
            Preferences(alpha=0.0),
            myopic,
            clock=still,
            abbreviated_iterations=3.0 if abbreviated else None,
        )
        foreseen += [s.predicted_seconds / s.fit.seconds for s in found.stages[1:]]
    ratio = np.array(foreseen)
    misses = int(((ratio > FACTOR) | (ratio < 1 / FACTOR)).sum())
    assert stats.binomtest(misses, len(ratio), MISSES, "greater").pvalue > FALSE_ALARMS
    assert abs(np.log(np.median(ratio))) < np.log(1.1)


def test_predictions_without_noise_are_exact():
    trainer = MadeTrainer(lambda n: -1 - n**-0.5)
    found = run_stages(
        trainer, stage_sizes(1000, 2, 64_000), -2.0, Preferences(alpha=0.0), myopic, clock=still
    )
    for stage in found.stages[2:]:
        assert stage.predicted_seconds == pytest.approx(stage.fit.seconds, rel=1e-6)


def test_units_of_alpha():
    assert benefit_per_hour("1 per day") == pytest.approx(1 / 24)
    assert benefit_per_hour("0.5/min") == pytest.approx(30)
    assert benefit_per_hour("1% per second") == pytest.approx(36)
    assert benefit_per_hour("2 percent per 3 weeks") == pytest.approx(0.02 / (3 * 168))
    assert benefit_per_hour("1e-3 / 2.5 hours") == pytest.approx(4e-4)
    for wrong in ("fast", "1 per fortnight", "-1/hour", "1 per 0 h", -0.1, float("nan")):
        with pytest.raises(ValueError, match="alpha"):
            benefit_per_hour(wrong)


def test_both_scales_are_said():
    assert "one per cent is worth a wait of 36.0 s" in rate_text(1.0)
    assert "costs nothing" in rate_text(0.0)
    assert seconds_text(86_400) == "24.0 h"


def test_preferences():
    assert relative_benefit(-1.5, -2.0, -1.0) == 0.5
    assert Preferences(alpha=3.6).price(10.0) == pytest.approx(0.01)
    assert Preferences(alpha=3.6).utility(0.9, 10.0) == pytest.approx(0.89)
    assert Preferences(benefit=lambda b: b**2).worth(0.5) == 0.25
    assert Preferences(alpha=9.0, cost=lambda s: s / 100).price(10.0) == 0.1
