"""Table 4: sample sizes chosen, and those of an oracle that knows the next benefit and cost."""

from __future__ import annotations

import numpy as np
import pandas as pd

from experiments.benchmarks.tables import Table
from experiments.learning_curve.pictures import utilities_figure
from experiments.learning_curve.setting import ALPHAS, Setting
from experiments.learning_curve.study import study
from experiments.learning_curve.tables import of_rule
from experiments.papers.outcome import Finding, Outcome


def run(setting: Setting) -> Outcome:
    studies = [study(setting, name) for name in setting.data_sets]
    numbers = pd.concat([of_rule(found.table).query("rule == 'myopic'") for found in studies])
    tables = []
    for found in studies:
        own = numbers[numbers["data"] == found.data_set]
        rows = []
        for method in setting.methods:
            line = own[own["method"] == method].set_index("alpha")
            cells = [(int(line.loc[a, "N_lc"]), int(line.loc[a, "N_oracle"])) for a in ALPHAS]
            rows.append((method, *(cell for pair in cells for cell in pair)))
        columns = ("method", *(f"{what} {a:g}" for a in ALPHAS for what in ("N_lc", "N_oracle")))
        tables.append(Table("table_4", found.data_set, columns, rows))
    behind = np.log2(numbers["N_lc"] / numbers["N_oracle"])
    early, late = int((behind < 0).sum()), float(behind.max())
    return Outcome(
        tables,
        numbers,
        {"": utilities_figure(studies)},
        {
            "oracle_never_larger": Finding(
                f"in {len(behind) - early} of {len(behind)} conditions", early == 0
            ),
            "two_stages_apart": Finding(
                f"{late:.1f} doublings at most too late, {max(0.0, -behind.min()):.1f} too early",
                bool(behind.abs().max() <= 2),
            ),
        },
    )
