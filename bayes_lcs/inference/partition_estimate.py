"""Partition estimates: the minimiser of an expected loss over the posterior, and its credible ball.

The search is not restricted to the drawn partitions. The losses, the variation of information and
Binder's loss, have the form (Meila 2007; Binder 1978)

    d(a, b) = sum_k f(|a_k|) + sum_l f(|b_l|) - 2 sum_{k,l} f(|a_k and b_l|),

with ``f(n) = n log n`` for the variation of information (in nats times the number of groups) and
``f(n) = n^2`` for Binder's loss (twice the number of pairs on which the two disagree). Moving one
group changes few counts ``|a_k and b_l|`` per draw, so the search moves single groups, from several
starts, until no move decreases the loss. A group can always move to an empty cluster.

The gain of joining group ``g`` to cluster ``k`` is a mean over draws of ``f(n + 1) - f(n)``, where
``n`` is the number of members of ``k`` that are in the cluster of ``g`` in the draw. Up to
`MAX_DENSE_GROUPS` groups the gains of all groups and clusters are updated after each move
(`_GainMatrix`), so that only moves cost a pass over the draws. For Binder's loss gains are sums of
co-clustering probabilities, and a move does not use the draws at all (`_PairGains`). With more
groups, gains are computed from counts when a group is visited (`_CountTable`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, NDArray

from bayes_lcs.core.partitions import coclustering_matrix, first_occurrence

__all__ = [
    "LOSSES",
    "CredibleBall",
    "PartitionEstimate",
    "best_partition",
    "credible_ball",
    "distances",
    "estimate_partition",
    "loss_function",
    "loss_scale",
    "partition_distance",
]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

LOSSES: dict[str, Callable[[FloatArray], FloatArray]] = {
    "vi": lambda n: n * np.log(np.maximum(n, 1.0)),
    "binder": lambda n: n**2,
}

MAX_DENSE_GROUPS = 4000
"""Maximum number of groups for arrays of groups times clusters, or groups times groups."""
MAX_TABLE_NUMBERS = 2**26
"""Maximum number of entries of a `_CountTable`: a quarter of a gibibyte."""
BLOCK_NUMBERS = 2**21
"""Groups times draws times partitions that are counted at a time."""
SCREENING_NUMBERS = 2**28
"""Groups times draws times candidates that are counted to compare candidates."""
SEARCH_DRAWS = 256
"""Number of draws for the search from several starts; the best results are refined on all."""
MAX_VISITS = 2_000_000
"""Maximum number of visits to groups over all starts and sweeps, beyond `MAX_DENSE_GROUPS`."""
TOLERANCE = 1e-10
"""Smallest decrease of the loss (not divided by the number of groups or pairs) that counts."""


def loss_function(loss: str) -> Callable[[FloatArray], FloatArray]:
    """Return the function ``f`` of a loss."""
    if loss not in LOSSES:
        raise ValueError(f"loss must be 'vi' or 'binder', got {loss!r}")
    return LOSSES[loss]


def loss_scale(num_groups: int, loss: str) -> float:
    """Return the divisor of reported losses: the number of groups, or of ordered pairs."""
    return float(num_groups) if loss == "vi" else float(max(num_groups * (num_groups - 1), 1))


def distances(partitions: IntArray, draws: IntArray, loss: str) -> FloatArray:
    """Compute distances ``(C, S)`` of partitions ``(C, U)`` from draws ``(S, U)``.

    Labels begin at 0; distances are not divided by `loss_scale`. Only non-empty cells of the
    contingency tables are visited, so that time and memory do not grow with the numbers of
    clusters.
    """
    num_groups = draws.shape[1]
    values = loss_function(loss)(np.arange(num_groups + 1, dtype=np.float64))
    result = np.empty((len(partitions), len(draws)))
    step = max(BLOCK_NUMBERS // num_groups, 1)
    for start in range(0, len(draws), step):
        right, right_of, right_own = _indicators(draws[start : start + step], values)
        size = len(right_own)
        stride = max(BLOCK_NUMBERS // (num_groups * size), 1)
        for first in range(0, len(partitions), stride):
            left, left_of, left_own = _indicators(partitions[first : first + stride], values)
            joint = (left.T @ right).tocoo()  # contingency tables of all pairs of partitions
            both = np.bincount(
                left_of[joint.coords[0]] * size + right_of[joint.coords[1]],
                weights=values[joint.data],
                minlength=len(left_own) * size,
            ).reshape(len(left_own), size)
            block = left_own[:, None] + right_own - 2.0 * both
            result[first : first + stride, start : start + step] = block
    return np.maximum(result, 0.0)


def _indicators(
    draws: IntArray, values: FloatArray
) -> tuple[scipy.sparse.csr_array, IntArray, FloatArray]:
    """Return the membership of groups in the clusters of all draws, ``(U, J)``.

    Return also the draw of each column, and for each draw the sum of ``values[size]`` over its
    clusters.
    """
    num_draws, num_groups = draws.shape
    sizes = draws.max(axis=1) + 1
    offsets = np.cumsum(sizes) - sizes
    columns = (draws + offsets[:, None]).T.reshape(-1).astype(np.int32)
    pointers = np.arange(num_groups + 1, dtype=np.int32) * num_draws
    shape = (num_groups, int(sizes.sum()))
    matrix = scipy.sparse.csr_array((np.ones(columns.size, np.int32), columns, pointers), shape)
    draw_of = np.repeat(np.arange(num_draws), sizes)
    cluster_sizes = np.bincount(columns, minlength=shape[1])
    own = np.zeros(num_draws)
    np.add.at(own, draw_of, values[cluster_sizes])
    return matrix, draw_of.astype(np.int64), own


class _Search(ABC):
    """Local search: moves of single groups that decrease the expected loss of weighted draws."""

    def __init__(self, draws: IntArray, counts: IntArray, loss: str) -> None:
        self.draws, self.loss = draws, loss
        self.weights = counts / counts.sum()
        self.num_groups = draws.shape[1]
        values = loss_function(loss)(np.arange(self.num_groups + 2, dtype=np.float64))
        self.steps = np.diff(values)  # f(n + 1) - f(n) at n

    def descend(self, partition: IntArray, rng: np.random.Generator, max_sweeps: int) -> IntArray:
        """Move groups until no move of one group decreases the expected loss."""
        self._initialize(first_occurrence(partition))
        for _ in range(max_sweeps):
            moved = False
            for group in rng.permutation(self._candidates()):
                # Change of the loss by joining each cluster, and by rejoining the own one.
                cost = self.steps[self.sizes] - 2.0 * self._gains(group)
                own = self.z[group]
                cost[own] = np.inf
                best = int(np.argmin(cost))
                stay = self.steps[self.sizes[own] - 1] - 2.0 * self._own_gain(group)
                if cost[best] < stay - TOLERANCE:
                    self._update_gains(group, best)
                    self.sizes[own] -= 1
                    self.sizes[best] += 1
                    self.z[group] = best
                    moved = True
                    # Keep an empty cluster to move to.
                    if self.sizes.all() and not self._add_clusters():
                        return first_occurrence(self.z)
            if not moved:
                break
        return first_occurrence(self.z)

    def _initialize(self, z: IntArray) -> None:
        """Start from a partition, with a few empty clusters."""
        self.z = z
        self.sizes = np.bincount(z, minlength=int(z.max()) + 9)

    def _candidates(self) -> IntArray:
        """Return the groups to visit in this sweep."""
        return np.arange(self.num_groups)

    def _add_clusters(self) -> bool:
        """Append empty clusters; return False if they exceed the memory limit."""
        self.sizes = np.append(self.sizes, np.zeros(len(self.sizes) // 2 + 8, np.int64))
        return True

    @abstractmethod
    def _gains(self, group: int) -> FloatArray:
        """Return the expected ``f(n + 1) - f(n)`` of joining each cluster."""

    @abstractmethod
    def _own_gain(self, group: int) -> float:
        """Return the gain of joining the group's own cluster, after leaving it."""

    @abstractmethod
    def _update_gains(self, group: int, new: int) -> None:
        """Update the gains; labels and sizes are updated by the caller."""


