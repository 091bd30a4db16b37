"""How the experiments are run, and on what."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayes_lcs.data.datasets import dataset_path

COVERED = 0.01
"""Share of the points that the small far clusters of the made data hold."""


@dataclass(frozen=True)
class Setting:
    """Sizes and repeats; a smoke run has little of both and made data only."""

    smoke: bool = False
    seed: int = 0
    name: str = "all"

    @property
    def repeats(self) -> int:
        """Coresets drawn of each kind."""
        return 3 if self.smoke else 20

    @property
    def about(self) -> str:
        """What is run, in words."""
        return f"{', '.join(self.data_sets)}; {self.repeats} repeats, seed {self.seed}"

    @property
    def data_sets(self) -> tuple[str, ...]:
        """Made data, and real numbers."""
        return ("made",) if self.smoke else ("made", "kddcup99_10pct", "default_credit")

    def load(self, name: str) -> NDArray[np.float64]:
        """Points."""
        return made(self.seed, 2000 if self.smoke else 100_000) if name == "made" else real(name)


@cache
def made(seed: int, num_rows: int) -> NDArray[np.float64]:
    """A crowd of points in five clouds, and two small clouds far away."""
    rng = np.random.default_rng(seed)
    centers = np.vstack([3.0 * rng.normal(size=(5, 2)), [[60.0, 0.0], [0.0, 60.0]]])
    share = np.array([*np.full(5, (1.0 - COVERED) / 5.0), COVERED / 2, COVERED / 2])
    return centers[rng.choice(7, num_rows, p=share)] + rng.normal(size=(num_rows, 2))


@cache
def real(name: str) -> NDArray[np.float64]:
    """The columns of numbers of a data set, each with variance one."""
    if name == "kddcup99_10pct":
        frame = pd.read_csv(dataset_path(name), header=None)
    else:
        path = dataset_path(name)
        frame = pd.read_parquet(path) if path.suffix == ".parquet" else pd.read_csv(path)
    numbers = frame.select_dtypes("number").to_numpy(np.float64)
    numbers = numbers[:, numbers.std(axis=0) > 0]
    return np.ascontiguousarray((numbers - numbers.mean(axis=0)) / numbers.std(axis=0))
