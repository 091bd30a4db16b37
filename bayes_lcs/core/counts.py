"""Sufficient statistics of labelled categorical rows, one block of counts per group.

Every sharing model depends on its data only through ``m_{u,y}`` (labels of group ``u``) and
``n_{u,y,f,x}`` (values of feature ``f`` under label ``y``), the counts of thesis eq. (2.7).
Missing features are not counted, so ``n_{u,y,f,.}`` may differ between features and from
``m_{u,y}``. Rows without a label are not counted: their labels are latent.

Counts are int64, or int32 if all of their sums fit, which halves the memory of a table of 100,000
groups. Sums of counts therefore never overflow.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayes_lcs.core.schema import Schema

__all__ = ["GroupCounts", "count_dtype", "count_rows", "merge_groups"]

IntArray = NDArray[np.int64]


def count_dtype(largest: int) -> type[np.int32] | type[np.int64]:
    """Return int32 if it holds counts up to ``largest``, else int64.

    Examples
    --------
    >>> count_dtype(2**31 - 1), count_dtype(2**31)
    (<class 'numpy.int32'>, <class 'numpy.int64'>)
    """
    return np.int32 if largest <= np.iinfo(np.int32).max else np.int64


@dataclass(frozen=True, eq=False)
class GroupCounts:
    """Counts of ``U`` groups.

    Attributes
    ----------
    schema
        Number of labels ``L`` and the flat layout of the ``C`` feature values.
    labels : (U, L)
        ``m_{u,y}``, the number of labelled rows of each group by label.
    features : (U, L, C)
        ``n_{u,y,f,x}`` with ``(f, x)`` flattened to one cell axis.

    Integer counts are converted to int64 if their type cannot hold the sums over groups, labels
    and values.
    """

    schema: Schema
    labels: IntArray
    features: IntArray

    def __post_init__(self) -> None:
        expected = (self.num_groups, self.schema.num_labels, self.schema.num_cells)
        if self.labels.shape != expected[:2] or self.features.shape != expected:
            raise ValueError(
                f"counts of shape {self.labels.shape} and {self.features.shape} do not fit "
                f"{expected[1]} labels and {expected[2]} feature values"
            )
        for name in ("labels", "features"):
            counts = getattr(self, name)
            if counts.dtype.kind in "biu" and not self._is_wide(counts):
                object.__setattr__(self, name, counts.astype(np.int64))

    def _is_wide(self, counts: NDArray[Any]) -> bool:
        """Return True if the type of the counts is signed and holds all of their sums."""
        if counts.dtype.kind != "i":
            return False
        return counts.dtype == np.int64 or self._largest_sum(counts) <= np.iinfo(counts.dtype).max

    def _largest_sum(self, counts: NDArray[Any]) -> int:
        """Return the largest sum over groups, labels and the values of one feature."""
        if counts.ndim == 2:
            return int(counts.sum())
        return int(self.schema.sum_values(counts.sum(axis=(0, 1))).max(initial=0))

    @property
    def num_groups(self) -> int:
        """Number of groups ``U``."""
        return int(self.labels.shape[0])

    @property
    def feature_totals(self) -> IntArray:
        """``n_{u,y,f,.}``: observed values of each feature under each label; ``(U, L, F)``."""
        return self.schema.sum_values(self.features)

    def __add__(self, other: GroupCounts) -> GroupCounts:
        """Add the counts of the same groups from other rows."""
        if self.schema != other.schema or self.num_groups != other.num_groups:
            raise ValueError("only counts over the same schema and groups can be added")
        return GroupCounts(
            self.schema,
            self._add(self.labels, other.labels),
            self._add(self.features, other.features),
        )

    def _add(self, one: NDArray[Any], more: NDArray[Any]) -> NDArray[Any]:
        largest = self._largest_sum(one) + self._largest_sum(more)
        return np.add(one, more, dtype=np.result_type(one, more, count_dtype(largest)))

    def take(self, groups: ArrayLike) -> GroupCounts:
        """Return the counts of the given groups, in that order; -1 is a group without rows."""
        index = np.asarray(groups, dtype=np.int64)
        known = np.maximum(index, 0)
        labels, features = self.labels[known], self.features[known]
        labels[index < 0] = 0
        features[index < 0] = 0
        return GroupCounts(self.schema, labels, features)


def count_rows(
    schema: Schema,
    num_groups: int,
    groups: ArrayLike,
    labels: ArrayLike,
    features: ArrayLike,
) -> GroupCounts:
    """Count coded rows into the sufficient statistics of ``num_groups`` groups.

    Rows whose label or group is ``-1`` are left out, and so are feature cells that are ``-1``.

    Examples
    --------
    >>> schema = Schema(num_labels=2, num_values=(2, 3))
    >>> counts = count_rows(schema, 1, [0, 0, 0], [1, 1, -1], [[0, 2], [0, -1], [1, 1]])
    >>> counts.labels.tolist(), counts.features[0, 1].tolist()
    ([[0, 2]], [2, 0, 0, 0, 1])
    """
    group = np.asarray(groups, dtype=np.int64)
    label = np.asarray(labels, dtype=np.int64)
    codes = np.asarray(features)
    num_labels, num_cells = schema.num_labels, schema.num_cells
    kept = (label >= 0) & (group >= 0)
    block = (group[kept] * num_labels + label[kept]).astype(np.int64)
    size = num_groups * num_labels
    label_counts = np.bincount(block, minlength=size).reshape(num_groups, num_labels)
    feature_counts = np.zeros((size, num_cells), dtype=np.int64)
    for feature, num_values in enumerate(schema.num_values):
        column = codes[kept, feature].astype(np.int64)
        seen = column >= 0
        flat = block[seen] * num_values + column[seen]
        feature_counts[:, schema.cells_of(feature)] = np.bincount(
            flat, minlength=size * num_values
        ).reshape(size, num_values)
    return GroupCounts(
        schema,
        label_counts.astype(np.int64),
        feature_counts.reshape(num_groups, num_labels, num_cells),
    )


def merge_groups(counts: GroupCounts, partition: ArrayLike) -> GroupCounts:
    """Add up the counts of the groups in each block of a partition.

    Parameters
    ----------
    partition : (U,)
        Block index of each group, ``0 .. K-1``.

    Returns
    -------
    GroupCounts
        ``K`` blocks in place of ``U`` groups.
    """
    block = np.asarray(partition, dtype=np.int64)
    if block.shape != (counts.num_groups,):
        raise ValueError(f"the partition has shape {block.shape}, not ({counts.num_groups},)")
    num_blocks = int(block.max()) + 1 if block.size else 0
    labels = np.zeros((num_blocks, *counts.labels.shape[1:]), dtype=np.int64)
    features = np.zeros((num_blocks, *counts.features.shape[1:]), dtype=np.int64)
    np.add.at(labels, block, counts.labels)
    np.add.at(features, block, counts.features)
    return GroupCounts(counts.schema, labels, features)
