"""Estimates of the peak memory and disk space of the commands, made before long computations.

Estimates are in bytes, in addition to the program with its imported libraries (about 400 MiB). The
constants are fitted to measured peaks, with a margin; ``docs/memory.md`` has both.
"""

from __future__ import annotations

from bayes_lcs.inference.draw_posterior import draws_memory
from bayes_lcs.io.size_estimate import Extent
from bayes_lcs.runtime.memory import num_cores

__all__ = [
    "cluster_disk",
    "cluster_memory",
    "compare_disk",
    "compare_memory",
    "coreset_disk",
    "coreset_memory",
    "partitions_memory",
    "rows_that_fit",
    "scan_disk",
    "scan_memory",
    "table_memory",
]

MIB = 1 << 20

PROGRAMS = 1200 * MIB
"""Memory of XLA to compile annealing and samplers; less if they are in the compilation cache."""
SAMPLER = 500 * MIB
"""Memory of XLA to compile one sampler."""
MAX_PAIRED_GROUPS = 200
"""Maximum number of groups for which all pairs are drawn."""
EM_PROGRAMS = 380 * MIB
"""Memory of XLA to compile EM, with its row layout."""
POOL = 256 * MIB
"""Rows of a file that are kept between samples; see ``memory=`` of `bayes_lcs.row_source`."""
BASE_BYTES_PER_GROUP = 1024.0
"""Disk space per group of the draws to which a mean-field base is fitted."""
PARQUET_ROWS = 1 << 16
"""Rows of a row group that are decoded at a time."""
PARQUET_COLUMN = 24 * MIB
"""Maximum size of pages and dictionaries of a text column; numbers take a quarter."""
WHOLE_PARQUET_CELLS = 1 << 25
"""Cells of a Parquet file that a scan may read at once; see `ParquetShards`."""
PAGES = 8 * MIB
"""Disk space of pages, figures and small tables."""


def _reading_memory(extent: Extent) -> float:
    """Return the memory to read a text file in chunks, or a Parquet file by row groups."""
    if extent.is_text:
        return 12.0 * extent.piece_bytes + 80.0 * extent.piece_cells
    rows = extent.piece_cells / max(extent.columns, 1)
    streamed = 3.5 * extent.piece_bytes * min(PARQUET_ROWS / max(rows, 1.0), 1.0)
    return min(3.5 * extent.piece_bytes, streamed + PARQUET_COLUMN * extent.columns)


def table_memory(extent: Extent) -> float:
    """Return the memory to read a grouped table: chunks of text, and a code for each cell."""
    return 60.0 * MIB + min(_reading_memory(extent), 2.0 * extent.cell_bytes) + 24.0 * extent.cells


def partitions_memory(num_groups: int) -> float:
    """Return the memory of the sums over all partitions, in total and by number of clusters."""
    return 40.0 * MIB + 96.0 * 2.0 ** min(num_groups, 1000)  # no float is larger than 2^1024


def compare_memory(
    extent: Extent, num_groups: int, num_values: int, draws: int | None, predicts: bool
) -> float:
    """Return the memory to compare the four models on a table.

    Parameters
    ----------
    num_values
        Number of counts per group: labels times values of all features.
    draws
        Draws of all chains together; None if the posterior is a sum over all partitions.
    predicts
        True if there are rows to predict, for which prototypes are sampled.
    """
    paired = min(num_groups, MAX_PAIRED_GROUPS)
    need = table_memory(extent) + 64.0 * (num_groups * num_values + paired**2)
    if draws is None:
        return need + partitions_memory(num_groups) + predicts * SAMPLER
    return need + PROGRAMS + draws_memory(float(draws) * num_groups)


