"""Default sizes of the hold-out and of the first sample.

Both follow the number of rows: what the paper takes of millions of them would leave nothing of a
thousand to train on.
"""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any

from bayes_lcs.core.errors import DataError

__all__ = ["default_holdout_size", "default_initial_size", "num_components_of"]

MOST_HELD_OUT = 10_000
MOST_AT_FIRST = 40_000
"""Meek, Thiesson and Heckerman's first sample of a million rows or so."""

LEAST_AT_FIRST = 200
"""Samples of fewer rows say little about larger ones, and training on more takes no time."""

HELD_OUT_SHARE, FIRST_SHARE = 5, 8
"""One row in so many is held out; an eighth leaves room for three doublings."""


def default_holdout_size(num_rows: int) -> int:
    """Return the rows to hold out: a fifth of all, 1 at least and 10,000 at most.

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
    return min(max(num_rows // HELD_OUT_SHARE, 1), MOST_HELD_OUT)


def default_initial_size(num_rows: int, num_components: int = 1, most: int = MOST_AT_FIRST) -> int:
    """Return the rows of the first sample, of ``num_rows`` to train on.

    An eighth of them, but no more than ``most``, and no fewer than 200 or the number of components;
    all of them where there are no more than that.

    Examples
    --------
    >>> [default_initial_size(num_rows) for num_rows in (8, 560, 10_000, 10**6)]
    [8, 200, 1250, 40000]
    """
    least = max(LEAST_AT_FIRST, num_components)
    return min(max(min(num_rows // FIRST_SHARE, most), least), num_rows)


def num_components_of(estimator: Any, components: Sequence[int] | None = None) -> int:
    """Return the largest number of components or clusters that an estimator is asked for.

    Examples
    --------
    >>> from sklearn.mixture import GaussianMixture
    >>> num_components_of(GaussianMixture(3)), num_components_of(GaussianMixture(3), [2, 5])
    (3, 5)
    """
    known = estimator.get_params(deep=False)
    own = known.get("n_components", known.get("n_clusters"))
    asked = [*(own if isinstance(own, list | tuple) else [own]), *(components or ())]
    return max((int(number) for number in asked if isinstance(number, Integral)), default=1)
