"""The public function, with estimators that record what they see and with scikit-learn's own."""

from __future__ import annotations

import json
import math

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.cluster import MiniBatchKMeans
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.mixture import GaussianMixture
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KernelDensity
from sklearn.tree import DecisionTreeClassifier

import bayes_lcs as bl
from bayes_lcs.io.random_order import random_order
from bayes_lcs.learning_curve_sampling.result import _ratio_interval
from bayes_lcs.learning_curve_sampling.truncated_training import NAMES, parse_abbreviation
from experiments.learning_curve.convergence import (
    convergence_curves,
    plot_convergence_curves,
    plot_iterations,
)
from tests.learning_curve_sampling.made import Counting, StepClock

ROWS = np.arange(20_000, dtype=float).reshape(-1, 1)
SHAPE = {"initial_size": 1000, "holdout_size": 500, "baseline_size": 300, "random_state": 3}


def counting(**options):
    clock, log = StepClock(), []
    return Counting(clock=clock, log=log), {**SHAPE, "clock": clock, "progress": False, **options}


@pytest.mark.parametrize("method", ["myopic", "full"])
@pytest.mark.parametrize("abbreviated", [None, "fixed-1", "fixed-3", "thresh-0.1"])
@pytest.mark.parametrize("source", ["array", "csv"])
def test_nothing_is_trained_on_the_hold_out(method, abbreviated, source, tmp_path):
    estimator, options = counting(method=method, abbreviated=abbreviated, alpha=2.0)
    data = ROWS
    if source == "csv":
        pd.DataFrame(ROWS, columns=["row"]).to_csv(tmp_path / "a.csv", index=False)
        data = bl.row_source(tmp_path / "a.csv", kind="numbers", seed=3, memory=8 * 2000)
    bl.learning_curve_sample(estimator, data, **options)
    hold_out = set(random_order(20_000, 3)[:500].astype(float))
    fits = [entry[4] for entry in estimator.log if entry[0] == "fit"]
    scores = [entry[4] for entry in estimator.log if entry[0] == "score"]
    assert len(fits) >= 3 - (method == "full")
    assert all(not set(rows) & hold_out for rows in fits)
    assert all(set(rows) == hold_out for rows in scores)
    order = random_order(20_000, 3)[500:].astype(float)
    for rows in fits:
        np.testing.assert_array_equal(rows, order[: len(rows)])


def by_hand(alpha):
    """Standard LCS: the clock moves 1e-4 · I · n a fit and 0.25 a score; iterations are 10."""
    sizes = [1000, 2000, 4000, 8000, 16_000, 19_500]
    score = [-1 - n**-0.5 - 0.5**10 for n in sizes]
    for i in range(1, 5):
        rise = score[i] - score[i - 1] if i == 1 else (score[i] - score[i - 2]) / 2
        gain = rise / (score[i] + 3.0)
        if gain <= alpha * (1e-3 * sizes[i + 1] + 0.25) / 3600:
            return sizes[i], score[i], sizes[: i + 1]
    return sizes[-1], score[-1], sizes


@pytest.mark.parametrize("alpha", [0.0, 0.1, 1.0, 3.0, 10.0, 50.0])
def test_size_score_time_and_utility_by_hand(alpha):
    estimator, options = counting(alpha=alpha)
    result = bl.learning_curve_sample(estimator, ROWS, **options)
    size, score, visited = by_hand(alpha)
    assert result.sample_size == size
    assert result.score == pytest.approx(score)
    assert result.gain == pytest.approx(score + 3.0)
    # The baseline (10 iterations) and the warm-up (one, without a score) count as time too.
    before = 300 * 1e-3 + 0.25 + 1000 * 1e-4
    seconds = before + sum(1e-3 * n + 0.25 for n in visited)
    assert result.runtime_seconds == pytest.approx(seconds)
    assert result.curve["size"].tolist() == visited
    full_result = bl.learning_curve_sample(estimator, ROWS, **{**options, "method": "full"})
    full = -1 - 19_500**-0.5 - 0.5**10
    assert full_result.score == pytest.approx(full)
    assert full_result.benefit == 1.0
    assert full_result.benefit_interval == (1.0, 1.0)
    known = result.compared_with(full_result)
    benefit = (score + 3.0) / (full + 3.0)
    assert known.benefit == pytest.approx(benefit)
    assert known.utility == pytest.approx(benefit - alpha * seconds / 3600)
    # Nothing is claimed of full training on all rows that was not done.
    assert math.isnan(result.benefit) == math.isnan(result.utility) == (size != 19_500)
    assert np.isnan(result.benefit_interval).all() == (size != 19_500)
    # This estimator has no scores of rows, so that there is no standard error.
    assert np.isnan([result.score_standard_error, *result.score_interval]).all()
    assert np.isnan(result.gain_interval).all()


