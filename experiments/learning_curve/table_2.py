"""Table 2: size, benefit, time, utility, speedup and overhead of all methods, MS.COM."""

from __future__ import annotations

from experiments.learning_curve.setting import Setting
from experiments.learning_curve.tables import table_outcome
from experiments.papers.outcome import Outcome

CLAIMS = (
    "standard_beats_full",
    "abbreviated_beats_standard",
    "fixed_1_is_best",
    "fixed_1_overhead",
    "sizes_grow_as_alpha_falls",
)


def run(setting: Setting) -> Outcome:
    return table_outcome(setting, "MS.COM", CLAIMS)
