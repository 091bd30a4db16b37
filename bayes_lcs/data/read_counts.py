"""Count the rows of a file by group in one pass, with memory independent of the number of rows.

The rows of a group may be anywhere in the file. Batches are encoded in order of appearance and
counted; values get their final order at the end. Memory is that of the counts, ``groups x labels x
values``, and of a few batches; rows are never all in memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayes_lcs.core.counts import GroupCounts, count_dtype
from bayes_lcs.core.schema import Schema
from bayes_lcs.data.build_table import (
    GroupedColumns,
    array_type,
    check_categories,
    check_label_names,
)
from bayes_lcs.data.column_source import ColumnSource
from bayes_lcs.data.counts_table import CountedTable
from bayes_lcs.io.category_encoder import MAX_CATEGORIES, CategoryEncoder, read_columns
from bayes_lcs.io.column_types import value_name
from bayes_lcs.io.open_tables import open_file
from bayes_lcs.io.options import CsvOptions, MissingValues, as_list
from bayes_lcs.io.raw_table import Source
from bayes_lcs.runtime.memory import require_memory
from bayes_lcs.runtime.progress import progress_bar

__all__ = ["read_counts"]


class _GrowingCounts:
    """Counts ``(groups, labels, values)`` in order of first appearance.

    The array grows by doubling. Counts are int32 as long as their sum fits.
    """

    def __init__(self) -> None:
        self.counts: NDArray[np.signedinteger] = np.zeros((1024, 2, 2), dtype=np.int32)
        self.num_counted = 0

    def add(self, groups: NDArray, labels: NDArray, values: NDArray) -> None:
        """Count rows; a value of -1 is missing."""
        seen = values >= 0
        groups, labels, values = groups[seen], labels[seen], values[seen]
        if not len(values):
            return
        self.num_counted += len(values)
        self.grow(tuple(int(codes.max()) + 1 for codes in (groups, labels, values)))
        _, num_labels, num_values = self.counts.shape
        cell = (groups.astype(np.int64) * num_labels + labels) * num_values + values
        where, times = np.unique(cell, return_counts=True)
        self.counts.reshape(-1)[where] += times.astype(self.counts.dtype)

    def grow(self, needed: tuple[int, ...]) -> None:
        """Grow to at least this shape, with a type that fits the sum of all counts."""
        now, dtype = self.counts.shape, np.dtype(count_dtype(self.num_counted))
        has_room = all(own >= wanted for own, wanted in zip(now, needed, strict=True))
        if has_room and dtype == self.counts.dtype:
            return
        shape = tuple(
            own if own >= wanted else max(wanted, 2 * own)
            for own, wanted in zip(now, needed, strict=True)
        )
        require_memory(
            dtype.itemsize * float(np.prod(shape)),
            f"counting {shape[0]:,} groups, {shape[1]:,} labels and {shape[2]:,} values",
            "Ignore columns with many values with ignore=, or use fewer groups",
        )
        counts = np.zeros(shape, dtype=dtype)
        counts[: now[0], : now[1], : now[2]] = self.counts
        self.counts = counts

    def reorder(self, groups: NDArray, labels: NDArray, values: NDArray) -> NDArray[Any]:
        """Return the counts in final order, given the final code of each code; -1 drops it."""
        codes = (groups, labels, values)
        self.grow(tuple(len(own) for own in codes))
        result = np.zeros([int(own.max(initial=-1)) + 1 for own in codes], dtype=self.counts.dtype)
        used = [np.flatnonzero(own >= 0) for own in codes]
        source = self.counts[np.ix_(*used)]
        target = np.ix_(*(own[places] for own, places in zip(codes, used, strict=True)))
        if source.shape == result.shape:
            result[target] = source
        else:  # several texts are the same value, such as 1 and 1.0
            np.add.at(result, target, source)
        return result


def read_counts(
    path: str | PathLike[str],
    *,
    group: str,
    label: str,
    features: Sequence[str] | None = None,
    ignore: Iterable[str] = (),
    missing_values: MissingValues = None,
    categorical: bool | Iterable[str] = (),
    encoding: str = "utf-8",
    delimiter: str | None = None,
    header: bool | Sequence[str] = True,
    progress: bool | None = None,
) -> CountedTable:
    r"""Count the rows of a CSV or Parquet file by group, without storing them.

    For files larger than memory. The result can be used like a `GroupedTable` unless rows are
    needed, since the models depend on counts only.

    Parameters
    ----------
    path
        A text file, plain or gzipped, or a Parquet file. The rows of a group may be anywhere in it.
    group, label
        The columns of groups and labels. Rows without a group are dropped with a warning. Labels
        must not be missing, since rows without a label would have to be stored.
    features, ignore, missing_values, categorical, encoding, delimiter, header
        As in `bayes_lcs.read_grouped`. Numbers are not binned; bin them beforehand.
    progress
        Whether to show a progress bar; None shows it on a terminal.

    Returns
    -------
    CountedTable
        Counts with values in the order of `bayes_lcs.read_grouped`, and groups in order of first
        appearance.

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
    table = open_file(
        path,
        CsvOptions(encoding, delimiter, header),
        expected=[str(name) for name in (group, label, *as_list(features or ()))],
    )
    source = table.source
    chosen = GroupedColumns(
        ColumnSource(table.names, source, partial(read_columns, table), table.index),
        group,
        label,
        features,
        ignore,
        missing_values,
        categorical,
        {},
    )
    group, label = chosen.group, chosen.label
    encoders = {
        name: CategoryEncoder(
            name,
            chosen.rules[name],
            limit=None if name == group or name in chosen.forced else MAX_CATEGORIES,
            notes=chosen.notes,
        )
        for name in chosen.all
    }
    counts = {name: _GrowingCounts() for name in (*chosen.features, label)}
    rows = 0
    with progress_bar("counting", table.size().rows or 0, progress) as tick:
        for batch in table.batches(chosen.all, encoded=chosen.all):
            codes = {
                name: encoder.encode(batch.column(name), source, rows)
                for name, encoder in encoders.items()
            }
            has_group = codes[group] >= 0
            _check_labels_present(codes[label], has_group, label, source, rows)
            if not has_group.all():
                codes = {name: own[has_group] for name, own in codes.items()}
            for name in chosen.features:
                counts[name].add(codes[group], codes[label], codes[name])
            counts[label].add(codes[group], codes[label], np.zeros_like(codes[label]))
            chosen.notes.dropped += len(has_group) - len(codes[group])
            rows += batch.num_rows
            tick(batch.num_rows, f"{encoders[group].num_values:,} groups")
    if not rows:
        raise source.error("there are no rows")
    if rows == chosen.notes.dropped:
        raise source.error("no row has a group; is it the right column?", column=group)
    found = _table(encoders, counts, chosen, rows - chosen.notes.dropped, source)
    chosen.notes.warn()
    return found


