"""Table 1: accuracy of the four learners with labels."""

from __future__ import annotations

from matplotlib.figure import Figure

from bayes_lcs.clustering.generalized.estimator import LEARNERS
from experiments.benchmarks.tables import Table
from experiments.generalized_clustering.accuracies import natural_accuracies
from experiments.generalized_clustering.data_sets import PAPER
from experiments.generalized_clustering.pictures import bars
from experiments.generalized_clustering.setting import Setting
from experiments.papers.outcome import Finding, Outcome

PUBLISHED = {
    "promoters": (86.0, 87.0, 76.0, 70.0),
    "iris": (49.3, 94.7, 46.0, 93.3),
    "hayes-roth": (32.3, 61.5, 79.2, 43.1),
    "glass": (84.8, 79.0, 39.0, 97.6),
}
NEAR = 10.0  # per cent: folds and details of the learners differ


def run(setting: Setting) -> Outcome:
    found = natural_accuracies(setting, PAPER)
    by = found.pivot(index="data", columns="learner", values="supervised").loc[list(PAPER)]
    by = by[list(LEARNERS)]
    rows = [(name, *(f"{by.loc[name, k]:.1f}" for k in LEARNERS)) for name in PAPER]
    rows += [(f"{name}, published", *map(str, PUBLISHED[name])) for name in PAPER]
    findings = {}
    for name in PAPER:
        ours = [float(value) for value in by.loc[name]]
        near = sum(abs(a - b) <= NEAR for a, b in zip(ours, PUBLISHED[name], strict=True))
        findings[f"supervised_{name}"] = Finding(
            ", ".join(f"{value:.1f}" for value in ours) + f"; {near} of 4 within ten points",
            near == 4,
        )
    title = "Accuracy with labels, per cent"
    table = Table("table_1", title, ("data", *LEARNERS), rows)
    return Outcome([table], found, {"": _figure(by)}, findings)


def _figure(by: object) -> Figure:
    return bars(by, "accuracy with labels, per cent")
