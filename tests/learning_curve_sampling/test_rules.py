"""Controllers with known curves and costs stop where arithmetic says."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bayes_lcs.learning_curve_sampling.component_search import ComponentSearch
from bayes_lcs.learning_curve_sampling.controller import run_stages, stage_sizes
from bayes_lcs.learning_curve_sampling.rules import CurveSoFar, myopic
from bayes_lcs.learning_curve_sampling.utility import Preferences
from tests.learning_curve_sampling.made import MadeTrainer, still

SIZES = stage_sizes(1000, 2, 500_000)
ALPHAS = (0.001, 0.01, 0.1, 0.5, 2.0, 10.0, 100.0)


def power(n: int) -> float:
    return -1.0 - 3.0 * n**-0.5


def concave(n: int) -> float:
    return -1.0 + 0.3 * np.log2(n) - 0.01 * np.log2(n) ** 2


def run(trainer, alpha, rule=myopic, sizes=SIZES, **options):
    base = options.pop("base", -2.0)
    short = trainer.short if trainer.abbreviated else None
    return run_stages(
        trainer,
        sizes,
        base,
        Preferences(alpha=alpha),
        rule,
        clock=still,
        abbreviated_iterations=short,
        **options,
    )


def myopic_by_hand(trainer, alpha, base=-2.0):
    """The rule with costs known exactly, in the plainest words; ``I`` is constant."""
    scores = np.maximum.accumulate([trainer.curve(n) for n in SIZES])
    for i in range(1, len(SIZES) - 1):
        steps, n, following = trainer.iterations(SIZES[i]), SIZES[i], SIZES[i + 1]
        rise = scores[i] - scores[i - 1] if i == 1 else (scores[i] - scores[i - 2]) / 2
        gain = rise / (scores[i] - base)
        if trainer.abbreviated:
            full = trainer.seconds(following, steps) - trainer.seconds(n, steps)
            seconds = full + trainer.seconds(following, trainer.short) + trainer.c3
        else:
            seconds = trainer.seconds(following, steps) + trainer.c3
        if gain / (seconds / 3600) <= alpha:
            return n
    return SIZES[-1]


@pytest.mark.parametrize("curve", [power, concave])
@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("abbreviated", [False, True])
def test_the_myopic_rule_stops_where_arithmetic_says(curve, alpha, abbreviated):
    trainer = MadeTrainer(curve, abbreviated=abbreviated, short=3.0)
    found = run(trainer, alpha, confirm=False)
    assert found.end.size == myopic_by_hand(trainer, alpha)
    visited = [stage.fit.size for stage in found.stages]
    assert visited == list(SIZES[: len(visited)])


def test_the_alphas_tell_sizes_apart():
    """The test above would be empty if all stopped at the same place."""
    sizes = {run(MadeTrainer(power), alpha).end.size for alpha in ALPHAS}
    assert len(sizes) >= 4
    assert min(sizes) == SIZES[1]
    assert max(sizes) == SIZES[-1]


def test_run_time_is_the_sum_of_all_runs():
    trainer = MadeTrainer(power, reading=0.125)
    found = run(trainer, 0.5, spent=7.0)
    n = [stage.fit.size for stage in found.stages]
    assert found.spent == pytest.approx(
        7.0 + sum(trainer.seconds(size, 20.0) + 0.5 + 0.125 for size in n), rel=1e-12
    )


def test_abbreviated_stages_have_one_full_run_at_either_end():
    trainer = MadeTrainer(power, abbreviated=True, gap=0.4)
    found = run(trainer, 0.5)
    last = found.end.size
    assert trainer.seen[:2] == [(1000, "full"), (1000, "abbreviated")]
    assert [mode for _, mode in trainer.seen[2:-1]] == ["abbreviated"] * (len(trainer.seen) - 3)
    assert trainer.seen[-1] == (last, "final")
    assert list(found.ends) == [0, len(found.stages) - 1]
    assert found.offset == pytest.approx(0.4)
    for stage in found.stages:
        assert stage.score == pytest.approx(power(stage.fit.size))


def test_reading_is_part_of_the_cost():
    """A pass over a file that costs more than it brings is not made."""
    free, dear = MadeTrainer(power), MadeTrainer(power, reading=1000.0)
    assert run(dear, 0.1).end.size < run(free, 0.1).end.size


def curve_so_far(
    scores, *, seconds_to_continue=10.0, seconds_to_stop=0.0, base=-2.0, row_scores=()
):
    sizes = tuple(100 * 2**i for i in range(len(scores)))
    following = sizes[-1] * 2
    return CurveSoFar(
        sizes, tuple(scores), base, following, 0.0, seconds_to_stop, seconds_to_continue, row_scores
    )


def test_the_threshold_itself_stops():
    """Equation 5 has "less or equal"."""
    seen = curve_so_far((-1.5, -1.0), seconds_to_continue=3600.0, base=-2.0)
    assert myopic(seen, Preferences(alpha=0.5)).stop
    assert not myopic(seen, Preferences(alpha=0.5 - 1e-9)).stop


def test_one_stage_is_never_enough():
    decision = myopic(curve_so_far((-1.0,)), Preferences(alpha=1e9))
    assert not decision.stop
    assert "one stage" in decision.reason


def test_the_best_score_so_far_scales_a_noisy_curve():
    seen = curve_so_far((-1.2, -1.4, -1.6, -1.0, -1.5), seconds_to_continue=3600.0)
    # From the best of -1.4 and before, which is -1.2, to -1.0, in two stages; the scale is 1.
    assert myopic(seen, Preferences(alpha=0.05)).expected_gain == pytest.approx(0.2 / 2 / 1.0)


@pytest.mark.parametrize("scores", [(-1.0, -1.1), (-1.5, -1.0, -1.3), (-1.5, -1.2, -1.0, -1.01)])
def test_one_falling_step_does_not_stop(scores):
    """The paper's rule stops here at any price of time, even if it is zero."""
    decision = myopic(curve_so_far(scores, seconds_to_continue=36.0), Preferences(alpha=0.2))
    assert not decision.stop
    assert decision.next_size == 100 * 2 ** len(scores)


