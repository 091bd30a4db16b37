"""``log m(T)`` for every one of the ``2^U`` subsets ``T`` of the groups.

``m(T) = prod_{y,f} B(n_{T,y,f} + beta) / B(beta)`` is a sum over cells ``(y, f, x)`` of
``log (beta)_{n_T}``. Counts of subsets are sums over members, so with the index split into high
and low bits, ``n_T = n_high + n_low``: for each cell, the look-up table shifted by ``n_high`` is
gathered at the precomputed ``n_low``. Chunks of ``2^14`` subsets stay in cache, and chunks are
independent, so they run on all cores.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayes_lcs.core.counts import GroupCounts
from bayes_lcs.core.dirichlet import MAX_TABLE_ENTRIES, log_rising, log_rising_table
from bayes_lcs.inference.exact.subset_masks import subset_sums
from bayes_lcs.runtime.memory import num_cores

__all__ = ["log_block_marginals"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

CHUNK_BITS = 14
"""Low bits of the index of a subset, which one chunk covers."""


class _Term(NamedTuple):
    """One term ``sign * log (start)_n`` of ``log m(T)``, with ``n`` summed over members."""

    sign: float
    start: float
    counts: IntArray  # (U,)


def _terms(counts: GroupCounts, feature_prior: FloatArray) -> list[_Term]:
    """Return the cells (numerators) and feature totals (denominators) that are not all zero."""
    schema = counts.schema
    totals = counts.feature_totals
    prior_totals = schema.sum_values(feature_prior)
    terms = []
    for label in range(schema.num_labels):
        for cell in range(schema.num_cells):
            terms.append(_Term(1.0, feature_prior[label, cell], counts.features[:, label, cell]))
        for feature in range(schema.num_features):
            terms.append(_Term(-1.0, prior_totals[label, feature], totals[:, label, feature]))
    return [term for term in terms if term.counts.any()]


def _lookup(start: float, max_count: int) -> Callable[[int, IntArray, FloatArray], FloatArray]:
    """Return a function ``(shift, low, out) -> log (start)_{shift + low}``, by table if it fits."""
    if max_count >= MAX_TABLE_ENTRIES:

        def evaluate(shift: int, low: IntArray, out: FloatArray) -> FloatArray:
            out[:] = log_rising(start, shift + low)
            return out

        return evaluate
    table = log_rising_table(start, max_count)

    def gather(shift: int, low: IntArray, out: FloatArray) -> FloatArray:
        # mode="clip" lets NumPy write into `out` without a buffer; the index is always in range.
        return np.take(table[shift:], low, out=out, mode="clip")

    return gather


def log_block_marginals(counts: GroupCounts, feature_prior: FloatArray) -> FloatArray:
    """Return ``log m(T)`` of every subset of the groups, indexed by bit mask; shape ``(2**U,)``.

    Parameters
    ----------
    counts
        Counts of ``U`` groups.
    feature_prior : (L, C)
        Dirichlet parameters ``beta_{y,f,x}``.

    Examples
    --------
    >>> from bayes_lcs.core.counts import count_rows
    >>> from bayes_lcs.core.schema import Schema
    >>> counts = count_rows(Schema(1, (2,)), 2, [0, 1], [0, 0], [[0], [1]])
    >>> np.exp(log_block_marginals(counts, np.ones((1, 2)))).round(3).tolist()
    [1.0, 0.5, 0.5, 0.167]
    """
    num_groups = counts.num_groups
    low_bits = min(CHUNK_BITS, num_groups)
    low_size = 1 << low_bits
    terms = _terms(counts, feature_prior)
    lookups = [_lookup(term.start, int(term.counts.sum())) for term in terms]
    lows = [subset_sums(term.counts[:low_bits]) for term in terms]
    highs = [subset_sums(term.counts[low_bits:]) for term in terms]
    result = np.zeros((1 << (num_groups - low_bits), low_size))

    def fill(chunk: int) -> None:
        positive, negative, buffer = (np.zeros(low_size) for _ in range(3))
        for term, lookup, low, high in zip(terms, lookups, lows, highs, strict=True):
            side = positive if term.sign > 0 else negative
            side += lookup(int(high[chunk]), low, buffer)
        np.subtract(positive, negative, out=result[chunk])

    with ThreadPoolExecutor(num_cores()) as pool:
        list(pool.map(fill, range(len(result))))
    return result.reshape(-1)
