"""Merge columns into groups with few observed patterns of values.

The factors of a product over columns can be multiplied once for every pattern that occurs in some
columns, instead of once for every row. Nothing is approximated. The choice of columns only affects
the number of groups: dependent columns have fewer joint patterns, so that more fit into a group.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayes_lcs.data.rows.encoded_rows import EncodedColumns

__all__ = ["PatternGroup", "group_columns"]

SAMPLE_ROWS = 4096
"""Number of rows used to choose which columns to merge."""

MAX_COMPARED_COLUMNS = 160
"""With more columns than this, columns are merged in the order of their numbers of ones."""

FAILURES = 6
"""Number of columns that may fail to fit before a group is closed."""


class PatternGroup(NamedTuple):
    """Some columns and the patterns that occur in them.

    Attributes
    ----------
    columns
        The columns.
    patterns : (P, len(columns))
        Codes of each pattern; -1 is missing.
    codes : (N,)
        The pattern of each row.
    """

    columns: tuple[int, ...]
    patterns: NDArray[np.int64]
    codes: NDArray[np.int32]


class _Group:
    """A group that grows column by column."""

    def __init__(self, table: EncodedColumns) -> None:
        self.table = table
        self.columns: list[int] = []
        self.codes = np.zeros(table.num_rows, np.int32)
        self.patterns = np.zeros((1, 0), np.int64)

    def add(self, column: int, limit: int) -> bool:
        """Add a column and return True, unless the group would have more than ``limit`` patterns.

        The first column is always added.
        """
        ones = self.table.ones(column)
        if ones is not None:
            return self._add_ones(column, ones, limit)
        digits, base = _nonnegative_codes(self.table, column)
        # Mixed-radix code of the joint pattern, then renumbered to those that occur.
        mixed = self.codes.astype(np.int64) * base + digits
        observed = np.flatnonzero(np.bincount(mixed, minlength=1))
        if self.columns and len(observed) > limit:
            return False
        recode = np.zeros(len(self.patterns) * base, np.int32)
        recode[observed] = np.arange(len(observed))
        self.codes = recode[mixed]
        value = observed % base
        value = np.where(value == self.table.num_values[column], -1, value)
        self.patterns = np.column_stack([self.patterns[observed // base], value])
        self.columns.append(column)
        return True

    def _add_ones(self, column: int, ones: NDArray, limit: int) -> bool:
        """Add a sparse column, visiting only the rows with a one."""
        # Rows with a one get new patterns; the old ones now include a zero in this column.
        old, place = np.unique(self.codes[ones], return_inverse=True)
        size = len(self.patterns)
        if self.columns and size + len(old) > limit:
            return False
        self.codes[ones] = size + place
        zeros = np.column_stack([self.patterns, np.zeros(size, np.int64)])
        more = np.column_stack([self.patterns[old], np.ones(len(old), np.int64)])
        self.patterns = np.vstack([zeros, more])
        self.columns.append(column)
        return True

    def to_pattern_group(self) -> PatternGroup:
        return PatternGroup(tuple(self.columns), self.patterns, self.codes)


def _nonnegative_codes(table: EncodedColumns, column: int) -> tuple[NDArray, int]:
    """Return the codes of a column with missing as an additional value, and their number."""
    codes = table.column(column)
    size = table.num_values[column]
    missing = codes < 0
    return (np.where(missing, size, codes), size + 1) if missing.any() else (codes, size)


def group_columns(table: EncodedColumns, limit: int) -> list[PatternGroup]:
    """Merge all columns into groups of at most ``limit`` patterns; a column with more is alone.

    Examples
    --------
    >>> from bayes_lcs.data.rows.encoded_rows import DenseRows
    >>> codes = np.array([[0, 0, 0], [1, 1, 0], [0, 0, 1], [1, 1, 1]])
    >>> [group.columns for group in group_columns(DenseRows(codes, (2, 2, 2)), limit=2)]
    [(0, 1), (2,)]
    """
    width = len(table.num_values)
    sparse = [table.ones(column) for column in range(width)]
    if width > MAX_COMPARED_COLUMNS or any(ones is not None for ones in sparse):
        # Columns with many ones first: grouped together, they cost a row one look-up.
        sizes = [np.inf if ones is None else len(ones) for ones in sparse]
        return _group_in_order(table, sorted(range(width), key=lambda f: -sizes[f]), limit)
    return _group_by_similarity(table, limit)


def _group_in_order(table: EncodedColumns, order: list[int], limit: int) -> list[PatternGroup]:
    groups: list[PatternGroup] = []
    group = _Group(table)
    for column in order:
        if not group.add(column, limit):
            groups.append(group.to_pattern_group())
            group = _Group(table)
            group.add(column, limit)
    return [*groups, group.to_pattern_group()] if group.columns else groups


def _group_by_similarity(table: EncodedColumns, limit: int) -> list[PatternGroup]:
    """Merge greedily, from the column with most values, by the smallest relative growth."""
    step = max(table.num_rows // SAMPLE_ROWS, 1)
    width = len(table.num_values)
    # Codes plus one, so that missing is 0.
    sample = [table.column(f)[::step].astype(np.int64) + 1 for f in range(width)]
    groups: list[PatternGroup] = []
    left = sorted(range(width), key=lambda f: (-table.num_values[f], f))
    while left:
        group = _Group(table)
        group.add(left.pop(0), limit)
        failures = 0
        candidates = list(left)
        while candidates and failures < FAILURES:
            codes = group.codes[::step].astype(np.int64)
            sizes = {f: _num_patterns(codes, sample[f], table.num_values[f]) for f in candidates}
            candidates = [f for f in candidates if sizes[f] <= limit]
            if not candidates:
                break
            now = len(np.unique(codes))
            growth = {f: _relative_growth(sizes[f] / now, table.num_values[f]) for f in candidates}
            best = min(candidates, key=lambda f: (growth[f], f))
            candidates.remove(best)
            if group.add(best, limit):
                left.remove(best)
            else:
                failures += 1
        groups.append(group.to_pattern_group())
    return groups


def _num_patterns(codes: NDArray, digits: NDArray, size: int) -> int:
    return int(np.count_nonzero(np.bincount(codes * (size + 1) + digits)))


def _relative_growth(factor: float, size: int) -> float:
    """Return the growth in patterns relative to its maximum for the column; between 0 and 1."""
    return float(np.log(factor) / np.log(size)) if size > 1 else 0.0
