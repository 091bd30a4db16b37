"""One partition to report: the minimiser of an expected loss over the posterior, and its ball.

Both losses have the form (Meila 2007; Binder 1978)

    d(a, b) = sum_k f(|a_k|) + sum_l f(|b_l|) - 2 sum_{k,l} f(|a_k and b_l|),

with ``f(n) = n log n`` for the variation of information (in nats times the number of groups) and
``f(n) = n^2`` for Binder's loss (twice the number of pairs on which the two disagree). The
expected loss of an estimate is therefore a mean over draws that changes in one table entry a draw
when one group moves: the search tries every move of every group, from several starts, until none
helps. It is not confined to the partitions that were drawn.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayes_lcs.core.partitions import first_occurrence

__all__ = [
    "CredibleBall",
    "PartitionEstimate",
    "credible_ball",
    "estimate_partition",
    "partition_distance",
]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

MAX_TABLE_NUMBERS = 2**26  # half a gibibyte
SPARE_BLOCKS = 16

MOST_NUMBERS = 2**25
"""Groups times draws that are looked at: a quarter of a gibibyte."""

MOST_UPDATES = 2_000_000
"""Of groups, over all starts and sweeps of a search: some minutes."""

LOSSES: dict[str, Callable[[FloatArray], FloatArray]] = {
    "vi": lambda n: n * np.log(np.maximum(n, 1.0)),
    "binder": lambda n: n**2,
}


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


def _loss_function(loss: str) -> Callable[[FloatArray], FloatArray]:
    if loss not in LOSSES:
        raise ValueError(f"loss must be 'vi' or 'binder', got {loss!r}")
    return LOSSES[loss]


def partition_distance(a: ArrayLike, b: ArrayLike, loss: str = "vi") -> float:
    """Distance of two partitions, per group for ``"vi"`` (nats) and per pair for ``"binder"``.

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
    table = np.zeros((x.max() + 1, y.max() + 1))
    np.add.at(table, (x, y), 1.0)
    f = _loss_function(loss)
    total = f(table.sum(axis=1)).sum() + f(table.sum(axis=0)).sum() - 2 * f(table).sum()
    return float(max(total, 0.0) / _scale(len(x), loss))


def _scale(num_groups: int, loss: str) -> float:
    return float(num_groups) if loss == "vi" else float(max(num_groups * (num_groups - 1), 1))


class _Search:
    """Expected loss of one estimate against weighted draws, kept up to date under moves."""

    def __init__(self, draws: IntArray, weights: FloatArray, loss: str) -> None:
        self.draws, self.weights = draws, weights
        self.f = _loss_function(loss)
        self.num_draws, self.num_groups = draws.shape
        self.num_labels = int(draws.max()) + 1
        self.rows = np.arange(self.num_draws)
        # The part of the loss that the estimate cannot change.
        sizes = np.stack([np.bincount(z, minlength=self.num_labels) for z in draws])
        self.constant = float(weights @ self.f(sizes.astype(np.float64)).sum(axis=1))

    def start(self, estimate: IntArray) -> None:
        self.z = first_occurrence(estimate)
        capacity = int(self.z.max()) + 1 + SPARE_BLOCKS
        self.sizes = np.bincount(self.z, minlength=capacity).astype(np.float64)
        self.table = np.zeros((capacity, self.num_draws, self.num_labels))
        np.add.at(
            self.table,
            (self.z[None, :], self.rows[:, None], self.draws),
            1.0,
        )

    def expected(self) -> float:
        joint = self.f(self.table).sum(axis=(0, 2)) @ self.weights
        return float(self.f(self.sizes).sum() + self.constant - 2 * joint)

    def sweep(self, order: IntArray) -> bool:
        """Try to move every group once; whether any moved."""
        moved = False
        for group in order:
            label = self.draws[:, group]
            old = self.z[group]
            self._add(group, old, -1.0)
            if (self.sizes > 0).all():
                self._make_room()
            candidates = np.append(np.flatnonzero(self.sizes > 0), np.argmin(self.sizes > 0))
            count = self.table[candidates[:, None], self.rows, label]
            size = self.sizes[candidates]
            gain = (self.f(count + 1) - self.f(count)) @ self.weights
            cost = self.f(size + 1) - self.f(size) - 2 * gain
            best = int(candidates[np.argmin(cost)])
            stay = cost[candidates == old]
            if best != old and (not stay.size or cost.min() < stay[0] - 1e-12):
                moved = moved or self.sizes[old] > 0 or self.sizes[best] > 0
                self._add(group, best, 1.0)
            else:
                self._add(group, int(old), 1.0)
        return moved

    def _make_room(self) -> None:
        self.sizes = np.append(self.sizes, np.zeros(SPARE_BLOCKS))
        more = np.zeros((SPARE_BLOCKS, *self.table.shape[1:]))
        self.table = np.concatenate([self.table, more])

    def _add(self, group: int, block: int, amount: float) -> None:
        self.sizes[block] += amount
        self.table[block, self.rows, self.draws[:, group]] += amount
        if amount > 0:
            self.z[group] = block