class _GainMatrix(_Search):
    """Gains of all groups and clusters, ``(U, K)``, for any loss."""

    def __init__(self, draws: IntArray, counts: IntArray, loss: str) -> None:
        super().__init__(draws, counts, loss)
        indicators = _indicators(draws, self.steps)[0].astype(np.int8)
        self.columns = indicators.indices.reshape(self.num_groups, len(draws))
        self.indicators = indicators.tocsc()

    def _initialize(self, z: IntArray) -> None:
        super()._initialize(z)
        shape = (self.num_groups, len(self.sizes))
        self.gain = np.full(shape, self.steps[0])
        self.own = np.zeros(self.num_groups)
        groups = np.arange(self.num_groups)
        members = scipy.sparse.csr_array((np.ones(self.num_groups, np.int32), (groups, z)), shape)
        step = max(BLOCK_NUMBERS // self.num_groups, 1)
        for start in range(0, len(self.draws), step):
            indicators, draw_of, _ = _indicators(self.draws[start : start + step], self.steps)
            counts = (indicators.T @ members).tocsr()  # clusters of draws by those of z
            weight = np.repeat(self.weights[start:][draw_of], np.diff(counts.indptr))
            joined, left = counts.astype(np.float64), counts.astype(np.float64)
            joined.data = weight * (self.steps[counts.data] - self.steps[0])
            left.data = weight * self.steps[counts.data - 1]
            self.gain += (indicators @ joined).toarray()
            self.own += np.asarray((indicators @ left)[groups, z]).reshape(-1)

    def _candidates(self) -> IntArray:
        cost = self.steps[self.sizes] - 2.0 * self.gain
        cost[np.arange(self.num_groups), self.z] = np.inf
        stay = self.steps[self.sizes[self.z] - 1] - 2.0 * self.own
        return np.flatnonzero(cost.min(axis=1) < stay - TOLERANCE)

    def _add_clusters(self) -> bool:
        super()._add_clusters()
        new = len(self.sizes) - self.gain.shape[1]
        self.gain = np.hstack([self.gain, np.full((self.num_groups, new), self.steps[0])])
        return True

    def _gains(self, group: int) -> FloatArray:
        return self.gain[group]

    def _own_gain(self, group: int) -> float:
        return float(self.own[group])

    def _update_gains(self, group: int, new: int) -> None:
        old, step = self.z[group], self.steps
        in_old, in_new = self.z == old, self.z == new
        in_old[group] = False
        # Co-clustering of all groups with this one in each draw, ``(U, S)``.
        together = self.indicators[:, self.columns[group]]
        # For each draw, members of the old and new cluster among them, without this one.
        before, after = (together.T @ np.column_stack([in_old, in_new]).astype(np.int64)).T
        # Changes of gains: of joining the old cluster, and for its members; the same for the new.
        changes = [
            step[before] - step[before + 1],
            step[np.maximum(before - 1, 0)] - step[before],
            step[after + 1] - step[after],
            step[after] - step[np.maximum(after - 1, 0)],
        ]
        change = together @ (np.stack(changes) * self.weights).T
        self.gain[:, old] += change[:, 0]
        self.gain[:, new] += change[:, 2]
        self.own[in_old] += change[in_old, 1]
        self.own[in_new] += change[in_new, 3]
        self.own[group] = step[after] @ self.weights


class _PairGains(_GainMatrix):
    """Gain matrix for Binder's loss, where ``f(n + 1) - f(n) = 2 n + 1`` is linear."""

    def __init__(self, draws: IntArray, counts: IntArray, loss: str) -> None:
        _Search.__init__(self, draws, counts, loss)
        self.together = coclustering_matrix(draws, counts)

    def _initialize(self, z: IntArray) -> None:
        _Search._initialize(self, z)
        members = np.zeros((self.num_groups, len(self.sizes)))
        members[np.arange(self.num_groups), z] = 1.0
        self.gain = 1.0 + 2.0 * self.together @ members
        self.own = self.gain[np.arange(self.num_groups), z] - 2.0

    def _update_gains(self, group: int, new: int) -> None:
        old, pairs = self.z[group], 2.0 * self.together[:, group]
        self.gain[:, old] -= pairs
        self.gain[:, new] += pairs
        in_old, in_new = self.z == old, self.z == new
        self.own[in_old] -= pairs[in_old]
        self.own[in_new] += pairs[in_new]
        self.own[group] = self.gain[group, new] - 2.0


class _CountTable(_Search):
    """Contingency counts of the clusters of draws and of the estimate, ``(J, K)``: many groups."""

    def __init__(self, draws: IntArray, counts: IntArray, loss: str) -> None:
        super().__init__(draws, counts, loss)
        sizes = draws.max(axis=1) + 1
        self.num_rows = int(sizes.sum())
        self.rows = np.ascontiguousarray((draws + (np.cumsum(sizes) - sizes)[:, None]).T)

    def fits_in_memory(self, num_clusters: int) -> bool:
        """Return whether a table with this many clusters is within the memory limit."""
        return self.num_rows * num_clusters <= MAX_TABLE_NUMBERS

    def _initialize(self, z: IntArray) -> None:
        super()._initialize(z)
        self.table = np.zeros((self.num_rows, len(self.sizes)), np.int32)
        np.add.at(self.table, (self.rows, z[:, None]), 1)

    def _add_clusters(self) -> bool:
        super()._add_clusters()
        if not self.fits_in_memory(len(self.sizes)):
            return False
        new = len(self.sizes) - self.table.shape[1]
        self.table = np.hstack([self.table, np.zeros((self.num_rows, new), np.int32)])
        return True

    def _gains(self, group: int) -> FloatArray:
        return self.weights @ self.steps[self.table[self.rows[group]]]

    def _own_gain(self, group: int) -> float:
        counts = self.table[self.rows[group], self.z[group]]
        return float(self.weights @ self.steps[counts - 1])

    def _update_gains(self, group: int, new: int) -> None:
        self.table[self.rows[group], self.z[group]] -= 1
        self.table[self.rows[group], new] += 1


def best_partition(
    draws: IntArray,
    counts: IntArray,
    loss: str,
    *,
    num_starts: int = 8,
    max_sweeps: int = 1000,
    seed: int = 0,
) -> tuple[IntArray, float]:
    """Find a partition with minimal expected loss; return it and its loss over `loss_scale`.

    Up to `MAX_DENSE_GROUPS` groups the result is never worse than any draw, one cluster of all
    groups, or singleton clusters, and no move of a single group improves it, unless ``max_sweeps``
    ended the search.

    Parameters
    ----------
    draws : (S, U)
        Distinct partitions, as first-occurrence labels.
    counts : (S,)
        Number of times each was drawn.
    loss : {"vi", "binder"}
        The loss.
    num_starts
        Number of starts of the search.
    max_sweeps
        Maximum number of sweeps over the groups from each start.
    seed
        Seed of the order in which groups are visited.
    """
    rng = np.random.default_rng(seed)
    num_groups = draws.shape[1]
    dense = num_groups <= MAX_DENSE_GROUPS
    extremes = np.stack([np.zeros(num_groups, np.int64), np.arange(num_groups)])
    levels = _linkage_levels(draws, counts, rng) if dense else extremes[:0]
    candidates = np.concatenate([levels, extremes, draws])
    screened, error = _screen(candidates, draws, counts, loss, rng)
    # Starts: the best candidate, the two best levels, the extremes, then the best draws.
    order = np.argsort(screened, kind="stable")
    by_rank = [order[0], *order[order < len(levels)][:2], *(len(levels) + np.arange(2 * dense))]
    starts = list(dict.fromkeys([*by_rank, *order[order >= len(levels) + 2]]))[:num_starts]
    weights = counts / counts.sum()
    search: _Search
    if dense:
        search = (_PairGains if loss == "binder" else _GainMatrix)(draws, counts, loss)
        some, times = _sample_draws(draws, counts, SEARCH_DRAWS, rng)
        if loss == "vi" and len(starts) > 2 and 2 * len(some) < len(draws):
            coarse = _GainMatrix(some, times, loss)
            results = np.stack([coarse.descend(candidates[i], rng, max_sweeps) for i in starts])
            results = results[np.argsort(distances(results, draws, loss) @ weights)[:2]]
        else:
            results = candidates[starts]
    else:
        results, search = candidates[starts], _count_table(candidates[starts], draws, counts, loss)
        affordable = int(np.clip(MAX_VISITS / (10 * num_groups), 1, num_starts))
        results = results[:affordable]
        max_sweeps = int(np.clip(MAX_VISITS / (affordable * num_groups), 1, max_sweeps))
    results = np.stack([search.descend(z, rng, max_sweeps) for z in results])
    losses = distances(results, draws, loss) @ weights
    best, least = results[np.argmin(losses)], float(losses.min())
    # Candidates that may be better than the result are evaluated on all draws.
    rivals = order[(screened - error)[order] < least][: len(order) if dense else 16]
    losses = distances(candidates[rivals], draws, loss) @ weights
    if losses.min(initial=np.inf) < least:
        best, least = candidates[rivals[np.argmin(losses)]], float(losses.min())
        better = search.descend(best, rng, max_sweeps)
        value = float(distances(better[None, :], draws, loss)[0] @ weights)
        # A descent on a subset of the draws may increase the loss on all draws.
        if value < least:
            best, least = better, value
    return first_occurrence(best), least / loss_scale(num_groups, loss)


def _sample_draws(
    draws: IntArray, counts: IntArray, most: int, rng: np.random.Generator
) -> tuple[IntArray, IntArray]:
    """Return all draws, or a random sample of ``most`` if there are more."""
    if len(draws) <= most:
        return draws, counts
    times = rng.multinomial(most, counts / counts.sum())
    return draws[times > 0], times[times > 0]


def _screen(
    candidates: IntArray, draws: IntArray, counts: IntArray, loss: str, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Estimate expected losses from a sample of the draws; return them with an error bound."""
    most = int(np.clip(SCREENING_NUMBERS // candidates.size, 16, 128))
    some, times = _sample_draws(draws, counts, most, rng)
    distance, weights = distances(candidates, some, loss), times / times.sum()
    mean = distance @ weights
    if len(some) == len(draws):
        return mean, np.full(len(mean), 1e-9)
    variance = (distance - mean[:, None]) ** 2 @ weights / most
    # Six standard errors, plus a term for rare draws that a sample of this size can miss.
    return mean, 6.0 * np.sqrt(variance) + 7.0 / most * mean


def _linkage_levels(draws: IntArray, counts: IntArray, rng: np.random.Generator) -> IntArray:
    """Cut average linkage of co-clustering probabilities at up to 24 numbers of clusters."""
    from scipy.cluster.hierarchy import fcluster, linkage
    from scipy.spatial.distance import squareform

    num_groups = draws.shape[1]
    if num_groups < 3:
        return np.empty((0, num_groups), np.int64)
    dissimilarity = 1.0 - coclustering_matrix(*_sample_draws(draws, counts, SEARCH_DRAWS, rng))
    tree = linkage(squareform(dissimilarity, checks=False), "average")
    numbers = np.unique(np.geomspace(2, num_groups - 1, 24).round().astype(int))
    levels = [fcluster(tree, number, "maxclust") for number in numbers]
    return np.unique(first_occurrence(np.stack(levels)), axis=0)


def _count_table(starts: IntArray, draws: IntArray, counts: IntArray, loss: str) -> _CountTable:
    """Build a count table of as many draws, evenly spaced, as the memory limit allows."""
    num_clusters = 2 * int(starts.max()) + 32
    rows = int((draws.max(axis=1) + 1).max())
    most = max(MAX_TABLE_NUMBERS // (rows * num_clusters), 1)
    # Distinct draws are sorted, so that the first ones are not a representative sample.
    used = np.unique(np.linspace(0, len(draws) - 1, min(most, len(draws))).astype(int))
    return _CountTable(draws[used], counts[used], loss)


MAX_NUMBERS = 2**25
"""Maximum number of groups times draws; larger inputs are thinned evenly."""


@dataclass(frozen=True, eq=False)
class CredibleBall:
    """Smallest ball around the estimate with posterior probability of at least ``level``.

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
    """Partition that minimises an expected loss.

    Attributes
    ----------
    partition : (U,)
        First-occurrence labels.
    loss
        ``"vi"`` or ``"binder"``.
    expected_loss
        Mean distance of the partition to the draws.
    ball
        Credible ball around the partition.
    """

    partition: IntArray
    loss: str
    expected_loss: float
    ball: CredibleBall


def partition_distance(a: ArrayLike, b: ArrayLike, loss: str = "vi") -> float:
    """Compute the distance of two partitions, per group (``"vi"``, nats) or pair (``"binder"``).

    Examples
    --------
    >>> partition_distance([0, 0, 1], [1, 1, 0])
    0.0
    >>> partition_distance([0, 0], [0, 1], loss="binder")
    1.0
    """
    x, y = first_occurrence(a), first_occurrence(b)
    if x.shape != y.shape or x.ndim != 1:
        raise ValueError(
            f"partitions must have the same one-dimensional shape, got {x.shape} and {y.shape}"
        )
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
    """Find a partition with minimal expected loss under the draws, with a credible ball.

    Parameters
    ----------
    draws : (S, U)
        Partitions from the posterior.
    loss : {"vi", "binder"}
        Variation of information, or Binder's loss.
    level
        Posterior probability of the credible ball.
    num_starts
        Number of starts of the search: the best candidate, levels of average linkage of the
        co-clustering probabilities, one cluster, singleton clusters, then the best draws.
    max_sweeps
        Maximum number of sweeps over the groups from each start.
    max_draws
        Maximum number of draws, evenly spaced over those given; all by default.
    seed
        Seed of the order in which groups are visited and of the draws for the first search.

    Notes
    -----
    Up to 4,000 groups the expected loss is not above that of any draw, of one cluster of all
    groups, of singleton clusters, or of the estimate with one group moved. It need not be the
    global minimum.

    With the variation of information and more than 512 distinct draws, starts are compared on 256
    of them and the two best results are refined on all. With more than 4,000 groups the search
    makes fewer sweeps from fewer starts. At most 2^25 numbers, groups times draws, are used.

    Examples
    --------
    >>> draws = [[0, 0, 1, 1], [0, 0, 1, 1], [0, 0, 0, 1]]
    >>> estimate_partition(draws).partition.tolist()
    [0, 0, 1, 1]
    """
    if not 0.0 < level <= 1.0:
        raise ValueError(f"level must be above 0 and at most 1, got {level}")
    for name, value in (("num_starts", num_starts), ("max_draws", max_draws)):
        if value is not None and value < 1:
            raise ValueError(f"{name} must be at least 1, got {value}")
    loss_function(loss)
    partitions = np.atleast_2d(np.asarray(draws))
    if partitions.size == 0:
        raise ValueError("draws is empty; at least one draw is needed")
    most = max(MAX_NUMBERS // partitions.shape[1], 10)
    most = min(most, len(partitions), max_draws or len(partitions))
    if most < len(partitions):
        partitions = partitions[np.linspace(0, len(partitions) - 1, most).astype(int)]
    unique, counts = np.unique(first_occurrence(partitions), axis=0, return_counts=True)
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
        The partition at the centre.
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
