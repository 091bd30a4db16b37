"""Curves and costs made by hand, for controllers whose every decision can be worked out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from sklearn.base import BaseEstimator

from bayes_lcs.learning_curve_sampling.training_run import Mode, TrainingRun


@dataclass
class MadeTrainer:
    """A trainer that trains nothing: scores and seconds follow formulas.

    A run of ``I`` iterations over ``n`` rows takes ``c1·I·n + c2·I`` seconds, and scoring ``c3``.
    Runs cut short take ``short`` iterations and score ``gap`` less.
    """

    curve: Callable[[int], float]
    iterations: Callable[[int], float] = lambda n: 20.0
    c1: float = 1e-5
    c2: float = 0.01
    c3: float = 0.5
    short: float = 1.0
    gap: float = 0.3
    abbreviated: bool = False
    reading: float = 0.0
    noise: Callable[[], float] = lambda: 1.0
    seen: list[tuple[int, str]] = field(default_factory=list)
    interrupt_at: int | None = None

    def seconds(self, size: int, iterations: float) -> float:
        return self.c1 * iterations * size + self.c2 * iterations

    def fit(
        self,
        size: int,
        mode: Mode,
        *,
        start: TrainingRun | None = None,
        components: int | None = None,
    ) -> TrainingRun:
        if self.interrupt_at is not None and size >= self.interrupt_at:
            raise KeyboardInterrupt
        self.seen.append((size, mode))
        steps = self.short if mode == "abbreviated" else self.iterations(size)
        factor = 1.0 if components is None else float(components)
        score = self.curve(size) - (self.gap if mode == "abbreviated" else 0.0)
        if components is not None:
            score -= 1.0 / components**2 + components * 20.0 / size
        took = self.seconds(size, steps * factor) * self.noise()
        return TrainingRun(
            size, mode, score, steps, took, self.c3, self.reading, components, (size, mode)
        )

    def read_seconds(self, size: int) -> float:
        return self.reading


def still() -> float:
    """A clock that stands still: deciding takes no time."""
    return 0.0


class StepClock:
    """A clock that only the work moves on."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Counting(BaseEstimator):
    """Scores by a formula in the number of rows, takes time by another, and records its rows."""

    def __init__(
        self, max_iter=10, tol=1e-3, warm_start=False, n_components=2, clock=None, log=None
    ):
        self.max_iter = max_iter
        self.tol = tol
        self.warm_start = warm_start
        self.n_components = n_components
        self.clock = clock
        self.log = log

    def __sklearn_clone__(self):
        return Counting(**self.get_params(deep=False))  # the clock and the log are shared

    def __deepcopy__(self, memo):
        copied = Counting(**self.get_params(deep=False))
        copied.__dict__.update(self.__dict__)
        return copied

    def fit(self, X, y=None):
        before = self.steps_ if self.warm_start and hasattr(self, "steps_") else 0
        self.n_iter_ = self.max_iter
        self.steps_ = before + self.max_iter
        self.rows_ = len(X)
        self.clock.now += 1e-4 * self.max_iter * len(X)
        self.log.append(("fit", self.max_iter, self.tol, before, np.asarray(X)[:, 0].copy()))
        return self

    def score(self, X, y=None):
        self.clock.now += 0.25
        self.log.append(("score", self.max_iter, self.tol, 0, np.asarray(X)[:, 0].copy()))
        if self.n_components == 1:
            return -3.0
        return -1.0 - self.rows_**-0.5 - 0.5**self.steps_