def _table(
    encoders: Mapping[str, CategoryEncoder],
    counts: dict[str, _GrowingCounts],
    chosen: GroupedColumns,
    rows: int,
    source: Source,
) -> CountedTable:
    group, label = chosen.group, chosen.label
    groups, group_codes = _finish_groups(encoders[group])
    labels, label_codes = _finish(encoders[label], _occurrences(counts[label], 1))
    label_type = array_type(labels) or "text"
    label_names = _names(labels)
    check_label_names(
        label, label_names, label_type, rows, source, is_listed=encoders[label].is_ordered
    )
    names, types, parts = [], [], []
    judged = {}
    for name in chosen.features:
        values, codes = _finish(encoders[name], _occurrences(counts[name], 2))
        own, kind = _names(values), array_type(values) or "text"
        if not own or (name not in chosen.forced and not encoders[name].is_ordered):
            judged[name] = own, kind
        names.append(own)
        types.append(kind)
        parts.append(counts[name].reorder(group_codes, label_codes, codes))
        del counts[name]
    check_categories(judged, rows, source)
    one = counts[label].reorder(group_codes, label_codes, np.zeros(1, dtype=np.int32))[:, :, 0]
    schema = Schema(len(labels), tuple(len(own) for own in names))
    nothing: Any = np.zeros(0, dtype=np.int32)
    label_counts: Any = one
    value_counts: Any = np.concatenate(parts, axis=2)
    return CountedTable(
        features=np.zeros((0, len(names)), dtype=np.int32),
        labels=nothing,
        groups=nothing,
        feature_names=tuple(chosen.features),
        values=tuple(names),
        label_name=label,
        label_values=label_names,
        group_name=group,
        group_names=_names(groups),
        value_types=tuple(types),
        label_type=label_type,
        group_type=array_type(groups) or "text",
        counted=GroupCounts(schema, label_counts, value_counts),
        **chosen.markers(),
    )


def _occurrences(counts: _GrowingCounts, axis: int) -> NDArray[np.bool_]:
    """Return a mask of the codes along an axis that were counted."""
    others = tuple(other for other in range(3) if other != axis)
    return np.asarray(counts.counts.any(axis=others))


def _names(values: NDArray[Any]) -> tuple[str, ...]:
    return tuple(value_name(value) for value in values.tolist())


def _finish(
    encoder: CategoryEncoder, counted: NDArray[np.bool_]
) -> tuple[NDArray[Any], NDArray[np.int32]]:
    """Return the values of rows with a group, and the final code of each code."""
    values, recode = encoder.finish()
    recode = recode[:-1]
    found = np.zeros(len(values) + 1, bool)  # the last entry serves code -1
    found[recode[np.flatnonzero(counted[: len(recode)])]] = True
    final = np.where(found, np.cumsum(found) - 1, -1).astype(np.int32)
    final[-1] = -1
    return values[found[:-1]], final[recode]


def _finish_groups(encoder: CategoryEncoder) -> tuple[NDArray[Any], NDArray[np.int32]]:
    """Return groups in order of appearance, or as an ordered dictionary declares them."""
    values, recode = encoder.finish()
    recode = recode[:-1]
    if encoder.is_ordered:
        return values, recode
    order = np.array(list(dict.fromkeys(recode[recode >= 0].tolist())), np.int64)
    final = np.full(len(values) + 1, -1, np.int32)
    final[order] = np.arange(len(order))
    return values[order], final[recode]


def _check_labels_present(
    codes: NDArray[np.int32], has_group: NDArray[np.bool_], name: str, source: Source, start: int
) -> None:
    absent = np.flatnonzero((codes < 0) & has_group)
    if absent.size:
        raise source.error(
            "the row has no label; fill the cell or remove the row, or read all rows with "
            "bl.read_grouped, which allows missing labels",
            row=start + int(absent[0]),
            column=name,
        )
