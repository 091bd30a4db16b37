"""Points of files for out-of-core k-means: read by the workers, or stored in batches."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from os import PathLike
from pathlib import Path
from typing import Any

from bayes_lcs.clustering.kmeans import lloyd as lloyd_blocks
from bayes_lcs.clustering.kmeans.lloyd import DistributedLloyd
from bayes_lcs.clustering.kmeans.point_store import PointStore
from bayes_lcs.io.rebatch import rebatch
from bayes_lcs.io.sampler import FileSampler
from bayes_lcs.runtime.executors.local import LocalExecutor
from bayes_lcs.runtime.executors.protocol import Executor
from bayes_lcs.runtime.memory import num_cores
from bayes_lcs.runtime.tempdir import temporary_folder

__all__ = ["place_files"]


@contextmanager
def place_files(
    source: FileSampler,
    memory: int,
    folder: str | PathLike[str] | None,
    executor: Executor | None,
) -> Iterator[DistributedLloyd]:
    """Place the points of files on an executor, and release them at the end."""
    with temporary_folder(folder) as scratch:
        # One thread more than cores: one of them may wait for the disk.
        own: Any = LocalExecutor(num_cores() + 1) if executor is None else None
        try:
            with closing(_place(executor or own, source, memory, scratch)) as lloyd:
                yield lloyd
        finally:
            if own is not None:
                own.close()


def _place(executor: Executor, source: FileSampler, memory: int, folder: Path) -> DistributedLloyd:
    size = lloyd_blocks.BLOCK_ROWS
    ranges = source.row_ranges(size)
    if ranges:
        num_rows = sum(one.stop - one.start for batch in ranges for one in batch)
        if 8 * num_rows * len(source.features) <= memory:
            lloyd = DistributedLloyd.from_files(executor, source.number_reader, ranges)
        else:
            groups = source.row_ranges(size, by_group=True) or []
            lloyd = DistributedLloyd.from_files_on_disk(
                executor, source.number_reader, groups, folder
            )
        source.count_pass()
        return lloyd
    store = PointStore(memory, folder)
    for batch in rebatch((frame.to_numpy() for frame in source.number_blocks()), size):
        store.add(batch)
    return DistributedLloyd.from_store(executor, store)
