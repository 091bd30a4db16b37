"""Dirichlet-multinomial integrals in float64; the only module that calls ``gammaln``.

With ``B(a) = prod_i Gamma(a_i) / Gamma(sum_i a_i)`` the marginal likelihood of an ordered
sequence of draws with counts ``n`` is ``B(n + a) / B(a)`` (thesis eqs. A.22, A.29, A.30).
All functions use rising factorials,

    B(n + a) / B(a) = prod_i (a_i)_{n_i} / (sum a)_{sum n},    (a)_n = Gamma(a + n) / Gamma(a),

whose logs are exactly zero at a count of zero, and which can be tabulated for integer counts and
constant ``a``.

`CountHistograms` evaluates the marginal likelihood of many count vectors under one ``a``,

    prod_u prod_v (a_v)_{n_uv} / (sum a)_{N_u},

from histograms of the counts of each value and of the totals: a hundred thousand groups have only a
few dozen different counts. For large counts the logs are huge and nearly the same for all ``a``.
Terms that do not depend on ``a`` are kept separately, so that differences between parameters keep
their precision.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln, xlogy

from bayes_lcs.core.schema import Schema

__all__ = [
    "MAX_TABLE_ENTRIES",
    "CountHistograms",
    "log_cells_marginal",
    "log_dirichlet_density",
    "log_dirichlet_multinomial",
    "log_gamma_density",
    "log_rising",
    "log_rising_shifted",
    "log_rising_table",
]

FloatArray = NDArray[np.float64]

MAX_TABLE_ENTRIES = 1 << 22
"""Maximum length of a look-up table (32 MiB); the function is called for longer ones."""


def log_rising(start: ArrayLike, count: ArrayLike) -> FloatArray:
    """Return ``log Gamma(start + count) - log Gamma(start)``, exactly 0 where ``count`` is 0.

    Examples
    --------
    >>> float(np.exp(log_rising(2.0, 3)).round(12))  # 2 * 3 * 4
    24.0
    """
    a = np.asarray(start, dtype=np.float64)
    n = np.asarray(count, dtype=np.float64)
    result: FloatArray = np.where(n == 0.0, 0.0, gammaln(a + n) - gammaln(a))
    return result


def log_rising_shifted(start: ArrayLike, count: ArrayLike) -> FloatArray:
    """Return ``log (start)_n - log Gamma(n)`` for counts of at least 1,000, by Stirling's series.

    Both terms are nearly equal and only their difference depends on ``start``. Subtracting them
    directly would lose the digits that they share, eleven for a count of 10^10.

    Examples
    --------
    >>> bool(np.isclose(log_rising_shifted(3.0, 1e4), np.log(1e4 * (1e4 + 1) * (1e4 + 2) / 2)))
    True
    """
    a = np.asarray(start, dtype=np.float64)
    n = np.asarray(count, dtype=np.float64)
    rise = a * np.log(n) + (n + a - 0.5) * np.log1p(a / n) - a + (1.0 / (n + a) - 1.0 / n) / 12.0
    result: FloatArray = rise - gammaln(a)
    return result


@lru_cache(maxsize=64)
def _cached_table(start: float, length: int) -> FloatArray:
    table = log_rising(start, np.arange(length))
    table.setflags(write=False)
    return table


def log_rising_table(start: float, max_count: int) -> FloatArray:
    """Return a table of ``log (start)_n`` for ``n = 0 .. max_count``.

    Each entry is computed directly, not by a running sum, so that the last one is as accurate as
    the first. Lengths are rounded up to a power of two, so that calls share cached tables.
    """
    length = 1 << max(int(max_count), 1).bit_length()
    return _cached_table(float(start), length)[: max_count + 1]


def log_dirichlet_multinomial(counts: ArrayLike, prior: ArrayLike) -> FloatArray:
    """Return ``log B(counts + prior) - log B(prior)`` over the last axis.

    Parameters
    ----------
    counts : (..., V)
        Non-negative counts; fractional counts are allowed.
    prior : broadcastable to counts
        Dirichlet parameters.

    Examples
    --------
    Under a uniform prior the sequence (heads, tails) has probability 1/6:

    >>> float(np.exp(log_dirichlet_multinomial([1, 1], [1.0, 1.0])).round(12))
    0.166666666667
    """
    n = np.asarray(counts, dtype=np.float64)
    a = np.broadcast_to(np.asarray(prior, dtype=np.float64), n.shape)
    result: FloatArray = log_rising(a, n).sum(axis=-1) - log_rising(a.sum(axis=-1), n.sum(axis=-1))
    return result


def log_cells_marginal(schema: Schema, counts: ArrayLike, prior: ArrayLike) -> FloatArray:
    """Return the sum over features of ``log B(n_f + a_f) - log B(a_f)`` on the flat cell axis.

    Parameters
    ----------
    counts : (..., C)
        Counts of all feature values, one feature after another.
    prior : broadcastable to counts
        Dirichlet parameters on the same axis.
    """
    n = np.asarray(counts, dtype=np.float64)
    a = np.broadcast_to(np.asarray(prior, dtype=np.float64), n.shape)
    cells = log_rising(a, n).sum(axis=-1)
    totals = log_rising(schema.sum_values(a), schema.sum_values(n)).sum(axis=-1)
    result: FloatArray = cells - totals
    return result


def log_dirichlet_density(point: ArrayLike, prior: ArrayLike) -> FloatArray:
    """Return the log density of a Dirichlet on the closed simplex; over the last axis."""
    x = np.asarray(point, dtype=np.float64)
    a = np.broadcast_to(np.asarray(prior, dtype=np.float64), x.shape)
    result: FloatArray = (
        xlogy(a - 1.0, x).sum(axis=-1) + gammaln(a.sum(axis=-1)) - gammaln(a).sum(axis=-1)
    )
    return result


def log_gamma_density(x: ArrayLike, shape: float, rate: float) -> FloatArray:
    """Return the log density of a Gamma distribution with the given shape and rate."""
    value = np.asarray(x, dtype=np.float64)
    result: FloatArray = (
        shape * np.log(rate) - gammaln(shape) + (shape - 1.0) * np.log(value) - rate * value
    )
    return result


MAX_TERMS_PER_CALL = 1 << 20
"""Maximum number of points times counts that are evaluated in one call."""

LARGE_COUNT = 1 << 20
"""From this count on, ``log Gamma(n)`` is kept separately: it has eight digits before the point."""


class _Histogram(NamedTuple):
    counts: FloatArray
    times: FloatArray

    @classmethod
    def of(cls, counts: NDArray) -> _Histogram:
        found, times = np.unique(counts[counts > 0], return_counts=True)
        return cls(found.astype(np.float64), times.astype(np.float64))

    @property
    def num_small(self) -> int:
        """Number of counts below `LARGE_COUNT`; they come first."""
        return int(np.searchsorted(self.counts, LARGE_COUNT))

    @property
    def shift(self) -> float:
        """``log prod_n Gamma(n)`` of the large counts."""
        small = self.num_small
        return float(log_rising(1.0, self.counts[small:] - 1.0) @ self.times[small:])

    def log_rising(self, start: FloatArray) -> FloatArray:
        """Return ``log prod_n (start)_n``, each with its multiplicity, minus the shift."""
        small, a = self.num_small, start[:, None]
        if small == len(self.counts):
            result: FloatArray = log_rising(a, self.counts) @ self.times
            return result
        large = log_rising_shifted(a, self.counts[small:]) @ self.times[small:]
        return log_rising(a, self.counts[:small]) @ self.times[:small] + large


class CountHistograms:
    """Histograms of the counts of each value, and of the totals.

    Parameters
    ----------
    counts : (U, V)
        Count vectors.
    shifted
        If True, `log_marginal` leaves out `shift`.

    Attributes
    ----------
    shift
        Part of the log marginal likelihood that does not depend on the parameters; 0 if all
        counts are below a million.

    Examples
    --------
    >>> from bayes_lcs.core.dirichlet import log_dirichlet_multinomial
    >>> counts = np.array([[1, 2], [1, 0], [0, 2]])
    >>> found = CountHistograms(counts).log_marginal([0.5, 3.0])
    >>> bool(np.isclose(found, log_dirichlet_multinomial(counts, [0.5, 3.0]).sum()))
    True
    """

    def __init__(self, counts: ArrayLike, shifted: bool = False) -> None:
        table = np.asarray(counts)
        self._values = [_Histogram.of(column) for column in table.T]
        self._totals = _Histogram.of(table.sum(axis=1))
        self._shifted = shifted
        self.shift = sum(own.shift for own in self._values) - self._totals.shift

    @property
    def num_terms(self) -> int:
        """Number of terms in a log marginal likelihood."""
        return sum(len(own.counts) for own in (*self._values, self._totals))

    def log_marginal(self, parameters: ArrayLike) -> FloatArray:
        """Return the log marginal likelihood of all vectors at parameters ``(..., V)``."""
        a = np.asarray(parameters, dtype=np.float64)
        points = a.reshape(-1, a.shape[-1])
        result = np.empty(len(points))
        size = max(MAX_TERMS_PER_CALL // max(self.num_terms, 1), 1)
        for start in range(0, len(points), size):
            some = points[start : start + size]
            own = -self._totals.log_rising(some.sum(axis=-1))
            for value, histogram in enumerate(self._values):
                own += histogram.log_rising(some[:, value])
            result[start : start + size] = own
        if not self._shifted:
            result += self.shift
        return result.reshape(a.shape[:-1])
