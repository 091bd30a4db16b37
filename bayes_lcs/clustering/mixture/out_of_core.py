"""Rows of files for out-of-core fits: encoded batches on disk, and the E-step over them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial, reduce
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayes_lcs.clustering.mixture.encode_input import WeightedRows
from bayes_lcs.clustering.mixture.fit import compute_statistics, row_sums
from bayes_lcs.core.model_protocols import MixtureParameters, MixtureStatistics
from bayes_lcs.core.schema import Schema
from bayes_lcs.data.rows.encoded_dataset import CodedBlock, CodedFiles, code_files
from bayes_lcs.inference.em import distributed_e_step
from bayes_lcs.io.sampler import FileSampler
from bayes_lcs.models.multinomial_mixture import MultinomialMixture
from bayes_lcs.runtime.executors.base import merge_sums
from bayes_lcs.runtime.executors.local import LocalExecutor
from bayes_lcs.runtime.executors.protocol import Executor
from bayes_lcs.runtime.memory import num_cores
from bayes_lcs.runtime.tempdir import temporary_folder

__all__ = ["OutOfCoreData", "open_out_of_core"]

FloatArray = NDArray[np.float64]


@contextmanager
def open_out_of_core(
    source: FileSampler | CodedFiles,
    precision: Callable[[int], Any],
    memory: int,
    folder: str | PathLike[str] | None,
    executor: Executor | None,
) -> Iterator[OutOfCoreData]:
    """Encode the rows of files, place their batches, and remove temporary files at the end."""
    with temporary_folder(folder) as scratch:
        coded = source
        if not isinstance(coded, CodedFiles):
            coded = code_files(coded, scratch, block_rows=distributed_e_step.BLOCK_ROWS)
        # Upper bound: a slot of two bytes for each cell, and a weight.
        size = coded.num_rows * (2 * len(coded.values) + 8)
        layout_folder = None if size <= memory else scratch
        # One thread more than cores: one of them waits for the disk.
        threads = num_cores() + (layout_folder is not None)
        own = LocalExecutor(threads) if executor is None else None
        try:
            rows = OutOfCoreData(coded, executor or own, precision(coded.num_rows), layout_folder)
            with closing(rows.e_step):
                yield rows
        finally:
            if own is not None:
                own.close()


class OutOfCoreData:
    """Encoded batches on disk and the E-step over them, as `FitData`."""

    def __init__(
        self, coded: CodedFiles, executor: Any, precision: Any, folder: Path | None
    ) -> None:
        self.values = coded.values
        self.schema = Schema(1, [max(len(names), 1) for names in coded.values.values()])
        self.row_weight = 1.0
        self._executor: Executor = executor
        self._blocks = coded.blocks
        self._read = partial(_row_block, coded.reader)
        self.e_step = distributed_e_step.DistributedEStep(
            executor, self._read, self._blocks, precision, folder
        )

    def counts(self) -> FloatArray:
        """Return the weight of the rows with each value, ``(C,)``."""
        return self.e_step.counts()

    def statistics(self, parameters: MixtureParameters) -> MixtureStatistics:
        """Return expected counts, in double precision."""
        if self.e_step.precision == "double":
            return self.e_step.statistics([parameters])[0]
        parts = self._executor.run(partial(_statistics, self._read, parameters), self._blocks)
        return reduce(merge_sums, parts)

    def row_sums(
        self, model: MultinomialMixture, parameters: MixtureParameters
    ) -> tuple[float, int, float, float]:
        """Return log-likelihood, number of free parameters, weight, and component entropy."""
        sums = partial(_row_sums, self._read, model, parameters)
        parts = np.array(self._executor.run(sums, self._blocks))
        log_likelihood, weight, entropy = parts[:, [0, 2, 3]].sum(axis=0).tolist()
        return log_likelihood, model.num_free_parameters, weight, entropy


def _row_block(reader: Any, block: CodedBlock) -> distributed_e_step.RowBatch:
    return distributed_e_step.RowBatch(reader(block), None)


def _statistics(read: Any, parameters: MixtureParameters, block: CodedBlock) -> MixtureStatistics:
    return compute_statistics(WeightedRows(*read(block)), parameters)


def _row_sums(
    read: Any, model: MultinomialMixture, parameters: MixtureParameters, block: CodedBlock
) -> tuple[float, int, float, float]:
    return row_sums(WeightedRows(*read(block)), model, parameters)
