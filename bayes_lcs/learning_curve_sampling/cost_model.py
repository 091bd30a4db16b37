"""Expected cost of the next training run, from the runs so far.

Meek, Thiesson and Heckerman (2002), equation 4: ``c1 · I · n + c2 · I + c3`` for ``I`` iterations
over ``n`` rows: E steps, M steps, and scoring the hold-out. They time the steps inside their
program. Here only the total time of a run is known, so the constants are estimated by non-negative
least squares, with three more terms: ``c4 · n`` for work done once per row (encoding, copying), a
constant for each run, and a constant for the first run on a sample of a new size, for which JAX
estimators compile programs. Errors are relative to the time of each run. A single run does not
identify the terms, and all its time is attributed to ``I · n``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bayes_lcs.learning_curve_sampling.training_run import TrainingRun

__all__ = ["CostModel", "fit_cost_model"]


@dataclass(frozen=True)
class CostModel:
    """Seconds of a training run as a function of size, iterations and components.

    Attributes
    ----------
    row_iteration, row, iteration, run, first
        Seconds for each row and iteration (c1), each row, each iteration (c2), each run, and the
        first run on a sample of a new size.
    score
        Seconds to score the hold-out (c3).
    components
        Number of components to which the constants refer, or None.
    """

    row_iteration: float
    row: float
    iteration: float
    run: float
    first: float
    score: float
    components: int | None = None

    def seconds(
        self,
        size: int,
        iterations: float,
        components: int | None = None,
        *,
        is_first: bool = False,
    ) -> float:
        """Return the expected seconds of a run, with scoring and without reading.

        Examples
        --------
        >>> cost = CostModel(1e-6, 0.0, 0.01, run=0.5, first=1.0, score=0.2)
        >>> round(cost.seconds(100_000, iterations=20), 9)
        2.9
        """
        factor = 1.0
        if components is not None and self.components is not None:
            factor = components / self.components
        each = self.row_iteration * size + self.iteration
        once = self.run + self.score + (self.first if is_first else 0.0)
        return float(iterations * factor * each + self.row * size + once)


def fit_cost_model(fits: Sequence[TrainingRun]) -> CostModel:
    """Fit the constants to the training runs so far.

    Examples
    --------
    >>> runs = [TrainingRun(n, "full", 0.0, 10.0, fit_seconds=n * 1e-5) for n in (1000, 2000)]
    >>> round(fit_cost_model(runs).seconds(4000, 10.0), 9)
    0.04
    """
    from scipy.optimize import nnls

    if not fits:
        raise ValueError("a cost model needs at least one training run, got none")
    reference = next((fit.components for fit in fits if fit.components is not None), None)
    rows = np.array([_terms(fit, reference) for fit in fits])
    seconds = np.array([max(fit.fit_seconds, 1e-12) for fit in fits])
    scale = np.maximum(rows.max(axis=0), 1e-300)  # a column may be zero, such as is_first
    solution, _ = nnls(rows / scale / seconds[:, None], np.ones(len(fits)))
    if len(fits) == 1:
        solution = np.array([seconds[0], 0.0, 0.0, 0.0, 0.0])
    row_iteration, row, iteration, run, first = (float(c) for c in solution / scale)
    score = float(np.mean([fit.score_seconds for fit in fits]))
    return CostModel(row_iteration, row, iteration, run, first, score, reference)


def _terms(fit: TrainingRun, reference: int | None) -> NDArray[np.float64]:
    factor = 1.0 if reference is None or fit.components is None else fit.components / reference
    iterations = fit.iterations * factor
    return np.array([iterations * fit.size, fit.size, iterations, 1.0, float(fit.is_first)])
