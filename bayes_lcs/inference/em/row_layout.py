"""Compressed layout of rows for EM: exact, and chosen from the data.

Rows are compressed in three ways, none of which changes sums beyond rounding:

*columns* are merged into groups with few observed patterns (see the module `column_merging`), so
    that a row takes one look-up per group instead of one per column;
*common patterns* are left out if this saves enough: ``sum_g t_g(x_g)`` is the sum over the most
    common patterns of all groups, the same for every row, plus the differences of those groups in
    which the row has another pattern. For a web log these are a few of hundreds of items;
*equal rows* are merged into one with the sum of their weights, if this saves enough.

The result for a row is a list of *slots*: pattern numbers, over all groups, whose tables are added.
Rows are sorted by the number of their slots and divided into blocks, which are stored transposed:
row ``j`` of the array ``slots`` holds the j-th slots of all rows of a block. A block has as many
rows of ``slots`` as its longest list; shorter lists are padded with a slot that adds nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayes_lcs.core.schema import Schema
from bayes_lcs.data.rows.encoded_rows import EncodedColumns
from bayes_lcs.inference.em.column_merging import PatternGroup, group_columns
from bayes_lcs.runtime.memory import human_bytes

__all__ = ["Choice", "Chunk", "RowLayout", "lay_out_rows"]

Choice = Literal["auto", True, False]

MAX_PATTERNS = 512
BLOCK_ROWS = 2048
CHUNK_SLOTS = 128
"""Rows of ``slots`` per call of the compiled program: 2 ** 18 look-ups, some milliseconds."""

CHUNK_BLOCKS = 32
"""Maximum number of blocks of a chunk, whose sums are in float32 in mixed precision."""

MIN_CHUNK_SLOTS = 4
"""Minimum number of rows of ``slots`` of a chunk: the step of the program's unrolled loop."""

MERGING_PAYS = 0.9
"""Equal rows are merged if at most this share of the rows remains."""

MAX_KEY_BITS = 24
"""Upper bits of row keys that are counted first, in at most 16 MiB."""

COMMON_PAYS = 0.7
"""Common patterns are left out if at most this share of the slots remains."""


class Chunk(NamedTuple):
    """Input of one call of the compiled program; all chunks of a layout have the same shape.

    Attributes
    ----------
    slots : (S, B)
        Pattern numbers.
    starts : (blocks + 1,)
        First row of ``slots`` of each block.
    weights : (blocks, B)
        Weight of each row; 0 for padding.
    num_blocks
        Number of blocks without padding.
    first_row
        Position of the first row in the order of the layout.
    """

    slots: NDArray
    starts: NDArray[np.int32]
    weights: NDArray[np.float64]
    num_blocks: int
    first_row: int


