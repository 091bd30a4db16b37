"""How the rows of a table are laid out for EM: exact, and chosen from the data.

Three things are done to the rows, none of which changes a sum by more than rounding:

*columns* are merged into groups of few observed patterns (see the module `column_merging`), so
    that a row is one look-up a group in place of one a column;
*common patterns* are left out where this pays: ``sum_g t_g(x_g)`` is the sum over all groups' most
    common patterns, the same for every row, plus the differences of those groups in which the
    row is not common. For a web log that is a few of hundreds of items;
*equal rows* become one with the sum of their weights, where this pays.

What is left of a row is a list of *slots*: numbers of patterns, over all groups, whose tables are
added up. Rows are ordered by the number of their slots and cut into blocks, whose rows lie side by
side: row ``j`` of the array ``slots`` holds the j-th slots of all rows of a block. A block is as
many rows of ``slots`` as its longest list; shorter lists end in a slot that adds nothing.
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

__all__ = ["Choice", "Chunk", "PatternPlan", "plan_rows"]

Choice = Literal["auto", True, False]

MOST_PATTERNS = 512
BLOCK_ROWS = 2048
CHUNK_SLOTS = 128
"""Rows of ``slots`` handed to the compiled program at once: 2 ** 18 look-ups, some milliseconds."""

CHUNK_BLOCKS = 32
"""A chunk has at most so many blocks: in mixed precision its sums are in float32."""

LEAST_SLOTS = 4
"""A chunk has at least as many rows of ``slots`` as the program takes at once."""

MERGING_PAYS = 0.9
"""Equal rows are merged if this share of the rows, or less, is left."""

MOST_KEY_BITS = 24
"""Kinds of rows are first counted in no more than 16 MiB."""

COMMON_PAYS = 0.7
"""Common patterns are left out if this share of the slots, or less, is left."""


class Chunk(NamedTuple):
    """What the compiled program works on at once; all chunks of a plan have the same shape.

    Attributes
    ----------
    slots : (S, B)
        Numbers of patterns.
    starts : (blocks + 1,)
        First row of ``slots`` of each block.
    weights : (blocks, B)
        Weight of each row; 0 where there is none.
    num_blocks
        How many of the blocks there are.
    first_row
        Place of the first row in the order of the plan.
    """

    slots: NDArray
    starts: NDArray[np.int32]
    weights: NDArray[np.float64]
    num_blocks: int
    first_row: int


@dataclass(frozen=True)
class PatternPlan:
    """Rows laid out for EM; made by :func:`plan_rows`. Its `repr` says what was chosen.

    Attributes
    ----------
    schema
        Numbers of values.
    groups
        The columns of each group.
    num_patterns
        Number of patterns of each group.
    chunks
        The rows.
    entry_pattern, entry_cell, entry_sign : (E,)
        The table of pattern ``p`` is the sum of ``sign * log theta[cell]`` over its entries.
    common_cells
        Cells that every row is given in advance: those of the most common patterns, or none.
    num_slots
        Length of the axis of patterns; the last slot adds nothing.
    order : (distinct rows,)
        The distinct row at each place of the plan.
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
        """Rows of a block."""
        return int(self.chunks[0].slots.shape[1])

    @property
    def nbytes(self) -> int:
        """Memory that the rows take."""
        return sum(c.slots.nbytes + c.weights.nbytes + c.starts.nbytes for c in self.chunks)

    def __repr__(self) -> str:
        common = "common patterns left out" if len(self.common_cells) else "all patterns"
        return f"PatternPlan({self}; {common}; {human_bytes(self.nbytes)})"

    def __str__(self) -> str:
        rows = f"{self.num_rows:,} rows"
        if self.distinct is not None:
            rows += f", {self.num_distinct:,} distinct"
        return (
            f"{rows}; {self.schema.num_features} columns in {len(self.groups)} groups of "
            f"{sum(self.num_patterns):,} patterns; {self.slots_per_row:.2f} look-ups a row"
        )

    def with_weights(self, weights: NDArray[np.float64]) -> PatternPlan:
        """The same rows with other weights ``(N,)``, without laying them out again."""
        chunks = _weighted(self.chunks, self._places(weights))
        return replace(self, chunks=chunks, total_weight=float(np.sum(weights)))

    def _places(self, weights: NDArray[Any]) -> NDArray[Any]:
        if self.distinct is not None:
            weights = np.bincount(self.distinct, weights, minlength=self.num_distinct)
        return weights[self.order]


