"""Learning curves of every user, trained on the user's own rows or on everybody's.

Thesis Figure 4-1 has the No-Sharing curves alone; those of Complete-Sharing (its Figure 4-3) are
drawn beside them here, from the same shuffles, because the question is which is better when.
"""

from __future__ import annotations

import bayes_lcs as bl
from experiments.clustered_naive_bayes.learning_accuracy import (
    ONE,
    accuracy_curves,
    average_table,
    early_and_late,
    leave_one_out_accuracy,
    mean_accuracy,
)
from experiments.clustered_naive_bayes.learning_panels import draw_panels
from experiments.clustered_naive_bayes.setting import Setting
from experiments.papers.outcome import Finding, Outcome

GOOD, NEAR_CHANCE, SEVERAL = 0.8, 0.55, 3


def run(setting: Setting) -> Outcome:
    alone, together = bl.NoSharing(), bl.CompleteSharing()
    curves = accuracy_curves([alone, together], setting)
    final = leave_one_out_accuracy(curves, alone)
    changes = early_and_late(curves[curves["model"] == alone.name])
    first = int(mean_accuracy(curves, alone).index[0])
    own, all_ = (
        [float(mean_accuracy(curves, model)[size]) for size in (first, ONE)]
        for model in (alone, together)
    )
    good, poor = int((final >= GOOD).sum()), int((final <= NEAR_CHANCE).sum())
    worse = int(changes["falls"].sum())
    groups = len(final)
    findings = {
        "no_sharing_learns": Finding(
            f"{own[0]:.1%} at {first} rows, {own[1]:.1%} at {ONE}", own[1] > own[0]
        ),
        "several_users_at_80_percent": Finding(
            f"{good} of {groups} users at {GOOD:.0%} or more", good >= SEVERAL
        ),
        "some_users_near_chance": Finding(
            f"{poor} of {groups} users at {NEAR_CHANCE:.0%} or less; lowest {final.min():.0%}",
            poor > 0,
        ),
        "some_users_worse_with_more_rows": Finding(
            f"{worse} of {groups} users lower on the last quarter of sizes than on the first "
            "by two standard errors",
            worse > 0,
        ),
        "complete_sharing_first_no_sharing_last": Finding(
            f"complete less no sharing: {all_[0] - own[0]:+.1%} at {first} rows, "
            f"{all_[1] - own[1]:+.1%} at {ONE}",
            all_[0] > own[0] and own[1] > all_[1],
        ),
    }
    table = average_table("figure_4_1", curves, [alone, together])
    table.notes.append("Beside a user's name in the picture: No-Sharing, leave-one-out.")
    return Outcome([table], curves, {"": draw_panels(curves, alone)}, findings)