def test_the_last_training_goes_on_from_the_abbreviated_one():
    estimator, options = counting(abbreviated="fixed-3", alpha=5.0)
    result = bl.learning_curve_sample(estimator, ROWS, **options)
    fits = [entry[1:4] for entry in estimator.log if entry[0] == "fit"]
    warm_up, first, short, last = fits[1], fits[2], fits[3:-1], fits[-1]
    assert warm_up == (1, 1e-3, 0)
    assert first == (10, 1e-3, 0)
    assert set(short) == {(3, 1e-3, 0)}
    assert last == (10, 1e-3, 3)  # begins where three steps have led
    assert result.model.steps_ == 13
    assert result.curve["assumed_score"].iloc[0] == pytest.approx(-1 - 1000**-0.5 - 0.5**10)
    assert result.curve["score"].iloc[0] == pytest.approx(-1 - 1000**-0.5 - 0.5**3)
    assert estimator.get_params()["max_iter"] == 10


def test_thresholds_change_tol_only():
    estimator, options = counting(abbreviated="thresh-0.01", alpha=5.0)
    bl.learning_curve_sample(estimator, ROWS, **options)
    assert {entry[2] for entry in estimator.log if entry[0] == "fit"} == {1e-3, 1e-2}


class Unsteady(Counting):
    """One sample of the middle ends in a better maximum than all larger ones."""

    def __sklearn_clone__(self):
        return Unsteady(**self.get_params(deep=False))

    def score(self, X, y=None):
        return super().score(X, y) + 0.2 * (self.rows_ == 4000)


@pytest.mark.parametrize("alpha", [0.0, 0.2, 3.0])
def test_the_best_model_is_returned_and_a_fall_does_not_stop(alpha):
    """The model of 4,000 rows is the best; the fall after it is no reason to stop."""
    clock = StepClock()
    estimator = Unsteady(clock=clock, log=[])
    options = {**SHAPE, "alpha": alpha, "clock": clock, "progress": False}
    result = bl.learning_curve_sample(estimator, ROWS, **options)
    assert result.sample_size == result.model.rows_ == 4000
    assert result.score == result.curve["score"].max()
    assert len(result.stages) > 4 if alpha else result.curve["size"].iloc[-1] == 19_500
    assert "the best score is that of 4,000 rows" in result.explain()
    seconds = sum(fit.seconds for fit in result.run.fits)
    assert result.runtime_seconds > seconds > 7.0  # all stages are paid for
    if alpha == 0.0:
        assert result.benefit > 1.0


def test_abbreviated_runs_claim_nothing_of_full_training():
    estimator, options = counting(abbreviated="fixed-1", alpha=0.0)
    result = bl.learning_curve_sample(estimator, ROWS, **options)
    assert result.sample_size == 19_500
    # The last training began elsewhere than full training on all rows does.
    assert math.isnan(result.benefit)
    assert math.isnan(result.utility)
    full = bl.learning_curve_sample(estimator, ROWS, **{**options, "method": "full"})
    assert result.compared_with(full).benefit == pytest.approx(1.0, abs=1e-3)
    # Scores of the curve are measured; the assumed ones are named so.
    short = [-1 - n**-0.5 - 0.5 for n in result.curve["size"]]
    np.testing.assert_allclose(result.curve["score"], short)
    offset = 0.5 - 0.5**10
    np.testing.assert_allclose(result.curve["assumed_score"], np.array(short) + offset)


def test_intervals_are_those_of_student_for_all_stages():
    X = blobs()
    options = {"initial_size": 400, "holdout_size": 1000, "alpha": 0.0, "progress": False}
    result = bl.learning_curve_sample(GaussianMixture(3, random_state=0), X, **options)
    order = random_order(len(X), 0)
    held_out, train = X[order[:1000]], X[order[1000:]]
    base = GaussianMixture(1).fit(train)
    rows = result.model.score_samples(held_out)
    difference = rows - base.score_samples(held_out)
    quantile = stats.t.isf(0.025 / len(result.stages), 999)
    for (low, high), values in ((result.score_interval, rows), (result.gain_interval, difference)):
        half = quantile * values.std(ddof=1) / np.sqrt(1000)
        assert (low, high) == pytest.approx((values.mean() - half, values.mean() + half))
    assert result.score_standard_error == pytest.approx(rows.std(ddof=1) / np.sqrt(1000))
    assert result.score == pytest.approx(rows.mean())
    kept = result.summary()
    assert (kept["gain_low"], kept["gain_high"]) == result.gain_interval
    assert "interval" not in repr(result)
    assert f"{result.score:.5g} ± " in repr(result)


