"""Forecasts against the plainest computation, against their own prior, and in decisions."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from bayes_lcs.scaling import forecast as module
from bayes_lcs.scaling.controller import run_stages, stage_sizes
from bayes_lcs.scaling.curve_families import FAMILIES, shapes
from bayes_lcs.scaling.forecast import NOISES, RISES, forecast
from bayes_lcs.scaling.lookahead import fitted
from bayes_lcs.scaling.stopping import Situation, myopic
from bayes_lcs.scaling.utility import Preferences
from tests.scaling.made import MadeTrainer, still

FALSE_ALARMS = 1e-6
SIZES = (1000, 2000, 4000, 8000)
FUTURE = (16_000, 32_000)
TOTAL = 100_000


def test_shapes_fall_from_one_to_zero():
    for shape in shapes([1000, 5000, TOTAL], 1000, TOTAL):
        assert shape.height[0] == pytest.approx(1.0)
        assert shape.height[2] == pytest.approx(0.0, abs=1e-12)
        assert 0.0 <= shape.height[1] < 1.0
    found = shapes([1], 1, 2)
    assert sum(shape.prior for shape in found) == pytest.approx(1.0)
    assert {shape.family for shape in found} == set(FAMILIES)


def by_importance(seen, num_draws, rng):
    """The posterior by weighing draws from the prior: nothing but the model's own words.

    The prior of the end of the curve is all but flat, so it is drawn around the scores, from which
    the posterior differs by nothing that matters.
    """
    every = shapes([*SIZES[: len(seen)], *FUTURE, TOTAL], SIZES[0], TOTAL)
    place = rng.choice(len(every), num_draws, p=[shape.prior for shape in every])
    heights = np.stack([shape.height for shape in every])[place]
    rise = np.abs(rng.standard_normal(num_draws)) * rng.choice(RISES, num_draws)
    noise = rng.choice(NOISES, num_draws)
    # Given shape, rise and noise the end is Gaussian around the mean of what is left.
    left = seen + rise[:, None] * heights[:, : len(seen)]
    end = left.mean(axis=1) + noise / np.sqrt(len(seen)) * rng.standard_normal(num_draws)
    residual = left - left.mean(axis=1, keepdims=True)
    log_weight = -0.5 * (residual**2).sum(axis=1) / noise**2 - (len(seen) - 1) * np.log(noise)
    curves = end[:, None] - rise[:, None] * heights[:, len(seen) :]
    likely = log_weight > log_weight.max() - 40.0  # the others weigh nothing
    return curves[likely], log_weight[likely]


@pytest.mark.parametrize("seen", [(0.0, 0.08), (0.0, 0.08, 0.13), (0.0, 0.01, 0.005, 0.02)])
def test_the_posterior_equals_weighted_draws_from_the_prior(seen):
    """Means at every future size, within the errors of both computations (z below 5)."""
    seen = np.array(seen)
    base = seen.max() - 1.0  # so that the scale is 1
    ahead = forecast(SIZES[: len(seen)], tuple(seen), base, FUTURE, TOTAL, draws=20_000, seed=1)
    rng = np.random.default_rng(2)
    parts = [by_importance(seen, 500_000, rng) for _ in range(8)]
    draws = np.concatenate([part[0] for part in parts])
    log_weight = np.concatenate([part[1] for part in parts])
    weight = np.exp(log_weight - log_weight.max())
    weight /= weight.sum()
    mean = weight @ draws
    variance = weight @ (draws - mean) ** 2
    effective = 1.0 / (weight**2).sum()
    assert effective > 200
    error = np.sqrt(variance / effective + ahead.draws.var(axis=0) / len(ahead.draws))
    # The Gaussian tails of the end's prior and the weights' own noise are inside five errors.
    assert (np.abs(ahead.draws.mean(axis=0) - mean) < 5 * error).all()
    ratio = ahead.draws.std(axis=0) / np.sqrt(variance)
    assert (np.abs(np.log(ratio)) < 5 * np.sqrt(1 / effective)).all()


def test_intervals_cover_curves_drawn_from_the_prior():
    """Of 400 curves from the prior, the central 80 % of the draws hold the truth 80 % of the time.

    The scale is taken from the scores, which the prior does not know: a small difference, covered
    by testing at 0.80 ± 0.03.
    """
    rng = np.random.default_rng(11)
    every = shapes([*SIZES[:3], *FUTURE, TOTAL], SIZES[0], TOTAL)
    inside = 0
    for number in range(400):
        shape = every[rng.choice(len(every), p=[s.prior for s in every])]
        rise = abs(rng.standard_normal()) * rng.choice(RISES)
        noise = rng.choice(NOISES)
        curve = 1.0 - rise * shape.height
        seen = curve[:3] + noise * rng.standard_normal(3)
        base = seen.max() - 1.0
        ahead = forecast(SIZES[:3], seen, base, FUTURE, TOTAL, draws=500, seed=number)
        low, high = np.quantile(ahead.at(FUTURE[1]), [0.1, 0.9])
        inside += low <= curve[4] <= high
    above = stats.binomtest(inside, 400, 0.83, "greater").pvalue
    below = stats.binomtest(inside, 400, 0.77, "less").pvalue
    assert min(above, below) > FALSE_ALARMS


@pytest.mark.parametrize("exponent", [0.3, 0.5, 1.0])
def test_a_power_law_is_continued(exponent):
    def curve(n):
        return -1.0 - 5.0 * n**-exponent

    ahead = forecast(SIZES, [curve(n) for n in SIZES], -3.0, FUTURE, TOTAL)
    for n in (*FUTURE, TOTAL):
        mean, sd = ahead.mean_and_sd(n)
        assert abs(mean - curve(n)) < 4 * sd
        assert sd < curve(TOTAL) - curve(SIZES[0])
    assert sum(ahead.families.values()) == pytest.approx(1.0)


def test_nothing_depends_on_the_unit_of_the_score():
    seen = (-3.0, -2.5, -2.3)
    one = forecast(SIZES[:3], seen, -5.0, FUTURE, TOTAL, seed=4)
    other = forecast(
        SIZES[:3], [1000 * s + 7 for s in seen], 1000 * -5.0 + 7, FUTURE, TOTAL, seed=4
    )
    np.testing.assert_allclose(other.draws, 1000 * one.draws + 7, rtol=1e-9)


def test_forecasts_need_a_beginning():
    with pytest.raises(ValueError, match="above the baseline"):
        forecast((1000, 2000), (-1.0, -0.5), 0.0, FUTURE, TOTAL)


def test_one_stage_alone_is_continued_by_the_prior():
    """The rise is half-normal with a scale from the grid: its mean is known."""
    ahead = forecast((1000,), (1.0,), 0.0, FUTURE, TOTAL, draws=200_000)
    rise = np.sqrt(2 / np.pi) * RISES.mean()
    error = np.sqrt((RISES**2).mean() + (NOISES**2).mean()) / np.sqrt(200_000)
    assert abs(ahead.at(TOTAL).mean() - 1.0 - rise) < 5 * error


def test_the_first_stage_may_be_the_last():
    seen = situation([-1.5], lambda n: float(n))
    dear, free = Preferences(alpha=100.0), Preferences(alpha=1e-6)
    assert fitted(seen, dear).stop
    assert not fitted(seen, free).stop
    assert fitted(seen, free).next_size == 2000


def situation(scores, to_go):
    sizes = SIZES[: len(scores)]
    future = tuple(n for n in (*SIZES, *FUTURE, TOTAL) if n > sizes[-1])
    seconds = tuple(to_go(n) for n in future)
    return Situation(sizes, tuple(scores), -2.0, future, TOTAL, 10.0, 0.0, seconds, seconds)


def steep(n):
    return -1.0 - 10.0 * n**-0.5


def test_free_data_is_taken_and_dear_data_is_not():
    scores = [steep(n) for n in SIZES[:3]]
    free = fitted(situation(scores, lambda n: 0.0), Preferences(alpha=1.0))
    dear = fitted(situation(scores, lambda n: float(n)), Preferences(alpha=1.0))
    assert not free.stop
    assert dear.stop
    assert free.rule == dear.rule == "fitted"
    assert set(free.forecast) == {8000, 16_000, 32_000, TOTAL}


def test_sizes_in_between_are_skipped_where_the_curve_is_sure():
    scores = [steep(n) for n in SIZES]
    found = fitted(situation(scores, lambda n: 1e-5 * n), Preferences(alpha=1.0))
    assert found.next_size > FUTURE[0]


def test_a_jump_that_pays_is_seen_past_a_stage_that_does_not():
    """One stage ahead costs as much as all rows do: the myopic rule stops, looking further pays."""
    scores = [steep(n) for n in SIZES]
    seen = situation(scores, lambda n: 90.0)
    preferences = Preferences(alpha=2.2)
    assert myopic(seen, preferences).stop
    assert not fitted(seen, preferences).stop
    assert fitted(seen, preferences).next_size > 16_000


def test_a_poor_fit_falls_back_to_the_myopic_rule():
    scores = [-1.5, -1.49, -1.485, -1.2]
    found = fitted(situation(scores, lambda n: 1.0), Preferences(alpha=1.0))
    plain = myopic(situation(scores, lambda n: 1.0), Preferences(alpha=1.0))
    assert "poor fit" in found.rule
    assert (found.stop, found.next_size, found.expected_gain) == (
        plain.stop,
        plain.next_size,
        plain.expected_gain,
    )


def test_worth_and_price_may_be_functions():
    scores = [steep(n) for n in SIZES]
    seen = situation(scores, lambda n: 1e-6 * n)
    enough = Preferences(alpha=1e-3, benefit=lambda b: min(b, 0.5))
    late = Preferences(cost=lambda seconds: 0.0 if seconds <= 10.0 else 5.0)
    assert fitted(seen, enough).stop
    assert fitted(seen, late).stop
    assert not fitted(seen, Preferences(alpha=1e-3)).stop


@pytest.mark.parametrize("alpha", [0.02, 0.1, 0.5, 2.0])
def test_the_loop_with_the_fitted_rule(alpha):
    """Visited sizes grow, and the rule loses no more against the best stage than the myopic one.

    The curve is a power law with a little noise, one of the families: this is what fitting is for.
    """
    rng = np.random.default_rng(8)
    sizes = stage_sizes(1000, 2, 500_000)
    noisy = {n: -1.0 - 3.0 * n**-0.5 + 1e-4 * rng.standard_normal() for n in sizes}
    full = noisy[sizes[-1]]
    utility = {}
    for rule in (myopic, fitted):
        trainer = MadeTrainer(noisy.__getitem__)
        found = run_stages(trainer, sizes, -2.0, Preferences(alpha=alpha), rule, clock=still)
        visited = [stage.fit.size for stage in found.stages]
        assert visited == sorted(set(visited))
        benefit = (found.final.score + 2.0) / (full + 2.0)
        utility[rule] = benefit - alpha * found.spent / 3600
    assert utility[fitted] >= utility[myopic] - 1e-3


def test_the_grids_are_even_in_the_logarithm():
    for grid in (module.RISES, module.NOISES):
        steps = np.diff(np.log(grid))
        np.testing.assert_allclose(steps, steps[0])
