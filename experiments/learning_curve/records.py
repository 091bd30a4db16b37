"""Training runs that are made once and then looked up.

Methods and thresholds that decide differently train on the same samples. A run is made when some
method first asks for it, and its measured score and seconds serve all others: no method is luckier
than another, and all thresholds cost one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from bayes_lcs.data.row_source import RowSource
from bayes_lcs.scaling.abbreviation import abbreviation
from bayes_lcs.scaling.stages import Fit, Mode
from bayes_lcs.scaling.trainer import EstimatorTrainer


class Records:
    """All runs on one random order of one data set."""

    def __init__(
        self, estimator: Any, source: RowSource, holdout_size: int, clock: Callable[[], float]
    ) -> None:
        self._estimator, self._source = estimator, source
        self._holdout_size, self._clock = holdout_size, clock
        self._full: dict[int, Fit] = {}
        self._trainers: dict[str, RecordedTrainer] = {}

    def trainer(self, method: str) -> RecordedTrainer:
        """The trainer of a method, by its name in the paper's tables."""
        if method not in self._trainers:
            short = None if method == "standard LCS" else abbreviation(method)
            live = EstimatorTrainer(
                self._estimator,
                self._source,
                holdout_size=self._holdout_size,
                abbreviation=short,
                clock=self._clock,
            )
            self._trainers[method] = RecordedTrainer(live, self._full)
        return self._trainers[method]


class RecordedTrainer:
    """A `bayes_lcs.scaling.stages.Trainer` that makes every run once."""

    def __init__(self, live: EstimatorTrainer, full: dict[int, Fit]) -> None:
        self.live, self.abbreviated = live, live.abbreviated
        self._full = full  # shared by all methods: full training is the same for all
        self._own: dict[tuple[int, Mode], Fit] = {}

    def fit(
        self, size: int, mode: Mode, *, start: Fit | None = None, components: int | None = None
    ) -> Fit:
        assert components is None
        if mode == "full":
            if size not in self._full:
                self._full[size] = replace(self.live.fit(size, mode), model=None)
            return self._full[size]
        if (size, mode) not in self._own:
            made = self.live.fit(size, mode, start=start)
            # A final run needs the parameters of the abbreviated one; nothing needs its own.
            self._own[size, mode] = made if mode == "abbreviated" else replace(made, model=None)
        return self._own[size, mode]

    def read_seconds(self, size: int) -> float:
        return self.live.read_seconds(size)
