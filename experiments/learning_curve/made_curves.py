"""Beyond the paper: both rules on curves and costs made by formulas, where regret is exact."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from bayes_lcs.scaling.controller import run_stages, stage_sizes
from bayes_lcs.scaling.hindsight import hindsight
from bayes_lcs.scaling.stages import Fit, Mode
from bayes_lcs.scaling.utility import Preferences
from experiments.benchmarks.tables import Table
from experiments.learning_curve.regret import TIED
from experiments.learning_curve.setting import Setting
from experiments.learning_curve.study import RULES
from experiments.papers.outcome import Finding, Outcome

FIRST, TOTAL = 40_000, 2_000_000
RISES = (0.005, 0.02, 0.05, 0.2, 0.5)
SHAPES = {
    "power 0.3": lambda x: x**-0.3,
    "power 0.7": lambda x: x**-0.7,
    "logarithm": lambda x: -np.log(x),
    "exponential": lambda x: np.exp(-x / 4),
    "power 1, noisy": lambda x: 1 / x,
}
COSTS = (1.4, 0.28, 0.056)
"""What full training on all rows costs in benefit: α times its hours on USCensus1990."""


@dataclass
class MadeTrainer:
    """50 iterations of 1e-6 s a row and 0.02 s; runs cut short make one and score 0.3 less."""

    curve: Mapping[int, float]
    abbreviated: bool

    def fit(
        self, size: int, mode: Mode, *, start: Fit | None = None, components: int | None = None
    ) -> Fit:
        del start, components
        steps, gap = (1.0, 0.3) if mode == "abbreviated" else (50.0, 0.0)
        return Fit(size, mode, self.curve[size] - gap, steps, seconds(size, steps), 0.05)

    def read_seconds(self, size: int) -> float:
        del size
        return 0.0


def seconds(size: int, steps: float) -> float:
    return steps * (1e-6 * size + 0.02)


def curves(repeats: int, seed: int) -> Iterator[tuple[str, float, dict[int, float]]]:
    """Scores by size, from a baseline at 0 to about 1; noise of 0.002, or 0.01."""
    rng = np.random.default_rng(seed)
    sizes = stage_sizes(FIRST, 2, TOTAL)
    for rise, (name, fall), _ in itertools.product(RISES, SHAPES.items(), range(repeats)):
        begin, end = fall(1.0), fall(TOTAL / FIRST)
        noise = 0.01 if "noisy" in name else 0.002
        yield (
            name,
            rise,
            {
                n: 1.0
                - rise * (fall(n / FIRST) - end) / (begin - end)
                + noise * rng.standard_normal()
                for n in sizes
            },
        )


def run(setting: Setting) -> Outcome:
    found: list[dict[str, Any]] = []
    sizes = stage_sizes(FIRST, 2, TOTAL)
    for (name, rise, curve), short, cost in itertools.product(
        curves(1 if setting.smoke else 4, setting.seed), (False, True), COSTS
    ):
        preferences = Preferences(alpha=cost / (seconds(TOTAL, 50.0) / 3600))
        best = hindsight(MadeTrainer(curve, short), sizes, 0.0).utilities(preferences).max()
        row = {"shape": name, "rise": rise, "fixed-1": short, "cost": cost}
        for rule, decide in RULES.items():
            done = run_stages(
                MadeTrainer(curve, short),
                sizes,
                0.0,
                preferences,
                decide,
                clock=lambda: 0.0,
                abbreviated_iterations=1.0 if short else None,
            )
            assert done.final is not None
            benefit = done.final.score / curve[TOTAL]
            row[rule] = best - preferences.utility(benefit, done.spent)
        found.append(row)
    frame = pd.DataFrame(found)
    lead = frame["myopic"] - frame["fitted"]
    frame["better"], frame["worse"] = lead > TIED, lead < -TIED
    rows = []
    for key in ("cost", "fixed-1", "shape", "rise"):
        for value, own in frame.groupby(key, sort=False):
            means = own[["myopic", "fitted", "better", "worse"]].mean()
            rows.append((key, str(value), *(f"{mean:.4f}" for mean in means)))
    columns = ("by", "value", "myopic", "fitted", "share better", "share worse")
    means = frame[["myopic", "fitted"]].mean()
    return Outcome(
        [Table("made_curves", f"Mean regret over {len(frame)} conditions", columns, rows)],
        frame,
        {"": _figure(frame)},
        {
            "fitted_halves_regret": Finding(
                f"{means['fitted']:.4f} against {means['myopic']:.4f}; smaller in "
                f"{frame['better'].mean():.0%}, larger in {frame['worse'].mean():.0%}, else tied",
                bool(means["fitted"] <= 0.6 * means["myopic"]),
            )
        },
    )


def _figure(frame: pd.DataFrame) -> Any:
    figure, axes = plt.subplots(figsize=(5, 4.6), layout="constrained")
    for cost, own in frame.groupby("cost", sort=False):
        axes.scatter(own["myopic"], own["fitted"], s=14, label=f"all rows cost {cost:g}")
    ends = [float(frame[["myopic", "fitted"]].min(axis=None)), float(frame["myopic"].max())]
    axes.plot(ends, ends, color="0.5", linewidth=1)
    axes.set_xlabel("regret of the myopic rule")
    axes.set_ylabel("regret of the fitted rule")
    axes.grid(alpha=0.25)
    axes.legend(frameon=False, fontsize=8)
    return figure
