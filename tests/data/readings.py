"""Every way in which the package reads a table from a file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

import bayes_lcs as bl
from bayes_lcs.data.arrow_columns import column_from_arrow
from bayes_lcs.data.file_parts import FileParts
from bayes_lcs.data.reader import raw_from_file

Cells = list[list[str | None]]


def whole(path: Path, delimiter: str | None) -> Cells:
    """All columns at once, as `read_grouped` reads them."""
    raw = raw_from_file(path, delimiter=delimiter)
    columns = raw.read(raw.names).values()
    texts = [np.array([*c.names, None], dtype=object)[c.codes].tolist() for c in columns]
    return [list(raw.names), *map(list, zip(*texts, strict=True))]


def in_blocks(path: Path, delimiter: str | None) -> Cells:
    """Piece by piece, as `row_source` reads them."""
    raw = raw_from_file(path, delimiter=delimiter)
    assert raw.blocks is not None
    rows: Cells = [list(raw.names)]
    for block, _ in raw.blocks(raw.names):
        columns = [column_from_arrow(name, block.column(name), raw.source) for name in raw.names]
        texts = [np.array([*c.names, None], dtype=object)[c.codes].tolist() for c in columns]
        rows += map(list, zip(*texts, strict=True))
    return rows


def in_parts(path: Path, delimiter: str | None) -> Cells:
    """Part by part, as `PartialScanClassifier.fit_file` reads them."""
    names = raw_from_file(path, delimiter=delimiter).names
    parts = FileParts(
        path,
        label=names[-1],
        num_parts=1,
        categorical=True,
        missing_values=(),
        delimiter=delimiter,
        shuffle=False,
    )
    rows: Cells = [list(names)]
    for part in parts:
        columns = [part.frame[name].tolist() for name in names[:-1]]
        rows += map(list, zip(*columns, part.labels.tolist(), strict=True))
    return rows


EXACT: tuple[Callable[[Path, str | None], Cells], ...] = (whole, in_blocks, in_parts)


def readings(path: Path, names: tuple[str, ...]) -> Iterator[tuple[str, Callable[[], object]]]:
    """The public readers, each as something to call."""
    group, label = names[0], names[-1]
    yield "read_grouped", lambda: bl.read_grouped(path, group=group, label=label)
    yield "row_source", lambda: bl.row_source(path, seed=1).take(0, 1)
    yield "target", lambda: bl.row_source(path, target=label, seed=1).take(0, 1)
    yield "number_blocks", lambda: list(bl.number_blocks(path))
    for parts in (1, 3):
        yield f"{parts} parts", lambda n=parts: list(FileParts(path, label=label, num_parts=n))
