"""Checks of a coreset: costs of some centres on its points, and on the data.

Two kinds of centres are compared. Some are drawn from the data without looking at the coreset.
Others are found on the coreset by k-means, as its user does: they are the harder check, since
k-means puts no centre where the coreset has no points.

The rows of streams and trees are gone when the coreset is there. A sample of them is kept: priority
sampling (Duffield, Lund and Thorup 2007), by sizes that rise with the squared distance from the
mean of a leaf and with the sensitivity in it, so that far rows are kept almost surely if they lie
scattered. Those that all lie in one leaf share the size of that leaf, and may be missed. Costs on
the data are estimated without bias and with a standard error.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from bayes_lcs.clustering.coresets.sampling_scores import Importance, importance
from bayes_lcs.clustering.kmeans.estimator import KMeans
from bayes_lcs.clustering.kmeans.init import draw_centers, nearest
from bayes_lcs.core.errors import warn_user

__all__ = [
    "FOUND",
    "LARGE_ERROR",
    "QUERIES",
    "CheckRows",
    "CheckSample",
    "Distortion",
    "allow_for_starts",
    "centers_to_check",
    "check_costs",
    "check_on_sample",
    "compare_costs",
    "warn_of_large_errors",
]

FloatArray = NDArray[np.float64]

QUERIES = 2
"""Sets of centres that are drawn from the data."""
FOUND = 4
"""Sets of centres that are found on the coreset, from a start each."""
LARGE_ERROR = 0.5
"""Errors from which a coreset is not returned without a warning."""
SAMPLE_ROWS = 1000
"""Rows of a stream that are kept for checks, at least."""
NUM_ERRORS = 2.0
"""Standard errors of an estimated cost that reported errors allow for."""
NUM_DEVIATIONS = 3.0
"""Standard deviations between the centres of different starts that reported errors allow for: those
who try ten starts keep the one that suits the coreset best."""
LEAST_ALLOWANCE = 0.01
"""Share of an error that is allowed for other starts, at least: k-means stops at a tolerance."""


class Distortion(NamedTuple):
    """Error of a cost: its estimate, and the largest and least that sampling error allows for."""

    estimate: float
    reported: float
    least: float


class CheckRows(NamedTuple):
    """Weighted rows that stand for the data; and, of a sample, the probabilities of its rows."""

    rows: NDArray[Any]
    weights: FloatArray
    probabilities: FloatArray | None = None

    def cost(self, centers: NDArray[Any]) -> tuple[float, float]:
        """Cost of centres on the data, and its standard error."""
        costs = self.weights * nearest(self.rows, centers)[1]
        if self.probabilities is None:
            return float(costs.sum()), 0.0
        return float(costs.sum()), float(np.sqrt(costs**2 @ (1.0 - self.probabilities)))


def compare_costs(on_coreset: float, on_data: float) -> float:
    """Divide the larger cost by the smaller, less one; negative if the coreset's is the smaller.

    Examples
    --------
    >>> compare_costs(3.0, 2.0), compare_costs(2.0, 3.0), compare_costs(0.0, 0.0)
    (0.5, -0.5, 0.0)
    """
    if on_coreset == on_data:
        return 0.0
    low, high = sorted((on_coreset, on_data))
    # Less than this is rounding: every point of the coreset is a centre of its own.
    factor = high / low - 1.0 if low > 1e-12 * high else np.inf
    return float(factor if on_coreset > on_data else -factor)


def centers_to_check(
    data: CheckRows,
    points: NDArray[Any],
    weights: FloatArray,
    k: int,
    queries: int,
    state: np.random.RandomState,
    skip: int = 0,
) -> Iterator[NDArray[Any]]:
    """Yield ``queries`` sets of centres drawn from the data, then those found on the coreset.

    With ``skip``, the first few are left out, and ``state`` is where they left it.
    """
    if not queries:
        return
    k = min(k, len(data.rows))
    for _ in range(skip, queries):
        few = state.randint(len(data.rows), size=min(len(data.rows), 100 * k))
        rows, own = data.rows[few], data.weights[few]
        yield draw_centers(rows, k, "k-means++", state, own.astype(rows.dtype))
    clusterer = KMeans(min(k, len(points)), n_init=FOUND, max_iter=50, random_state=0)
    with warnings.catch_warnings():
        # Fewer different points than clusters are no fault here.
        warnings.simplefilter("ignore", ConvergenceWarning)
        clusterer.fit(points, sample_weight=weights)
    for result in clusterer.results_[max(skip - queries, 0) :]:
        yield result.cluster_centers


def check_costs(
    data: CheckRows, points: NDArray[Any], weights: FloatArray, centers: NDArray[Any]
) -> Distortion:
    """Compare the cost of some centres on the coreset with that on the data."""
    on_coreset = float(weights @ nearest(points, centers)[1])
    on_data, error = data.cost(centers)
    estimate = compare_costs(on_coreset, on_data)
    if not error:
        return Distortion(estimate, estimate, estimate)
    factor = np.exp(NUM_ERRORS * error / on_data)
    ends = [compare_costs(on_coreset, on_data * f) for f in (factor, 1.0 / factor)]
    least = 0.0 if ends[0] * ends[1] <= 0.0 else min(ends, key=abs)
    return Distortion(estimate, max(ends, key=abs), least)


def allow_for_starts(errors: list[float], estimates: list[float], queries: int) -> list[float]:
    """Move errors of centres found on the coreset away from zero, as other starts may have them.

    Examples
    --------
    >>> allow_for_starts([0.1, -0.5, -0.5, -0.5], [0.1, -0.5, -0.5, -0.5], 1)
    [0.1, -0.505, -0.505, -0.505]
    """
    found = estimates[queries:]
    if len(found) < 2 or not np.isfinite(found).all():
        return errors
    spread = NUM_DEVIATIONS * float(np.std(found, ddof=1))
    moved = [
        error + float(np.sign(error)) * max(spread, LEAST_ALLOWANCE * abs(error))
        for error in errors[queries:]
    ]
    return errors[:queries] + moved


def check_on_sample(
    data: CheckRows, num_rows: int, points: NDArray[Any], weights: FloatArray, k: int, method: str
) -> dict[str, Any]:
    """Check a coreset of ``num_rows`` rows on a sample; warn of large errors.

    Returns the fields of a `Coreset` that say what was found, and on what.
    """
    state = np.random.RandomState(num_rows % (1 << 32))
    found = [
        check_costs(data, points, weights, centers)
        for centers in centers_to_check(data, points, weights, k, QUERIES, state)
    ]
    estimates = [one.estimate for one in found]
    # A sample that says little is no reason to warn.
    warn_of_large_errors([one.least for one in found], QUERIES, len(weights), method)
    errors = allow_for_starts([one.reported for one in found], estimates, QUERIES)
    is_whole = data.probabilities is None or bool((data.probabilities == 1.0).all())
    checked_on = "all rows" if is_whole else f"a sample of {len(data.rows):,} of {num_rows:,} rows"
    return {"distortions": tuple(errors), "checked_on": checked_on}


def warn_of_large_errors(errors: list[float], queries: int, size: int, method: str) -> None:
    """Warn if centres found on the coreset cost something else on the data."""
    worst = max(errors[queries:], key=abs, default=0.0)
    if abs(worst) <= LARGE_ERROR:
        return
    factor = f"{1.0 + abs(worst):,.3g} times" if np.isfinite(worst) else "infinitely many times"
    more, less = ("the data", "the coreset") if worst < 0.0 else ("the coreset", "the data")
    advice = "" if method == "sensitivity" else ", or use method='sensitivity'"
    warn_user(
        f"centres found on this coreset cost {factor} as much on {more} as on {less}: its {size:,} "
        "points do not stand for the data. Rows far from all others may be missing. Increase "
        f"size{advice}",
        UserWarning,
    )


@dataclass
class CheckSample:
    """Rows of a stream that are kept to check its coreset.

    Row ``i`` of size ``z_i`` has the priority ``z_i / u_i`` with ``u_i`` uniform; those of the
    highest priorities are kept. With the highest priority that was dropped as ``limit``, a row was
    kept with probability ``min(1, z_i / limit)``.
    """

    num_rows: int
    rows: NDArray[Any] = field(default_factory=lambda: np.empty((0, 0)))
    numbers: FloatArray = field(default_factory=lambda: np.empty((3, 0)))
    """Weights, sizes and priorities of the rows."""
    limit: float = 0.0

    @classmethod
    def for_size(cls, size: int) -> CheckSample:
        """Return an empty sample for coresets of so many points."""
        return cls(max(SAMPLE_ROWS, size))

    def take(
        self,
        X: NDArray[Any],
        weights: FloatArray,
        k: int,
        rng: np.random.Generator,
        sensitivity: Importance | None = None,
    ) -> None:
        """Take a leaf in, of rows of positive weight; their sensitivities may be known."""
        if not len(weights):
            return
        if sensitivity is None or sensitivity.strata is None:
            sensitivity = importance("sensitivity", X, weights, min(k, len(X)), rng)
        light = importance("lightweight", X, weights, k, rng).scores
        scale = float(weights.sum()) / float(weights @ sensitivity.scores)
        sizes = weights * (light + scale * sensitivity.scores)
        self._join(X, np.stack([weights, sizes, sizes / (1.0 - rng.random(len(sizes)))]))

    def merge(self, other: CheckSample) -> None:
        """Take in the sample of other rows."""
        self.limit = max(self.limit, other.limit)
        self._join(other.rows, other.numbers)

    def with_rows(self, X: NDArray[Any], weights: FloatArray) -> CheckRows:
        """Return the sample, and some further rows that were not sampled but are all there."""
        if not len(self.rows):
            return CheckRows(X, weights)
        own, sizes, _ = self.numbers
        kept = np.minimum(1.0, sizes / self.limit) if self.limit else np.ones(len(sizes))
        return CheckRows(
            np.concatenate([self.rows, X]),
            np.concatenate([own / kept, weights]),
            np.concatenate([kept, np.ones(len(weights))]),
        )

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return all that is needed to go on."""
        return {"rows": self.rows, "numbers": self.numbers, "limit": np.array(self.limit)}

    def restore(self, arrays: Mapping[str, Any]) -> None:
        """Go on from what `arrays` returned."""
        self.rows, self.numbers = np.array(arrays["rows"]), np.array(arrays["numbers"])
        self.limit = float(arrays["limit"])

    def _join(self, X: NDArray[Any], numbers: FloatArray) -> None:
        if not len(X):
            return
        if len(self.rows):
            X, numbers = np.concatenate([self.rows, X]), np.hstack([self.numbers, numbers])
        if len(X) > self.num_rows:
            priorities = numbers[2]
            order = np.argpartition(-priorities, self.num_rows)
            self.limit = max(self.limit, float(priorities[order[self.num_rows]]))
            kept = np.sort(order[: self.num_rows])
            X, numbers = X[kept], numbers[:, kept]
        self.rows, self.numbers = X, numbers
