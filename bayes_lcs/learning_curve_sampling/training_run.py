"""Training runs, the protocol of trainers, and standard errors over the rows of the hold-out."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

__all__ = ["Fit", "Mode", "RowScores", "Trainer", "mean_error"]

Mode = Literal["full", "abbreviated", "final"]
"""A run to convergence, a run cut short, or a run to convergence that begins where one was cut."""

RowScores = NDArray[np.float64]


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
    is_first
        Whether it is the first run on a sample of this size, for which programs are compiled.
    row_scores
        Score of each row of the hold-out, if ``score`` is their mean; otherwise None.
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
    is_first: bool = False
    row_scores: RowScores | None = field(default=None, repr=False, compare=False)

    @property
    def seconds(self) -> float:
        """All time that this run took."""
        return self.fit_seconds + self.score_seconds + self.read_seconds


class Trainer(Protocol):
    """Trainer on nested samples: a live estimator, records of one, or a curve made by a formula."""

    abbreviated: bool
    """Whether the stages are trained by runs cut short."""

    def fit(
        self, size: int, mode: Mode, *, start: Fit | None = None, components: int | None = None
    ) -> Fit:
        """Train on the first ``size`` rows; a final run begins with the parameters of ``start``."""

    def read_seconds(self, size: int) -> float:
        """Return the time that reading the first ``size`` rows is expected to take."""


def mean_error(values: RowScores | None, other: RowScores | float | None = 0.0) -> float:
    """Return the standard error of the mean of ``values - other``, row by row.

    NaN where the scores of single rows are not known, or of fewer than two rows.

    Examples
    --------
    >>> round(mean_error(np.array([1.0, 2.0, 3.0, 6.0])), 3)
    1.08
    >>> mean_error(np.array([1.0, 2.0, 3.0]), np.array([0.0, 1.0, 2.0]))
    0.0
    """
    if values is None or other is None or values.size < 2:
        return float("nan")
    return float(np.std(values - other, ddof=1) / np.sqrt(values.size))
