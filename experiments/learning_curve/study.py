"""One data set in one random order: all methods and thresholds, the oracle, EM on all rows.

The rule is that of the paper. The package's own, `myopic` in the module `rules`, takes noise into
account; the experiment `claims` studies it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import pandas as pd

from bayes_lcs.data.rows.array_sampler import row_source
from bayes_lcs.learning_curve_sampling.controller import Run, run_stages, stage_sizes
from bayes_lcs.learning_curve_sampling.rules import CurveSoFar, Decision
from bayes_lcs.learning_curve_sampling.trainer import with_all_categories
from bayes_lcs.learning_curve_sampling.training_run import TrainingRun
from bayes_lcs.learning_curve_sampling.truncated_training import parse_abbreviation
from bayes_lcs.learning_curve_sampling.utility import (
    Preferences,
    default_baseline,
    relative_benefit,
)
from experiments.learning_curve.records import RecordedTrainer, Records
from experiments.learning_curve.setting import (
    ALPHAS,
    PAPER_HOURS,
    Setting,
    load,
    make_estimator,
)


def paper_rule(curve: CurveSoFar, preferences: Preferences) -> Decision:
    """Stop after the first step that is worth no more than the next stage costs (equation 9)."""
    scores, size = curve.scores, curve.next_size
    if size is None:
        return Decision(True, None, None, None, None, None, "paper", "all rows are used")
    seconds = curve.seconds_to_continue - curve.seconds_to_stop
    cost = preferences.price(seconds)
    gain, stop = None, False
    if len(scores) > 1:
        step, scale = scores[-1] - scores[-2], max(scores) - curve.base
        gain = step / scale if scale > 0 else None
        stop = step <= 0 if gain is None else gain <= cost
    return Decision(stop, None if stop else size, gain, gain, cost, seconds, "paper", "equation 9")


@dataclass(frozen=True)
class Study:
    """What all methods found; ``table`` has one row a method, rule and α."""

    data_set: str
    table: pd.DataFrame
    predictions: pd.DataFrame  # of the cost model: expected and measured seconds of stages
    num_rows: int
    full: TrainingRun
    base: float


@cache
def study(setting: Setting, data_set: str, sequence: int = 0) -> Study:
    """Run all methods on one random order of the rows."""
    data = load(data_set, setting.scale, setting.seed)
    source = row_source(data, seed=setting.seed + sequence)
    estimator = with_all_categories(make_estimator(setting.components, setting.seed), source)
    clock = setting.ticker()
    holdout = setting.holdout_size(data.shape[0])
    initial = setting.initial_size(data_set, data.shape[0])
    name = f"{data_set}_{setting.scale:g}_{setting.components}_{setting.seed}_{sequence}"
    path = None if setting.keep is None else setting.keep / f"{name}_{setting.clock}.json"
    records = Records(estimator, source, holdout, clock, path)
    standard = records.trainer("standard LCS")
    simple = default_baseline(estimator)
    baseline = records.get(
        "baseline", lambda: replace(standard.live.fit_baseline(simple, holdout), model=None)
    )
    # The first run of a program compiles it; that is not what rows cost.
    num_rows = source.num_rows - holdout
    sizes = stage_sizes(min(initial, num_rows), 2, num_rows)
    for size in sizes[:2]:
        standard.live.warm_up(size)
    full = standard.fit(num_rows, "full")
    hours = full.seconds / 3600
    rows, predictions = [], []
    for method in setting.methods:
        trainer = records.trainer(method)
        short = None if method == "standard LCS" else parse_abbreviation(method)
        steps = None if short is None else short.iterations
        for alpha in ALPHAS:
            ours = alpha * PAPER_HOURS.get(data_set, 1.0) / hours
            preferences = Preferences(alpha=ours)
            oracle, best = _oracle(trainer, sizes, baseline.score, full, preferences)
            run = run_stages(
                trainer,
                sizes,
                baseline.score,
                preferences,
                paper_rule,
                clock=clock,
                abbreviated_iterations=steps,
                confirm=False,
            )
            entry = _row(run, trainer, baseline.score, full, preferences)
            entry |= {"method": method, "rule": "myopic", "alpha": alpha, "our_alpha": ours}
            entry |= {"N_oracle": oracle, "best_utility": best}
            rows.append({"data": data_set, "sequence": sequence, **entry})
            predictions += _predictions(run, data_set, method)
    for alpha in ALPHAS:
        ours = alpha * PAPER_HOURS.get(data_set, 1.0) / hours
        entry = {"data": data_set, "sequence": sequence, "method": "EM-full", "rule": "full"}
        entry |= {"alpha": alpha, "our_alpha": ours, "N_lc": num_rows, "benefit": 1.0}
        entry |= {"seconds": full.seconds, "utility": 1.0 - ours * hours}
        rows.append(entry | {"speedup": 1.0, "overhead": 1.0, "iterations": full.iterations})
    table = pd.DataFrame(rows)
    table["regret"] = table["best_utility"] - table["utility"]
    foreseen = pd.DataFrame(predictions).drop_duplicates(["method", "size"])
    return Study(data_set, table, foreseen, num_rows, full, baseline.score)


def _row(
    run: Run, trainer: RecordedTrainer, base: float, full: TrainingRun, preferences: Preferences
) -> dict[str, object]:
    final = run.end
    benefit = relative_benefit(final.score, base, full.score)
    return {
        "N_lc": final.size,
        "benefit": benefit,
        "seconds": run.spent,
        "utility": preferences.utility(benefit, run.spent),
        "speedup": full.seconds / run.spent,
        "overhead": run.spent / trainer.fit(final.size, "full").seconds,
        "iterations": final.iterations,
        "stages": len(run.stages),
        "decided_by": run.stages[-1].decision.rule if run.stages[-1].decision else "",
    }


def _predictions(run: Run, data_set: str, method: str) -> list[dict[str, object]]:
    return [
        {
            "data": data_set,
            "method": method,
            "size": stage.fit.size,
            "predicted": stage.predicted_seconds,
            "seconds": stage.fit.seconds,
        }
        for stage in run.stages[1:]
    ]


def _oracle(
    trainer: RecordedTrainer,
    sizes: tuple[int, ...],
    base: float,
    full: TrainingRun,
    preferences: Preferences,
) -> tuple[int, float]:
    """Return N_oracle, and the best utility of a stop at any stage up to one beyond it."""
    spent, utilities = 0.0, []
    for place, size in enumerate(sizes):
        if not trainer.abbreviated:
            final = trainer.fit(size, "full")
            spent += final.seconds
            total = spent
        else:
            if place == 0:
                spent += trainer.fit(size, "full").seconds
            short = trainer.fit(size, "abbreviated")
            spent += short.seconds
            first = place == 0
            final = trainer.fit(size, "full") if first else trainer.fit(size, "final", start=short)
            total = spent if first else spent + final.seconds
        benefit = relative_benefit(final.score, base, full.score)
        utilities.append(preferences.utility(benefit, total))
        if len(utilities) > 1 and utilities[-1] <= utilities[-2]:
            return sizes[place - 1], max(utilities)
    return sizes[int(np.argmax(utilities))], max(utilities)
