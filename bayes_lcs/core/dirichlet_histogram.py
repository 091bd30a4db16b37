"""Many count vectors under one Dirichlet, by how often each count occurs.

The marginal likelihoods of ``U`` vectors with the same parameters multiply to

    prod_u prod_v (a_v)_{n_uv} / (sum a)_{N_u},

which asks only how often each count ``n`` occurs for each value, and each total ``N``: a hundred
thousand groups have some dozen different counts.

Of large counts the logs are huge and nearly the same for all parameters ``a``. What does not depend
on ``a`` can be set aside, so that differences between parameters keep their digits.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayes_lcs.core.dirichlet import log_rising, log_rising_shifted

__all__ = ["CountHistograms"]

FloatArray = NDArray[np.float64]

TERMS_AT_ONCE = 1 << 20
"""Points times counts that are looked at together."""

LARGE = 1 << 20
"""Of counts from here on ``log Gamma(n)`` is set aside: it has eight digits before the point."""


class _Histogram(NamedTuple):
    counts: FloatArray
    times: FloatArray

    @classmethod
    def of(cls, counts: NDArray) -> _Histogram:
        found, times = np.unique(counts[counts > 0], return_counts=True)
        return cls(found.astype(np.float64), times.astype(np.float64))

    @property
    def num_small(self) -> int:
        """Number of counts below `LARGE`, which come first."""
        return int(np.searchsorted(self.counts, LARGE))

    @property
    def shift(self) -> float:
        """``log prod_n Gamma(n)`` of the large counts."""
        small = self.num_small
        return float(log_rising(1.0, self.counts[small:] - 1.0) @ self.times[small:])

    def log_rising(self, start: FloatArray) -> FloatArray:
        """``log prod_n (start)_n``, each as often as it occurs, less the shift."""
        small, a = self.num_small, start[:, None]
        if small == len(self.counts):
            result: FloatArray = log_rising(a, self.counts) @ self.times
            return result
        large = log_rising_shifted(a, self.counts[small:]) @ self.times[small:]
        return log_rising(a, self.counts[:small]) @ self.times[:small] + large


class CountHistograms:
    """How often each count occurs, for each of the values, and each total.

    Parameters
    ----------
    counts : (U, V)
        Count vectors.
    shifted
        Whether `log_marginal` leaves out `shift`.

    Attributes
    ----------
    shift
        Part of the log marginal likelihood that does not depend on the parameters; 0 where all
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
        """Numbers that a marginal likelihood is made of."""
        return sum(len(own.counts) for own in (*self._values, self._totals))

    def log_marginal(self, parameters: ArrayLike) -> FloatArray:
        """The log marginal likelihood of all vectors, at parameters ``(..., V)``."""
        a = np.asarray(parameters, dtype=np.float64)
        points = a.reshape(-1, a.shape[-1])
        result = np.empty(len(points))
        size = max(TERMS_AT_ONCE // max(self.num_terms, 1), 1)
        for start in range(0, len(points), size):
            some = points[start : start + size]
            own = -self._totals.log_rising(some.sum(axis=-1))
            for value, histogram in enumerate(self._values):
                own += histogram.log_rising(some[:, value])
            result[start : start + size] = own
        if not self._shifted:
            result += self.shift
        return result.reshape(a.shape[:-1])
