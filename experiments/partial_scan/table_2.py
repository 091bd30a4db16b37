"""Table 2: what decisions bring with a single model, one scan and less than one scan."""

from __future__ import annotations

import numpy as np
import pandas as pd

from experiments.papers.outcome import Outcome
from experiments.partial_scan.averages import answers, bars, mean_table, means
from experiments.partial_scan.data_sets import LOOKING, MAILING, problem
from experiments.partial_scan.scans import all_records
from experiments.partial_scan.setting import Setting

ALIKE = 0.03  # of what perfect decisions would bring more than those that are best for all rows


def run(setting: Setting) -> Outcome:
    found = all_records(setting, benefits=True)
    by = means(found)
    room = {name: _room(setting, name) for name in setting.with_benefits}
    slack = pd.Series([ALIKE * room[name] for name, _ in by.index], by.index)
    table = mean_table("table_2", "Total benefit on the test rows, dollars", by, setting)
    table.notes.append(
        f"A mailing costs {MAILING}, looking into a transaction {LOOKING:g}. Perfect decisions "
        "would bring more than one decision for all rows: "
        + ", ".join(f"{name} {value:,.0f}" for name, value in room.items())
        + f"; differences up to {ALIKE:.0%} of it count as alike."
    )
    return Outcome(
        [table],
        found,
        {"": bars(by, "benefit")},
        {f"benefit_{name}": finding for name, finding in answers(by, slack).items()},
    )


def _room(setting: Setting, name: str) -> float:
    """What there is to be gained by learning at all."""
    data = problem(setting, name, benefits=True)
    rows = np.arange(len(data.y_test))
    codes = np.searchsorted(data.classes, data.y_test)
    truth = np.broadcast_to(data.truth, (len(rows), *data.truth.shape[1:]))
    brought = truth[rows, codes]
    return float(brought.max(axis=1).sum() - brought.sum(axis=0).max())
