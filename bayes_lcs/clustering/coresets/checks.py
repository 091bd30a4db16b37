"""Checks of a coreset: costs of some centres on its points, and on the data.

Two kinds of centres are compared. Some are drawn from the data without looking at the coreset.
Others are found on the coreset by k-means, as its user does: they are the harder check, since
k-means puts no centre where the coreset has no points.

The rows of streams and trees are not kept. A weighted sample of them is, by priority sampling
(Duffield, Lund and Thorup 2007). The sample is pooled with each new leaf. When the pool is full, it
is reduced: all its rows are scored anew, by their squared distance from the mean and by their
sensitivity in the weighted pool, and drawn by these scores. Scores compare rows of all leaves, so
that rows far from all others are kept almost surely, also if they all lie in one leaf. Weights are
divided by the product of a row's inclusion probabilities, so that costs on the data are estimated
without bias and with a standard error.
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
    "SAMPLE_FORMAT",
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
"""Rows to which the sample of a stream is reduced, at least."""
POOL_FACTOR = 4
"""Size at which the pool is reduced, in multiples of that of the sample: scoring a pool takes
about as long as reducing a leaf, so it is done once for many leaves."""
LARGE_LEAF = 1 << 14
"""Rows of a leaf from which their known sensitivities alone decide."""
MIN_LEAF_SHARE = 1 / 5
"""A leaf adds its share of the weight so far to a sample, but no less than this share."""
SAMPLE_FORMAT = 2
"""Version of what `CheckSample.arrays` returns. Samples of the first kept rows by their share of
their own leaf, and could miss far rows that came together."""
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
    """Weighted sample of the rows of a stream, on which its coreset is checked.

    When more than ``POOL_FACTOR * num_rows`` rows are held, they are reduced to ``num_rows``. A row
    of weight ``w`` and score ``s`` has the priority ``w s / u`` with ``u`` uniform, and those of
    the highest priorities are kept. Given the highest priority ``t`` that was dropped, a row was
    kept with probability ``p = min(1, w s / t)``, and its weight becomes ``w / p``. Its ``u`` is
    then uniform below ``p``, so ``u / p`` serves the next reduction as a new uniform number.

    Given the rows before a reduction, estimates of the summands of a cost are unbiased and
    uncorrelated after it, and so they are after any number of reductions. With the product of its
    probabilities as ``q``, a row adds ``(1 - q)`` times its squared summand to the estimated
    variance of a cost: the estimates of the variance of each reduction add up to this.
    """

    k: int
    num_rows: int
    rows: NDArray[Any] = field(default_factory=lambda: np.empty((0, 0)))
    numbers: FloatArray = field(default_factory=lambda: np.empty((3, 0)))
    """Weights, inclusion probabilities and uniform numbers of the rows."""

    @classmethod
    def for_coreset(cls, k: int, size: int) -> CheckSample:
        """Return an empty sample for coresets of ``size`` points and ``k`` centres."""
        return cls(k, max(SAMPLE_ROWS, size))

    def add_leaf(
        self,
        X: NDArray[Any],
        weights: FloatArray,
        rng: np.random.Generator,
        sensitivity: Importance | None = None,
    ) -> None:
        """Add a leaf of rows of positive weight; their sensitivities may be known."""
        if not len(weights):
            return
        numbers = np.stack([weights, np.ones(len(X)), 1.0 - rng.random(len(X))])
        leaf = CheckSample(self.k, self.num_rows, X, numbers)
        # Fewer rows of each leaf fill the pool more slowly, and it is scored less often.
        total = float(weights.sum())
        share = max(total / (total + float(self.numbers[0].sum())), MIN_LEAF_SHARE)
        most = int(np.ceil(share * self.num_rows))
        if len(X) > most:
            leaf._reduce(most, sensitivity)
        self.merge(leaf)

    def merge(self, other: CheckSample) -> None:
        """Add the sample of other rows."""
        if not len(other.rows):
            return
        if not len(self.rows):
            self.rows, self.numbers = other.rows, other.numbers
        else:
            self.rows = np.concatenate([self.rows, other.rows])
            self.numbers = np.hstack([self.numbers, other.numbers])
        if len(self.rows) > POOL_FACTOR * self.num_rows:
            self._reduce(self.num_rows)

    def with_rows(self, X: NDArray[Any], weights: FloatArray) -> CheckRows:
        """Return the sample, and some further rows that were not sampled but are all there."""
        if not len(self.rows):
            return CheckRows(X, weights)
        own, kept, _ = self.numbers
        return CheckRows(
            np.concatenate([self.rows, X]),
            np.concatenate([own, weights]),
            np.concatenate([kept, np.ones(len(weights))]),
        )

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return all that is needed to continue."""
        return {"rows": self.rows, "numbers": self.numbers}

    def restore(self, arrays: Mapping[str, Any]) -> None:
        """Continue from what `arrays` returned."""
        self.rows, self.numbers = np.array(arrays["rows"]), np.array(arrays["numbers"])

    def _reduce(self, size: int, sensitivity: Importance | None = None) -> None:
        """Reduce the rows to ``size`` of them, fewer than there are."""
        weights, kept, uniform = self.numbers
        sizes = weights * _score_rows(self.rows, weights, self.k, sensitivity)
        priorities = sizes / uniform
        order = np.argpartition(-priorities, size)
        chosen = np.sort(order[:size])
        chances = np.minimum(1.0, sizes[chosen] / priorities[order[size]])
        self.rows = self.rows[chosen]
        self.numbers = np.stack(
            [weights[chosen] / chances, kept[chosen] * chances, uniform[chosen] / chances]
        )


def _score_rows(
    X: NDArray[Any], weights: FloatArray, k: int, sensitivity: Importance | None
) -> FloatArray:
    """Return the lightweight score plus the sensitivity, scaled to the same weighted mean.

    Neither depends on the uniform numbers of the rows: priority sampling would be biased.
    """
    # A seed of its own: samples are merged where there is no generator.
    rng = np.random.default_rng(0)
    if sensitivity is None or sensitivity.strata is None:
        sensitivity = importance("sensitivity", X, weights, min(k, len(X)), rng)
    elif len(X) > LARGE_LEAF:
        # Another pass over so many rows takes longer than it is worth.
        return 1.0 + sensitivity.scores * float(weights.sum() / (weights @ sensitivity.scores))
    light = importance("lightweight", X, weights, k, rng).scores
    return np.asarray(
        light + sensitivity.scores * float(weights.sum() / (weights @ sensitivity.scores))
    )
