"""Figure 2: accuracy of clusters against accuracy with labels, natural data."""

from __future__ import annotations

from bayes_lcs.evaluation.cluster_accuracy import accuracy_correlation
from experiments.benchmarks.tables import Table
from experiments.generalized_clustering.accuracies import ASSIGNMENTS, natural_accuracies
from experiments.generalized_clustering.data_sets import PAPER
from experiments.generalized_clustering.pictures import scatter
from experiments.generalized_clustering.setting import Setting
from experiments.papers.outcome import Finding, Outcome

LEVEL = 0.01


def run(setting: Setting) -> Outcome:
    found = natural_accuracies(setting, PAPER)
    rows, findings = [], {}
    for assignment in ASSIGNMENTS:
        seen = accuracy_correlation(found["supervised"], found[assignment])
        rows.append((assignment, seen.r, 100.0 * seen.explained, seen.p_value))
        findings[f"correlated_{assignment}"] = Finding(
            f"r = {seen.r:.2f}: {seen.explained:.0%} of the variance, p = {seen.p_value:.3g}",
            seen.r > 0 and seen.p_value < LEVEL,
        )
    table = Table(
        "figure_2",
        f"Accuracy of clusters foretold by accuracy with labels, {len(found)} cases",
        ("assignment", "r", "variance explained, per cent", "p"),
        rows,
    )
    figure = scatter(dict.fromkeys(ASSIGNMENTS, found), "strict")
    return Outcome([table], found, {"": figure}, findings)
