"""All four models compared, which the thesis never did: evidence and leave-one-out losses."""

from __future__ import annotations

import warnings
from typing import Any

import pandas as pd

import bayes_lcs as bl
from experiments.benchmarks.tables import Table
from experiments.clustered_naive_bayes.left_out import difference
from experiments.clustered_naive_bayes.model_scores import (
    ALONE,
    CLUSTERED,
    COLUMNS,
    TOGETHER,
    draw_scores,
    printed_rows,
    score,
)
from experiments.clustered_naive_bayes.setting import Setting
from experiments.papers.outcome import Finding, Outcome


def run(setting: Setting) -> Outcome:
    models: list[Any] = [bl.ClusteredNaiveBayes(), bl.Prototype()]
    models += [bl.NoSharing(), bl.CompleteSharing()]
    with warnings.catch_warnings(record=True) as caught:
        for category in (bl.EvidenceWarning, bl.LeaveOutWarning):
            warnings.simplefilter("always", category)
        scores = {model.name: score(model, setting) for model in models}
    frame = pd.DataFrame([found.row for found in scores.values()])
    evidence = {name: found.evidence for name, found in scores.items()}
    left_out = {name: found.left_out for name, found in scores.items()}
    best = max(value.value for value in evidence.values())
    frame.insert(3, "nats_below_best", best - frame["log_evidence"])
    notes = [str(warning.message) for warning in caught]
    table = Table("four_models", "Four ways of sharing", COLUMNS, printed_rows(frame), notes)
    figure = draw_scores(frame, list(evidence.values()))
    return Outcome([table], frame, {"": figure}, _answers(evidence, left_out))


def _answers(
    evidence: dict[str, bl.LogEvidence], left_out: dict[str, bl.LeftOut]
) -> dict[str, Finding]:
    value = {name: found.value for name, found in evidence.items()}
    alone, together = value[ALONE], value[TOGETHER]
    clustered = value[CLUSTERED]
    answers = {}
    for name, loss in (("zero_one", "zero-one"), ("log", "log")):
        mean, error = difference(left_out[CLUSTERED], left_out[ALONE], loss)
        answers[f"clustered_{name}_loss_not_above_no_sharing"] = Finding(
            f"clustered less no sharing: {mean:+.4f} ± {error:.4f}", mean <= 0
        )
    return answers | {
        "log_evidence_clustered": Finding(f"{clustered:,.1f} ({evidence[CLUSTERED].method})", None),
        "log_evidence_clustered_over_no_sharing": Finding(f"{clustered - alone:+,.1f}", None),
        "evidence_order": Finding(
            " > ".join(sorted((CLUSTERED, ALONE, TOGETHER), key=lambda name: -value[name])),
            clustered > alone > together,
        ),
    }
