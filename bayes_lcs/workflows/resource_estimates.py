"""What commands take: peak memory and disk, estimated from what is known before long work.

Every estimate is in bytes, above what the program takes once its libraries are imported (about 400
MiB). The constants are fitted to measured peaks, with a margin; ``docs/memory.md`` has both.
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
"""What XLA takes to compile annealing and samplers; less where it finds them compiled."""
SAMPLER = 500 * MIB
"""The same for one sampler alone."""
MOST_PAIRED = 200
"""Groups of which pairs are drawn."""
EM_PROGRAMS = 380 * MIB
"""The same for EM, with its tables of patterns."""
POOL = 256 * MIB
"""Rows of a file that are kept between samples; see ``memory=`` of `bayes_lcs.row_source`."""
GUIDE_BYTES = 1024.0
"""A group, on disk, of the draws that a guide is fitted to."""
PARQUET_ROWS = 1 << 16
"""Rows of a row group that are unpacked at a time."""
PARQUET_COLUMN = 24 * MIB
"""Pages and dictionaries of a column of text, the most; numbers take a quarter."""
WHOLE_PARQUET_CELLS = 1 << 25
"""Cells of a Parquet file that a scan may read at once; see `ParquetShards`."""
PAGES = 8 * MIB
"""Pages, pictures and small tables on disk."""


def _pieces(extent: Extent) -> float:
    """Reading in pieces, one after the other: of text, or rows of row groups of Parquet."""
    if extent.is_text:
        return 12.0 * extent.piece_bytes + 80.0 * extent.piece_cells
    rows = extent.piece_cells / max(extent.columns, 1)
    streamed = 3.5 * extent.piece_bytes * min(PARQUET_ROWS / max(rows, 1.0), 1.0)
    return min(3.5 * extent.piece_bytes, streamed + PARQUET_COLUMN * extent.columns)


def table_memory(extent: Extent) -> float:
    """All of a grouped table: pieces of text, and a code for each cell."""
    return 60.0 * MIB + min(_pieces(extent), 2.0 * extent.cell_bytes) + 24.0 * extent.cells


def partitions_memory(num_groups: int) -> float:
    """The sums over all partitions, and those for each number of clusters."""
    return 40.0 * MIB + 96.0 * 2.0 ** min(num_groups, 1000)  # no float is larger than 2^1024


def compare_memory(
    extent: Extent, num_groups: int, num_values: int, draws: int | None, predicts: bool
) -> float:
    """The four models on a table.

    Parameters
    ----------
    num_values
        Cells of the counts of a group: labels times values of all features.
    draws
        Of all chains together; None if the posterior is a sum over all partitions.
    predicts
        Whether there are rows to predict, for which prototypes are sampled.
    """
    paired = min(num_groups, MOST_PAIRED)
    need = table_memory(extent) + 64.0 * (num_groups * num_values + paired**2)
    if draws is None:
        return need + partitions_memory(num_groups) + predicts * SAMPLER
    return need + PROGRAMS + draws_memory(float(draws) * num_groups)


def cluster_memory(extent: Extent, num_clusters: int, rows: int) -> float:
    """Training on so many rows, the hold-out among them, and writing the cluster of every row."""
    held = max(min(POOL // 4, extent.cells), min(rows, extent.rows) * extent.columns)
    own = min(rows, extent.rows) * (4.0 * extent.columns + 1.0 * num_clusters)
    return EM_PROGRAMS + _pieces(extent) + 12.0 * held + own + MIB * num_clusters


def rows_that_fit(extent: Extent, num_clusters: int, free: float) -> int:
    """The most rows on which a mixture can be trained in so much memory."""
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
    """Parts read one after the other; each of several jobs is a program of its own.

    A Parquet file may have too few row groups to be read by parts: it is then read at once, if it
    is small enough.

    Learners are kept: of labels that nothing explains a tree is as large as its rows are many, and
    naive Bayes counts every value that a column has. Rows to predict lie in memory together.
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
    """All numbers, and once read as much again twice; or, of a stream, coresets of coresets."""
    need, numbers = 60.0 * MIB, 8.0 * extent.cells
    if stream:
        return need + _pieces(extent) + 8.0 * size * (extent.columns + 1) * 21
    return need + max(_pieces(extent) + numbers, 3.0 * numbers)


def reading_disk(extent: Extent) -> float:
    """What is kept of a table while it is read, so that it need not be read again."""
    return PAGES + 4.0 * extent.cells


def compare_disk(extent: Extent, num_groups: int, draws: int, sums: bool) -> float:
    """Draws, or sums over partitions, for checkpoints too; predictions of at most all rows."""
    subsets = 80.0 * 2.0**num_groups if sums else 0.0
    made = 3.0 * draws * (2 * num_groups + 80) + GUIDE_BYTES * num_groups
    return reading_disk(extent) + made + 2.0 * extent.cell_bytes + subsets


def cluster_disk(extent: Extent) -> float:
    """The input once more, with a cluster and its probability in each row; and rows as read.

    Rows and their clusters are kept on the way, of several samples the largest twice at most.
    """
    kept = 2.0 * (4.0 * extent.cells + 8.0 * extent.rows) + 10.0 * extent.rows
    return PAGES + extent.file_bytes + 30.0 * extent.rows + kept


def scan_disk(extent: Extent, learner: str, predicted: Extent | None) -> float:
    """The ensemble, in a checkpoint too, and the predicted rows."""
    kept = 60.0 * extent.cells if learner == "naive_bayes" else 130.0 * extent.rows
    rows = 0.0 if predicted is None else predicted.cell_bytes + 60.0 * predicted.rows
    return PAGES + kept + rows


def coreset_disk(extent: Extent, size: int, stream: bool) -> float:
    """Points as text; and in checkpoints a stream, or all numbers."""
    points = 20.0 * min(size, extent.rows) * (extent.columns + 1)
    return MIB + (points * 32 if stream else points * 2 + 8.0 * extent.cells)
