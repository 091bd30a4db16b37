"""Table 1: accuracy of a single model, one scan and less than one scan, and the share read."""

from __future__ import annotations

import pandas as pd

from experiments.papers.outcome import Finding, Outcome
from experiments.partial_scan.averages import answers, bars, mean_table, means
from experiments.partial_scan.scans import all_records
from experiments.partial_scan.setting import Setting

ALIKE = 0.5  # points of accuracy


def run(setting: Setting) -> Outcome:
    found = all_records(setting, benefits=False)
    by = means(found)
    findings = answers(by, pd.Series(ALIKE, by.index))
    trees = by["share"].unstack("learner")["tree"]
    findings["adult_reads_most"] = Finding(
        ", ".join(f"{data} {value:.0f} %" for data, value in trees.items()) + " (trees)",
        bool(trees.idxmax() == "adult") if "adult" in trees else None,
    )
    table = mean_table("table_1", "Accuracy, per cent", by, setting)
    return Outcome(
        [table],
        found,
        {"": bars(by, "accuracy")},
        {f"accuracy_{name}": finding for name, finding in findings.items()},
    )