def cluster_memory(extent: Extent, num_clusters: int, rows: int) -> float:
    """Return the memory to train on ``rows`` with the hold-out, and to assign all rows."""
    held = max(min(POOL // 4, extent.cells), min(rows, extent.rows) * extent.columns)
    own = min(rows, extent.rows) * (4.0 * extent.columns + 1.0 * num_clusters)
    return EM_PROGRAMS + _reading_memory(extent) + 12.0 * held + own + MIB * num_clusters


def rows_that_fit(extent: Extent, num_clusters: int, free: float) -> int:
    """Return the maximum number of rows on which a mixture can be trained in ``free`` bytes."""
    low, high = 0, extent.rows
    while low < high:
        middle = (low + high + 1) // 2
        if cluster_memory(extent, num_clusters, middle) <= free:
            low = middle
        else:
            high = middle - 1
    return low


def scan_memory(
    extent: Extent, num_parts: int, jobs: int, learner: str, predicted: Extent | None
) -> float:
    """Return the memory of a partial scan; each of several jobs is a process of its own.

    A Parquet file with too few row groups for its parts is read at once if it is small enough.

    All learners are kept: for unpredictable labels the size of a tree grows with its number of
    rows, and naive Bayes counts every value of a column. Rows to predict are in memory together.
    """
    workers = jobs if jobs > 0 else num_cores()
    pieces = min(extent.cell_bytes / 8, 16.0 * MIB) if extent.is_text else 1.7 * extent.piece_bytes
    is_whole = not extent.is_text and extent.cells <= WHOLE_PARQUET_CELLS
    part = (extent.cell_bytes + 40.0 * extent.cells) / (1 if is_whole else num_parts)
    programs = 250.0 * MIB * workers if workers > 1 else 0.0
    kept = 100.0 * extent.cells if learner == "naive_bayes" else 160.0 * extent.rows
    rows = 0.0 if predicted is None else 140.0 * predicted.cells + 300.0 * predicted.rows
    return 64.0 * MIB + pieces + part * (1 + workers) + kept + rows + programs


def coreset_memory(extent: Extent, size: int, stream: bool) -> float:
    """Return the memory of a coreset: three copies of all numbers, or the tree of a stream."""
    need, numbers = 60.0 * MIB, 8.0 * extent.cells
    if stream:
        return need + _reading_memory(extent) + 8.0 * size * (extent.columns + 1) * 21
    return need + max(_reading_memory(extent) + numbers, 3.0 * numbers)


def reading_disk(extent: Extent) -> float:
    """Return the disk space of the checkpoint of a table that is being read."""
    return PAGES + 4.0 * extent.cells


def compare_disk(extent: Extent, num_groups: int, draws: int, sums: bool) -> float:
    """Return the disk space of draws or sums over partitions, checkpoints and predictions."""
    subsets = 80.0 * 2.0**num_groups if sums else 0.0
    made = 3.0 * draws * (2 * num_groups + 80) + BASE_BYTES_PER_GROUP * num_groups
    return reading_disk(extent) + made + 2.0 * extent.cell_bytes + subsets


def cluster_disk(extent: Extent) -> float:
    """Return the disk space of the input with assigned clusters, and of checkpoints.

    Checkpoints hold the encoded rows and their clusters, at most the largest sample twice.
    """
    kept = 2.0 * (4.0 * extent.cells + 8.0 * extent.rows) + 10.0 * extent.rows
    return PAGES + extent.file_bytes + 30.0 * extent.rows + kept


def scan_disk(extent: Extent, learner: str, predicted: Extent | None) -> float:
    """Return the disk space of the ensemble, its checkpoint, and the predicted rows."""
    kept = 60.0 * extent.cells if learner == "naive_bayes" else 130.0 * extent.rows
    rows = 0.0 if predicted is None else predicted.cell_bytes + 60.0 * predicted.rows
    return PAGES + kept + rows


def coreset_disk(extent: Extent, size: int, stream: bool) -> float:
    """Return the disk space of the points as text, and of checkpoints of the stream or numbers."""
    points = 20.0 * min(size, extent.rows) * (extent.columns + 1)
    return MIB + (points * 32 if stream else points * 2 + 8.0 * extent.cells)
