"""What a pass over rows takes on an executor, fitted to measurements, and elsewhere, on paper.

    seconds = work * units / workers  +  task * blocks / workers  +  byte * bytes  +  fixed

``units`` is arithmetic (rows, times look-ups and weights or columns, times components), which
workers share, as they share the blocks, each of which costs something to be asked for. ``bytes``
are parameters out and statistics back: they all pass through the one process that merges them, so
that no worker helps with them. ``fixed`` is paid once a pass. No coefficient is negative.
Measurements differ by orders of magnitude and err in proportion: least squares are of relative
errors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

__all__ = [
    "NAMES",
    "CostModel",
    "Elsewhere",
    "Interval",
    "Pass",
    "fit_cost_model",
    "left_out_errors",
    "predict_elsewhere",
]

FloatArray = NDArray[np.float64]

NAMES = ("work", "task", "byte", "fixed")


class Pass(NamedTuple):
    """One pass over the rows: how much there is to do, and how many share it."""

    units: float
    blocks: float
    bytes: float
    workers: int

    @property
    def terms(self) -> tuple[float, float, float, float]:
        """What the coefficients are multiplied with."""
        return self.units / self.workers, self.blocks / self.workers, self.bytes, 1.0


@dataclass(frozen=True)
class CostModel:
    """Coefficients in seconds, with their errors.

    Attributes
    ----------
    coefficients, errors : (4,)
        In the order of `NAMES`. A coefficient that is 0 because it may not be negative has no error
        of its own; those of the others hold given that it is 0.
    covariance : (4, 4)
        Of the coefficients.
    scatter
        Standard deviation of the relative residuals: what the formula does not know.
    """

    coefficients: FloatArray
    covariance: FloatArray
    scatter: float

    @property
    def errors(self) -> FloatArray:
        return np.sqrt(np.diag(self.covariance))

    def seconds(self, job: Pass) -> float:
        """What the pass takes."""
        return float(np.array(job.terms) @ self.coefficients)


def fit_cost_model(passes: Sequence[Pass], seconds: Sequence[float]) -> CostModel:
    """The coefficients that fit measured passes, by least squares of relative errors."""
    times = np.asarray(seconds, dtype=np.float64)
    if len(times) <= len(NAMES):
        raise ValueError(f"{len(times)} measurements are too few for {len(NAMES)} coefficients")
    design = np.array([job.terms for job in passes]) / times[:, None]
    # Columns differ by ten orders of magnitude; a column that is all zero stays at zero.
    scale = np.linalg.norm(design, axis=0)
    scale[scale == 0.0] = 1.0
    found, _ = nnls(design / scale, np.ones(len(times)))
    free = found > 0.0
    residuals = 1.0 - (design / scale) @ found
    variance = float(residuals @ residuals) / (len(times) - int(free.sum()))
    covariance = np.zeros((len(NAMES), len(NAMES)))
    used = (design / scale)[:, free]
    inverse = np.linalg.pinv(used.T @ used) * variance
    covariance[np.ix_(free, free)] = inverse
    return CostModel(found / scale, covariance / np.outer(scale, scale), float(np.sqrt(variance)))


def left_out_errors(passes: Sequence[Pass], seconds: Sequence[float]) -> FloatArray:
    """Predicted over measured, minus 1, of each pass by the fit to all others."""
    errors = []
    for i, job in enumerate(passes):
        others = [j for j in range(len(passes)) if j != i]
        model = fit_cost_model([passes[j] for j in others], [seconds[j] for j in others])
        errors.append(model.seconds(job) / seconds[i] - 1.0)
    return np.array(errors)


class Elsewhere(NamedTuple):
    """What is assumed of a cluster that was not measured; each a lowest and a highest value.

    Attributes
    ----------
    gigabits
        A second, of the network of the process that merges; between them, all orders of magnitude
        are as likely.
    spread
        Standard deviation of the logarithm of a worker's speed: a pass waits for the slowest.
    slowness
        Of its cores, over those that were measured.
    per_worker
        Seconds that the one process spends on each worker at each pass; with one or two workers
        it cannot be told from what is fixed. Dask's documentation speaks of about a millisecond a
        task.
    """

    gigabits: tuple[float, float] = (1.0, 10.0)
    spread: tuple[float, float] = (0.02, 0.15)
    slowness: tuple[float, float] = (0.7, 1.5)
    per_worker: tuple[float, float] = (0.0002, 0.002)


class Interval(NamedTuple):
    """Middle, and where nine of ten draws lie."""

    lower: float
    median: float
    upper: float


def predict_elsewhere(
    model: CostModel,
    job: Pass,
    assumed: Elsewhere | None = None,
    *,
    draws: int = 20_000,
    seed: int = 0,
) -> Interval:
    """What a pass would take on a cluster, by draws of what is not known.

    Coefficients are drawn with their errors, what the formula does not know with its scatter, and
    what is assumed from its range. Bytes cost what they cost here, and their way over the network.
    """
    assumed = Elsewhere() if assumed is None else assumed
    rng = np.random.default_rng(seed)
    drawn = rng.multivariate_normal(model.coefficients, model.covariance, draws, method="svd")
    work, task, byte, fixed = np.maximum(drawn, 0.0).T
    network = 8e-9 / np.exp(rng.uniform(*np.log(assumed.gigabits), draws))
    spread = rng.uniform(*assumed.spread, draws)
    slowest = np.exp(spread * _largest_of_normals(rng, job.workers, draws))
    slowness = np.exp(rng.uniform(*np.log(assumed.slowness), draws))
    units, blocks, amount, _ = job.terms
    fixed = fixed + rng.uniform(*assumed.per_worker, draws) * job.workers
    here = slowness * ((work * units + task * blocks) * slowest + byte * amount + fixed)
    seconds = here * np.exp(model.scatter * rng.normal(size=draws)) + network * amount
    return Interval(*np.quantile(seconds, [0.05, 0.5, 0.95]).tolist())


def _largest_of_normals(rng: np.random.Generator, number: int, draws: int) -> FloatArray:
    """The largest of some standard normals, by inversion of its distribution function."""
    from scipy.special import ndtri

    return np.asarray(ndtri(rng.random(draws) ** (1.0 / number)))
