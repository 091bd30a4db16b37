"""The E-step over blocks of rows that lie wherever an executor has placed them.

Rows are cut into blocks whose size depends on nothing but the rows, and each block is laid out
once (`bayes_lcs.inference.em.row_layout`) where it lies. Parameters are sent to all blocks, their
sums come back in float64 and are merged in the order of the blocks: every executor gives the same
numbers. Layouts that memory would not hold are kept on disk, and read at each pass.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, reduce
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from bayes_lcs.core.model_protocols import MixtureParameters, MixtureStatistics
from bayes_lcs.data.rows.encoded_rows import EncodedColumns
from bayes_lcs.inference.em.e_step import PlanExecutor, Precision
from bayes_lcs.inference.em.initialization import column_counts
from bayes_lcs.inference.em.row_layout import plan_rows
from bayes_lcs.inference.em.row_layout_io import open_plan, save_plan
from bayes_lcs.runtime.checkpoints import fingerprint
from bayes_lcs.runtime.executors.base import merge_sums
from bayes_lcs.runtime.executors.protocol import Executor

__all__ = ["BLOCK_ROWS", "BlockEStep", "BlockFacts", "RowBlock", "RowSlices", "as_they_are"]

FloatArray = NDArray[np.float64]

BLOCK_ROWS = 1 << 16
"""Rows of a block: some megabytes, a tenth of a second of EM, much more than it costs to ask."""


class RowBlock(NamedTuple):
    """Coded rows and their weights; None stands for ones."""

    table: EncodedColumns
    weights: FloatArray | None


class BlockFacts(NamedTuple):
    """What is known of a block when it is laid out.

    Attributes
    ----------
    num_rows, weight
        Its rows, and the sum of their weights.
    counts : (C,)
        Weight of the rows that have each value.
    digest
        Of its layout, which decides its statistics.
    """

    num_rows: int
    weight: float
    counts: FloatArray
    digest: str


class RowSlices(Sequence[RowBlock]):
    """Rows in memory as blocks, each cut out when it is asked for."""

    def __init__(
        self, table: EncodedColumns, weights: FloatArray | None = None, size: int | None = None
    ) -> None:
        self.table, self.weights = table, weights
        self.size = BLOCK_ROWS if size is None else size

    def __len__(self) -> int:
        return max(-(-self.table.num_rows // self.size), 1)

    def __getitem__(self, number: Any) -> Any:
        if not 0 <= number < len(self):
            raise IndexError(number)
        rows = slice(number * self.size, (number + 1) * self.size)
        return RowBlock(self.table.take(rows), None if self.weights is None else self.weights[rows])


def as_they_are(block: RowBlock) -> RowBlock:
    """The reader of blocks that are sent as they are."""
    return block


class BlockEStep:
    """Takes statistics of rows in blocks; an `bayes_lcs.inference.em.em.EStep`.

    Parameters
    ----------
    executor
        Where blocks are placed and worked on.
    read, keys
        ``read(key)`` is the block of a key.
    precision
        Of the sums within a block; between blocks they are in float64.
    folder
        Where layouts are kept between passes, seen by whoever works on blocks; None keeps them in
        memory.
    """

    def __init__(
        self,
        executor: Executor,
        read: Callable[[Any], RowBlock],
        keys: Sequence[Any],
        precision: Precision = "double",
        folder: Path | None = None,
    ) -> None:
        self.executor = executor
        self.precision: Precision = precision
        self.placed = executor.place(partial(_lay_out, read, precision, folder), keys)
        self.facts: list[BlockFacts] = executor.each(self.placed, _facts)

    @property
    def num_rows(self) -> int:
        """Rows of all blocks."""
        return sum(facts.num_rows for facts in self.facts)

    @property
    def weight(self) -> float:
        """Their weight."""
        return float(sum(facts.weight for facts in self.facts))

    def counts(self) -> FloatArray:
        """Weight of the rows that have each value, ``(C,)``."""
        return np.sum([facts.counts for facts in self.facts], axis=0)

    def identity(self) -> list[Any]:
        """Everything that decides what statistics come out."""
        return [self.precision, *(facts.digest for facts in self.facts)]

    def statistics(self, requests: Sequence[MixtureParameters]) -> list[MixtureStatistics]:
        """Statistics at each of some parameters, all together."""
        take = partial(_statistics, self.precision)
        parts = self.executor.each(self.placed, take, list(requests))
        return [reduce(merge_sums, answers) for answers in zip(*parts, strict=True)]

    def close(self) -> None:
        """Let the blocks go."""
        self.placed.release()


class _LaidOut(NamedTuple):
    """A block; its layout, or where that is kept."""

    facts: BlockFacts
    layout: PlanExecutor | Path


def _lay_out(
    read: Callable[[Any], RowBlock], precision: Precision, folder: Path | None, key: Any
) -> _LaidOut:
    table, weights = read(key)
    plan = plan_rows(table, weights)
    # One thread: what works on other blocks at the same time takes the other cores.
    executor = PlanExecutor(plan, precision, cores=1, is_kept=folder is None)
    counts = column_counts(table, weights)
    digest = fingerprint(*executor.identity())
    facts = BlockFacts(table.num_rows, plan.total_weight, counts, digest)
    if folder is None:
        return _LaidOut(facts, executor)
    # Blocks may be equal, and a lost one laid out again while its old worker still writes.
    path = folder / f"layout-{digest[:16]}-{uuid4().hex}.rows"
    save_plan(plan, path)
    return _LaidOut(facts, path)


def _facts(_: None, block: _LaidOut) -> BlockFacts:
    return block.facts


def _statistics(
    precision: Precision, requests: list[MixtureParameters], block: _LaidOut
) -> list[MixtureStatistics]:
    layout = block.layout
    if isinstance(layout, Path):
        layout = PlanExecutor(open_plan(layout), precision, cores=1, is_kept=False)
    return layout.statistics(requests)
