"""A table in words, and its fingerprint."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

import numpy as np

from bayes_lcs.core.escape import visible

if TYPE_CHECKING:
    from bayes_lcs.data.grouped_table import GroupedTable

__all__ = ["describe", "sha256"]

_SHOWN = 6
_LONGEST = 60


def describe(table: GroupedTable) -> str:
    """Describe groups, labels and features on a few lines of text.

    Examples
    --------
    >>> from bayes_lcs.data.grouped_table import GroupedTable
    >>> print(describe(GroupedTable.from_arrays([["a"], [None]], ["n", "y"], ["u", "u"])))
    2 rows in 1 group ('group'): 2 rows each
    label 'label': n 1, y 1
    1 feature:
      'feature_0'  1 value, 1 missing: a 1
    """
    sizes = table.group_sizes
    if not sizes.size:
        spread = "no group"
    elif sizes.min() == sizes.max():
        spread = f"{sizes[0]} rows each"
    else:
        spread = f"{sizes.min()} to {sizes.max()} rows, median {np.median(sizes):g}"
    groups = _several(table.num_groups, "group")
    lines = [f"{_several(table.num_rows, 'row')} in {groups} ({table.group_name!r}): {spread}"]
    if table.new_group_names:
        lines.append(f"{_several(len(table.new_group_names), 'group')} never seen before")
    unlabelled = int((table.labels < 0).sum())
    lines.append(
        f"label {table.label_name!r}{f', {unlabelled} missing' if unlabelled else ''}: "
        f"{_tally(table.labels, table.label_values)}"
    )
    lines.append(f"{_several(table.num_features, 'feature')}:")
    quoted = [repr(_shortened(name)) for name in table.feature_names]
    width = max(map(len, quoted), default=0)
    for feature, (name, values) in enumerate(zip(quoted, table.values, strict=True)):
        codes = table.features[:, feature]
        missing = int((codes < 0).sum())
        lines.append(
            f"  {name:<{width}}  {_several(len(values), 'value')}"
            f"{f', {missing} missing' if missing else ''}: {_tally(codes, values)}"
        )
    return "\n".join(lines)


def _shortened(name: str) -> str:
    return name if len(name) <= _LONGEST else name[: _LONGEST - 1] + "…"


def _several(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _tally(codes: np.ndarray, names: tuple[str, ...]) -> str:
    counts = np.bincount(codes[codes >= 0], minlength=len(names))
    shown = [
        f"{visible(name, _LONGEST)} {count}" for name, count in zip(names, counts, strict=True)
    ][:_SHOWN]
    rest = len(names) - len(shown)
    return ", ".join(shown) + (f", … {rest} more" if rest else "")


def sha256(table: GroupedTable) -> str:
    """Hash codes and names, with the byte order fixed so that every machine agrees."""
    names = [
        table.feature_names,
        table.values,
        table.label_name,
        table.label_values,
        table.group_name,
        table.group_names,
        table.new_group_names,
        table.features.shape,
    ]
    digest = hashlib.sha256(json.dumps(names, separators=(",", ":")).encode("ascii"))
    for codes in (table.features, table.labels, table.groups, table.new_groups):
        digest.update(np.ascontiguousarray(codes, dtype="<i4").tobytes())
    return digest.hexdigest()
