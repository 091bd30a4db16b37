"""Leave-one-out errors of every user without sharing and with complete sharing."""

from __future__ import annotations

import bayes_lcs as bl
from experiments.clustered_naive_bayes.left_out import (
    COMMON,
    difference,
    error_table,
    errors_by_group,
    plot_errors,
    predictions,
)
from experiments.clustered_naive_bayes.setting import Setting
from experiments.papers.outcome import Finding, Outcome

ALMOST_ALL, OFTEN = 0.8, 0.25


def run(setting: Setting) -> Outcome:
    alone, together = bl.NoSharing(), bl.CompleteSharing()
    left_out = predictions([alone, together], setting)
    frame = errors_by_group(left_out, setting.data)
    better = (frame[alone.name] < frame[together.name]).mean()
    above = (frame[[alone.name, together.name]].min(axis=1) > frame[COMMON]).mean()
    mean, error = difference(left_out[alone.name], left_out[together.name])
    findings = {
        "no_sharing_better_for_almost_all": Finding(
            f"better for {better:.0%} of the users; almost all from {ALMOST_ALL:.0%}",
            bool(better >= ALMOST_ALL),
        ),
        "no_sharing_better_on_average": Finding(
            f"no less complete sharing: {mean:+.4f} ± {error:.4f}", mean < -2 * error
        ),
        "both_often_worse_than_most_common_label": Finding(
            f"for {above:.0%} of the users; often from {OFTEN:.0%}", bool(above >= OFTEN)
        ),
    }
    table = error_table("figure_4_4", frame, left_out)
    return Outcome([table], frame, {"": plot_errors(frame, left_out)}, findings)
