"""Log ratios of feature probabilities between labels, for each cluster of groups.

Under naive Bayes the features of a row discriminate between two labels by the sum over features of
``log theta_{y=1,f,x} / theta_{y=0,f,x}`` (thesis, section 4.1 and Figure 4-2). With more than two
labels one label is compared with the others, weighted by their frequencies in the cluster,

    log theta_{k,y,f,x} - log sum_{y' != y} w_{k,y'} theta_{k,y',f,x},
    w_{k,y'} = (m_{k,y'} + alpha_{y'}) / sum_{y'' != y} (m_{k,y''} + alpha_{y''}).

``theta`` is the posterior mode in the natural parameterisation given the partition.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayes_lcs.core.counts import merge_groups
from bayes_lcs.core.model_protocols import PartitionModel
from bayes_lcs.core.partitions import first_occurrence

if TYPE_CHECKING:
    from bayes_lcs.data.grouped_table import GroupedTable

__all__ = ["cluster_log_ratios"]

FloatArray = NDArray[np.float64]


def cluster_log_ratios(
    model: Any, data: GroupedTable, partition: ArrayLike, label: Any = None
) -> FloatArray:
    """Return the log ratio of each feature value, a label against the rest, per cluster.

    Parameters
    ----------
    model
        A `ClusteredNaiveBayes`, which provides the priors.
    data : GroupedTable
        The table.
    partition : (U,)
        Cluster of each group, for example ``posterior.map_partition()`` or
        ``posterior.partition()``.
    label
        The label that positive values favour; the last of ``data.label_values`` by default.

    Returns
    -------
    (K, C)
        Clusters in the order of their first group; feature values on the flat cell axis.

    Examples
    --------
    >>> import bayes_lcs as bl
    >>> data, truth = bl.meeting_requests(seed=0)
    >>> cluster_log_ratios(bl.ClusteredNaiveBayes(), data, truth.partition, "accept").shape
    (9, 80)
    """
    if not isinstance(model, PartitionModel):
        raise TypeError(f"model must be a ClusteredNaiveBayes, got {type(model).__name__}")
    if data.num_labels < 2:
        raise ValueError("log ratios need at least two labels")
    chosen = data.num_labels - 1 if label is None else data.label_code(label)
    counts, z = data.counts(), first_occurrence(partition)
    parameters: Any = model
    theta = parameters.posterior_mode(counts, z).theta  # one per group, equal within a cluster
    theta = theta[np.unique(z, return_index=True)[1]]
    weights = merge_groups(counts, z).labels + model.label_parameters(counts.schema)
    weights[:, chosen] = 0.0
    weights /= weights.sum(axis=1, keepdims=True)
    result: FloatArray = np.log(theta[:, chosen]) - np.log(np.einsum("ky,kyc->kc", weights, theta))
    return result
