"""What is measured when a model is trained on a sample, and who trains it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Protocol

__all__ = ["Fit", "Mode", "Trainer"]

Mode = Literal["full", "abbreviated", "final"]
"""A run to convergence, a run cut short, or a run to convergence that begins where one was cut."""


@dataclass(frozen=True)
class Fit:
    """One training run.

    Attributes
    ----------
    size
        Rows trained on.
    mode
        How far the training went.
    score
        Score on the hold-out; larger is better.
    iterations
        Iterations of the algorithm; 1 where the estimator does not say.
    fit_seconds, score_seconds, read_seconds
        Time spent training, scoring the hold-out, and reading the sample.
    components
        Number of components, if it is chosen too.
    model
        The fitted estimator.
    interrupted
        Whether Ctrl-C ended the training early.
    """

    size: int
    mode: Mode
    score: float
    iterations: float = 1.0
    fit_seconds: float = 0.0
    score_seconds: float = 0.0
    read_seconds: float = 0.0
    components: int | None = None
    model: Any = None
    interrupted: bool = False

    @property
    def seconds(self) -> float:
        """All time that this run took."""
        return self.fit_seconds + self.score_seconds + self.read_seconds


class Trainer(Protocol):
    """Whoever trains on nested samples: a live estimator, records of one, or a made-up curve."""

    abbreviated: bool
    """Whether the stages are trained by runs cut short."""

    def fit(
        self, size: int, mode: Mode, *, start: Fit | None = None, components: int | None = None
    ) -> Fit:
        """Train on the first ``size`` rows; a final run begins with the parameters of ``start``."""

    def read_seconds(self, size: int) -> float:
        """The time that reading the first ``size`` rows is expected to take."""
