"""Deterministic lower bounds of the evidence of clustered naive Bayes.

``P(X, Y) = sum_z P(X, Y, z)`` has no negative terms, so any set of different partitions bounds it
from below. The thesis uses the partition into singletons (4.8)-(4.13); partitions drawn by a
sampler give better bounds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp

from bayes_lcs.core.partitions import first_occurrence
from bayes_lcs.models.clustered_naive_bayes import ClusteredNaiveBayes

if TYPE_CHECKING:
    from bayes_lcs.data.grouped_table import GroupedTable

__all__ = ["bound_from_partitions", "bound_from_singletons"]


def bound_from_partitions(
    model: ClusteredNaiveBayes, data: GroupedTable, partitions: ArrayLike
) -> float:
    """Return ``log sum_z P(X, Y, z)`` over the different partitions in ``(S, U)``.

    Examples
    --------
    With all partitions of two groups the bound equals the evidence.

    >>> import bayes_lcs as bl
    >>> data, _ = bl.NoSharing().simulate(bl.Schema(2, (2,)), [3, 2], seed=0)
    >>> model = bl.ClusteredNaiveBayes()
    >>> bound = bound_from_partitions(model, data, [[0, 0], [0, 1], [1, 0]])
    >>> bool(abs(bound - bl.evidence(model, data).value) < 1e-12)
    True
    """
    counts = data.counts()
    different = np.unique(first_occurrence(np.atleast_2d(np.asarray(partitions))), axis=0)
    return float(logsumexp([model.log_joint(counts, z) for z in different]))


def bound_from_singletons(model: ClusteredNaiveBayes, data: GroupedTable) -> float:
    """Return the thesis's bound by singletons (4.8)-(4.13), with the prior corrected.

    For 21 groups and concentration 1 the prior is ``1/21!`` with log -45.4; the thesis has -43.
    """
    return bound_from_partitions(model, data, np.arange(data.num_groups))
