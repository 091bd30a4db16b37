"""Posterior predictive of a row, given the partition or prototype and the hyper-parameters.

All sharing models have the same form once their remaining unknowns are given: each group takes its
label probabilities from one block of label counts and its feature probabilities from one block of
feature counts,

    P(y, x | u) = (m_{a(u),y} + alpha_y) / (m_{a(u),.} + alpha_.)
                  prod_f (n_{k(u),y,f,x} + beta_{y,f,x}) / (n_{k(u),y,f,.} + beta_{y,f,.}).

A row that is part of the counts is left out by subtracting one from them, so leave-one-out
predictions need no refit.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayes_lcs.core.counts import GroupCounts
from bayes_lcs.core.naive_bayes import log_row_predictive
from bayes_lcs.core.schema import Schema

__all__ = ["ConditionalPredictive"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


@dataclass(frozen=True, eq=False, kw_only=True)
class ConditionalPredictive:
    """Blocks of counts, and the blocks from which each group is predicted.

    Attributes
    ----------
    schema
        Number of labels ``L`` and the flat layout of the ``C`` feature values.
    label_counts : (A, L)
        Blocks of label counts.
    feature_counts : (K, L, C)
        Blocks of feature counts.
    label_block, feature_block : (U,)
        Index of the blocks of each group.
    label_prior : (L,)
        Dirichlet parameters of the labels.
    feature_prior : (L, C)
        Dirichlet parameters of the feature values.
    new_label_block : int
        Block of label counts of a new group; -1 for none.
    new_feature_weights : (K + 1,)
        Probability that a new group uses each block of feature counts, or none (last).
    """

    schema: Schema
    label_counts: IntArray
    feature_counts: IntArray
    label_block: IntArray
    feature_block: IntArray
    label_prior: FloatArray
    feature_prior: FloatArray
    new_label_block: int
    new_feature_weights: FloatArray

    def log_joint(
        self, features: ArrayLike, groups: ArrayLike, left_out: ArrayLike | None = None
    ) -> FloatArray:
        """Return ``log P(y, x)`` of each row in its own group, under each label; ``(N, L)``.

        Parameters
        ----------
        features : (N, F)
            Coded rows, -1 missing.
        groups : (N,)
            Group of each row; -1 is a new group.
        left_out : (N,), optional
            Labels under which the rows are part of the counts. Each row is removed from the counts
            for its own prediction. -1 for a row that is not part of them.
        """
        codes = np.asarray(features, dtype=np.int64)
        group = np.asarray(groups, dtype=np.int64)
        result = np.empty((len(codes), self.schema.num_labels))
        known = group >= 0
        result[known] = self._log_known(codes[known], group[known])
        if not known.all():
            result[~known] = self._log_new(codes[~known])
        if left_out is not None:
            label = np.asarray(left_out, dtype=np.int64)
            inside = known & (label >= 0)
            self._leave_out(result, np.flatnonzero(inside), codes, group, label)
        return result

    def _cells(self, codes: IntArray) -> IntArray:
        """Return the cell of each feature value; arbitrary where the value is missing."""
        return self.schema.offsets[:-1] + np.maximum(codes, 0)

    def _log_known(self, codes: IntArray, group: IntArray) -> FloatArray:
        labels = self.label_counts + self.label_prior
        log_phi = np.log(labels) - np.log(labels.sum(axis=1, keepdims=True))
        pseudo = self.feature_counts + self.feature_prior
        totals = self.schema.sum_values(pseudo)[..., self.schema.cell_feature]
        log_theta = np.log(pseudo) - np.log(totals)
        result = log_phi[self.label_block[group]]
        block, cells = self.feature_block[group], self._cells(codes)
        for feature in range(self.schema.num_features):
            seen = codes[:, feature] >= 0
            result[seen] += log_theta[block[seen], :, cells[seen, feature]]
        return result

    def _log_new(self, codes: IntArray) -> FloatArray:
        """Return ``log P(y, x)`` of rows of a new group: a mixture over the blocks."""
        reads = np.flatnonzero(self.new_feature_weights)
        nothing = np.zeros((1, *self.feature_counts.shape[1:]), dtype=np.int64)
        alone = reads == len(self.feature_counts)
        features = np.concatenate([self.feature_counts[reads[~alone]], nothing[: alone.sum()]])
        labels = np.zeros(self.schema.num_labels, dtype=np.int64)
        if self.new_label_block >= 0:
            labels = self.label_counts[self.new_label_block]
        informing = GroupCounts(self.schema, np.tile(labels, (len(reads), 1)), features)
        logs = log_row_predictive(informing, self.label_prior, self.feature_prior, codes)
        logs += np.log(self.new_feature_weights[reads])[:, None, None]
        result: FloatArray = np.logaddexp.reduce(logs, axis=0)
        return result

    def _leave_out(
        self,
        result: FloatArray,
        rows: IntArray,
        codes: IntArray,
        group: IntArray,
        label: IntArray,
    ) -> None:
        """Correct rows that are part of the counts: subtract one from label and value counts."""
        # All factors are ratios of counts, so removing a row subtracts 1 from each count.
        y, codes = label[rows], codes[rows]
        of_label, of_feature = self.label_block[group[rows]], self.feature_block[group[rows]]
        own = self.label_counts[of_label] + self.label_prior
        total = own.sum(axis=1, keepdims=True)
        result[rows] += np.log(total) - np.log(total - 1.0)
        mine = own[np.arange(len(rows)), y]
        result[rows, y] += np.log(mine - 1.0) - np.log(mine)
        pseudo = self.feature_counts + self.feature_prior
        totals = self.schema.sum_values(pseudo)
        cells = self._cells(codes)
        for feature in range(self.schema.num_features):
            seen = codes[:, feature] >= 0
            block, under = of_feature[seen], y[seen]
            value = pseudo[block, under, cells[seen, feature]]
            sum_ = totals[block, under, feature]
            result[rows[seen], under] += (
                np.log(value - 1.0) - np.log(value) - np.log(sum_ - 1.0) + np.log(sum_)
            )