def test_two_falling_steps_stop():
    assert myopic(curve_so_far((-1.0, -1.1, -1.05)), Preferences(alpha=0.2)).stop


@pytest.mark.parametrize(
    "scores", [(-1.0, -1.1), (-1.0, -1.1, -1.2), (-1.0, -1.0, -1.0), (-2.5, -2.6, -2.7)]
)
def test_time_that_costs_nothing_never_stops(scores):
    for preferences in (Preferences(alpha=0.0), Preferences(cost=lambda seconds: 7.0)):
        decision = myopic(curve_so_far(scores), preferences)
        assert not decision.stop
        assert "costs nothing" in decision.reason


def test_all_rows_are_used_when_time_costs_nothing():
    rng = np.random.default_rng(3)
    for _ in range(20):
        noisy = dict(zip(SIZES, -1.0 + 0.1 * rng.standard_normal(len(SIZES)), strict=True))
        for abbreviated in (False, True):
            found = run(MadeTrainer(noisy.__getitem__, abbreviated=abbreviated), 0.0)
            assert [stage.fit.size for stage in found.stages] == list(SIZES)
            trained = [fit.score for fit in found.fits if fit.mode != "abbreviated"]
            assert found.best.score == max(trained)


def test_standard_errors_are_of_paired_differences():
    """Rows that differ much from each other say nothing about two models that differ little."""
    rng = np.random.default_rng(0)
    rows = 10 * rng.standard_normal(400)
    step = 0.01 + 0.02 * rng.standard_normal(400)
    scores = tuple(float(r.mean()) for r in (rows, rows + step))
    seen = curve_so_far(scores, base=scores[1] - 1.0, row_scores=(rows, rows + step))
    decision = myopic(seen, Preferences(alpha=1e-3))
    error = step.std(ddof=1) / 20
    assert decision.expected_gain == pytest.approx(step.mean())
    assert decision.largest_gain == pytest.approx(step.mean() + 2 * error)


def test_noise_that_hides_the_step_goes_on():
    rng = np.random.default_rng(0)
    rows = [rng.standard_normal(100) for _ in range(3)]
    rows = [r - r.mean() for r in rows]
    scores = (0.0, 0.001, 0.001)
    cheap = Preferences(alpha=0.1 * 3600 / 10)  # a cost of 0.1 for 10 seconds
    seen = curve_so_far(scores, base=-1.0, row_scores=tuple(rows))
    error = (rows[2] - rows[0]).std(ddof=1) / 10
    assert 2 * error / 2 > 0.1 > 0.001
    assert not myopic(seen, cheap).stop
    assert myopic(curve_so_far(scores, base=-1.0), cheap).stop


def test_no_better_than_the_baseline():
    rising, falling = curve_so_far((-2.5, -2.4)), curve_so_far((-2.3, -2.4, -2.5))
    assert not myopic(rising, Preferences(alpha=1e9)).stop
    assert myopic(falling, Preferences(alpha=0.1)).stop
    assert not myopic(curve_so_far((-2.4, -2.5)), Preferences(alpha=0.1)).stop
    assert "baseline" in myopic(rising, Preferences()).reason


def test_what_stopping_still_takes_is_saved_by_going_on():
    preferences = Preferences(alpha=1.0)
    cheap = myopic(
        curve_so_far((-1.5, -1.0), seconds_to_continue=4000.0, seconds_to_stop=3000.0), preferences
    )
    assert cheap.expected_seconds == 1000.0
    assert cheap.expected_cost == pytest.approx(1000 / 3600)


def test_cost_need_not_be_linear():
    """A deadline: free before it, worth everything after it."""
    trainer = MadeTrainer(power, c2=0.0, c3=0.0)
    deadline = 5.0  # seconds; stages take 0.2, 0.4, 0.8, 1.6, 3.2 seconds
    found = run_stages(
        trainer,
        SIZES,
        -2.0,
        Preferences(cost=lambda seconds: float(seconds > deadline) * 10),
        myopic,
        clock=still,
    )
    assert found.end.size == 8000
    assert found.spent == pytest.approx(3.0)


