"""Sums over all partitions of every subset of the groups, by a recursion over subsets.

With block weights ``w(T)`` and ``u`` the last member of ``S``,

    Z(S) = sum_{T subset of S, u in T} w(T) Z(S - T),    Z(empty) = 1,

so adding the groups one at a time turns each step into a subset convolution of two arrays: 3^U/2
products of positive terms for what enumeration would need Bell(U) partitions. The same recursion
with a maximum in place of the sum gives the best partition, and carried separately for each
number of blocks it gives the distribution of that number.

Range. Both arrays are scaled by ``exp(-sum_{i in S} c_i)``; the factors cancel in the recursion.
The ``c_i`` are the groups' Shapley shares of the block scores of a good partition: what a group
adds when the members of its block come in random order. An even share of the score fails when
groups differ in size, since a group with ten rows would then carry the score of a thousand.
Values below ``1e-154`` are set to zero, so that no product is subnormal; with all values below
``1e100`` and ``Z(all)`` above ``1e-20`` in scaled units, that changes nothing representable.
Where these conditions fail, everything is done in logs relative to the best partition.
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
    Course,
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
SMALLEST_TOTAL = 1e-20

NEGLIGIBLE = 1e-10
FEW_GROUPS = 16
ROWS_TOGETHER = 2

PUSH_COST = 150  # blocks that are scored in the time it takes to queue one branch


def good_partition(log_weights: FloatArray) -> list[int]:
    """A locally optimal partition as masks: best merges first, then moves of single groups."""
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
    """Each group's mean contribution to the score of its block over random orders of entry.

    The shares of a block add up to its score.
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


def _refuse_shortage(need: int, what: str) -> None:
    free = available_memory()
    if free is not None and need > free:
        raise NotExactError(
            f"{what} needs {human_bytes(need)} more memory, and only {human_bytes(free)} are free. "
            "Estimate it from draws, or take fewer groups"
        )


def _with_last_member(mask: int) -> IntArray:
    """The subsets of a mask that contain its last member."""
    last = 1 << (mask.bit_length() - 1)
    return subsets_of(mask ^ last) | last


