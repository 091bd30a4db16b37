"""From a file of rows to the counts of its groups in one pass, whatever the number of rows.

Rows of a group may lie anywhere in the file. Pieces of it are coded by what was met so far, and
counted; names get their final order at the end. Memory is that of the counts, ``groups x labels x
values``, and of some pieces of the file: rows are never all in memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayes_lcs.core.counts import GroupCounts
from bayes_lcs.core.memory import require_memory
from bayes_lcs.core.progress import progress_bar
from bayes_lcs.core.schema import Schema
from bayes_lcs.data.assemble import check_category, check_label_names
from bayes_lcs.data.column_types import ColumnTypes
from bayes_lcs.data.columns import Source
from bayes_lcs.data.counted_table import CountedTable
from bayes_lcs.data.extent import table_extent
from bayes_lcs.data.reader import raw_from_file
from bayes_lcs.data.selection import as_list, check_option, find_columns, missing_tokens
from bayes_lcs.data.vocabulary import AnyNames, Vocabulary

__all__ = ["read_counts"]


class _GrowingCounts:
    """Counts ``(groups, labels, values)`` in the order in which names are met.

    They grow with the names, by doubling.
    """

    def __init__(self) -> None:
        self.counts: NDArray[np.int32] = np.zeros((1024, 2, 2), dtype=np.int32)

    def add(self, groups: NDArray, labels: NDArray, values: NDArray) -> None:
        """Count rows; a value of -1 is missing."""
        seen = values >= 0
        groups, labels, values = groups[seen], labels[seen], values[seen]
        if not len(values):
            return
        self.make_room(tuple(int(codes.max()) + 1 for codes in (groups, labels, values)))
        _, num_labels, num_values = self.counts.shape
        cell = (groups.astype(np.int64) * num_labels + labels) * num_values + values
        where, times = np.unique(cell, return_counts=True)
        self.counts.reshape(-1)[where] += times.astype(np.int32)

    def make_room(self, needed: tuple[int, ...]) -> None:
        """Grow to at least this shape."""
        now = self.counts.shape
        if all(own >= wanted for own, wanted in zip(now, needed, strict=True)):
            return
        shape = tuple(
            own if own >= wanted else max(wanted, 2 * own)
            for own, wanted in zip(now, needed, strict=True)
        )
        require_memory(
            4.0 * float(np.prod(shape)),
            f"counting {shape[0]:,} groups, {shape[1]:,} labels and {shape[2]:,} values",
            "Leave out columns of many values with ignore=, or take fewer groups",
        )
        counts = np.zeros(shape, dtype=np.int32)
        counts[: now[0], : now[1], : now[2]] = self.counts
        self.counts = counts

    def ordered(self, num_groups: int, labels: NDArray, values: NDArray) -> NDArray[np.int32]:
        """All groups, with labels and values in the order of their final codes."""
        self.make_room((num_groups, len(labels), len(values)))
        result = np.zeros((num_groups, len(labels), len(values)), dtype=np.int32)
        result[:, labels[:, None], values] = self.counts[:num_groups, : len(labels), : len(values)]
        return result


def read_counts(
    path: str | PathLike[str],
    *,
    group: str,
    label: str,
    features: Sequence[str] | None = None,
    ignore: Iterable[str] = (),
    missing_values: Iterable[str] | Mapping[str, Iterable[str]] = ("",),
    categorical: bool | Iterable[str] = (),
    encoding: str = "utf-8",
    delimiter: str | None = None,
    header: bool | Sequence[str] = True,
    progress: bool | None = None,
) -> CountedTable:
    r"""Count the rows of a CSV or Parquet file by group, without keeping them.

    For files that memory does not hold. The result goes wherever a `GroupedTable` goes, as long as
    no row is asked for: counts are all that the models look at.

    Parameters
    ----------
    path
        A text file, plain or gzipped, or a Parquet file. A group's rows may lie anywhere in it.
    group, label
        The columns of groups and labels. No cell of either may be missing: rows without a label
        would have to be kept.
    features, ignore, missing_values, categorical, encoding, delimiter, header
        As for `bayes_lcs.read_grouped`. Numbers are not binned: do so first.
    progress
        Show a progress bar; None shows one on a terminal.

    Returns
    -------
    CountedTable
        With values in the order in which `bayes_lcs.read_grouped` has them, and groups in that in
        which they are met.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "meetings.csv")
    ...     _ = path.write_text("user,hour,decision\nann,9,yes\nbob,10,no\nann,,yes\n")
    ...     table = read_counts(path, group="user", label="decision")
    >>> table
    CountedTable(3 rows, counted, 2 groups by 'user', 1 features, label 'decision' with 2 values)
    >>> table.counts().labels.tolist()
    [[0, 2], [1, 0]]
    """
    import pyarrow as pa

    raw = raw_from_file(
        path,
        encoding=encoding,
        delimiter=delimiter,
        header=header,
        expected=(group, label, *as_list(features or ())),
    )
    source = raw.source
    chosen = find_columns(raw, group, label, features, ignore)
    forced = set(chosen) if categorical is True else set(as_list(categorical or ()))
    if categorical is not True:
        check_option("categorical", forced, chosen, source)
    wanted = [*chosen, label, group]
    tokens = missing_tokens(missing_values, wanted, raw)
    names: dict[str, Vocabulary] = {
        name: (AnyNames if name == group else Vocabulary)(name, tokens[name]) for name in wanted
    }
    counts = {name: _GrowingCounts() for name in (*chosen, label)}
    types, rows = ColumnTypes(), 0
    assert raw.blocks is not None
    with progress_bar("counting", table_extent(path).rows, progress) as tick:
        for block, _ in raw.blocks(wanted, coded=wanted):
            codes = {}
            for name in wanted:
                cells = block.column(name)
                types.check(name, cells.type, source)
                is_listed = pa.types.is_dictionary(cells.type) and source.lists_values(name)
                if name == group and is_listed:
                    cells = cells.cast(cells.type.value_type)  # groups without rows are none
                codes[name] = names[name].code(cells, source, rows)
            for name, what in ((group, "group"), (label, "label")):
                _check_present(codes[name], name, what, source, rows)
            for name in chosen:
                counts[name].add(codes[group], codes[label], codes[name])
            counts[label].add(codes[group], codes[label], np.zeros_like(codes[label]))
            rows += block.num_rows
            tick(block.num_rows, f"{len(names[group].order_met()):,} groups")
    if not rows:
        raise source.error("there are no rows")
    return _table(names, counts, chosen, label, group, tokens, forced, rows, source)


def _table(
    names: dict[str, Vocabulary],
    counts: dict[str, _GrowingCounts],
    chosen: list[str],
    label: str,
    group: str,
    tokens: Mapping[str, frozenset[str]],
    forced: set[str],
    rows: int,
    source: Source,
) -> CountedTable:
    labels, values = names[label].order(), [names[name].order() for name in chosen]
    check_label_names(label, labels, rows, source)
    for name, own in zip(chosen, values, strict=True):
        if not own:
            raise source.error(
                f"every cell is missing; leave the column out with ignore=[{name!r}]", column=name
            )
        if name not in forced:
            check_category(name, own, rows, source)
    met = names[group].order_met()
    final = names[label].recode()[:-1]
    parts = [
        counts.pop(name).ordered(len(met), final, names[name].recode()[:-1]) for name in chosen
    ]
    one = counts.pop(label).ordered(len(met), final, np.zeros(1, dtype=np.int32))[:, :, 0]
    schema = Schema(len(labels), tuple(len(own) for own in values))
    nothing: Any = np.zeros(0, dtype=np.int32)
    label_counts: Any = one
    value_counts: Any = np.concatenate(parts, axis=2)
    return CountedTable(
        features=np.zeros((0, len(chosen)), dtype=np.int32),
        labels=nothing,
        groups=nothing,
        feature_names=tuple(chosen),
        values=tuple(values),
        label_name=label,
        label_values=labels,
        group_name=group,
        group_names=met,
        missing_values=tuple(tuple(sorted(tokens[name])) for name in chosen),
        label_missing_values=tuple(sorted(tokens[label])),
        group_missing_values=tuple(sorted(tokens[group])),
        counted=GroupCounts(schema, label_counts, value_counts),
    )


def _check_present(
    codes: NDArray[np.int32], name: str, what: str, source: Source, start: int
) -> None:
    absent = np.flatnonzero(codes < 0)
    if absent.size:
        advice = "; fill the cell or remove the row"
        if what == "label":
            advice += ", or read all rows with bl.read_grouped, which keeps it"
        raise source.error(
            f"the row has no {what}{advice}", row=start + int(absent[0]), column=name
        )