def estimate_partition(
    draws: ArrayLike,
    loss: str = "vi",
    *,
    level: float = 0.95,
    num_starts: int = 8,
    max_sweeps: int = 50,
    max_draws: int = 1000,
    seed: int = 0,
) -> PartitionEstimate:
    """The partition of least expected loss under the draws, by search, with a credible ball.

    Parameters
    ----------
    draws : (S, U)
        Partitions from the posterior.
    loss : {"vi", "binder"}
        Variation of information, or Binder's loss.
    level
        Posterior probability of the credible ball.
    num_starts
        Starts of the search: all groups together, then draws, the most frequent first.
    max_draws
        At most this many different draws are used, spread evenly over those given.

    Notes
    -----
    Beyond 25,000 groups the search makes fewer sweeps, from fewer starts, all of them draws; and
    beyond 33,000 fewer draws are looked at: no more than 2^25 numbers.

    Examples
    --------
    >>> draws = [[0, 0, 1, 1], [0, 0, 1, 1], [0, 0, 0, 1]]
    >>> estimate_partition(draws).partition.tolist()
    [0, 0, 1, 1]
    """
    if not 0.0 < level <= 1.0:
        raise ValueError(f"level must lie between 0 and 1, got {level}")
    given = np.atleast_2d(np.asarray(draws))
    if given.size == 0:
        raise ValueError("there are no draws to summarise")
    num_groups = given.shape[1]
    if given.size > MOST_NUMBERS:
        most = max(MOST_NUMBERS // num_groups, 10)
        given = given[np.linspace(0, len(given) - 1, min(most, len(given))).astype(int)]
    z = first_occurrence(given)
    unique, counts = np.unique(z, axis=0, return_counts=True)
    if len(unique) > max_draws:
        kept = np.linspace(0, len(z) - 1, max_draws).astype(int)
        unique, counts = np.unique(z[kept], axis=0, return_counts=True)
    # The search keeps a table of (blocks + spare) x draws x blocks numbers.
    num_blocks = int(unique.max()) + 1
    room = MAX_TABLE_NUMBERS // ((num_blocks + SPARE_BLOCKS) * num_blocks)
    if len(unique) > max(room, 10):
        kept = np.argsort(-counts, kind="stable")[: max(room, 10)]
        unique, counts = unique[kept], counts[kept]
    weights = counts / counts.sum()
    search = _Search(unique, weights, loss)
    rng = np.random.default_rng(seed)
    frequent = [unique[i] for i in np.argsort(-counts, kind="stable")[:num_starts]]
    affordable = int(np.clip(MOST_UPDATES / (10 * num_groups), 1, num_starts))
    if affordable < num_starts:
        starts = frequent[:affordable]
    else:
        starts = [np.zeros(num_groups, dtype=np.int64), *frequent[: num_starts - 1]]
    sweeps = int(np.clip(MOST_UPDATES / (len(starts) * num_groups), 1, max_sweeps))
    best, best_loss = starts[0], np.inf
    for start in starts:
        search.start(start)
        for _ in range(sweeps):
            if not search.sweep(rng.permutation(num_groups)):
                break
        value = search.expected()
        if value < best_loss - 1e-12:
            best, best_loss = first_occurrence(search.z), value
    scale = _scale(num_groups, loss)
    ball = _credible_ball(best, unique, weights, loss, level)
    return PartitionEstimate(best, loss, max(best_loss, 0.0) / scale, ball)


def credible_ball(
    centre: ArrayLike, draws: ArrayLike, loss: str = "vi", *, level: float = 0.95
) -> CredibleBall:
    """The credible ball around any partition, such as the most probable one.

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
    distance = np.array([partition_distance(centre, z, loss) for z in draws])
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
