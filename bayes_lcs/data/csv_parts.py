"""A text table in parts of about equally many bytes."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Generator
from typing import Any

from bayes_lcs.data.counted_file import ReadCount
from bayes_lcs.data.csv_pieces import CsvFormat, CsvPieces, Piece

__all__ = ["CsvParts", "even_sizes"]

_SMALL = 1 << 16
"""A file of no more bytes than this is read at once."""

_LEAST_BLOCK, _MOST_BLOCK = 1 << 12, 1 << 20
_END = sys.maxsize


class CsvParts:
    """The rows of a text table in consecutive parts, each read when it is asked for.

    A part ends where its share of the bytes does. Nobody knows how many rows are left in the
    rest of the file, so as many rows as there are parts to come are always read in advance, and
    no part is ever empty. A file whose end is seen that way is cut by rows instead.

    Parameters
    ----------
    form
        The file and how to read it.
    num_parts
        Number of parts.
    rows_per_part
        Number of rows in the first part; the bytes it takes then tell the number of parts.
    """

    is_shuffled = False
    num_rows = None

    def __init__(self, form: CsvFormat, num_parts: int, rows_per_part: int | None) -> None:
        self._form = form
        self._rows_per_part = rows_per_part
        self._size = form.path.stat().st_size
        self._block = min(max(self._size // (8 * num_parts), _LEAST_BLOCK), _MOST_BLOCK)
        self.num_parts = num_parts if rows_per_part is None else 0

    def read(self, count: ReadCount) -> Generator[tuple[int, int, Any]]:
        """Number, first row and Arrow table of each part."""
        with CsvPieces(self._form, count, self._block) as pieces:
            pool = _Pool(pieces, _END if self._size <= _SMALL else self._block)
            goals, sizes = self._plan(pool)
            row = 0
            for number, goal in enumerate(goals):
                later = len(goals) - 1 - number
                pool.fill(goal, later)
                if number < len(sizes):
                    size = sizes[number]
                else:
                    size = min(max(pool.rows_before(goal), 1), pool.num_rows - later)
                yield number, row, pool.take(size)
                row += size

    def _plan(self, pool: _Pool) -> tuple[list[int], list[int]]:
        """The bytes at which parts end, and the sizes of the parts for which they are known."""
        first = self._rows_per_part
        if first is None:
            goals = [(j + 1) * self._size // self.num_parts for j in range(self.num_parts - 1)]
        else:
            goals = self._plan_by_first(pool, first)
        goals.append(_END)
        pool.fill(goals[0], len(goals) - 1)
        if pool.num_rows < len(goals):
            raise self._too_few(pool.num_rows, len(goals))
        self.num_parts = len(goals)
        head = [] if first is None or len(goals) == 1 else [first]
        if not pool.at_end:
            return goals, head
        return goals, head + even_sizes(pool.num_rows - sum(head), len(goals) - len(head))

    def _plan_by_first(self, pool: _Pool, rows: int) -> list[int]:
        pool.fill_rows(rows)
        if pool.num_rows <= rows:
            return []
        place = max(pool.place_after(rows), 1)
        num_parts = max(round(self._size / place), 1)
        pool.fill(place, num_parts - 1)
        later = min(num_parts, pool.num_rows - rows + 1) - 1
        return [place + (self._size - place) * j // max(later, 1) for j in range(later)]

    def _too_few(self, num_rows: int, num_parts: int) -> Exception:
        source = self._form.source
        if not num_rows:
            only = ", only a header" if self._form.has_header else ""
            return source.error(f"there are no rows{only}")
        return source.error(
            f"there are only {num_rows} rows, too few for {num_parts} parts; ask for "
            f"{num_rows} parts or fewer"
        )


class _Pool:
    """Rows that were read and not yet given away.

    ``block`` is the number of bytes that are read beyond what is asked for.
    """

    def __init__(self, pieces: CsvPieces, block: int) -> None:
        self._pieces = pieces
        self._block = block
        self._held: deque[Piece] = deque()
        self.num_rows = 0

    @property
    def at_end(self) -> bool:
        return self._pieces.at_end

    def fill(self, goal: int, later: int) -> None:
        """Read up to a byte, and on until there is a row before and ``later`` rows after it."""
        while not self.at_end and (
            self._pieces.position < goal or self.num_rows < max(self.rows_before(goal), 1) + later
        ):
            self._read(max(goal, self._pieces.position) + self._block)

    def fill_rows(self, rows: int) -> None:
        """Read until there are so many rows, about as many bytes as that takes."""
        while not self.at_end and self.num_rows < rows:
            position = self._pieces.position
            lacking = (rows - self.num_rows) * position // max(self.num_rows, 1)
            self._read(position + max(lacking if self.num_rows else 0, self._block))

    def _read(self, goal: int) -> None:
        piece = self._pieces.read(goal)
        self._held.append(piece)
        self.num_rows += piece.table.num_rows

    def rows_before(self, place: int) -> int:
        """How many rows end before a byte of the file."""
        return sum(piece.rows_before(place) for piece in self._held)

    def place_after(self, rows: int) -> int:
        """The byte of the file at which so many rows end."""
        for piece in self._held:
            if rows <= piece.table.num_rows:
                return piece.place_after(rows)
            rows -= piece.table.num_rows
        return self._pieces.position

    def take(self, rows: int) -> Any:
        """Give away the first rows, as one Arrow table."""
        import pyarrow as pa

        tables = []
        self.num_rows -= rows
        while True:
            piece = self._held.popleft()
            size = piece.table.num_rows
            if size > rows:
                self._held.appendleft(piece.after(rows))
            tables.append(piece.table.slice(0, rows))
            rows -= min(size, rows)
            if not rows:
                return pa.concat_tables(tables)


def even_sizes(rows: int, parts: int) -> list[int]:
    """Sizes that differ by at most one, larger ones first, as `numpy.array_split` has them.

    Examples
    --------
    >>> even_sizes(11, 4)
    [3, 3, 3, 2]
    """
    size, larger = divmod(rows, parts)
    return [size + 1] * larger + [size] * (parts - larger)
