"""Partition estimates: the minimiser of an expected loss over the posterior, and its credible ball.

The losses are the variation of information and Binder's loss; the module `partition_search` has
their formula and the search, which is not confined to the partitions that were drawn.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayes_lcs.core.partitions import first_occurrence
from bayes_lcs.inference.partition_search import (
    best_partition,
    distances,
    loss_function,
    loss_scale,
)

__all__ = [
    "CredibleBall",
    "PartitionEstimate",
    "credible_ball",
    "estimate_partition",
    "partition_distance",
]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

MAX_NUMBERS = 2**25
"""Groups times draws that are used; of more draws, evenly spaced ones are."""


@dataclass(frozen=True, eq=False)
class CredibleBall:
    """The smallest ball around the estimate that holds ``level`` of the posterior.

    Attributes
    ----------
    level, radius
        Posterior probability inside, and the largest distance inside.
    coarsest, finest, farthest : (U,)
        Draws inside with the fewest clusters, the most clusters, and at the largest distance
        (Wade and Ghahramani 2018: vertical and horizontal bounds).
    """

    level: float
    radius: float
    coarsest: IntArray
    finest: IntArray
    farthest: IntArray


@dataclass(frozen=True, eq=False)
class PartitionEstimate:
    """A partition that minimises an expected loss.

    Attributes
    ----------
    partition : (U,)
        First-occurrence labels.
    loss
        ``"vi"`` or ``"binder"``.
    expected_loss
        Its mean distance to the draws.
    ball
        Credible ball around it.
    """

    partition: IntArray
    loss: str
    expected_loss: float
    ball: CredibleBall


def partition_distance(a: ArrayLike, b: ArrayLike, loss: str = "vi") -> float:
    """Compute the distance of two partitions.

    It is given per group for ``"vi"`` (nats) and per pair for ``"binder"``.

    Examples
    --------
    >>> partition_distance([0, 0, 1], [1, 1, 0])
    0.0
    >>> partition_distance([0, 0], [0, 1], loss="binder")
    1.0
    """
    x, y = first_occurrence(a), first_occurrence(b)
    if x.shape != y.shape or x.ndim != 1:
        raise ValueError(f"partitions of shape {x.shape} and {y.shape} cannot be compared")
    f = loss_function(loss)
    both = np.unique(x * (y.max() + 1) + y, return_counts=True)[1]
    total = [f(sizes.astype(np.float64)).sum() for sizes in (np.bincount(x), np.bincount(y), both)]
    return float(max(total[0] + total[1] - 2 * total[2], 0.0) / loss_scale(len(x), loss))


def estimate_partition(
    draws: ArrayLike,
    loss: str = "vi",
    *,
    level: float = 0.95,
    num_starts: int = 8,
    max_sweeps: int = 1000,
    max_draws: int | None = None,
    seed: int = 0,
) -> PartitionEstimate:
    """Find the partition of least expected loss under the draws, with a credible ball.

    Parameters
    ----------
    draws : (S, U)
        Partitions from the posterior.
    loss : {"vi", "binder"}
        Variation of information, or Binder's loss.
    level
        Posterior probability of the credible ball.
    num_starts
        Starts of the search: the best candidate, levels of average linkage of the co-clustering
        probabilities, all groups together, all groups apart, then the best draws.
    max_sweeps
        Most sweeps over the groups from each start.
    max_draws
        At most this many draws are used, evenly spaced over those given; all by default.
    seed
        Seed of the order in which groups are visited and of the draws that are looked at first.

    Notes
    -----
    Up to 4,000 groups the expected loss is not above that of any draw, of all groups together, of
    all groups apart or of the estimate with one group moved. It need not be the least of all
    partitions.

    With the variation of information and more than 512 distinct draws, starts are compared on 256
    of them and the two best results are refined on all. Beyond 4,000 groups the search makes fewer
    sweeps from fewer starts. At most 2^25 numbers, groups times draws, are used.

    Examples
    --------
    >>> draws = [[0, 0, 1, 1], [0, 0, 1, 1], [0, 0, 0, 1]]
    >>> estimate_partition(draws).partition.tolist()
    [0, 0, 1, 1]
    """
    if not 0.0 < level <= 1.0:
        raise ValueError(f"level must lie between 0 and 1, got {level}")
    for name, value in (("num_starts", num_starts), ("max_draws", max_draws)):
        if value is not None and value < 1:
            raise ValueError(f"{name} must be at least 1, got {value}")
    loss_function(loss)
    given = np.atleast_2d(np.asarray(draws))
    if given.size == 0:
        raise ValueError("there are no draws to summarise")
    most = max(MAX_NUMBERS // given.shape[1], 10)
    most = min(most, len(given), max_draws or len(given))
    if most < len(given):
        given = given[np.linspace(0, len(given) - 1, most).astype(int)]
    unique, counts = np.unique(first_occurrence(given), axis=0, return_counts=True)
    partition, expected = best_partition(
        unique, counts, loss, num_starts=num_starts, max_sweeps=max_sweeps, seed=seed
    )
    ball = _credible_ball(partition, unique, counts / counts.sum(), loss, level)
    return PartitionEstimate(partition, loss, expected, ball)


def credible_ball(
    centre: ArrayLike, draws: ArrayLike, loss: str = "vi", *, level: float = 0.95
) -> CredibleBall:
    """Compute the credible ball around any partition, such as the most probable one.

    Parameters
    ----------
    centre : (U,)
        The partition in the middle.
    draws : (S, U)
        Draws of the partition.
    loss : {"vi", "binder"}
        The distance.
    level
        Posterior probability that the ball holds.

    Examples
    --------
    >>> ball = credible_ball([0, 0, 1], [[0, 0, 1]] * 9 + [[0, 1, 2]])
    >>> round(ball.radius, 3), ball.finest.tolist()
    (0.462, [0, 1, 2])
    """
    z = first_occurrence(draws)
    if z.ndim != 2 or not len(z):
        raise ValueError(f"draws must have shape (S, U) with at least one draw, got {z.shape}")
    if not 0.0 < level <= 1.0:
        raise ValueError(f"level must be above 0 and at most 1, got {level}")
    unique, counts = np.unique(z, axis=0, return_counts=True)
    return _credible_ball(first_occurrence(centre), unique, counts / len(z), loss, level)


def _credible_ball(
    centre: IntArray, draws: IntArray, weights: FloatArray, loss: str, level: float
) -> CredibleBall:
    distance = distances(centre[None, :], draws, loss)[0] / loss_scale(len(centre), loss)
    order = np.argsort(distance, kind="stable")
    last = min(int(np.searchsorted(np.cumsum(weights[order]), level - 1e-12)), len(order) - 1)
    radius = float(distance[order[last]])
    inside = np.flatnonzero(distance <= radius + 1e-12)
    clusters = draws[inside].max(axis=1)
    return CredibleBall(
        level,
        radius,
        draws[inside[np.lexsort((-distance[inside], clusters))[0]]],
        draws[inside[np.lexsort((-distance[inside], -clusters))[0]]],
        draws[inside[np.argmax(distance[inside])]],
    )
