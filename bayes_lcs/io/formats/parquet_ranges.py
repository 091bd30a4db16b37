"""Read row ranges of Parquet files as numbers, on the worker that uses them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayes_lcs.core.errors import one_line, plural
from bayes_lcs.io.decode import check_type, decode_numbers
from bayes_lcs.io.formats.parquet import iter_rows, open_streaming
from bayes_lcs.io.options import MissingRule
from bayes_lcs.io.raw_table import Source

__all__ = ["NumberReader", "RowRange", "finite_numbers"]

FloatArray = NDArray[np.float64]


class RowRange(NamedTuple):
    """Rows ``start`` to ``stop`` of a Parquet file with ``file_rows`` rows."""

    path: str
    start: int
    stop: int
    file_rows: int


@dataclass(frozen=True)
class NumberReader:
    """Reader of columns of Parquet files as numbers, which can be sent to a worker."""

    columns: tuple[str, ...]
    missing: Mapping[str, MissingRule]

    def __call__(self, ranges: Sequence[RowRange]) -> FloatArray:
        """Return the concatenated rows of some ranges."""
        return np.concatenate(list(self.batches(ranges)))

    def batches(self, ranges: Sequence[RowRange]) -> Iterator[FloatArray]:
        """Yield the rows of some ranges, batch by batch."""
        import pyarrow as pa

        for path, start, stop, file_rows in ranges:
            source = Source(Path(path).name)
            try:
                with open_streaming(path) as file:
                    self._check(file, file_rows, source)
                    for first, batch in iter_rows(file, self.columns, start, stop):
                        rows = pa.Table.from_batches([batch])
                        yield finite_numbers(rows, self.columns, self.missing, source, first)
            except FileNotFoundError:
                raise source.error(
                    f"the file does not exist on this worker; all workers need access to {path}"
                ) from None
            except (pa.ArrowException, OSError) as error:
                fault = f"cannot be read, the file is damaged: {one_line(error)}"
                raise source.error(fault) from None

    def _check(self, file: Any, file_rows: int, source: Source) -> None:
        for name in self.columns:
            if name not in file.schema_arrow.names:
                raise source.error("this column has disappeared from the file", column=name)
            check_type(name, file.schema_arrow.field(name).type, source)
        if file.metadata.num_rows != file_rows:
            raise source.error(
                f"had {plural(file_rows, 'row')} and has {file.metadata.num_rows} now; do not "
                "change files while they are read"
            )


def finite_numbers(
    block: Any,
    columns: Sequence[str],
    missing: Mapping[str, MissingRule],
    source: Source,
    start: int,
) -> FloatArray:
    """Return a batch as numbers; raise an error for a cell without a finite number."""
    rows = np.empty((block.num_rows, len(columns)))
    for place, name in enumerate(columns):
        rows[:, place] = decode_numbers(name, block.column(name), missing[name], source, start)
    with np.errstate(over="ignore", invalid="ignore"):
        total = rows.sum()
    if np.isfinite(total):  # then all numbers are finite, and this is fast
        return rows
    unusable = np.argwhere(~np.isfinite(rows))
    if len(unusable):
        row, column = unusable[0].tolist()
        is_empty = np.isnan(rows[row, column])
        what = "there is no number" if is_empty else "the number is infinite"
        others = [columns[place] for place in sorted({*unusable[:, 1].tolist()} - {column})]
        also = f" (nor in columns {', '.join(map(repr, others))})" if others else ""
        fault = f"{what}{also}; correct the cells, or leave the rows or the columns out"
        raise source.error(fault, row=start + row, column=columns[column])
    return rows
