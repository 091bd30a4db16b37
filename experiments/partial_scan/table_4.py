"""Table 4: the trap, transactions sorted by their amount."""

from __future__ import annotations

from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from experiments.benchmarks.tables import Table
from experiments.papers.outcome import Finding, Outcome
from experiments.partial_scan.data_sets import Problem, problem
from experiments.partial_scan.scans import PAPERS, FloatArray, fitted, said_by, whole_scan
from experiments.partial_scan.setting import Setting

DATA = "ucsd_fico2009"
LEARNERS = ("tree", "naive_bayes")
SHARES = (10, 25, 50, 75, 100)
TASKS = {False: "accuracy", True: "benefit"}
RULES = {
    "ours, as it lies": {"shuffle": False, "on_drift": "read_on"},
    "ours, parts in random order": {"shuffle": "parts"},
    "the paper's, as it lies": PAPERS,
    "the paper's, a tenth may stay open": {**PAPERS, "rule": "tolerance"},
}
ORDERS = ("natural", "sorted")
MUCH = 10.0  # points of what is read
ALIKE = 0.5  # points of accuracy


def run(setting: Setting) -> Outcome:
    scans, curves = [], []
    for learner in LEARNERS:
        for order in ORDERS:
            rows = _in_order(setting, order, False)
            said = whole_scan(setting, rows, learner, setting.usual_parts, shuffle=False).said
            for benefits in TASKS:
                data = _in_order(setting, order, benefits)
                key = (learner, TASKS[benefits], order)
                scans += [(*key, *row) for row in _scans(setting, data, learner, said)]
                curves += [(*key, *row) for row in _curve(data, said)]
    keys = ["learner", "task", "order"]
    found = pd.DataFrame(scans, columns=[*keys, "rule", "value", "all", "share", "warned"])
    curve = pd.DataFrame(curves, columns=[*keys, "share", "value"])
    columns = ("learner", "task", "order", "rule", "% read", "value", "all read", "warned")
    shown = [
        (*row[:4], f"{row[6]:.0f}", f"{row[4]:.1f}", f"{row[5]:.1f}", "yes" if row[7] else "no")
        for row in scans
    ]
    wide = curve.pivot(index=keys, columns="share", values="value")
    return Outcome(
        [
            Table("table_4a", f"{DATA}, {setting.usual_parts} parts", columns, shown),
            Table(
                "table_4b",
                "Per cent right, or dollars, after some of the parts as they lie",
                (*keys, *(f"{share} %" for share in SHARES)),
                [(*key, *(f"{v:.1f}" for v in row)) for key, row in wide.iterrows()],
            ),
        ],
        pd.concat([found, curve.assign(rule="stopped there")]),
        {"": _figure(wide)},
        _findings(found, wide),
    )


def _in_order(setting: Setting, order: str, benefits: bool) -> Problem:
    data = problem(setting, DATA, benefits)
    if order == "natural":
        return data
    rows = np.argsort(data.X["amount"].to_numpy(), kind="stable")
    return replace(data, X=data.X.iloc[rows].reset_index(drop=True), y=data.y[rows])


def _scans(
    setting: Setting, data: Problem, learner: str, said: FloatArray
) -> list[tuple[str, float, float, float, bool]]:
    rows = []
    for name, options in RULES.items():
        found = fitted(setting, data, learner, setting.usual_parts, **options)
        value = data.value(said_by(found.model, data).mean(axis=0))
        share = 100.0 * found.model.scanned_fraction_
        rows.append((name, value, data.value(said.mean(axis=0)), share, found.warned))
    return rows


def _curve(data: Problem, said: FloatArray) -> list[tuple[int, float]]:
    """What the first parts bring, as they lie."""
    counts = [max(1, round(len(said) * share / 100)) for share in SHARES]
    values = [data.value(said[:count].mean(axis=0)) for count in counts]
    return list(zip(SHARES, values, strict=True))


def _findings(found: pd.DataFrame, wide: pd.DataFrame) -> dict[str, Finding]:
    own = found.set_index(["rule", "learner", "task", "order"])
    findings = {}
    for claim, rule in (
        ("sorted_reads_much_more", "ours, as it lies"),
        ("sorted_reads_much_more_by_its_rule", "the paper's, as it lies"),
    ):
        share = own.loc[rule]["share"].unstack("order")
        more = share["sorted"] - share["natural"]
        findings[claim] = Finding(
            "; ".join(
                f"{' '.join(key)} {row['natural']:.0f} to {row['sorted']:.0f} %"
                for key, row in share.iterrows()
            ),
            bool((more >= MUCH).all()),
        )
    value = own.loc["ours, as it lies"]["value"].unstack("order").xs("accuracy", level="task")
    apart = (value["sorted"] - value["natural"]).abs()
    findings["sorted_is_as_accurate"] = Finding(
        f"at most {apart.max():.2f} points of accuracy apart", bool((apart <= ALIKE).all())
    )
    money = wide.xs(("benefit", "sorted"), level=("task", "order"))
    findings["stopping_early_loses_benefit"] = Finding(
        "; ".join(
            f"{learner}: {row[SHARES[1]]:,.0f} after a quarter, {row[SHARES[-1]]:,.0f} after all"
            for learner, row in money.iterrows()
        ),
        bool((money[SHARES[1]] < money[SHARES[-1]]).all()),
    )
    return findings


def _figure(wide: pd.DataFrame) -> Figure:
    figure, grid = plt.subplots(1, len(TASKS), figsize=(9.0, 3.6), layout="constrained")
    for axes, task in zip(grid, TASKS.values(), strict=True):
        for learner in LEARNERS:
            for order, style in zip(ORDERS, ("-", "--"), strict=True):
                own = wide.loc[(learner, task, order)]
                axes.plot(own.index, own, style, marker="o", label=f"{learner}, {order}")
        axes.set_xlabel("% of the rows read, as they lie")
        axes.set_ylabel(task)
        axes.grid(alpha=0.25)
    grid[0].legend(frameon=False, fontsize=8)
    return figure