def test_benefit_need_not_be_linear():
    """Good enough is good enough: beyond the target nothing is worth a second."""
    trainer = MadeTrainer(power)

    def target(benefit):
        return min(benefit, 0.98)

    found = run_stages(
        trainer, SIZES, -2.0, Preferences(alpha=1e-6, benefit=target), myopic, clock=still
    )
    plain = run(MadeTrainer(power), 1e-6)
    assert found.end.size < plain.end.size
    scores = [stage.score for stage in found.stages]
    step = scores[-1] - scores[-2]
    assert (scores[-1] + 2.0) / (scores[-1] + step + 2.0) >= 0.98


def test_flat_short_runs_are_checked_against_full_training():
    """After one iteration curves may be flat where those of full training are not."""

    class Flat(MadeTrainer):
        def fit(self, size, mode, **options):
            fit = super().fit(size, mode, **options)
            return replace(fit, score=-1.5) if mode == "abbreviated" else fit

    trainer = Flat(power, abbreviated=True)
    paper, ours = run(trainer, 0.1, confirm=False), run(Flat(power, abbreviated=True), 0.1)
    assert paper.end.size == SIZES[2]
    assert ours.end.size == run(MadeTrainer(power), 0.1).end.size > 4 * SIZES[2]
    # Where time is dear, the check stops too.
    assert run(Flat(power, abbreviated=True), 1e4).end.size == SIZES[2]


def test_the_best_model_is_returned():
    curve = {n: power(n) for n in SIZES} | {SIZES[3]: 0.5}
    found = run(MadeTrainer(curve.__getitem__), 0.0)
    assert found.end.size == SIZES[-1]
    assert (found.best.size, found.best.score) == (SIZES[3], 0.5)


def test_runs_cut_short_are_not_returned():
    """They serve to decide; the best of the runs to the end may be that of the first sample."""
    curve = {n: -1.0 - n / SIZES[-1] for n in SIZES}
    found = run(MadeTrainer(curve.__getitem__, abbreviated=True, gap=-5.0), 0.0)
    assert (found.best.size, found.best.mode) == (SIZES[0], "full")
    assert found.end.size == SIZES[-1]


def test_ctrl_c_keeps_the_curve():
    found = run(MadeTrainer(power, interrupt_at=8000), 0.001)
    assert [stage.fit.size for stage in found.stages] == [1000, 2000, 4000]
    assert "interrupted after 3 stages" in found.interrupted
    assert found.end.size == 4000
    with pytest.raises(KeyboardInterrupt):
        run(MadeTrainer(power, interrupt_at=1000), 0.001)


def test_ctrl_c_in_the_last_training():
    class Stubborn(MadeTrainer):
        def fit(self, size, mode, **options):
            if mode == "final":
                raise KeyboardInterrupt
            return super().fit(size, mode, **options)

    found = run(Stubborn(power, abbreviated=True), 10.0)
    assert found.interrupted
    assert found.end.mode == "abbreviated"


def test_more_components_as_the_sample_grows():
    """The score less 1/K² + 20 K/n is best at K = (n/10)^(1/3): 4.6 at 1,000 rows, 9.3 at 8,000."""
    trainer = MadeTrainer(power, c1=1e-9, c2=0.0)
    ladder = [2, 4, 6, 8, 10, 14, 20]
    found = run(
        trainer, 1e-3, components=ComponentSearch(ladder), sizes=(1000, 8000, 64_000), base=-4
    )
    chosen = [stage.fit.components for stage in found.stages]

    def best(n):
        return max(ladder, key=lambda k: -1 / k**2 - 20 * k / n)

    assert chosen == [best(1000), best(8000), best(64_000)]
    assert len(set(chosen)) == 3
    # Every stage has tried one more than it kept, and all runs are charged.
    assert found.spent == pytest.approx(sum(fit.seconds for fit in found.fits))
    first = [fit.components for fit in found.fits if fit.size == 1000]
    assert first == ladder[: ladder.index(chosen[0]) + 2]


def test_components_that_cost_more_than_they_add_are_not_taken():
    dear = MadeTrainer(power, c1=1.0)
    found = run(dear, 1.0, components=ComponentSearch([2, 4, 6]), sizes=(1000, 8000), base=-4)
    assert found.stages[0].fit.components == 2
    with pytest.raises(ValueError, match="increasing numbers"):
        ComponentSearch([4, 2])


def test_sizes():
    assert stage_sizes(40_000, 2, 587_971) == (40_000, 80_000, 160_000, 320_000, 587_971)
    assert stage_sizes(100, 2, 100) == (100,)
    assert stage_sizes(100, 2, 801) == (100, 200, 400, 801)  # 800 would be trained on for one row
    assert stage_sizes(100, 2, 850) == (100, 200, 400, 800, 850)
    assert stage_sizes(100, 2, 50) == (50,)
    assert stage_sizes(2, 1.1, 6) == (2, 3, 4, 5, 6)
    with pytest.raises(ValueError, match="growth"):
        stage_sizes(10, 1.0, 100)
    with pytest.raises(ValueError, match="initial_size"):
        stage_sizes(0, 2.0, 100)
