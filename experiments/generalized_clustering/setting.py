"""How the experiments are run."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Setting:
    """Folds and starts; a smoke run takes two of each and made data in place of real."""

    smoke: bool = False
    seed: int = 0
    name: str = "all"

    @property
    def folds(self) -> int:
        """Folds of the cross-validation; the paper's ten, five for what is beyond it."""
        return 2 if self.smoke else 5 if self.name == "any_classifier" else 10

    @property
    def starts(self) -> int:
        """Random starts over which accuracies without labels are averaged."""
        return 1 if self.smoke else 2 if self.name == "any_classifier" else 5

    @property
    def about(self) -> str:
        """What is run, in words."""
        return f"{self.folds} folds, {self.starts} random starts, seed {self.seed}"