@dataclass(frozen=True)
class RowLayout:
    """Compressed layout of rows for EM, built by :func:`lay_out_rows`; its `repr` summarises it.

    Attributes
    ----------
    schema
        Numbers of values of the columns.
    groups
        Columns of each group.
    num_patterns
        Number of patterns of each group.
    chunks
        The rows.
    entry_pattern, entry_cell, entry_sign : (E,)
        The table of pattern ``p`` is the sum of ``sign * log theta[cell]`` over its entries.
    common_cells
        Cells in the base term of all rows: those of the most common patterns, or none.
    num_slots
        Length of the axis of patterns; the last slot adds nothing.
    order : (distinct rows,)
        The distinct row at each position of the layout.
    distinct : (N,), or None
        The distinct row of each row; None if no rows were merged.
    total_weight
        Sum of the weights of all rows.
    """

    schema: Schema
    num_rows: int
    num_distinct: int
    groups: tuple[tuple[int, ...], ...]
    num_patterns: tuple[int, ...]
    chunks: list[Chunk] = field(repr=False)
    entry_pattern: NDArray[np.int32] = field(repr=False)
    entry_cell: NDArray[np.int32] = field(repr=False)
    entry_sign: NDArray[np.float64] = field(repr=False)
    common_cells: NDArray[np.int64] = field(repr=False)
    num_slots: int
    slots_per_row: float
    order: NDArray[np.int64] = field(repr=False)
    distinct: NDArray[np.int64] | None = field(repr=False)
    total_weight: float

    @property
    def block_rows(self) -> int:
        """Number of rows of a block."""
        return int(self.chunks[0].slots.shape[1])

    @property
    def nbytes(self) -> int:
        """Bytes of the rows."""
        return sum(c.slots.nbytes + c.weights.nbytes + c.starts.nbytes for c in self.chunks)

    def __repr__(self) -> str:
        common = "common patterns left out" if len(self.common_cells) else "all patterns"
        return f"RowLayout({self}; {common}; {human_bytes(self.nbytes)})"

    def __str__(self) -> str:
        rows = f"{self.num_rows:,} rows"
        if self.distinct is not None:
            rows += f", {self.num_distinct:,} distinct"
        return (
            f"{rows}; {self.schema.num_features} columns in {len(self.groups)} groups of "
            f"{sum(self.num_patterns):,} patterns; {self.slots_per_row:.2f} look-ups a row"
        )

    def with_weights(self, weights: NDArray[np.float64]) -> RowLayout:
        """Return this layout with other weights ``(N,)`` of the rows."""
        chunks = _set_weights(self.chunks, self._sum_and_order(weights))
        return replace(self, chunks=chunks, total_weight=float(np.sum(weights)))

    def _sum_and_order(self, weights: NDArray[Any]) -> NDArray[Any]:
        if self.distinct is not None:
            weights = np.bincount(self.distinct, weights, minlength=self.num_distinct)
        return weights[self.order]