class PartitionSums:
    """``Z(S)`` for every subset ``S`` of the groups, from the log weight of every block.

    Parameters
    ----------
    log_weights : (2**U,)
        ``log w(T)`` by bit mask; the entry of the empty set is not used.
    progress
        Show a bar; None shows one on a terminal.

    Attributes
    ----------
    log_sums : (2**U,)
        ``log Z(S)``; minus infinity where ``Z(S)`` is too small to matter to ``Z(all)``.
    arithmetic : str
        ``"scaled"`` for matrix products, ``"logs"`` for the fall-back.
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
        """``Z(S)`` in scaled units, or None where they leave the safe range."""
        weights = self._scaled_weights
        if not weights.max(initial=0.0) <= HUGE:
            return None
        sums = np.zeros(weights.size)
        sums[0] = 1.0

        def step(low: slice, high: slice, tick: Tick, course: Course) -> FloatArray | None:
            found = convolve(weights[high], sums[low], tick, course)
            found[found < TINY] = 0.0
            return found if found.max() <= HUGE else None

        is_safe = self._fill(sums, step, "sums over partitions")
        return sums if is_safe and sums[-1] >= SMALLEST_TOTAL else None

    def _fill(self, values: FloatArray, step: Step, what: str, *decisive: Any) -> bool:
        return fill_subsets(
            values,
            step,
            what=what,
            decisive=(self._identity, *decisive),
            progress=self._progress,
        )

    @cached_property
    def _identity(self) -> str:
        """What decides everything here, for work that is kept."""
        return fingerprint(self.log_weights) if is_checkpointing() else ""

    @cached_property
    def _best_scores(self) -> FloatArray:
        """``max`` over the partitions of ``S`` of the sum of log weights, for every ``S``."""
        _refuse_shortage(40 << self.num_groups, "the recursion in logs")
        best = np.zeros(self.log_weights.size)

        def step(low: slice, high: slice, tick: Tick, course: Course) -> FloatArray:
            return convolve_max(self.log_weights[high], best[low], tick, course)

        self._fill(best, step, "best partition")
        return best

    def _relative_sums(self, before: FloatArray | None = None, size: int = 0) -> FloatArray:
        """Sums over the partitions of ``S`` relative to the best one, in logs.

        With ``before``, those of partitions into ``size - 1`` blocks, of partitions into ``size``.
        """
        best = self._best_scores
        sums = np.zeros(best.size)
        sums[0] = before is None

        def step(low: slice, high: slice, tick: Tick, course: Course) -> FloatArray:
            with np.errstate(divide="ignore", under="ignore"):
                rest = best[low] + np.log((sums if before is None else before)[low])
            return convolve_relative(self.log_weights[high], rest, best[high], tick, course)

        self._fill(sums, step, "sums in logs", size)
        return sums

    @property
    def log_total(self) -> float:
        """``log Z(all)``."""
        return float(self.log_sums[-1])

    @cached_property
    def block_probabilities(self) -> FloatArray:
        """Probability that ``T`` is a block: ``w(T) Z(all - T) / Z(all)``, by mask."""
        log_probability = self.log_weights + self.log_sums[::-1] - self.log_total
        log_probability[0] = -np.inf
        with np.errstate(under="ignore"):
            return np.exp(log_probability)

    @cached_property
    def size_probabilities(self) -> FloatArray:
        """Probability of each number of blocks, ``(U + 1,)``, entry ``k`` for ``k`` blocks."""
        log_by_size = self.log_totals_by_size
        with np.errstate(under="ignore"):
            probability = np.exp(log_by_size - log_by_size.max())
        return probability / probability.sum()

    @cached_property
    def log_totals_by_size(self) -> FloatArray:
        """``log`` of the sum over partitions into exactly ``k`` blocks, ``(U + 1,)``.

        Minus infinity for numbers that have a probability below 1e-10 all together.
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
        """``Z_k(all)`` relative to the best partition, for ``k`` from 1 on."""
        sums = np.zeros(self.log_weights.size)
        sums[0] = 1.0
        for size in range(1, self.num_groups + 1):
            sums = self._relative_sums(sums, size)
            yield sums[-1:]

    def _scaled_totals(self) -> Iterator[FloatArray]:
        """Scaled ``Z_k(all)`` for some ``k`` together, from 1 on.

        The last group's step is needed for ``S = all`` only. Partitions into ``k`` blocks need
        those into ``k - 1`` alone: all of them together are fast for few groups, and few at a time
        need little memory for many.
        """
        weights = self._scaled_weights
        half = weights.size // 2
        together = self.num_groups if self.num_groups <= FEW_GROUPS else ROWS_TOGETHER
        # Measured: three and a half times the table of rows.
        _refuse_shortage(28 * half * (together + 1), "the number of clusters")
        before = np.zeros(half)
        before[0] = 1.0
        for first in range(0, self.num_groups, together):
            count = min(together, self.num_groups - 1 - first)
            with checkpointed_task("sizes", self._identity, first) as kept:
                if kept.state is not None:
                    totals, before = kept.state["totals"], kept.state["before"]
                else:
                    rows = self._scaled_rows(before, count, first)
                    totals, before = (rows @ weights[half:][::-1])[:together], rows[-1].copy()
                    kept.finish(partial(dict, totals=totals, before=before))
            yield totals

    def _scaled_rows(self, before: FloatArray, count: int, first: int) -> FloatArray:
        """Scaled sums by subset: given those into ``first`` blocks, and into ``count`` more."""
        weights = self._scaled_weights
        rows = np.zeros((count + 1, len(before)))
        rows[0] = before

        def step(low: slice, high: slice, tick: Tick, course: Course) -> FloatArray:
            found = np.zeros((len(rows), low.stop))
            found[0] = rows[0, high]
            found[1:] = convolve(weights[high], rows[:-1, low], tick, course)
            found[found < TINY] = 0.0
            return found

        if count:
            self._fill(rows, step, "number of clusters", first)
        return rows

    def best_partition(self) -> list[int]:
        """The blocks of a partition of the highest score, as masks."""
        found = self._search_best()
        return self._trace_best() if found is None else found

    def _search_best(self) -> list[int] | None:
        """Best-first search guided by ``log Z(rest)``, which no partition of the rest exceeds.

        Branches whose bound is below a partition already known are dropped. The bounds of the
        branches of one level, exponentiated, add up to ``Z(all)``: where the best partition has
        probability ``p``, at most ``1 / p`` of them are kept. None if the posterior is so flat
        that the recursion with maxima is cheaper.
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
            kept = np.flatnonzero(bounds >= known - 1e-6)
            budget -= PUSH_COST * len(kept)
            for i in kept:
                left = rest ^ int(parts[i])
                heapq.heappush(
                    queue, (-bounds[i], left, float(scores[i]), [*blocks, int(parts[i])])
                )
        return None

    def _trace_best(self) -> list[int]:
        """Follow the recursion with maxima back from the full set."""
        best = self._best_scores
        rest, blocks = self.log_weights.size - 1, []
        while rest:
            parts = _with_last_member(rest)
            scores = self.log_weights[parts] + best[rest ^ parts]
            blocks.append(int(parts[np.argmax(scores)]))
            rest ^= blocks[-1]
        return blocks

    def sample(self, draws: int, rng: np.random.Generator) -> IntArray:
        """Independent partitions, ``(draws, U)`` block numbers in the order they were drawn.

        The block of the last group left is drawn with probability ``w(T) Z(S - T) / Z(S)``;
        draws with the same groups left are drawn together.
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