def test_the_interval_of_a_ratio_is_fieller_s():
    """Ratios inside are those that a t test of ``top - r bottom`` does not reject."""
    rng = np.random.default_rng(4)
    bottom = 1.0 + rng.standard_normal(200)
    top = 0.8 * bottom + 0.3 * rng.standard_normal(200)
    low, high = _ratio_interval(top, bottom, stats.t.isf(0.025, 199))
    for ratio in (low, high):
        assert stats.ttest_1samp(top - ratio * bottom, 0.0).pvalue == pytest.approx(0.05)
    assert low < top.mean() / bottom.mean() < high
    # Of a gain that may be zero no ratio can be excluded: 13.75 was claimed for 1.00 here once.
    assert _ratio_interval(top, bottom - bottom.mean() + 0.01, 1.96) == (-math.inf, math.inf)


def test_scores_of_rows_from_scoring_and_accuracy():
    X, y = make_classification(2000, random_state=0)
    options = {"initial_size": 200, "holdout_size": 500, "alpha": 0.0, "progress": False}
    tree = LogisticRegression()
    result = bl.learning_curve_sample(tree, X, y, **options)
    share = result.score
    assert result.score_standard_error == pytest.approx(np.sqrt(share * (1 - share) / 499))
    rows = bl.learning_curve_sample(
        tree, X, y, scoring=lambda model, X, y: (model.predict(X) == y).astype(float), **options
    )
    assert rows.score_interval == pytest.approx(result.score_interval)
    number = bl.learning_curve_sample(
        tree, X, y, scoring=lambda model, X, y: model.score(X, y), **options
    )
    assert number.score == result.score
    assert math.isnan(number.score_standard_error)
    with pytest.raises(ValueError, match=r"shape \(3,\); it must return a number, or one score"):
        bl.learning_curve_sample(tree, X, y, scoring=lambda *_: np.zeros(3), **options)
    # A score that is not the mean over rows has no standard error: KernelDensity sums.
    density = bl.learning_curve_sample(KernelDensity(), X, baseline=-1e6, **options)
    assert math.isnan(density.score_standard_error)
    assert density.score == pytest.approx(density.model.score(X[random_order(2000, 0)[:500]]))


def test_components_are_chosen():
    rng = np.random.default_rng(0)
    centres = 6 * np.array([[0, 0], [1, 0], [0, 1], [1, 1]])
    X = rng.normal(size=(6000, 2)) + centres[rng.integers(4, size=6000)]
    result = bl.learning_curve_sample(
        GaussianMixture(random_state=0, n_init=3),
        X,
        components=[2, 3, 4, 5],
        alpha=1e-6,
        initial_size=1000,
        holdout_size=1000,
        progress=False,
    )
    assert result.components in (4, 5)
    assert result.model.n_components == result.components
    with pytest.raises(ValueError, match="full training"):
        bl.learning_curve_sample(GaussianMixture(), X, components=[1, 2], abbreviated="fixed-1")


def blobs(num_rows=6000):
    rng = np.random.default_rng(1)
    return rng.normal(size=(num_rows, 3)) + 5 * rng.integers(3, size=(num_rows, 1))


@pytest.mark.parametrize("abbreviated", [None, "fixed-1", "thresh-0.1"])
def test_gaussian_mixtures(abbreviated):
    result = bl.learning_curve_sample(
        GaussianMixture(3, random_state=0),
        blobs(),
        alpha="1% per 0.1 s",
        initial_size=400,
        holdout_size=1000,
        abbreviated=abbreviated,
        progress=False,
    )
    assert result.model.converged_
    assert result.sample_size <= 5000
    low, high = result.gain_interval
    assert 0 < low < result.gain < high


