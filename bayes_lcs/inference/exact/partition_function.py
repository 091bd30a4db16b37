"""Sum over all partitions of every subset of the groups, by a recursion over subsets.

With cluster weights ``w(T)`` and ``u`` the last member of ``S``,

    Z(S) = sum_{T subset of S, u in T} w(T) Z(S - T),    Z(empty) = 1,

so that adding one group at a time makes each step a subset convolution of two arrays: 3^U/2
products of positive terms, where enumeration needs Bell(U) partitions. The same recursion with a
maximum in place of the sum gives the best partition; with one array for each number of clusters it
gives the distribution of that number.

Range. Both arrays are scaled by ``exp(-sum_{i in S} c_i)``; the factors cancel in the recursion.
The ``c_i`` are the groups' Shapley shares of the cluster scores of a good partition: the mean
contribution of a group when the members of its cluster are added in random order. Equal shares fail
when groups differ in size, since a group with ten rows would get the share of one with a thousand.
Values below ``1e-154`` are set to zero, so that no product is subnormal; with all values below
``1e100`` and ``Z(all)`` above ``1e-20`` in scaled units, that changes nothing representable.
Where these conditions fail, all sums are computed in logs relative to the best partition.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayes_lcs.core.errors import NotExactError
from bayes_lcs.inference.exact.subset_convolution import (
    ConvolutionCheckpoint,
    convolve,
    convolve_max,
    convolve_relative,
)
from bayes_lcs.inference.exact.subset_masks import members, subset_sums, subsets_of
from bayes_lcs.inference.exact.subset_recursion import Step, fill_subsets
from bayes_lcs.runtime.checkpoints import checkpointed_task, fingerprint, is_checkpointing
from bayes_lcs.runtime.memory import available_memory, human_bytes
from bayes_lcs.runtime.progress import Tick

__all__ = ["PartitionSums", "good_partition", "shapley_shares"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

TINY = 1e-154
HUGE = 1e100
MIN_TOTAL = 1e-20
"""Range of scaled sums, see above."""

NEGLIGIBLE = 1e-10
"""Total probability of the numbers of clusters that are left out."""
MAX_GROUPS_ALL_SIZES = 16
"""Up to this number of groups, all numbers of clusters are computed in one batch."""
SIZES_PER_BATCH = 2

PUSH_COST = 150  # number of clusters that are scored in the time of queueing one branch


def good_partition(log_weights: FloatArray) -> list[int]:
    """Find a locally optimal partition, as masks, by greedy merges and moves of single groups."""
    num_groups = log_weights.size.bit_length() - 1
    blocks = [1 << u for u in range(num_groups)]

    def score(mask: int) -> float:
        return float(log_weights[mask]) if mask else 0.0

    while len(blocks) > 1:
        gains = [
            (score(a | b) - score(a) - score(b), a, b)
            for i, a in enumerate(blocks)
            for b in blocks[:i]
        ]
        gain, a, b = max(gains)
        if gain <= 0:
            break
        blocks = [block for block in blocks if block not in (a, b)] + [a | b]
    moved = True
    while moved:
        moved = False
        for u in range(num_groups):
            bit = 1 << u
            home = next(block for block in blocks if block & bit)
            rest = [block for block in blocks if block != home]
            stay = score(home) - score(home ^ bit)
            gain, goal = max((score(t | bit) - score(t), t) for t in [*rest, 0])
            if gain > stay + 1e-9:
                blocks = [t for t in (*rest, home ^ bit) if t and t != goal] + [goal | bit]
                moved = True
    return blocks


def shapley_shares(
    log_weights: FloatArray, blocks: list[int], num_orders: int = 64, seed: int = 0
) -> FloatArray:
    """Estimate each group's mean contribution to the score of its cluster, over random orders.

    The shares of the members of a cluster sum to its score.
    """
    shares = np.zeros(log_weights.size.bit_length() - 1)
    rng = np.random.default_rng(seed)
    for block in blocks:
        group = np.array(members(block))
        for _ in range(num_orders):
            order = rng.permutation(group)
            entered = np.bitwise_or.accumulate(1 << order)
            shares[order] += np.diff(log_weights[entered], prepend=0.0)
    return shares / num_orders


def _require_memory(need: int, description: str) -> None:
    free = available_memory()
    if free is not None and need > free:
        raise NotExactError(
            f"{description} needs {human_bytes(need)} more memory, but only {human_bytes(free)} "
            "are free. Estimate it from draws of bl.sample, or use fewer groups"
        )


def _with_last_member(mask: int) -> IntArray:
    """Return the subsets of a mask that contain its last member."""
    last = 1 << (mask.bit_length() - 1)
    return subsets_of(mask ^ last) | last


class PartitionSums:
    """Sums ``Z(S)`` for every subset ``S`` of the groups, from the log weight of every cluster.

    Parameters
    ----------
    log_weights : (2**U,)
        ``log w(T)`` by bit mask; the entry of the empty set is not used.
    progress
        Show a progress bar; None shows one on a terminal.

    Attributes
    ----------
    log_sums : (2**U,)
        ``log Z(S)``; minus infinity where ``Z(S)`` is negligible for ``Z(all)``.
    arithmetic : str
        ``"scaled"`` for matrix products, ``"logs"`` for the fallback.
    """

    def __init__(self, log_weights: FloatArray, progress: bool | None = None) -> None:
        self.log_weights = log_weights
        self.num_groups = log_weights.size.bit_length() - 1
        self._progress = progress
        self._offsets = subset_sums(shapley_shares(log_weights, good_partition(log_weights)))
        sums = self._scaled_sums()
        if sums is not None:
            self.arithmetic = "scaled"
            with np.errstate(divide="ignore"):
                self.log_sums = np.log(sums) + self._offsets
        else:
            self.arithmetic = "logs"
            best = self._best_scores
            self.log_sums = best + np.log(self._relative_sums())

    @cached_property
    def _scaled_weights(self) -> FloatArray:
        with np.errstate(over="ignore", under="ignore"):
            weights = np.exp(self.log_weights - self._offsets)
        weights[0] = 0.0
        weights[weights < TINY] = 0.0
        return weights

    def _scaled_sums(self) -> FloatArray | None:
        """Compute ``Z(S)`` in scaled units; return None if they leave the safe range."""
        weights = self._scaled_weights
        if not weights.max(initial=0.0) <= HUGE:
            return None
        sums = np.zeros(weights.size)
        sums[0] = 1.0

        def step(
            low: slice, high: slice, tick: Tick, checkpoint: ConvolutionCheckpoint
        ) -> FloatArray | None:
            found = convolve(weights[high], sums[low], tick, checkpoint)
            found[found < TINY] = 0.0
            return found if found.max() <= HUGE else None

        is_safe = self._fill(sums, step, "sums over partitions")
        return sums if is_safe and sums[-1] >= MIN_TOTAL else None

    def _fill(self, values: FloatArray, step: Step, description: str, *key_parts: Any) -> bool:
        return fill_subsets(
            values,
            step,
            description=description,
            key_parts=(self._cache_key, *key_parts),
            progress=self._progress,
        )

    @cached_property
    def _cache_key(self) -> str:
        """Fingerprint of the weights, for checkpoints."""
        return fingerprint(self.log_weights) if is_checkpointing() else ""

    @cached_property
    def _best_scores(self) -> FloatArray:
        """Maximum over the partitions of ``S`` of the sum of log weights, for every ``S``."""
        _require_memory(40 << self.num_groups, "the recursion in logs")
        best = np.zeros(self.log_weights.size)

        def step(
            low: slice, high: slice, tick: Tick, checkpoint: ConvolutionCheckpoint
        ) -> FloatArray:
            return convolve_max(self.log_weights[high], best[low], tick, checkpoint)

        self._fill(best, step, "best partition")
        return best

    def _relative_sums(self, before: FloatArray | None = None, size: int = 0) -> FloatArray:
        """Compute the sums over the partitions of ``S`` relative to the best one, in logs.

        Given ``before``, the sums over partitions into ``size - 1`` clusters, sum over partitions
        into ``size`` clusters.
        """
        best = self._best_scores
        sums = np.zeros(best.size)
        sums[0] = before is None

        def step(
            low: slice, high: slice, tick: Tick, checkpoint: ConvolutionCheckpoint
        ) -> FloatArray:
            with np.errstate(divide="ignore", under="ignore"):
                rest = best[low] + np.log((sums if before is None else before)[low])
            return convolve_relative(self.log_weights[high], rest, best[high], tick, checkpoint)

        self._fill(sums, step, "sums in logs", size)
        return sums

    @property
    def log_total(self) -> float:
        """``log Z(all)``."""
        return float(self.log_sums[-1])

    @cached_property
    def block_probabilities(self) -> FloatArray:
        """Probability that ``T`` is a cluster, ``w(T) Z(all - T) / Z(all)``, by mask."""
        log_probability = self.log_weights + self.log_sums[::-1] - self.log_total
        log_probability[0] = -np.inf
        with np.errstate(under="ignore"):
            return np.exp(log_probability)

    @cached_property
    def size_probabilities(self) -> FloatArray:
        """Probability of each number of clusters, ``(U + 1,)``, with entry ``k`` for ``k``."""
        log_by_size = self.log_totals_by_size
        with np.errstate(under="ignore"):
            probability = np.exp(log_by_size - log_by_size.max())
        return probability / probability.sum()

    @cached_property
    def log_totals_by_size(self) -> FloatArray:
        """Log of the sum over partitions into exactly ``k`` clusters, ``(U + 1,)``.

        Minus infinity for numbers of clusters whose total probability is below 1e-10.
        """
        in_logs = self.arithmetic == "logs"
        offset = self._best_scores[-1] if in_logs else self._offsets[-1]
        with np.errstate(divide="ignore", under="ignore"):
            total = np.exp(self.log_total - offset)
            totals = np.zeros(self.num_groups + 1)
            k = 1
            for some in self._relative_totals() if in_logs else self._scaled_totals():
                totals[k : k + len(some)] = some
                k += len(some)
                if total - totals.sum() < NEGLIGIBLE * total:
                    break
            return np.log(totals) + offset

    def _relative_totals(self) -> Iterator[FloatArray]:
        """Yield ``Z_k(all)`` relative to the best partition, for ``k`` from 1 on."""
        sums = np.zeros(self.log_weights.size)
        sums[0] = 1.0
        for size in range(1, self.num_groups + 1):
            sums = self._relative_sums(sums, size)
            yield sums[-1:]

    def _scaled_totals(self) -> Iterator[FloatArray]:
        """Yield scaled ``Z_k(all)`` in batches of ``k``, from 1 on.

        The step of the last group is needed for ``S = all`` only. Partitions into ``k`` clusters
        depend only on those into ``k - 1``: one batch of all ``k`` is fast for few groups, and
        small batches need little memory for many.
        """
        weights = self._scaled_weights
        half = weights.size // 2
        together = self.num_groups if self.num_groups <= MAX_GROUPS_ALL_SIZES else SIZES_PER_BATCH
        # Measured peak: 3.5 times the array of rows.
        _require_memory(28 * half * (together + 1), "the number of clusters")
        before = np.zeros(half)
        before[0] = 1.0
        for first in range(0, self.num_groups, together):
            count = min(together, self.num_groups - 1 - first)
            with checkpointed_task("sizes", self._cache_key, first) as kept:
                if kept.state is not None:
                    totals, before = kept.state["totals"], kept.state["before"]
                else:
                    rows = self._scaled_rows(before, count, first)
                    totals, before = (rows @ weights[half:][::-1])[:together], rows[-1].copy()
                    kept.finish(partial(dict, totals=totals, before=before))
            yield totals

    def _scaled_rows(self, before: FloatArray, count: int, first: int) -> FloatArray:
        """Compute scaled sums by subset for up to ``count`` clusters more than in ``before``."""
        weights = self._scaled_weights
        rows = np.zeros((count + 1, len(before)))
        rows[0] = before

        def step(
            low: slice, high: slice, tick: Tick, checkpoint: ConvolutionCheckpoint
        ) -> FloatArray:
            found = np.zeros((len(rows), low.stop))
            found[0] = rows[0, high]
            found[1:] = convolve(weights[high], rows[:-1, low], tick, checkpoint)
            found[found < TINY] = 0.0
            return found

        if count:
            self._fill(rows, step, "number of clusters", first)
        return rows

    def best_partition(self) -> list[int]:
        """Return the clusters of a partition with the highest score, as masks."""
        found = self._search_best()
        return self._trace_best() if found is None else found

    def _search_best(self) -> list[int] | None:
        """Search best first with the bound ``log Z(rest)``, which no partition of the rest exceeds.

        Branches whose bound is below the score of a known partition are dropped. The exponentiated
        bounds of the branches of one level sum to ``Z(all)``: if the best partition has probability
        ``p``, at most ``1 / p`` of them are kept. Returns None if the posterior is so flat that the
        recursion with maxima is cheaper.
        """
        known = sum(float(self.log_weights[block]) for block in good_partition(self.log_weights))
        queue: list[tuple[float, int, float, list[int]]]
        queue = [(-self.log_total, self.log_weights.size - 1, 0.0, [])]
        budget = 3**self.num_groups // 16
        while queue:
            _, rest, score, blocks = heapq.heappop(queue)
            if not rest:
                return blocks
            parts = _with_last_member(rest)
            budget -= len(parts)
            if budget < 0:
                return None
            scores = score + self.log_weights[parts]
            bounds = scores + self.log_sums[rest ^ parts]
            # The tolerance covers rounding errors of the bounds.
            kept = np.flatnonzero(bounds >= known - 1e-6)
            budget -= PUSH_COST * len(kept)
            for i in kept:
                left = rest ^ int(parts[i])
                heapq.heappush(
                    queue, (-bounds[i], left, float(scores[i]), [*blocks, int(parts[i])])
                )
        return None

    def _trace_best(self) -> list[int]:
        """Trace the recursion with maxima back from the full set."""
        best = self._best_scores
        rest, blocks = self.log_weights.size - 1, []
        while rest:
            parts = _with_last_member(rest)
            scores = self.log_weights[parts] + best[rest ^ parts]
            blocks.append(int(parts[np.argmax(scores)]))
            rest ^= blocks[-1]
        return blocks

    def sample(self, draws: int, rng: np.random.Generator) -> IntArray:
        """Draw independent partitions, ``(draws, U)`` cluster numbers in the order of drawing.

        The cluster of the last remaining group is drawn with probability ``w(T) Z(S - T) / Z(S)``;
        draws with the same remaining groups are made together.
        """
        z = np.zeros((draws, self.num_groups), dtype=np.int64)
        left = np.full(draws, self.log_weights.size - 1, dtype=np.int64)
        groups = np.arange(self.num_groups)
        block = 0
        while left.any():
            for rest in np.unique(left[left > 0]):
                here = np.flatnonzero(left == rest)
                parts = _with_last_member(int(rest))
                log_p = self.log_weights[parts] + self.log_sums[rest ^ parts]
                cumulative = np.cumsum(np.exp(log_p - self.log_sums[rest]))
                chosen = parts[
                    np.searchsorted(cumulative, rng.random(len(here)) * cumulative[-1], "right")
                ]
                inside = (chosen[:, None] >> groups & 1).astype(bool)
                z[here] = np.where(inside, block, z[here])
                left[here] ^= chosen
            block += 1
        return z
