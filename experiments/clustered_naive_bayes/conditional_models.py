"""All four models compared by the evidence of labels given features, which the thesis has for two.

Of a random subset of rows: ``P(X)`` sums over all labelings, and for clusters over all partitions.
"""

from __future__ import annotations

import warnings
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

import bayes_lcs as bl
from bayes_lcs.plots.evidence import plot_evidence
from experiments.benchmarks.tables import Table
from experiments.clustered_naive_bayes.setting import Setting
from experiments.papers.outcome import Outcome

ROWS, ROWS_SMOKE = 20, 10
PRECISION, PRECISION_SMOKE = 0.2, 0.5


def run(setting: Setting) -> Outcome:
    order = np.random.default_rng(setting.seed).permutation(setting.data.num_rows)
    part = setting.data.take(order[: ROWS_SMOKE if setting.smoke else ROWS])
    part = part.select_groups(np.flatnonzero(part.group_sizes).tolist())
    models: list[Any] = [bl.ClusteredNaiveBayes(), bl.Prototype()]
    models += [bl.NoSharing(), bl.CompleteSharing()]
    precision = PRECISION_SMOKE if setting.smoke else PRECISION
    with warnings.catch_warnings():
        # Said by the intervals.
        warnings.simplefilter("ignore", bl.EvidenceWarning)
        given, together = (
            bl.compare(models, part, conditional=conditional, precision=precision, progress=False)
            for conditional in (True, False)
        )
    columns = ["model", "log_evidence", "lower", "upper", "probability"]
    frame = given.table()[columns].rename(columns={"log_evidence": "log_conditional_evidence"})
    frame = frame.merge(together.table()[["model", "log_evidence"]], on="model")
    table = Table(
        "conditional_models",
        f"Labels given features, {part.num_rows} rows of {part.num_groups} groups",
        tuple(name.replace("_", " ") for name in frame.columns),
        list(frame.itertuples(index=False, name=None)),
        [given.verdict(), "Log evidence: of features and labels together, of the same rows."],
    )
    figure, axes = plt.subplots(figsize=(7.0, 3.0), layout="constrained")
    plot_evidence(list(given.evidences), axes)
    axes.set_xlabel(f"{axes.get_xlabel()}, labels given features")
    return Outcome([table], frame, {"": figure}, {})
