"""Every way in which the package reads a table from a file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

import bayes_lcs as bl
from bayes_lcs.io.decode import decode_column
from bayes_lcs.io.open_tables import open_file
from bayes_lcs.io.options import CsvOptions
from bayes_lcs.io.shards import ColumnTypeChanged, FileShards, Shard

Cells = list[list[str | None]]


def in_batches(path: Path, delimiter: str | None) -> Cells:
    """Batch by batch, as `row_source` reads them."""
    raw = open_file(path, CsvOptions(delimiter=delimiter))
    rows: Cells = [list(raw.names)]
    for batch in raw.batches(raw.names):
        columns = [decode_column(name, batch.column(name), raw.source) for name in raw.names]
        texts = [np.array([*c.values, None], dtype=object)[c.codes].tolist() for c in columns]
        rows += map(list, zip(*texts, strict=True))
    return rows


def in_shards(path: Path, delimiter: str | None) -> Cells:
    """Shard by shard, as `PartialScanClassifier.fit_file` reads them."""
    names = open_file(path, CsvOptions(delimiter=delimiter)).names
    shards = FileShards(
        path,
        label=names[-1],
        features=names[:-1],  # an index, too
        num_shards=1,
        text=names,
        missing_values=(),
        options=CsvOptions(delimiter=delimiter),
        shuffle=False,
    )
    rows: Cells = [list(names)]
    for shard in shards:
        columns = [shard.frame[name].tolist() for name in names[:-1]]
        rows += map(list, zip(*columns, shard.labels.tolist(), strict=True))
    return rows


EXACT: tuple[Callable[[Path, str | None], Cells], ...] = (in_batches, in_shards)


def readings(path: Path, names: tuple[str, ...]) -> Iterator[tuple[str, Callable[[], object]]]:
    """The public readers, each as something to call."""
    group, label = names[0], names[-1]
    yield "read_grouped", lambda: bl.read_grouped(path, group=group, label=label)
    yield "row_source", lambda: bl.row_source(path, seed=1).take(0, 1)
    yield "target", lambda: bl.row_source(path, target=label, seed=1).take(0, 1)
    yield "number_blocks", lambda: list(bl.number_blocks(path))
    for number in (1, 3):
        yield f"{number} shards", lambda n=number: _read_shards(path, label, n)


def _read_shards(path: Path, label: str, number: int) -> list[Shard]:
    text: set[str] = set()
    for _ in range(100):  # once for each column at most
        try:
            return list(FileShards(path, label=label, num_shards=number, text=text))
        except ColumnTypeChanged as changed:
            text |= set(changed.columns)
    raise AssertionError("the types of the columns are never settled")
