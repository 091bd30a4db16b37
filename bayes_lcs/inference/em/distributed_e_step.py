"""The E-step over batches of rows that an executor holds.

Rows are divided into batches whose size depends only on the rows, and each batch is laid out once
(`bayes_lcs.inference.em.row_layout`) by the worker that holds it. Parameters are sent to all
batches; sums are returned in float64 and merged in the order of the batches, so that all executors
give the same numbers. Layouts that do not fit into memory are stored on disk and read at each pass.
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
from bayes_lcs.inference.em.e_step import LocalEStep, Precision
from bayes_lcs.inference.em.initialization import column_counts
from bayes_lcs.inference.em.row_layout import lay_out_rows
from bayes_lcs.inference.em.row_layout_io import load_layout, save_layout
from bayes_lcs.runtime.checkpoints import fingerprint
from bayes_lcs.runtime.executors.base import merge_sums
from bayes_lcs.runtime.executors.protocol import Executor

__all__ = ["BLOCK_ROWS", "BatchSummary", "DistributedEStep", "RowBatch", "RowSlices", "identity"]

FloatArray = NDArray[np.float64]

BLOCK_ROWS = 1 << 16
"""Rows of a batch: some megabytes, a tenth of a second of EM, much more than a call costs."""


class RowBatch(NamedTuple):
    """Encoded rows and their weights; None stands for ones."""

    table: EncodedColumns
    weights: FloatArray | None


class BatchSummary(NamedTuple):
    """Summary of a batch.

    Attributes
    ----------
    num_rows, weight
        Number of rows, and the sum of their weights.
    counts : (C,)
        Weight of the rows with each value.
    digest
        Digest of the layout, for checkpoints.
    """

    num_rows: int
    weight: float
    counts: FloatArray
    digest: str


class RowSlices(Sequence[RowBatch]):
    """Rows in memory as a sequence of batches, sliced on access."""

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
        return RowBatch(self.table.take(rows), None if self.weights is None else self.weights[rows])


def identity(block: RowBatch) -> RowBatch:
    """Return the batch itself: the reader of batches that are sent by value."""
    return block


class DistributedEStep:
    """E-step over batches of rows; an `bayes_lcs.inference.em.em.EStep`.

    Parameters
    ----------
    executor
        Executor that holds the batches.
    read, keys
        ``read(key)`` returns the batch of a key.
    precision
        Precision of the sums within a batch; sums of batches are in float64.
    folder
        Folder for layouts, to which all workers have access; None keeps layouts in memory.
    """

    def __init__(
        self,
        executor: Executor,
        read: Callable[[Any], RowBatch],
        keys: Sequence[Any],
        precision: Precision = "double",
        folder: Path | None = None,
    ) -> None:
        self.executor = executor
        self.precision: Precision = precision
        self.placed = executor.place(partial(_build_layout, read, precision, folder), keys)
        self.summaries: list[BatchSummary] = executor.each(self.placed, _summary)

    @property
    def num_rows(self) -> int:
        """Number of rows of all batches."""
        return sum(summary.num_rows for summary in self.summaries)

    @property
    def weight(self) -> float:
        """Weight of all rows."""
        return float(sum(summary.weight for summary in self.summaries))

    def counts(self) -> FloatArray:
        """Return the weight of the rows with each value, ``(C,)``."""
        return np.sum([summary.counts for summary in self.summaries], axis=0)

    def identity(self) -> list[Any]:
        """List everything that the statistics depend on besides parameters, as a cache key."""
        return [self.precision, *(summary.digest for summary in self.summaries)]

    def statistics(self, requests: Sequence[MixtureParameters]) -> list[MixtureStatistics]:
        """Compute statistics at each of the requested parameters."""
        take = partial(_statistics, self.precision)
        parts = self.executor.each(self.placed, take, list(requests))
        return [reduce(merge_sums, answers) for answers in zip(*parts, strict=True)]

    def close(self) -> None:
        """Release the batches."""
        self.placed.release()


class _Layout(NamedTuple):
    """Summary of a batch, and its layout: an E-step in memory, or a file."""

    summary: BatchSummary
    layout: LocalEStep | Path


def _build_layout(
    read: Callable[[Any], RowBatch], precision: Precision, folder: Path | None, key: Any
) -> _Layout:
    table, weights = read(key)
    layout = lay_out_rows(table, weights)
    # One thread: other batches are processed on the other cores.
    e_step = LocalEStep(layout, precision, cores=1, on_device=folder is None)
    counts = column_counts(table, weights)
    digest = fingerprint(*e_step.identity())
    summary = BatchSummary(table.num_rows, layout.total_weight, counts, digest)
    if folder is None:
        return _Layout(summary, e_step)
    # Unique name: batches may be equal, and a lost one may be laid out again while its old worker
    # still writes.
    path = folder / f"layout-{digest[:16]}-{uuid4().hex}.rows"
    save_layout(layout, path)
    return _Layout(summary, path)


def _summary(_: None, block: _Layout) -> BatchSummary:
    return block.summary


def _statistics(
    precision: Precision, requests: list[MixtureParameters], block: _Layout
) -> list[MixtureStatistics]:
    layout = block.layout
    if isinstance(layout, Path):
        layout = LocalEStep(load_layout(layout), precision, cores=1, on_device=False)
    return layout.statistics(requests)