def test_classifiers():
    X, y = make_classification(4000, random_state=0)
    options = {"initial_size": 200, "holdout_size": 1000, "alpha": 100.0, "progress": False}
    result = bl.learning_curve_sample(LogisticRegression(), X, y, **options)
    shares = max(np.mean(y[random_order(4000, 0)[:1000]] == label) for label in (0, 1))
    assert result.baseline_score == pytest.approx(shares, abs=0.05)
    assert result.score > result.baseline_score
    frame = pd.DataFrame(X).add_prefix("x").assign(kind=y)
    source = bl.row_source(frame, target="kind")
    same = bl.learning_curve_sample(LogisticRegression(), source, **options)
    assert same.curve["score"].iloc[0] == result.curve["score"].iloc[0]
    short = bl.learning_curve_sample(
        GaussianNB(), X, y, abbreviated="fixed-1", warm_up=False, **options
    )
    assert short.model.predict(X[:1]).size == 1
    steps = bl.learning_curve_sample(
        SGDClassifier(random_state=0), X, y, abbreviated="fixed-3", **options
    )
    assert steps.model.n_iter_ > 3


def test_other_estimators_and_scores():
    result = bl.learning_curve_sample(
        MiniBatchKMeans(3, random_state=0, n_init=1),
        blobs(),
        initial_size=400,
        holdout_size=1000,
        scoring=lambda model, X, y: model.score(X) / len(X),
        progress=False,
    )
    assert result.score > result.baseline_score


def test_saving(tmp_path):
    estimator, options = counting(alpha=3.0)
    result = bl.learning_curve_sample(estimator, ROWS, **options)
    kept = json.loads(result.save(tmp_path / "a.json").read_text())
    assert kept["result"]["sample_size"] == result.sample_size
    assert kept["result"]["gain"] == pytest.approx(result.gain)
    assert kept["result"]["utility"] is None
    assert [row["size"] for row in kept["curve"]] == result.curve["size"].tolist()
    curve = pd.read_csv(result.save(tmp_path / "a.csv"))
    assert curve["reason"].tolist() == result.curve["reason"].tolist()
    with pytest.raises(ValueError, match=r"\.json or \.csv"):
        result.save(tmp_path / "a.txt")
    text = result.explain()
    assert "3 benefit per hour (one per cent is worth a wait of 12.0 s)" in text
    assert "benefit 1 is the best gain so far" in text
    assert "stops" in text


def test_what_is_no_better_than_the_base_has_no_scale_of_benefit():
    estimator, options = counting(alpha=3.0)
    result = bl.learning_curve_sample(estimator, ROWS, **{**options, "baseline": 1e6})
    text = result.explain()
    assert (
        "benefit is undefined: no model is better than the baseline, which has the score 1e+06"
        in text
    )
    assert "no gain over the base" in text
    assert "benefit 1 is" not in text
    assert "utility" not in text


def test_ctrl_c_warns_and_keeps():
    class Impatient(Counting):
        def fit(self, X, y=None):
            if len(X) >= 4000:
                raise KeyboardInterrupt
            return super().fit(X, y)

        def __sklearn_clone__(self):
            return Impatient(**self.get_params(deep=False))

    clock = StepClock()
    estimator = Impatient(clock=clock, log=[])
    with pytest.warns(bl.InterruptedWarning, match="after 2 stages"):
        result = bl.learning_curve_sample(
            estimator, ROWS, **SHAPE, alpha=0.001, clock=clock, progress=False
        )
    assert result.interrupted
    assert result.curve["size"].tolist() == [1000, 2000]
    assert result.sample_size == 2000
    assert "interrupted" in repr(result)


def test_progress_says_why(capsys, monkeypatch):
    seen = []
    monkeypatch.setattr(
        "bayes_lcs.learning_curve_sampling.sample._report",
        lambda add_row, base, stage, steps: seen.append(stage.decision.reason),
    )
    estimator, options = counting(alpha=3.0)
    bl.learning_curve_sample(estimator, ROWS, **{**options, "progress": True})
    assert seen[0].startswith("continues: one stage")
    assert all("benefit" in reason and "cost" in reason for reason in seen[1:])
    assert seen[-1].startswith("stops")


@pytest.mark.parametrize("abbreviated", [None, "fixed-1"])
def test_no_sample_is_larger_than_what_fits_into_memory(abbreviated):
    estimator, options = counting(alpha=0.0, abbreviated=abbreviated)
    whole = bl.learning_curve_sample(estimator, ROWS, **options)
    most = whole.stages[-1].fit.size - 1
    result = bl.learning_curve_sample(estimator, ROWS, **options, most_rows=most)
    assert max(fit.size for fit in result.run.fits) <= most
    assert "do not fit into memory" in result.stop_reason


