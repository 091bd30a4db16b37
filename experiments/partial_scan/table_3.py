"""Table 3: validation rows in batch and one after another, for every bound and rule."""

from __future__ import annotations

import itertools

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from bayes_lcs.classification.partial_scan.stopping_bound import BOUNDS, RULES
from experiments.benchmarks.tables import Table
from experiments.papers.outcome import Finding, Outcome
from experiments.partial_scan.scans import fitted, rows_for, said_by
from experiments.partial_scan.setting import Setting

MODES = ("sequential", "batch")
LEARNERS = ("tree", "naive_bayes")
ALIKE = 0.5  # points of accuracy
DEFAULT, PAPERS = ("betting", "tolerance"), ("hoeffding-finite", "every")


def run(setting: Setting) -> Outcome:
    """Parts come in random order throughout."""
    names = [name for name in setting.with_benefits if name != "kdd98"]
    cases = list(itertools.product(names, LEARNERS, BOUNDS, RULES))
    found = pd.DataFrame([_row(setting, *case, mode) for case in cases for mode in MODES])
    keys = ["data", "learner", "bound", "rule"]
    wide = found.pivot(index=keys, columns="mode", values=["accuracy", "share"])
    rows = [
        (*case, *(f"{wide.loc[case, (v, m)]:.1f}" for v in ("accuracy", "share") for m in MODES))
        for case in cases
    ]
    columns = (*keys, *(f"{v}, {m}" for v in ("accuracy", "% read") for m in MODES))
    more = wide["share"]["batch"] - wide["share"]["sequential"]
    apart = (wide["accuracy"]["batch"] - wide["accuracy"]["sequential"]).abs()
    return Outcome(
        [Table("table_3", f"{setting.usual_parts} parts, per cent", columns, rows)],
        found,
        {"": _figure(wide["share"])},
        {
            "batch_reads_more": _more(more, DEFAULT),
            "batch_reads_more_by_its_rule": _more(more, PAPERS),
            "modes_are_as_accurate": Finding(
                f"at most {apart.max():.2f} points apart", bool(apart.max() <= ALIKE)
            ),
        },
    )


def _row(
    setting: Setting, name: str, learner: str, bound: str, rule: str, mode: str
) -> dict[str, object]:
    data = rows_for(setting, name, False, learner)
    options = {"bound": bound, "rule": rule, "validation": mode}
    model = fitted(setting, data, learner, setting.usual_parts, **options).model
    return {
        "data": name,
        "learner": learner,
        "bound": bound,
        "rule": rule,
        "mode": mode,
        "accuracy": data.value(said_by(model, data).mean(axis=0)),
        "share": 100.0 * model.scanned_fraction_,
    }


def _more(more: pd.Series, kind: tuple[str, str]) -> Finding:
    own = more.xs(kind, level=("bound", "rule"))
    texts = [f"{' '.join(key)} {value:+.1f}" for key, value in own.items()]
    return Finding("points more: " + ", ".join(texts), bool((own >= 0).all() and (own > 0).any()))


def _figure(share: pd.DataFrame) -> Figure:
    names = ["\n".join(key) for key in share.index]
    place = np.arange(len(names))
    figure, axes = plt.subplots(figsize=(0.6 * len(names) + 2.0, 4.4), layout="constrained")
    for number, mode in enumerate(MODES):
        axes.bar(place + 0.4 * number - 0.2, share[mode], 0.4, label=mode)
    axes.set_xticks(place, names, fontsize=5)
    axes.set_ylabel("% of the rows read")
    axes.legend(frameon=False)
    return figure
