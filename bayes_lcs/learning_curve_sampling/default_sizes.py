"""Default sizes of the hold-out and of the first sample.

Both are proportional to the number of rows within limits: the sizes of the paper, which has
millions of rows, would leave nothing of a thousand to train on.
"""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any

from bayes_lcs.core.errors import DataError

__all__ = ["default_holdout_size", "default_initial_size", "num_components_of"]

MAX_HOLDOUT = 10_000
"""Maximum size of the hold-out."""
MAX_INITIAL = 40_000
"""Maximum first sample, that of Meek, Thiesson and Heckerman for about a million rows."""

MIN_INITIAL = 200
"""Minimum first sample: smaller ones say little about larger ones, and training takes no time."""

HOLDOUT_DIVISOR, INITIAL_DIVISOR = 5, 8
"""A fifth of the rows is held out; a first sample of an eighth allows three doublings."""


def default_holdout_size(num_rows: int) -> int:
    """Return the size of the hold-out: a fifth of all rows, at least 1 and at most 10,000.

    Examples
    --------
    >>> [default_holdout_size(num_rows) for num_rows in (2, 10, 699, 10**6)]
    [1, 2, 139, 10000]
    """
    if num_rows < 2:
        raise DataError(
            f"there {'is 1 row' if num_rows == 1 else 'are no rows'}; learning-curve sampling "
            "needs at least 2, one to train on and one to score with"
        )
    return min(max(num_rows // HOLDOUT_DIVISOR, 1), MAX_HOLDOUT)


def default_initial_size(num_rows: int, num_components: int = 1, most: int = MAX_INITIAL) -> int:
    """Return the size of the first sample of ``num_rows`` training rows.

    An eighth of them, but no more than ``most``, and no fewer than 200 or the number of components;
    all of them if there are no more than that.

    Examples
    --------
    >>> [default_initial_size(num_rows) for num_rows in (8, 560, 10_000, 10**6)]
    [8, 200, 1250, 40000]
    """
    least = max(MIN_INITIAL, num_components)
    return min(max(min(num_rows // INITIAL_DIVISOR, most), least), num_rows)


def num_components_of(estimator: Any, components: Sequence[int] | None = None) -> int:
    """Return the largest number of components or clusters that an estimator may have.

    Examples
    --------
    >>> from sklearn.mixture import GaussianMixture
    >>> num_components_of(GaussianMixture(3)), num_components_of(GaussianMixture(3), [2, 5])
    (3, 5)
    """
    params = estimator.get_params(deep=False)
    own = params.get("n_components", params.get("n_clusters"))
    numbers = [*(own if isinstance(own, list | tuple) else [own]), *(components or ())]
    return max((int(number) for number in numbers if isinstance(number, Integral)), default=1)
