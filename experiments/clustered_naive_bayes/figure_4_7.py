"""Leave-one-out errors of every user under clustered, no and complete sharing."""

from __future__ import annotations

from typing import Any

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

MOST = 0.5


def run(setting: Setting) -> Outcome:
    models: list[Any] = [bl.ClusteredNaiveBayes(), bl.NoSharing(), bl.CompleteSharing()]
    clustered, alone, together = (model.name for model in models)
    left_out = predictions(models, setting)
    frame = errors_by_group(left_out, setting.data)
    means = {name: found.mean_loss().value for name, found in left_out.items()}
    mean, error = difference(left_out[clustered], left_out[alone])
    best = (frame[clustered] < frame[[alone, together, COMMON]].min(axis=1)).mean()
    common = int((frame[COMMON] < frame[list(left_out)].min(axis=1)).sum())
    findings = {
        "clustered_best_on_average": Finding(
            ", ".join(f"{name} {value:.4f}" for name, value in means.items()),
            means[clustered] == min(means.values()),
        ),
        "clustered_not_significantly_better": Finding(
            f"clustered less no sharing: {mean:+.4f} ± {error:.4f}", mean >= -2 * error
        ),
        "clustered_best_for_most_users": Finding(
            f"better than all three for {best:.0%} of the users", bool(best > MOST)
        ),
        "most_common_label_sometimes_best": Finding(
            f"for {common} of {len(frame)} users", common > 0
        ),
    }
    table = error_table("figure_4_7", frame, left_out)
    return Outcome([table], frame, {"": plot_errors(frame, left_out)}, findings)