def lay_out_rows(
    table: EncodedColumns,
    weights: NDArray[Any] | None = None,
    *,
    merge_columns: bool = True,
    merge_rows: Choice = "auto",
    leave_out_common: Choice = "auto",
) -> RowLayout:
    """Build the layout of rows for EM.

    Parameters
    ----------
    table
        The rows.
    weights : (N,), or None
        Weights of the rows; 1 by default.
    merge_columns
        Whether columns are merged into groups.
    merge_rows, leave_out_common
        Whether equal rows are merged and common patterns left out; ``"auto"`` decides by the data.

    Examples
    --------
    >>> from bayes_lcs.data.rows.encoded_rows import DenseRows
    >>> codes = np.array([[0, 1], [1, 1], [0, 1], [0, 1]])
    >>> print(lay_out_rows(DenseRows(codes, (2, 2))))
    4 rows, 2 distinct; 2 columns in 1 groups of 2 patterns; 0.50 look-ups a row
    """
    schema = Schema(1, table.num_values)
    num_rows = table.num_rows
    limit = int(np.clip(num_rows // 16, 16, MAX_PATTERNS)) if merge_columns else 0
    groups = group_columns(table, limit)
    if weights is None:
        weights = np.ones(num_rows)
    codes = [group.codes for group in groups]
    distinct = None
    if merge_rows is not False and num_rows > 1:
        most = num_rows * (1.0 if merge_rows is True else MERGING_PAYS)
        merged = _find_equal_rows(codes, num_rows, most)
        if merged is not None:
            first, distinct = merged
            codes = [column[first] for column in codes]
            weights = np.bincount(distinct, weights, minlength=len(first))
    num_distinct = len(weights)

    sizes = np.array([len(group.patterns) for group in groups], np.int64)
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    common = _common_patterns(codes, sizes, weights, leave_out_common)
    order, starts, slots = _assign_slots(codes, offsets, common, num_distinct)
    entries = _entries(groups, schema, offsets, common)
    taken = float(sum((c != m).sum() for c, m in zip(codes, common, strict=True)))
    layout = RowLayout(
        schema=schema,
        num_rows=num_rows,
        num_distinct=num_distinct,
        groups=tuple(group.columns for group in groups),
        num_patterns=tuple(int(size) for size in sizes),
        chunks=_cut_into_chunks(slots, starts, int(offsets[-1])),
        entry_pattern=entries[0],
        entry_cell=entries[1],
        entry_sign=entries[2],
        common_cells=_common_cells(groups, schema, common),
        num_slots=_round_up(int(offsets[-1]) + 1),
        slots_per_row=taken / max(num_distinct, 1),
        order=order,
        distinct=distinct,
        total_weight=float(weights.sum()),
    )
    return _with_row_weights(layout, weights[order])


def _with_row_weights(layout: RowLayout, weights: NDArray[Any]) -> RowLayout:
    layout.chunks[:] = _set_weights(layout.chunks, weights)
    return layout


def _set_weights(chunks: list[Chunk], weights: NDArray[Any]) -> list[Chunk]:
    result = []
    for chunk in chunks:
        shape = chunk.weights.shape
        padded = np.zeros(shape[0] * shape[1])
        size = chunk.num_blocks * shape[1]
        part = weights[chunk.first_row : chunk.first_row + size]
        padded[: len(part)] = part
        result.append(chunk._replace(weights=padded.reshape(shape)))
    return result


def _find_equal_rows(
    codes: list[NDArray], num_rows: int, most: float
) -> tuple[NDArray, NDArray] | None:
    """Return the first of each set of equal rows, and the set of each row.

    Return None if there are more than ``most`` distinct rows.
    """
    rng = np.random.default_rng(0)
    # A random 64-bit hash of each row, column by column.
    key = np.zeros(num_rows, np.uint64)
    for column in codes:
        key *= np.uint64(0x9E3779B97F4A7C15)
        key += column.astype(np.uint64) * rng.integers(1, 2**63, dtype=np.uint64)
        key ^= key >> np.uint64(29)
    # Distinct upper bits give a lower bound of the number of keys, in a tenth of the time of a
    # sort.
    bits = min((16 * num_rows).bit_length(), MAX_KEY_BITS)
    occurs = np.zeros(1 << bits, dtype=bool)
    occurs[key >> np.uint64(64 - bits)] = True
    if np.count_nonzero(occurs) > most:
        return None
    _, first, kind = np.unique(key, return_index=True, return_inverse=True)
    # In the unlikely case that different rows share a key, nothing is merged.
    if len(first) > most or any((column[first][kind] != column).any() for column in codes):
        return None
    return first, kind


def _common_patterns(
    codes: list[NDArray], sizes: NDArray, weights: NDArray, choice: Choice
) -> list[int]:
    """Return the pattern of each group that is left out; -1 for none."""
    none = [-1] * len(codes)
    if choice is False or not len(weights):
        return none
    tallies = [np.bincount(c, minlength=s) for c, s in zip(codes, sizes, strict=True)]
    common = [int(tally.argmax()) for tally in tallies]
    left = sum(len(weights) - tally.max() for tally in tallies)
    pays = left <= COMMON_PAYS * len(weights) * len(codes)
    return common if choice is True or pays else none


def _assign_slots(
    codes: list[NDArray], offsets: NDArray, common: list[int], num_rows: int
) -> tuple[NDArray, NDArray, NDArray]:
    """Return the order of the rows, the first row of ``slots`` of each block, and ``slots``."""
    nothing = int(offsets[-1])
    dtype = np.uint16 if nothing < 2**16 else np.int32
    lengths = np.zeros(num_rows, np.int64)
    for column, left_out in zip(codes, common, strict=True):
        lengths += column != left_out
    even = num_rows == 0 or lengths.min() == lengths.max()
    order = np.arange(num_rows) if even else np.argsort(lengths, kind="stable")
    block = min(1 << max(num_rows - 1, 63).bit_length(), BLOCK_ROWS)
    num_blocks = max(-(-num_rows // block), 1)
    # Rows are sorted by length, so that the last row of a block is its longest.
    last = np.minimum(np.arange(1, num_blocks + 1) * block, num_rows) - 1
    widths = lengths[order][last] if num_rows else np.zeros(1, np.int64)
    starts = np.concatenate([[0], np.cumsum(widths)])
    slots = np.full((int(starts[-1]), block), nothing, dtype)
    place = np.empty(num_rows, np.int64)
    place[order] = np.arange(num_rows)
    row_of_slots = starts[place // block]
    lane = place % block
    for g, (column, left_out) in enumerate(zip(codes, common, strict=True)):
        rows = slice(None) if left_out < 0 else np.flatnonzero(column != left_out)
        slots[row_of_slots[rows], lane[rows]] = column[rows] + offsets[g]
        row_of_slots[rows] += 1
    return order, starts, slots


def _cut_into_chunks(slots: NDArray, starts: NDArray, nothing: int) -> list[Chunk]:
    """Divide blocks into chunks of equal shape."""
    num_blocks, block = len(starts) - 1, slots.shape[1]
    widest = int(np.diff(starts).max(initial=0))
    total = int(starts[-1])
    # An even number of chunks of similar size, so that two cores finish together.
    most = max(total / (2 * -(-total // (2 * CHUNK_SLOTS)) or 1), widest)
    bounds = [0]
    for b in range(num_blocks):
        if starts[b + 1] - starts[bounds[-1]] > most or b - bounds[-1] >= CHUNK_BLOCKS:
            bounds.append(b)
    bounds.append(num_blocks)
    height = max(int(starts[j] - starts[i]) for i, j in _pairs(bounds))
    height = _power_of_two(max(height, MIN_CHUNK_SLOTS))
    blocks = _power_of_two(max(j - i for i, j in _pairs(bounds)))
    chunks = []
    for i, j in _pairs(bounds):
        part = np.full((height, block), nothing, slots.dtype)
        part[: starts[j] - starts[i]] = slots[starts[i] : starts[j]]
        begin = np.full(blocks + 1, starts[j] - starts[i], np.int32)
        begin[: j - i + 1] = starts[i : j + 1] - starts[i]
        chunks.append(Chunk(part, begin, np.zeros((blocks, block)), j - i, i * block))
    return chunks


def _pairs(bounds: list[int]) -> list[tuple[int, int]]:
    return list(pairwise(bounds))


def _power_of_two(number: int) -> int:
    return 1 << max(number - 1, 0).bit_length()


def _round_up(number: int) -> int:
    """Round up to one of few lengths, so that tables of similar size share a compiled program."""
    return _power_of_two(number) if number <= 2048 else -(-number // 2048) * 2048


def _entries(
    groups: list[PatternGroup], schema: Schema, offsets: NDArray, common: list[int]
) -> tuple[NDArray, NDArray, NDArray]:
    """Return the cells of every pattern, or its differences from the common one, with signs."""
    none = schema.num_cells
    patterns, cells, signs = [], [], []
    for g, (group, left_out) in enumerate(zip(groups, common, strict=True)):
        first = schema.offsets[list(group.columns)]
        own = np.where(group.patterns >= 0, group.patterns + first, none)
        added = own < none
        if left_out >= 0:
            # Subtract the cells of the common pattern, which are in the base term of all rows.
            differs = own != own[left_out]
            base = np.broadcast_to(own[left_out], own.shape)
            subtracted = differs & (base < none)
            rows, columns = np.nonzero(subtracted)
            patterns.append(rows + offsets[g])
            cells.append(base[rows, columns])
            signs.append(np.full(len(rows), -1.0))
            added &= differs
        rows, columns = np.nonzero(added)
        patterns.append(rows + offsets[g])
        cells.append(own[rows, columns])
        signs.append(np.ones(len(rows)))
    size = sum(map(len, patterns))
    padding = _round_up(size) - size
    # Padding adds the row of zeros beyond the last cell to the padding slot.
    pattern = np.concatenate([*patterns, np.full(padding, offsets[-1])]).astype(np.int32)
    cell = np.concatenate([*cells, np.full(padding, none)]).astype(np.int32)
    return pattern, cell, np.concatenate([*signs, np.zeros(padding)])


def _common_cells(groups: list[PatternGroup], schema: Schema, common: list[int]) -> NDArray:
    cells = []
    for group, left_out in zip(groups, common, strict=True):
        if left_out >= 0:
            values = group.patterns[left_out]
            known = values >= 0
            cells.append((values + schema.offsets[list(group.columns)])[known])
    return np.concatenate([np.empty(0, np.int64), *cells]).astype(np.int64)
