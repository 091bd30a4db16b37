"""The same methods on real data sets, with the rules side by side."""

from __future__ import annotations

import pandas as pd

from experiments.learning_curve.pictures import utilities_figure
from experiments.learning_curve.setting import REAL, Setting
from experiments.learning_curve.study import study
from experiments.learning_curve.tables import answers_of, tables_of
from experiments.papers.outcome import Finding, Outcome
from experiments.papers.runner import NotApplicable


def run(setting: Setting) -> Outcome:
    names = [name for name in setting.data_sets if name in REAL]
    if not names:
        raise NotApplicable("it is for real data; use --data real, or one of " + ", ".join(REAL))
    studies = [study(setting, name) for name in names]
    answers = [answers_of(found.table) for found in studies]

    def together(claim: str) -> Finding:
        shown = "; ".join(f"{n}: {a[claim].ours}" for n, a in zip(names, answers, strict=True))
        return Finding(shown, all(answer[claim].agrees for answer in answers))

    return Outcome(
        [table for found in studies for table in tables_of(found)],
        pd.concat([found.table for found in studies], ignore_index=True),
        {"": utilities_figure(studies)},
        {
            "real_standard_beats_full": together("standard_beats_full"),
            "real_fixed_1_is_best": together("fixed_1_is_best"),
            "real_abbreviated_beats_standard": together("abbreviated_beats_standard"),
        },
    )