def plan_rows(
    table: EncodedColumns,
    weights: NDArray[Any] | None = None,
    *,
    merge_columns: bool = True,
    merge_rows: Choice = "auto",
    leave_out_common: Choice = "auto",
) -> PatternPlan:
    """Lay rows out for EM.

    Parameters
    ----------
    table
        The rows.
    weights : (N,), or None
        Their weights; 1 by default.
    merge_columns
        Whether columns are merged into groups.
    merge_rows, leave_out_common
        Whether equal rows are merged and common patterns left out; ``"auto"`` does what pays.

    Examples
    --------
    >>> from bayes_lcs.data.rows.encoded_rows import DenseRows
    >>> codes = np.array([[0, 1], [1, 1], [0, 1], [0, 1]])
    >>> print(plan_rows(DenseRows(codes, (2, 2))))
    4 rows, 2 distinct; 2 columns in 1 groups of 2 patterns; 0.50 look-ups a row
    """
    schema = Schema(1, table.num_values)
    num_rows = table.num_rows
    limit = int(np.clip(num_rows // 16, 16, MOST_PATTERNS)) if merge_columns else 0
    groups = group_columns(table, limit)
    if weights is None:
        weights = np.ones(num_rows)
    codes = [group.codes for group in groups]
    distinct = None
    if merge_rows is not False and num_rows > 1:
        most = num_rows * (1.0 if merge_rows is True else MERGING_PAYS)
        merged = _equal_rows(codes, num_rows, most)
        if merged is not None:
            first, distinct = merged
            codes = [column[first] for column in codes]
            weights = np.bincount(distinct, weights, minlength=len(first))
    num_distinct = len(weights)

    sizes = np.array([len(group.patterns) for group in groups], np.int64)
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    common = _common_patterns(codes, sizes, weights, leave_out_common)
    order, starts, slots = _lay_out(codes, offsets, common, num_distinct)
    entries = _entries(groups, schema, offsets, common)
    taken = float(sum((c != m).sum() for c, m in zip(codes, common, strict=True)))
    plan = PatternPlan(
        schema=schema,
        num_rows=num_rows,
        num_distinct=num_distinct,
        groups=tuple(group.columns for group in groups),
        num_patterns=tuple(int(size) for size in sizes),
        chunks=_cut(slots, starts, int(offsets[-1])),
        entry_pattern=entries[0],
        entry_cell=entries[1],
        entry_sign=entries[2],
        common_cells=_common_cells(groups, schema, common),
        num_slots=_rounded(int(offsets[-1]) + 1),
        slots_per_row=taken / max(num_distinct, 1),
        order=order,
        distinct=distinct,
        total_weight=float(weights.sum()),
    )
    return _with_place_weights(plan, weights[order])


def _with_place_weights(plan: PatternPlan, weights: NDArray[Any]) -> PatternPlan:
    plan.chunks[:] = _weighted(plan.chunks, weights)
    return plan


def _weighted(chunks: list[Chunk], weights: NDArray[Any]) -> list[Chunk]:
    result = []
    for chunk in chunks:
        shape = chunk.weights.shape
        padded = np.zeros(shape[0] * shape[1])
        size = chunk.num_blocks * shape[1]
        part = weights[chunk.first_row : chunk.first_row + size]
        padded[: len(part)] = part
        result.append(chunk._replace(weights=padded.reshape(shape)))
    return result


def _equal_rows(codes: list[NDArray], num_rows: int, most: float) -> tuple[NDArray, NDArray] | None:
    """The first row of each kind, and the kind of each row; None if there are too many kinds."""
    rng = np.random.default_rng(0)
    key = np.zeros(num_rows, np.uint64)
    for column in codes:
        key *= np.uint64(0x9E3779B97F4A7C15)
        key += column.astype(np.uint64) * rng.integers(1, 2**63, dtype=np.uint64)
        key ^= key >> np.uint64(29)
    # Different upper bits are different keys. To look at them first takes a tenth of sorting keys.
    bits = min((16 * num_rows).bit_length(), MOST_KEY_BITS)
    is_met = np.zeros(1 << bits, dtype=bool)
    is_met[key >> np.uint64(64 - bits)] = True
    if np.count_nonzero(is_met) > most:
        return None
    _, first, kind = np.unique(key, return_index=True, return_inverse=True)
    # Two kinds may share a key, if seldom: then nothing is merged.
    if len(first) > most or any((column[first][kind] != column).any() for column in codes):
        return None
    return first, kind


def _common_patterns(
    codes: list[NDArray], sizes: NDArray, weights: NDArray, choice: Choice
) -> list[int]:
    """The pattern of each group that is left out; -1 for none."""
    none = [-1] * len(codes)
    if choice is False or not len(weights):
        return none
    tallies = [np.bincount(c, minlength=s) for c, s in zip(codes, sizes, strict=True)]
    common = [int(tally.argmax()) for tally in tallies]
    left = sum(len(weights) - tally.max() for tally in tallies)
    pays = left <= COMMON_PAYS * len(weights) * len(codes)
    return common if choice is True or pays else none


def _lay_out(
    codes: list[NDArray], offsets: NDArray, common: list[int], num_rows: int
) -> tuple[NDArray, NDArray, NDArray]:
    """Order of the rows, first row of ``slots`` of each block, and ``slots``."""
    nothing = int(offsets[-1])
    dtype = np.uint16 if nothing < 2**16 else np.int32
    lengths = np.zeros(num_rows, np.int64)
    for column, left_out in zip(codes, common, strict=True):
        lengths += column != left_out
    even = num_rows == 0 or lengths.min() == lengths.max()
    order = np.arange(num_rows) if even else np.argsort(lengths, kind="stable")
    block = min(1 << max(num_rows - 1, 63).bit_length(), BLOCK_ROWS)
    num_blocks = max(-(-num_rows // block), 1)
    # Rows are ordered by length, so that the last one of a block is its longest.
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


def _cut(slots: NDArray, starts: NDArray, nothing: int) -> list[Chunk]:
    """Blocks in chunks of one shape."""
    num_blocks, block = len(starts) - 1, slots.shape[1]
    widest = int(np.diff(starts).max(initial=0))
    total = int(starts[-1])
    # An even number of chunks of nearly one size, lest one core wait for the other.
    most = max(total / (2 * -(-total // (2 * CHUNK_SLOTS)) or 1), widest)
    bounds = [0]
    for b in range(num_blocks):
        if starts[b + 1] - starts[bounds[-1]] > most or b - bounds[-1] >= CHUNK_BLOCKS:
            bounds.append(b)
    bounds.append(num_blocks)
    height = max(int(starts[j] - starts[i]) for i, j in _pairs(bounds))
    height = _power_of_two(max(height, LEAST_SLOTS))
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


def _rounded(number: int) -> int:
    """Few different lengths, so that tables of nearly one size share a compiled program."""
    return _power_of_two(number) if number <= 2048 else -(-number // 2048) * 2048


def _entries(
    groups: list[PatternGroup], schema: Schema, offsets: NDArray, common: list[int]
) -> tuple[NDArray, NDArray, NDArray]:
    """Cells of every pattern, or what distinguishes it from the common one, with signs."""
    none = schema.num_cells
    patterns, cells, signs = [], [], []
    for g, (group, left_out) in enumerate(zip(groups, common, strict=True)):
        first = schema.offsets[list(group.columns)]
        own = np.where(group.patterns >= 0, group.patterns + first, none)
        kept = own < none
        if left_out >= 0:
            differs = own != own[left_out]
            base = np.broadcast_to(own[left_out], own.shape)
            lost = differs & (base < none)
            rows, columns = np.nonzero(lost)
            patterns.append(rows + offsets[g])
            cells.append(base[rows, columns])
            signs.append(np.full(len(rows), -1.0))
            kept &= differs
        rows, columns = np.nonzero(kept)
        patterns.append(rows + offsets[g])
        cells.append(own[rows, columns])
        signs.append(np.ones(len(rows)))
    size = sum(map(len, patterns))
    padding = _rounded(size) - size
    # Padding adds nothing: a cell that does not exist, to the slot that adds nothing.
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
