"""Learning curves of every user, trained on the rows of all users together."""

from __future__ import annotations

import bayes_lcs as bl
from experiments.clustered_naive_bayes.learning_accuracy import (
    accuracy_curves,
    average_table,
    early_and_late,
)
from experiments.clustered_naive_bayes.learning_panels import draw_panels
from experiments.clustered_naive_bayes.setting import Setting
from experiments.papers.outcome import Finding, Outcome


def run(setting: Setting) -> Outcome:
    together = bl.CompleteSharing()
    curves = accuracy_curves([together], setting)
    worse = early_and_late(curves).query("falls")["group"].tolist()
    findings = {
        "more_rows_hurt_some_under_complete_sharing": Finding(
            f"{len(worse)} of {curves['group'].nunique()} users lower on the last quarter of "
            "sizes than on the first by two standard errors",
            len(worse) > 0,
        )
    }
    table = average_table("figure_4_3", curves, [together])
    if worse:
        table.notes.append(f"Lower with more rows: {', '.join(worse)}.")
    return Outcome([table], curves, {"": draw_panels(curves, together)}, findings)
