"""Exact posteriors over partitions of the groups, as :func:`bayes_lcs.exact` returns them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayes_lcs.core.counts import GroupCounts
from bayes_lcs.core.model_protocols import KnownPartitionModel, PartitionModel
from bayes_lcs.core.naive_bayes import log_row_predictive, normalise_log
from bayes_lcs.core.partitions import blocks, first_occurrence
from bayes_lcs.core.priors import fixed_value
from bayes_lcs.inference.exact.partition_function import PartitionSums
from bayes_lcs.inference.partition_estimate import best_partition

if TYPE_CHECKING:
    from bayes_lcs.data.grouped_table import GroupedTable

__all__ = ["ClusteredPosterior", "ExactPosterior", "InformingBlocks", "KnownPartitionPosterior"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

PREDICTION_ERROR = 1e-10
"""Maximum error of a predicted probability from leaving out improbable clusters."""


FIRST_BATCH, MAX_BATCH = 16, 512


class InformingBlocks(NamedTuple):
    """A batch of possible clusters of a group.

    Attributes
    ----------
    probability : (K,)
        Probability of each cluster.
    counts
        Counts of the ``K`` clusters.
    left
        Total probability of the clusters that follow.
    """

    probability: FloatArray
    counts: GroupCounts
    left: float


class ExactPosterior(ABC):
    """Exact posterior of a model given a table.

    Partitions are arrays with one cluster number per group, numbered by first occurrence.

    Attributes
    ----------
    model
        The model.
    data : GroupedTable
        The table on which it is conditioned.
    log_evidence : float
        ``log P(X, Y)``, all normalising constants included.
    """

    def __init__(self, model: Any, data: GroupedTable, log_evidence: float) -> None:
        self.model = model
        self.data = data
        self.log_evidence = log_evidence
        self._counts = data.counts()

    @property
    def group_names(self) -> tuple[str, ...]:
        """Names of the groups, in the order of every array here."""
        return self.data.group_names

    @property
    def num_groups(self) -> int:
        """Number of groups ``U``."""
        return self._counts.num_groups

    @abstractmethod
    def coclustering(self) -> FloatArray:
        """Return the probability that each pair of groups shares its parameters, ``(U, U)``."""

    @abstractmethod
    def num_clusters(self) -> FloatArray:
        """Return the probability of each number of clusters ``k``, ``(U + 1,)``, at entry ``k``."""

    @abstractmethod
    def map_partition(self) -> IntArray:
        """Return the most probable partition, ``(U,)``."""

    @abstractmethod
    def log_probability(self, partition: ArrayLike) -> float:
        """Return the log posterior probability of one partition."""

    @abstractmethod
    def sample(self, draws: int = 1000, seed: int = 0) -> IntArray:
        """Draw independent partitions from the posterior, ``(draws, U)``."""

    def partition(self, loss: str = "vi", *, draws: int = 4000, seed: int = 0) -> IntArray:
        """Find the partition with the smallest expected loss under independent draws, ``(U,)``.

        Parameters
        ----------
        loss : {"vi", "binder"}
            Variation of information, or Binder's loss.
        draws
            Number of draws over which the expected loss is the mean.
        seed
            Seed of the draws and of the search.

        Examples
        --------
        >>> import bayes_lcs as bl
        >>> data, truth = bl.meeting_requests(seed=0)
        >>> posterior = bl.exact(bl.ClusteredNaiveBayes(), data)
        >>> bool((posterior.partition(loss="binder") == truth.partition).all())
        True
        """
        unique, counts = np.unique(self.sample(draws, seed), axis=0, return_counts=True)
        return best_partition(unique, counts, loss, seed=seed)[0]

    @abstractmethod
    def _log_joint(self, group: int, features: NDArray) -> FloatArray:
        """Return ``log P(y, x | data)`` of rows of one group (-1 for a new group), ``(N, L)``."""

    def predict_proba(
        self, rows: Any, *, unseen: Literal["missing", "error"] = "missing"
    ) -> FloatArray:
        """Return the probability of each label for each row, averaged over all partitions.

        Parameters
        ----------
        rows
            A pandas, polars or Arrow frame, a table, or the path of a CSV or Parquet file, with the
            feature and group columns of the training table. A group that is not in the training
            table is predicted as a new group. Rows are predicted independently of each other.
        unseen : {"missing", "error"}
            Treatment of feature values not seen in training: as missing, or an error.

        Returns
        -------
        (N, L)
            Columns in the order of ``data.label_values``.
        """
        encoded = self.data.encode(rows, unseen=unseen)
        result = np.empty((encoded.num_rows, encoded.num_labels))
        for group in np.unique(encoded.groups):
            here = np.flatnonzero(encoded.groups == group)
            result[here] = self._log_joint(int(group), encoded.features[here])
        return normalise_log(result)

    def __repr__(self) -> str:
        return (
            f"<{type(self).__name__} of {self.model.name}: {self.num_groups} groups, "
            f"log evidence {self.log_evidence:.4f}>"
        )


class KnownPartitionPosterior(ExactPosterior):
    """Exact posterior of no sharing or complete sharing, whose partition is known."""

    model: KnownPartitionModel

    def __init__(self, model: KnownPartitionModel, data: GroupedTable) -> None:
        super().__init__(model, data, float(model.log_marginal(data.counts())))
        self._partition = model.partition(self.num_groups)

    def coclustering(self) -> FloatArray:
        """Return 1 for pairs in the same cluster, 0 for others."""
        return (self._partition[:, None] == self._partition[None, :]).astype(np.float64)

    def num_clusters(self) -> FloatArray:
        """Return probability 1 for the known number of clusters."""
        probability = np.zeros(self.num_groups + 1)
        probability[len(np.unique(self._partition))] = 1.0
        return probability

    def map_partition(self) -> IntArray:
        """Return the known partition."""
        return self._partition.copy()

    def log_probability(self, partition: ArrayLike) -> float:
        """Return 0 for the known partition, minus infinity for others."""
        same = np.array_equal(first_occurrence(partition), self._partition)
        return 0.0 if same else -np.inf

    def sample(self, draws: int = 1000, seed: int = 0) -> IntArray:  # noqa: ARG002
        """Return the known partition ``draws`` times."""
        return np.tile(self._partition, (draws, 1))

    def _log_joint(self, group: int, features: NDArray) -> FloatArray:
        return self.model.log_predictive(self._counts, features, groups=[group])[0]


class ClusteredPosterior(ExactPosterior):
    """Exact posterior of clustered naive Bayes over all partitions.

    Attributes
    ----------
    sums : PartitionSums
        Sums over partitions by subset, from which all results are computed.
    """

    model: PartitionModel

    def __init__(
        self, model: PartitionModel, data: GroupedTable, sums: PartitionSums, log_evidence: float
    ) -> None:
        super().__init__(model, data, log_evidence)
        self.sums = sums

    def coclustering(self) -> FloatArray:
        """Return the probability that each pair of groups shares its parameters, ``(U, U)``."""
        num_groups = self.num_groups
        # Sum cluster probabilities over masks that contain both groups, as products of bit matrices
        # of the high and the low bits of the masks.
        probability = self.sums.block_probabilities
        low_bits = num_groups // 2
        table = probability.reshape(-1, 1 << low_bits)
        high, low = (
            (np.arange(size)[:, None] >> np.arange(bits) & 1).astype(np.float64)
            for size, bits in ((table.shape[0], num_groups - low_bits), (table.shape[1], low_bits))
        )
        matrix = np.empty((num_groups, num_groups))
        matrix[:low_bits, :low_bits] = low.T @ (table.sum(axis=0)[:, None] * low)
        matrix[low_bits:, low_bits:] = high.T @ (table.sum(axis=1)[:, None] * high)
        cross = high.T @ table @ low
        matrix[low_bits:, :low_bits], matrix[:low_bits, low_bits:] = cross, cross.T
        return np.minimum(matrix, 1.0)

    def num_clusters(self) -> FloatArray:
        """Return the probability of each number of clusters ``k``, ``(U + 1,)``, at entry ``k``."""
        return self.sums.size_probabilities.copy()

    def map_partition(self) -> IntArray:
        """Return the most probable of all partitions, ``(U,)``."""
        z = np.zeros(self.num_groups, dtype=np.int64)
        for number, mask in enumerate(self.sums.best_partition()):
            z[(mask >> np.arange(self.num_groups) & 1).astype(bool)] = number
        return first_occurrence(z)

    def log_probability(self, partition: ArrayLike) -> float:
        """Return the log posterior probability of one partition."""
        z = np.asarray(partition)
        if z.shape != (self.num_groups,):
            raise ValueError(f"partition must have shape ({self.num_groups},), got {z.shape}")
        masks = [sum(1 << u for u in block) for block in blocks(z)]
        # Rounding can give an almost certain partition a probability slightly above one.
        return min(float(self.sums.log_weights[masks].sum() - self.sums.log_total), 0.0)

    def sample(self, draws: int = 1000, seed: int = 0) -> IntArray:
        """Draw independent partitions from the posterior, ``(draws, U)``."""
        return first_occurrence(self.sums.sample(draws, np.random.default_rng(seed)))

    def _log_joint(self, group: int, features: NDArray) -> FloatArray:
        schema = self._counts.schema
        priors = self.model.label_parameters(schema), self.model.feature_parameters(schema)
        total = np.full((len(features), schema.num_labels), -np.inf)
        for informants in self.informing_blocks(group):
            terms = log_row_predictive(informants.counts, *priors, features)
            terms += np.log(informants.probability)[:, None, None]
            total = np.logaddexp(total, np.logaddexp.reduce(terms, axis=0))
            # The remaining clusters add at most their probability to the joint of any row.
            least = np.logaddexp.reduce(total, axis=1).min(initial=np.inf)
            if informants.left <= 0 or np.log(informants.left) <= np.log(PREDICTION_ERROR) + least:
                break
        return total

    def informing_blocks(self, group: int) -> Iterator[InformingBlocks]:
        """Yield batches of possible clusters of a group (-1 for a new one), most probable first."""
        counts = self._counts
        schema = counts.schema
        probability = self.sums.block_probabilities
        members = np.arange(self.num_groups)
        if group >= 0:
            masks = np.flatnonzero((np.arange(probability.size) >> group & 1) * (probability > 0))
            weight, labels = probability[masks], counts.labels[group]
        else:
            # A new group joins a cluster in proportion to its size, or opens a new one (mask 0).
            masks = np.concatenate([[0], np.flatnonzero(probability > 0)])
            sizes = np.bitwise_count(masks.astype(np.uint64)).astype(np.float64)
            concentration = fixed_value(self.model.concentration, "concentration")
            weight = np.where(masks == 0, concentration, sizes * probability[masks])
            weight /= self.num_groups + concentration
            labels = np.zeros(schema.num_labels, dtype=np.int64)
        order = np.argsort(-weight)
        masks, weight = masks[order], weight[order]
        left = weight[::-1].cumsum()[::-1]
        flat = counts.features.reshape(self.num_groups, -1)
        start, batch = 0, FIRST_BATCH
        while start < len(masks):
            stop = start + batch
            chunk = masks[start:stop]
            features = (chunk[:, None] >> members & 1) @ flat
            block_counts = GroupCounts(
                schema,
                np.tile(labels, (len(chunk), 1)),
                features.reshape(len(chunk), schema.num_labels, schema.num_cells),
            )
            after = left[stop] if stop < len(masks) else 0.0
            yield InformingBlocks(weight[start:stop], block_counts, float(after))
            start, batch = stop, min(2 * batch, MAX_BATCH)
