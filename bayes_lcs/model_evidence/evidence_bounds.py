"""Lower bounds of the evidence of clustered naive Bayes that hold with certainty.

``P(X, Y) = sum_z P(X, Y, z)`` has no negative terms, so any set of different partitions bounds it
from below. The thesis takes one, every group by itself (4.8)-(4.13); the partitions that a sampler
visited are better.
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
    """``log sum_z P(X, Y, z)`` over the different ones among partitions ``(S, U)``.

    Examples
    --------
    All partitions of two groups: the bound is the evidence.

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
    """The thesis's bound (4.8)-(4.13): every group by itself, with the right prior of that.

    For 21 groups and concentration 1 the prior is ``1/21!``, its log -45.4; the thesis has -43.
    """
    return bound_from_partitions(model, data, np.arange(data.num_groups))
