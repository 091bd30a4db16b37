"""What each model scores on a setting: evidence, leave-one-out losses, number of clusters."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

import bayes_lcs as bl
from bayes_lcs.inference.exact.posterior import ClusteredPosterior
from bayes_lcs.model_evidence.evidence import evidence_from_posterior
from bayes_lcs.plots.evidence import plot_evidence
from experiments.clustered_naive_bayes.partitions import expected_clusters
from experiments.clustered_naive_bayes.posteriors import posterior
from experiments.clustered_naive_bayes.setting import Setting

CLUSTERED, ALONE, TOGETHER = "Clustered Naive Bayes", "No-Sharing", "Complete-Sharing"
COLUMNS = (
    *("model", "log evidence", "nats below best", "wrong labels", "log loss"),
    *("clusters", "leave-one-out by", "seconds"),
)


class Score(NamedTuple):
    """A row of numbers, and what they were taken from."""

    row: dict[str, Any]
    evidence: bl.LogEvidence
    left_out: bl.LeftOut


def score(model: Any, setting: Setting) -> Score:
    """Condition the model on the setting's data and judge it."""
    start = time.perf_counter()
    fitted: Any = posterior(model, setting)
    left_out = bl.leave_one_out(fitted)
    if isinstance(fitted, bl.ExactPosterior):
        evidence = evidence_from_posterior(fitted)
    else:
        evidence = bl.evidence(model, setting.data, seed=setting.seed)
    zero_one, log = left_out.mean_loss(), left_out.mean_loss("log")
    clusters = {ALONE: setting.data.num_groups, TOGETHER: 1}.get(model.name, np.nan)
    if isinstance(fitted, ClusteredPosterior):
        clusters = expected_clusters(fitted)
    elif model.name == CLUSTERED:
        clusters = float((fitted.partitions().max(axis=1) + 1).mean())
    row = {
        "model": model.name,
        "log_evidence": evidence.value,
        "evidence_error": evidence.standard_error,
        "wrong_labels": zero_one.value,
        "wrong_labels_error": zero_one.standard_error,
        "log_loss": log.value,
        "log_loss_error": log.standard_error,
        "clusters": clusters,
        "leave_one_out_by": left_out.method,
        "seconds": round(time.perf_counter() - start, 1),
    }
    return Score(row, evidence, left_out)


def printed_rows(frame: pd.DataFrame) -> list[tuple[Any, ...]]:
    """The table as it is printed; None where there is no number."""

    def with_error(value: float, error: float, digits: int) -> str:
        return f"{value:,.{digits}f}" + (f" ± {error:.{digits}f}" if error else " (exact)")

    named: list[Any] = list(frame.itertuples(index=False))
    return [
        (
            row.model,
            with_error(row.log_evidence, row.evidence_error, 2),
            f"{row.nats_below_best:,.1f}",
            with_error(row.wrong_labels, row.wrong_labels_error, 4),
            with_error(row.log_loss, row.log_loss_error, 4),
            None if np.isnan(row.clusters) else f"{row.clusters:.2f}",
            row.leave_one_out_by,
            row.seconds,
        )
        for row in named
    ]


def draw_scores(frame: pd.DataFrame, evidence: list[bl.LogEvidence]) -> Figure:
    figure, (left, middle, right) = plt.subplots(
        1, 3, figsize=(13.5, 3.2), layout="constrained", width_ratios=(1.8, 1, 1)
    )
    plot_evidence(evidence, left)
    left.set_xlim(right=1.12 * left.get_xlim()[1])  # room for the last number
    for axes, column, label in (
        (middle, "wrong_labels", "share of wrong labels"),
        (right, "log_loss", "log loss (nats)"),
    ):
        at = np.arange(len(frame))
        axes.errorbar(frame[column], at, xerr=1.96 * frame[f"{column}_error"], fmt="o", capsize=3)
        axes.set_yticks(at, frame["model"] if axes is middle else [""] * len(frame))
        axes.set_ylim(len(frame) - 0.5, -0.5)
        axes.set_xlabel(label)
        axes.set_title("leave-one-out", fontsize=10)
        axes.grid(axis="x", alpha=0.25)
    return figure
