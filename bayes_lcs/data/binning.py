"""Assign numbers to named bins, on request of the user only.

``m`` increasing edges define ``m + 1`` bins: below the first edge, between neighbouring edges
(lower edge included, upper excluded), and from the last edge on. The end bins are open and contain
all numbers outside the edges, including infinities; NaN is missing.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from bayes_lcs.core.errors import DataError
from bayes_lcs.io.column_types import parse_number
from bayes_lcs.io.raw_table import RawColumn, Source

__all__ = ["bin_column", "bin_names", "check_edges", "column_numbers", "quantile_edges"]


def quantile_edges(
    numbers: NDArray[np.float64], num_bins: int, counts: NDArray[np.int64] | None = None
) -> tuple[float, ...]:
    """Return edges that split the numbers into ``num_bins`` bins, as equal as ties allow.

    Each edge is a number that occurs: the first whose rank reaches the quantile. Ties can make
    quantiles coincide, which reduces the number of bins; a single bin is an error.

    Parameters
    ----------
    numbers
        The numbers; NaN and infinities are ignored.
    num_bins
        Number of bins, at least 2.
    counts
        Number of occurrences of each number; 1 by default.

    Examples
    --------
    >>> quantile_edges(np.arange(8.0), 4)
    (2.0, 4.0, 6.0)
    >>> quantile_edges(np.array([0.0, 0, 0, 0, 0, 1, 2, 3]), 4)
    (1.0, 2.0)
    """
    if not hasattr(num_bins, "__index__") or operator.index(num_bins) < 2:
        raise DataError(f"the number of bins must be an integer of 2 or more, got {num_bins!r}")
    weights = np.ones(numbers.size, np.int64) if counts is None else counts
    keep = np.isfinite(numbers) & (weights > 0)
    distinct, inverse = np.unique(numbers[keep], return_inverse=True)
    if distinct.size < 2:
        raise DataError(
            f"{num_bins} bins collapse to one: the column has "
            f"{'only one distinct number' if distinct.size else 'no numbers'}; ignore it with "
            "ignore="
        )
    below = np.cumsum(np.bincount(inverse, weights=weights[keep]))  # rows up to each number
    wanted = below[-1] * np.arange(1, num_bins) / num_bins
    # An edge on the smallest number would leave the first bin empty: move it up by one.
    index = np.maximum(np.searchsorted(below, wanted, side="right"), 1)
    return tuple(float(distinct[i]) for i in np.unique(index))


def check_edges(edges: Sequence[float]) -> tuple[float, ...]:
    """Return edges as floats after checking that they are finite and increasing.

    Examples
    --------
    >>> check_edges([0, 10, 20])
    (0.0, 10.0, 20.0)
    """
    try:
        numbers = tuple(float(edge) for edge in edges)
    except (TypeError, ValueError):
        raise DataError(f"edges must be a list of numbers, got {edges!r}") from None
    if not numbers or not all(math.isfinite(edge) for edge in numbers):
        raise DataError(
            f"edges must be one or more finite numbers, got {list(numbers)}; the end bins are open"
        )
    if any(high <= low for low, high in pairwise(numbers)):
        raise DataError(f"edges must increase, got {list(numbers)}")
    return numbers


def bin_names(edges: Sequence[float]) -> tuple[str, ...]:
    """Return the names of the bins.

    Examples
    --------
    >>> bin_names([0, 10, 20.5])
    ('< 0', '[0, 10)', '[10, 20.5)', '≥ 20.5')
    """
    texts = [f"{edge:.6g}" for edge in edges]
    if len(set(texts)) < len(texts):
        texts = [repr(float(edge)) for edge in edges]
    middle = (f"[{low}, {high})" for low, high in pairwise(texts))
    return (f"< {texts[0]}", *middle, f"≥ {texts[-1]}")


def column_numbers(column: RawColumn, source: Source) -> NDArray[np.float64]:
    """Return the distinct values of a column as numbers; missing values are NaN.

    A value that is not a number is an error with its first row.
    """
    if column.values.dtype.kind in "if":
        return column.values.astype(np.float64)
    numbers = np.full(len(column.values), np.nan)
    for code, name in enumerate(column.names):
        number = parse_number(name)
        if number is not None:
            numbers[code] = number
        elif name.strip().lower() not in ("nan", "+nan", "-nan"):
            row = column.first_row(code)
            if row is not None:
                raise source.error(
                    f"{name!r} is not a number, but the column is binned; correct the cell or list "
                    "it in missing_values=",
                    row=row,
                    column=column.name,
                )
    return numbers


def bin_column(column: RawColumn, edges: Sequence[float], source: Source) -> NDArray[np.int32]:
    """Return the bin of each cell of a numeric column; -1 is missing.

    Examples
    --------
    >>> ages = RawColumn("age", np.array([0, 1, 2, -1]), np.array([17, 18, np.inf]))
    >>> bin_column(ages, [18, 65], Source()).tolist()
    [0, 1, 2, -1]
    """
    numbers = column_numbers(column, source)
    bins = np.searchsorted(np.asarray(edges, dtype=float), numbers, side="right")
    recode = np.append(np.where(np.isnan(numbers), -1, bins), -1).astype(np.int32)
    return recode[column.codes]
