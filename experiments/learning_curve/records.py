"""Training runs that are made once and then looked up.

Methods and thresholds that decide differently train on the same samples. A run is made when some
method first asks for it, and its measured score and seconds serve all others: no method is luckier
than another, and all thresholds cost one.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from bayes_lcs.io.sampler import RowSource
from bayes_lcs.learning_curve_sampling.trainer import EstimatorTrainer
from bayes_lcs.learning_curve_sampling.training_run import Mode, TrainingRun
from bayes_lcs.learning_curve_sampling.truncated_training import parse_abbreviation
from bayes_lcs.runtime.atomic_files import write_atomically


class Records:
    """All runs on one random order of one data set, kept in a file if one is named."""

    def __init__(
        self,
        estimator: Any,
        source: RowSource,
        holdout_size: int,
        clock: Callable[[], float],
        path: Path | None = None,
    ) -> None:
        self._estimator, self._source = estimator, source
        self._holdout_size, self._clock, self._path = holdout_size, clock, path
        self._fits: dict[str, TrainingRun] = {}
        if path is not None and path.is_file():
            kept = json.loads(path.read_text(encoding="utf-8"))
            self._fits = {key: TrainingRun(**entry) for key, entry in kept.items()}

    def trainer(self, method: str) -> RecordedTrainer:
        """The trainer of a method, by its name in the paper's tables."""
        short = None if method == "standard LCS" else parse_abbreviation(method)
        live = EstimatorTrainer(
            self._estimator,
            self._source,
            holdout_size=self._holdout_size,
            abbreviation=short,
            clock=self._clock,
        )
        return RecordedTrainer(live, method, self)

    def get(self, key: str, make: Callable[[], TrainingRun]) -> TrainingRun:
        """The run of that name, made if it is the first time that it is asked for."""
        if key not in self._fits:
            self._fits[key] = make()
            self._write()
        return self._fits[key]

    def _write(self) -> None:
        if self._path is None:
            return
        kept = {
            key: asdict(replace(fit, model=None, row_scores=None))
            for key, fit in self._fits.items()
        }
        self._path.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps(kept, indent=1)
        write_atomically(self._path, lambda part: part.write_text(text, encoding="utf-8"))


class RecordedTrainer:
    """A `bayes_lcs.learning_curve_sampling.training_run.Trainer` that makes every run once."""

    def __init__(self, live: EstimatorTrainer, method: str, records: Records) -> None:
        self.live, self.abbreviated = live, live.abbreviated
        self._method, self._records = method, records

    def fit(
        self,
        size: int,
        mode: Mode,
        *,
        start: TrainingRun | None = None,
        components: int | None = None,
    ) -> TrainingRun:
        assert components is None

        def make() -> TrainingRun:
            begin = start
            if begin is not None and begin.model is None:  # from the file: parameters are not kept
                begin = self.live.fit(size, "abbreviated")
            made = self.live.fit(size, mode, start=begin)
            # A final run needs the parameters of the abbreviated one; nothing needs its own.
            return made if mode == "abbreviated" else replace(made, model=None)

        # Full training is the same for all methods.
        key = f"full {size}" if mode == "full" else f"{self._method} {mode} {size}"
        return self._records.get(key, make)

    def read_seconds(self, size: int) -> float:
        return self.live.read_seconds(size)
