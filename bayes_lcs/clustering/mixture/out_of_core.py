"""Rows of files, wherever their blocks lie, as what a mixture's fit needs of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial, reduce
from os import PathLike
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from bayes_lcs.clustering.mixture.encode_input import WeightedRows
from bayes_lcs.clustering.mixture.fit import fit_mixture, row_sums, statistics_of
from bayes_lcs.core.model_protocols import MixtureParameters, MixtureStatistics
from bayes_lcs.core.schema import Schema
from bayes_lcs.data.rows.encoded_dataset import CodedBlock, CodedFiles, code_files
from bayes_lcs.inference.em import distributed_e_step
from bayes_lcs.io.options import CsvOptions, MissingValues, add_empty_cell
from bayes_lcs.io.sampler import FileSampler
from bayes_lcs.models.multinomial_mixture import MultinomialMixture
from bayes_lcs.runtime.executors.base import merge_sums
from bayes_lcs.runtime.executors.local import LocalExecutor
from bayes_lcs.runtime.executors.protocol import Executor
from bayes_lcs.runtime.memory import num_cores
from bayes_lcs.runtime.tempdir import scratch_folder

__all__ = ["FitsFiles", "RowsOfFiles", "rows_of_files"]

FloatArray = NDArray[np.float64]


class FitsFiles:
    """`fit_file` of `bayes_lcs.MixtureClusterer`."""

    def fit_file(
        self,
        path: Any,
        *,
        features: Iterable[Any] | None = None,
        ignore: Iterable[Any] = (),
        missing_values: MissingValues = None,
        encoding: str = "utf-8",
        delimiter: str | None = None,
        header: bool | Sequence[str] = True,
        memory: int = 1 << 28,
        folder: str | PathLike[str] | None = None,
    ) -> Self:
        r"""Fit the mixture to files that need not fit into memory.

        One pass over the files encodes their rows and learns the values of every column; the
        encoded rows are kept on disk in blocks, which the workers read. The result is that of
        `fit` on the same rows, but for rounding.

        Parameters
        ----------
        path
            A CSV or Parquet file, or a folder of such files with the same columns of the same
            types, which are read in the order of their names; or anything else that
            `bayes_lcs.row_source` reads in pieces, such as Arrow data sets and Dask dataframes, or
            a source of it. What `bayes_lcs.code_files` made is not coded again.
        features, ignore
            The columns to use, or those to leave out.
        missing_values
            Cells that mean "missing", as in `bayes_lcs.read_grouped`; by default those of the
            clusterer.
        encoding, delimiter, header
            Of text files, as in `bayes_lcs.read_grouped`.
        memory
            Bytes that rows laid out for EM may take; if they would take more they are laid out on
            disk, and read at each pass. What one block takes, and Python with its libraries, is not
            counted.
        folder
            Where coded and laid out rows are kept while fitting, in a folder of their own that is
            removed at the end; by default where the system keeps temporary files. Workers on other
            machines must see it.

        Returns
        -------
        self : MixtureClusterer
            The fitted clusterer.

        Examples
        --------
        >>> import tempfile
        >>> import bayes_lcs as bl
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "visits.csv")
        ...     _ = path.write_text("day,hour\n" + "sun,late\nmon,early\nmon,early\n" * 50)
        ...     mixture = bl.MixtureClusterer(2, random_state=0, verbose=False)
        ...     found = mixture.fit_file(path, memory=1000, folder=folder)
        >>> sorted(found.weights_.round(2).tolist())
        [0.34, 0.66]
        """
        if isinstance(path, CodedFiles | FileSampler):
            _fit(self, path, memory, folder)
            return self
        if missing_values is None:
            missing_values = add_empty_cell(self.missing_values)  # type: ignore[attr-defined]
        source = FileSampler(
            path,
            features=features,
            ignore=ignore,
            categorical=self.categorical,  # type: ignore[attr-defined]
            missing_values=missing_values,
            options=CsvOptions(encoding, delimiter, header),
        )
        _fit(self, source, memory, folder)
        return self


def _fit(
    clusterer: Any,
    source: FileSampler | CodedFiles,
    memory: int,
    folder: str | PathLike[str] | None,
) -> None:
    clusterer._validate_params()
    if clusterer.warm_start or not isinstance(clusterer.categories, str):
        raise ValueError("fit_file begins anew and learns the categories from the files")
    seed = check_random_state(clusterer.random_state).randint(np.iinfo(np.int32).max)
    precision, executor = clusterer._precision, clusterer.executor
    with rows_of_files(source, precision, memory, folder, executor) as rows:
        categories = list(rows.values.values())
        rng = np.random.default_rng(seed)
        clusterer._keep(fit_mixture(clusterer, rows, rows.e_step, rng, None, categories))
        clusterer._fitted_weight = rows.e_step.weight
        clusterer.feature_names_in_ = np.array(list(rows.values), dtype=object)
    clusterer.n_features_in_, clusterer.categories_ = len(categories), categories
    clusterer.plan_, clusterer._stepwise = None, None


@contextmanager
def rows_of_files(
    source: FileSampler | CodedFiles,
    precision: Callable[[int], Any],
    memory: int,
    folder: str | PathLike[str] | None,
    executor: Executor | None,
) -> Iterator[RowsOfFiles]:
    """Code the rows of files, place their blocks, and clear everything away at the end."""
    with scratch_folder(folder) as scratch:
        coded = source
        if not isinstance(coded, CodedFiles):
            coded = code_files(coded, scratch, block_rows=distributed_e_step.BLOCK_ROWS)
        # At most: a slot of two bytes for each cell, and a weight.
        size = coded.num_rows * (2 * len(coded.values) + 8)
        kept = None if size <= memory else scratch
        # One thread more than cores: one of them waits for the disk.
        threads = num_cores() + (kept is not None)
        own = LocalExecutor(threads) if executor is None else None
        try:
            rows = RowsOfFiles(coded, executor or own, precision(coded.num_rows), kept)
            with closing(rows.e_step):
                yield rows
        finally:
            if own is not None:
                own.close()


class RowsOfFiles:
    """Coded blocks on disk, and the E-step over them; a `FitData`."""

    def __init__(
        self, coded: CodedFiles, executor: Any, precision: Any, folder: Path | None
    ) -> None:
        self.values = coded.values
        self.schema = Schema(1, [max(len(names), 1) for names in coded.values.values()])
        self.row_weight = 1.0
        self._executor: Executor = executor
        self._blocks = coded.blocks
        self._read = partial(_row_block, coded.reader)
        self.e_step = distributed_e_step.BlockEStep(
            executor, self._read, self._blocks, precision, folder
        )

    def counts(self) -> FloatArray:
        """Weight of the rows that have each value, ``(C,)``."""
        return self.e_step.counts()

    def statistics(self, parameters: MixtureParameters) -> MixtureStatistics:
        """Expected counts, in double precision."""
        if self.e_step.precision == "double":
            return self.e_step.statistics([parameters])[0]
        parts = self._executor.run(partial(_statistics, self._read, parameters), self._blocks)
        return reduce(merge_sums, parts)

    def row_sums(
        self, model: MultinomialMixture, parameters: MixtureParameters
    ) -> tuple[float, int, float, float]:
        """Log-likelihood, free parameters, weight, and entropy of the components of the rows."""
        sums = partial(_row_sums, self._read, model, parameters)
        parts = np.array(self._executor.run(sums, self._blocks))
        log_likelihood, weight, entropy = parts[:, [0, 2, 3]].sum(axis=0).tolist()
        return log_likelihood, model.num_free_parameters, weight, entropy


def _row_block(reader: Any, block: CodedBlock) -> distributed_e_step.RowBlock:
    return distributed_e_step.RowBlock(reader(block), None)


def _statistics(read: Any, parameters: MixtureParameters, block: CodedBlock) -> MixtureStatistics:
    return statistics_of(WeightedRows(*read(block)), parameters)


def _row_sums(
    read: Any, model: MultinomialMixture, parameters: MixtureParameters, block: CodedBlock
) -> tuple[float, int, float, float]:
    return row_sums(WeightedRows(*read(block)), model, parameters)
