"""k-means of files that one process need not hold: workers read their rows themselves."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing
from os import PathLike
from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.utils import check_random_state

from bayes_lcs.clustering.kmeans import lloyd as lloyd_blocks
from bayes_lcs.clustering.kmeans.init import draw_centers
from bayes_lcs.clustering.kmeans.lloyd import LloydOnBlocks
from bayes_lcs.clustering.kmeans.point_store import PointStore
from bayes_lcs.io.rebatch import rebatch
from bayes_lcs.io.sampler import FileSampler
from bayes_lcs.runtime.executors.local import LocalExecutor
from bayes_lcs.runtime.executors.protocol import Executor
from bayes_lcs.runtime.memory import num_cores
from bayes_lcs.runtime.tempdir import temporary_folder

__all__ = ["ClustersFiles"]

START_ROWS = 100_000


class ClustersFiles:
    """`fit_file` of `bayes_lcs.KMeans`."""

    def fit_file(
        self,
        path: Any,
        *,
        features: Iterable[Any] | None = None,
        ignore: Iterable[Any] = (),
        start_rows: int = START_ROWS,
        memory: int = 1 << 28,
        folder: str | PathLike[str] | None = None,
    ) -> Self:
        r"""Find clusters of the numbers of files that need not fit into memory.

        Parquet files are read in blocks by whoever works on them; others are read here. Points
        that take more than ``memory`` are kept on disk in blocks, and read at each pass.

        Parameters
        ----------
        path
            What `bayes_lcs.row_source` reads in pieces, or a source of numbers that it made.
        features, ignore
            The columns to use, by default all numeric ones, or those to leave out.
        start_rows
            Starts are drawn from so many random rows.
        memory
            Bytes that points may take in memory, in all workers together: 8 for each number. What
            one block takes, the label of each row, the rows for starts, and Python with its
            libraries, is not counted.
        folder
            Where points are kept beyond that, in a folder of their own that is removed at the end;
            by default where the system keeps temporary files. Workers on other machines must see
            it.

        Returns
        -------
        self : KMeans
            The fitted clusterer.

        Examples
        --------
        >>> import tempfile
        >>> import bayes_lcs as bl
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "points.csv")
        ...     _ = path.write_text("x,y\n" + "0,0\n9,8\n" * 50)
        ...     found = bl.KMeans(2, random_state=0).fit_file(path, memory=1000, folder=folder)
        >>> sorted(found.cluster_centers_.round(6).tolist())
        [[0.0, 0.0], [9.0, 8.0]]
        """
        if not isinstance(path, FileSampler):
            path = FileSampler(path, features=features, ignore=ignore, kind="numbers")
        with temporary_folder(folder) as scratch:
            _fit(self, path, start_rows, memory, scratch)
        return self


def _fit(kmeans: Any, source: FileSampler, start_rows: int, memory: int, folder: Path) -> None:
    kmeans._validate_params()
    # One thread more than cores: one of them may wait for the disk.
    own = LocalExecutor(num_cores() + 1) if kmeans.executor is None else None
    try:
        with closing(_place_points(own or kmeans.executor, source, memory, folder)) as lloyd:
            if kmeans.n_clusters > lloyd.num_rows:
                raise ValueError(
                    f"n_samples={lloyd.num_rows} should be >= n_clusters={kmeans.n_clusters}."
                )
            kmeans.results_ = [
                lloyd.run(start, kmeans.max_iter, kmeans.tol)
                for start in _starts(kmeans, source, min(start_rows, lloyd.num_rows))
            ]
            best = min(kmeans.results_, key=lambda result: result.inertia)
            kmeans.cluster_centers_, kmeans.inertia_, kmeans.n_iter_ = best
            kmeans.labels_ = lloyd.labels(kmeans.cluster_centers_)
    finally:
        if own is not None:
            own.close()
    kmeans._n_features_out = kmeans.n_clusters
    kmeans.feature_names_in_ = np.array(source.features, dtype=object)
    kmeans.n_features_in_ = len(source.features)


def _place_points(
    executor: Executor, source: FileSampler, memory: int, folder: Path
) -> LloydOnBlocks:
    size = lloyd_blocks.BLOCK_ROWS
    ranges = source.row_ranges(size)
    if ranges:
        num_rows = sum(one.stop - one.start for block in ranges for one in block)
        if 8 * num_rows * len(source.features) <= memory:
            found = LloydOnBlocks.of_files(executor, source.number_reader, ranges)
        else:
            groups = source.row_ranges(size, by_group=True) or []
            found = LloydOnBlocks.of_large_files(executor, source.number_reader, groups, folder)
        source.count_pass()
        return found
    store = PointStore(memory, folder)
    pieces = (frame.to_numpy() for frame in source.number_blocks())
    for block in rebatch(pieces, size):
        store.add(block)
    return LloydOnBlocks.of_store(executor, store)


def _starts(kmeans: Any, source: FileSampler, size: int) -> list[Any]:
    if not isinstance(kmeans.init, str):
        return [kmeans._given(np.empty((0, len(source.features))))]
    rows = source.take(0, size).X
    seeds = check_random_state(kmeans.random_state).randint(
        np.iinfo(np.int32).max, size=kmeans.n_init
    )
    return [
        draw_centers(
            rows, kmeans.n_clusters, kmeans.init, np.random.RandomState(seed), np.ones(len(rows))
        )
        for seed in seeds
    ]
