"""Figure 3: the same on four made domains, and whether clearer clusters make it stronger."""

from __future__ import annotations

import numpy as np
import pandas as pd

from bayes_lcs.evaluation.cluster_accuracy import accuracy_correlation
from experiments.benchmarks.tables import Table
from experiments.generalized_clustering.accuracies import (
    ASSIGNMENTS,
    made_accuracies,
    natural_accuracies,
)
from experiments.generalized_clustering.data_sets import PAPER
from experiments.generalized_clustering.pictures import scatter
from experiments.generalized_clustering.setting import Setting
from experiments.papers.outcome import Finding, Outcome

SEPARATIONS, SEPARATIONS_SMOKE = (0.0, 0.05, 0.1, 0.2), (0.0, 0.1)


def run(setting: Setting) -> Outcome:
    separations = SEPARATIONS_SMOKE if setting.smoke else SEPARATIONS
    parts = {s: made_accuracies(setting, s).assign(separation=s) for s in separations}
    rows = []
    explained = {assignment: [] for assignment in ASSIGNMENTS}  # type: dict[str, list[float]]
    for separation, part in parts.items():
        cells = [separation, float(part["supervised"].mean())]
        for assignment in ASSIGNMENTS:
            seen = accuracy_correlation(part["supervised"], part[assignment])
            signed = float(np.sign(seen.r) * seen.explained)
            explained[assignment].append(signed)
            cells += [float(part[assignment].mean()), seen.r, seen.p_value]
        rows.append(tuple(cells))
    columns = ["separation", "with labels"]
    for assignment in ASSIGNMENTS:
        columns += [assignment, f"r, {assignment}", f"p, {assignment}"]
    natural = natural_accuracies(setting, PAPER)
    first = {
        a: accuracy_correlation(natural["supervised"], natural[a]).explained for a in ASSIGNMENTS
    }
    every = pd.concat(parts.values(), ignore_index=True)
    grows = {a: bool(np.all(np.diff(explained[a]) > 0)) for a in ASSIGNMENTS}
    words = "; ".join(
        f"{a} {', '.join(f'{value:.0%}' for value in explained[a])}" for a in ASSIGNMENTS
    )
    return Outcome(
        [Table("figure_3", "Made domains, accuracies in per cent", tuple(columns), rows)],
        every,
        {"": scatter({f"separation {s:g}": part for s, part in parts.items()}, "strict")},
        {
            "weaker_than_on_natural_data": Finding(
                f"variance explained, strict: {np.mean(explained['strict']):.0%} on average "
                f"against {first['strict']:.0%}",
                bool(np.mean(explained["strict"]) < first["strict"]),
            ),
            "does_not_grow_with_separation": Finding(
                f"variance explained as clusters separate: {words}", not any(grows.values())
            ),
        },
    )
