"""Validate the fields of a `GroupedTable`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayes_lcs.core.errors import DataError
from bayes_lcs.io.column_types import infer_text_type, parse_number

__all__ = [
    "as_codes",
    "check_names",
    "check_per_feature",
    "check_type",
    "row_indices",
]


def check_names(names: Sequence[str], what: str, column: str | None = None) -> tuple[str, ...]:
    """Return ``names`` as a tuple after checking that they are distinct strings."""
    if isinstance(names, str):
        raise DataError(f"{what} must be a sequence of strings, not one string", column=column)
    names = tuple(names)
    for name in names:
        if not isinstance(name, str):
            raise DataError(f"{what} must be strings, got {name!r}", column=column)
        if "\x00" in name or not _is_text(name):
            raise DataError(
                f"{what} must be text that a file can hold, got {name!r:.80}", column=column
            )
    if len(set(names)) != len(names):
        twice = next(name for i, name in enumerate(names) if name in names[:i])
        raise DataError(f"{what} must be distinct, got {twice!r} twice", column=column)
    return names


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:  # half of a surrogate pair
        return False
    return True


def check_per_feature(
    entries: Sequence[Sequence[Any] | None], what: str, num_features: int
) -> tuple[tuple[Any, ...] | None, ...]:
    """Return one tuple or None per feature; by default one empty tuple per feature."""
    given = tuple(None if entry is None else tuple(entry) for entry in entries)
    given = given or ((),) * num_features
    if len(given) != num_features:
        raise DataError(f"{what} has {len(given)} entries for {num_features} features")
    return given


def check_type(kind: str, names: Sequence[str], column: str) -> None:
    """Raise an error if names are not values of a type."""
    if kind not in ("boolean", "integer", "float", "text"):
        raise DataError(f"unknown type of values {kind!r}", column=column)
    if kind == "float":
        fits = all(parse_number(name) is not None for name in names)
    else:
        fits = kind == "text" or infer_text_type(names) in (kind, None)
    if not fits:
        raise DataError(f"the values are not all of type {kind}", column=column)


def as_codes(
    codes: ArrayLike,
    sizes: int | Sequence[int],
    what: str,
    *,
    shape: tuple[int, ...],
    columns: Sequence[str] = (),
) -> NDArray[np.int32]:
    """Return a read-only int32 copy of ``codes`` after checking shape, type and range.

    ``sizes`` is the number of names, one for all or one per column; valid codes run from -1
    (missing) to ``sizes - 1``.
    """
    array = np.asarray(codes)
    if array.shape != shape:
        raise DataError(f"{what} must have shape {shape}, got {array.shape}")
    if array.size and array.dtype.kind not in "iu":
        raise DataError(f"{what} must be integer codes, got an array of {array.dtype}")
    limits = np.asarray(sizes)
    wrong = (array < -1) | (array >= limits)
    if wrong.any():
        where = np.argwhere(wrong)[0]
        limit = int(limits[where[1]] if limits.ndim else limits)
        raise DataError(
            f"code {array[tuple(where)]} in {what}, expected -1 (missing) to {limit - 1}",
            row=int(where[0]),
            column=columns[where[1]] if columns else None,
        )
    if array.dtype == np.int32 and array.flags.c_contiguous and _is_frozen(array):
        return array
    frozen = np.array(array, dtype=np.int32, order="C")
    frozen.setflags(write=False)
    return frozen


def _is_frozen(array: NDArray[Any]) -> bool:
    """Return whether neither the array nor any of its base arrays is writable."""
    under: Any = array
    while isinstance(under, np.ndarray):
        if under.flags.writeable:
            return False
        under = under.base
    return under is None


def row_indices(rows: ArrayLike | slice, num_rows: int) -> NDArray[np.intp]:
    """Return row positions from positions, a boolean mask or a slice."""
    if isinstance(rows, slice):
        return np.arange(num_rows)[rows]
    array = np.asarray(rows)
    if array.size == 0 and array.ndim == 1 and array.dtype != bool:
        return np.zeros(0, np.intp)
    if array.ndim != 1 or array.dtype.kind not in "biu":
        raise DataError("rows must be a list of row numbers, a boolean mask or a slice")
    if array.dtype == bool:
        if array.shape != (num_rows,):
            raise DataError(f"the mask has {array.size} entries for {num_rows} rows")
        return np.flatnonzero(array)
    if (array.astype(np.int64) < -num_rows).any() or (array.astype(np.int64) >= num_rows).any():
        raise DataError(f"row numbers must lie between 0 and {num_rows - 1}")
    return array.astype(np.intp) % max(num_rows, 1)
