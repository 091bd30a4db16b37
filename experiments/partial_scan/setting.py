"""How the experiments are run, and on what."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec

DATA_SETS = ("adult", "kdd98", "ucsd_fico2009", "census_income_kdd")
WITH_BENEFITS = DATA_SETS[:3]

RULES_PARTS = (64,)
"""The rule learner is slow: no other numbers of parts."""


@dataclass(frozen=True)
class Setting:
    """Numbers of parts and rows; a smoke run has few of both, and made data in place of real."""

    smoke: bool = False
    seed: int = 0
    name: str = "all"

    @property
    def data_sets(self) -> tuple[str, ...]:
        """Those of accuracy; all but the last have benefits too."""
        return DATA_SETS[1:3] if self.smoke else DATA_SETS

    @property
    def with_benefits(self) -> tuple[str, ...]:
        """Those in which decisions bring something."""
        return tuple(name for name in self.data_sets if name in WITH_BENEFITS)

    @property
    def learners(self) -> tuple[str, ...]:
        """Rules only if their package is there."""
        rules = ("rules",) if find_spec("wittgenstein") else ()
        return ("tree", "naive_bayes", *rules)

    def parts(self, learner: str) -> tuple[int, ...]:
        """Numbers of parts over which a learner's results are averaged."""
        if self.smoke:
            return (4,)
        return RULES_PARTS if learner == "rules" else (8, 16, 32, 64, 128, 256)

    @property
    def usual_parts(self) -> int:
        """Where one number of parts has to do."""
        return 4 if self.smoke else 64

    @property
    def validation_size(self) -> int:
        """Validation rows."""
        return 50 if self.smoke else 1000

    @property
    def about(self) -> str:
        """What is run, in words."""
        data = "made rows" if self.smoke else ", ".join(self.data_sets)
        counts = ", ".join(map(str, self.parts("tree")))
        return f"{data}; {counts} parts, seed {self.seed}"
