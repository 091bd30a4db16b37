"""Training runs, the protocol of trainers, and standard errors over hold-out rows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

__all__ = ["Mode", "RowScores", "Trainer", "TrainingRun", "mean_error"]

Mode = Literal["full", "abbreviated", "final"]
"""To convergence, truncated, or to convergence from the parameters of a truncated run."""

RowScores = NDArray[np.float64]


@dataclass(frozen=True)
class TrainingRun:
    """One training run.

    Attributes
    ----------
    size
        Rows trained on.
    mode
        Extent of the training.
    score
        Score on the hold-out; larger is better.
    iterations
        Iterations of the algorithm; 1 if the estimator has no ``n_iter_``.
    fit_seconds, score_seconds, read_seconds
        Time spent training, scoring the hold-out, and reading the sample.
    components
        Number of components, if it is chosen by the search.
    model
        The fitted estimator.
    interrupted
        Whether Ctrl-C ended the training early.
    is_first
        Whether this is the first run on a sample of this size, for which programs are compiled.
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
        """Total time of the run."""
        return self.fit_seconds + self.score_seconds + self.read_seconds


class Trainer(Protocol):
    """Trainer on nested samples: an estimator, recorded runs, or a synthetic curve."""

    abbreviated: bool
    """True if stages are truncated."""

    def fit(
        self,
        size: int,
        mode: Mode,
        *,
        start: TrainingRun | None = None,
        components: int | None = None,
    ) -> TrainingRun:
        """Train on the first ``size`` rows; a final run starts from the parameters of ``start``."""

    def read_seconds(self, size: int) -> float:
        """Return the expected time of reading the first ``size`` rows."""


def mean_error(values: RowScores | None, other: RowScores | float | None = 0.0) -> float:
    """Return the standard error of the mean of ``values - other``, row by row.

    It is NaN if the scores of single rows are not known, or with fewer than two rows.

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
