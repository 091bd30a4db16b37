"""What an experiment is run on: data sets, their size, and what waiting costs.

The paper's thresholds are benefit per hour of an 800 MHz Pentium III. Here the hour is another: on
each data set α is scaled so that full EM on all rows costs as much benefit as it did there.
Decisions depend on time only through α times time, so they can be held side by side.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from experiments.learning_curve.generators import census, web_log
from experiments.learning_curve.real_data import CONFIRMED, HELD_BACK, LOADERS, REAL

ALPHAS = (1.0, 0.2, 0.04)
"""Of the paper, in benefit per hour."""

METHODS = (
    *(f"fixed-{steps}" for steps in (1, 3, 5, 10)),
    *(f"thresh-{threshold}" for threshold in ("0.1", "0.01", "0.001", "0.0001")),
    "standard LCS",
)

SHAPES = {"MSNBC": (597_971, 303), "MS.COM": (1_938_877, 775), "USCensus1990": (2_458_284, 68)}
"""Rows and columns of the paper's data sets, which the generators imitate."""

PAPER_HOURS = {"MSNBC": 0.325, "MS.COM": 1.259, "USCensus1990": 1.403}
"""Run time of EM on all rows in the paper (Tables 1 to 3)."""

CLOCKS: dict[str, Callable[[], float]] = {"cpu": time.process_time, "wall": time.perf_counter}


@dataclass(frozen=True)
class Setting:
    """How to run.

    Attributes
    ----------
    name
        "paper" for the three generators, or one data set.
    data_sets
        The data sets to run on.
    scale
        Share of the rows of each.
    components
        Components of the mixture.
    sequences
        Random orders of the rows for the sensitivity experiment.
    clock
        "cpu" (seconds of all threads of this process: other work on the machine does not count) or
        "wall".
    keep
        Folder for the scores and seconds of all training runs. Runs found there are not made again.
    """

    name: str
    data_sets: tuple[str, ...]
    scale: float
    components: int
    sequences: int
    clock: str
    smoke: bool
    seed: int
    keep: Path | None = None

    @property
    def about(self) -> str:
        sets = ", ".join(self.data_sets)
        size = f"{self.scale:g} of the rows, K = {self.components}"
        return f"{sets}; {size}; seed {self.seed}; {self.clock} seconds"

    def initial_size(self, data_set: str, num_rows: int) -> int:
        """The first sample: the paper's 40,000 rows, scaled; of a real set one row in fifty."""
        wanted = 40_000 * self.scale if data_set in SHAPES else num_rows / 50
        return max(round(wanted), 200)

    def holdout_size(self, num_rows: int) -> int:
        """Rows held out: the paper's 10,000, but not more than a fifth."""
        return min(10_000, num_rows // 5)

    @property
    def methods(self) -> tuple[str, ...]:
        """All methods of the paper; three in a smoke run."""
        return ("fixed-1", "thresh-0.0001", "standard LCS") if self.smoke else METHODS

    def ticker(self) -> Callable[[], float]:
        return CLOCKS[self.clock]


def setting_for(
    name: str,
    *,
    smoke: bool = False,
    scale: float | None = None,
    sequences: int | None = None,
    clock: str = "cpu",
    seed: int = 0,
    keep: Path | None = None,
) -> Setting:
    """Return the setting for the three shapes of the paper, a group of real sets, or one set."""
    groups = {"paper": tuple(SHAPES), "real": REAL, "held_back": HELD_BACK, "confirmed": CONFIRMED}
    return Setting(
        name,
        groups.get(name, (name,)),
        0.0005 if smoke else (scale or 1.0),
        3 if smoke else 25,
        2 if smoke else (sequences or 10),
        clock,
        smoke,
        seed,
        keep,
    )


@cache
def load(name: str, scale: float, seed: int) -> Any:
    """The rows of a data set, or a random share of them."""
    if name in SHAPES:
        rows, columns = SHAPES[name]
        rows = max(round(rows * scale), 1500)
        if name == "USCensus1990":
            return census(rows, columns, seed)
        return web_log(rows, columns, 3.0 if name == "MSNBC" else 4.0, seed)
    data = LOADERS[name]()
    if scale == 1.0:
        return data
    rows = max(round(data.shape[0] * scale), min(1500, data.shape[0]))
    chosen = np.random.default_rng(seed).permutation(data.shape[0])[:rows]
    return data[np.sort(chosen)]


def make_estimator(components: int, seed: int) -> Any:
    """EM as in the paper: MAP, perturbed one-component start, γ = 1e-5."""
    from bayes_lcs import MixtureClusterer

    return MixtureClusterer(
        n_components=components,
        max_iter=1000,
        stopping="relative",
        tol=1e-5,
        acceleration=None,
        n_init=1,
        random_state=seed,
    )