def test_pictures():
    mpl.use("Agg")
    estimator, options = counting(alpha=3.0)
    result = bl.learning_curve_sample(estimator, ROWS, **options)
    for x_scale in ("log", "linear"):
        axes = bl.plot_sampling_curve(result, x_scale=x_scale)
        assert axes.get_xscale() == x_scale
        assert axes.lines[0].get_xdata().tolist() == result.curve["size"].tolist()
    axes = bl.plot_stopping_line(result)
    (line,) = [line for line in axes.lines if line.get_label() == "slope α"]
    x, y = line.get_data()
    assert (y[-1] - y[0]) / (x[-1] - x[0]) == pytest.approx(3.0 / 3600)
    estimator, options = counting()
    shape = {k: options[k] for k in ("initial_size", "holdout_size", "clock", "progress")}
    frame = convergence_curves(estimator, ROWS, thresholds=[0.1, 0.001], **shape)
    assert len(frame) == 12
    assert len(plot_convergence_curves(frame).lines) == 2
    assert len(plot_iterations(frame).lines) == 2
    mpl.pyplot.close("all")


def test_names_of_abbreviations():
    assert [parse_abbreviation(name).kind for name in NAMES] == ["fixed"] * 4 + ["thresh"] * 4
    assert [parse_abbreviation(name).value for name in NAMES] == [
        1,
        3,
        5,
        10,
        0.1,
        0.01,
        0.001,
        0.0001,
    ]
    assert parse_abbreviation("none") is None
    for wrong in ("fixed-0", "fixed", "thresh-", "thresh-x", "1", "thresh-0.0"):
        with pytest.raises(ValueError, match="abbreviated="):
            parse_abbreviation(wrong)


def test_missing_cells_are_announced_once(tmp_path, recwarn):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.choice(["a", "b", "?"], (200, 2)), columns=["x", "y"])
    frame.to_csv(tmp_path / "rows.csv", index=False)
    for given in (tmp_path / "rows.csv", frame):
        recwarn.clear()
        bl.learning_curve_sample(bl.MixtureClusterer(2, random_state=0), given)
        assert len([one for one in recwarn if one.category is bl.DataNote]) == 1


def test_a_classifier_needs_the_name_of_its_label(tmp_path):
    pd.DataFrame({"x": [0, 1] * 50, "y": [0, 1] * 50}).to_csv(tmp_path / "rows.csv", index=False)
    with pytest.raises(bl.DataError, match="needs a target: give y"):
        bl.learning_curve_sample(DecisionTreeClassifier(), tmp_path / "rows.csv")


def test_what_cannot_be_done_is_refused():
    estimator, options = counting()
    for method in ("guess", "fitted", "oracle"):
        with pytest.raises(ValueError, match=f"method must be one of myopic, full, got '{method}'"):
            bl.learning_curve_sample(estimator, ROWS, **{**options, "method": method})
    with pytest.raises(ValueError, match="leaves nothing of 20000 rows"):
        bl.learning_curve_sample(estimator, ROWS, **{**options, "holdout_size": 20_000})
    with pytest.raises(ValueError, match="GaussianNB has no tol"):
        bl.learning_curve_sample(GaussianNB(), ROWS, abbreviated="thresh-0.1", holdout_size=10)
    with pytest.raises(ValueError, match="alpha"):
        bl.learning_curve_sample(estimator, ROWS, **{**options, "alpha": "often"})

    class Hopeless(Counting):
        def score(self, X, y=None):
            return -math.inf

        def __sklearn_clone__(self):
            return Hopeless(**self.get_params(deep=False))

    with pytest.raises(ValueError, match="probability 0"):
        bl.learning_curve_sample(Hopeless(clock=StepClock(), log=[]), ROWS, **options)
    full = bl.learning_curve_sample(estimator, ROWS, **{**options, "method": "full"})
    few = bl.learning_curve_sample(estimator, ROWS, **{**options, "alpha": 50.0})
    with pytest.raises(ValueError, match="all the same rows"):
        full.compared_with(few)
    other = bl.learning_curve_sample(
        estimator, ROWS, **{**options, "method": "full", "random_state": 4}
    )
    with pytest.raises(ValueError, match="different hold-outs"):
        few.compared_with(other)
