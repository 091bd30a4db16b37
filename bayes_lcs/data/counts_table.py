"""`CountedTable`: a grouped table that stores only counts, whatever the number of rows."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayes_lcs.core.counts import GroupCounts, count_dtype
from bayes_lcs.core.errors import DataError
from bayes_lcs.core.schema import Schema
from bayes_lcs.data.grouped_table import GroupedTable

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["CountedTable"]


def _nothing() -> GroupCounts:
    return GroupCounts(Schema(1, (1,)), np.zeros((0, 1), np.int64), np.zeros((0, 1, 1), np.int64))


@dataclass(frozen=True, eq=False, repr=False)
class CountedTable(GroupedTable):
    """A `GroupedTable` without its rows, made by `bayes_lcs.read_counts`.

    Models of grouped data depend on counts only, so that evidence, samplers and predictions of new
    rows give the same results as with the rows. Methods that need rows, such as holding out rows or
    masking labels, raise an error.

    Parameters
    ----------
    counted
        Number of occurrences of each value with each label in each group.
    """

    counted: GroupCounts = field(default_factory=_nothing)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.counted.schema != self.schema or self.counted.num_groups != self.num_groups:
            raise DataError("the shapes of counts and names do not match")
        counts = self.counted
        for array in (counts.labels, counts.features):
            if array.dtype.kind != "i" or array.min(initial=0) < 0:
                raise DataError("counts must be non-negative integers")
        if (counts.feature_totals > counts.labels[:, :, None]).any():
            raise DataError("a feature has more values under a label than there are rows")

    @property
    def num_rows(self) -> int:
        """Number of rows that were counted."""
        return int(self.counted.labels.sum())

    @property
    def group_sizes(self) -> NDArray[np.int64]:
        """Number of rows of each group, shape ``(U,)``."""
        return self.counted.labels.sum(axis=1).astype(np.int64)

    def counts(self) -> GroupCounts:
        """Return the number of occurrences of each value with each label in each group."""
        return self.counted

    def select_groups(self, groups: Sequence[Any]) -> CountedTable:
        """Return the counts of some groups, given by names or codes."""
        chosen = self.group_codes(groups)
        names = tuple(self.group_names[code] for code in chosen)
        return replace(self, group_names=names, counted=self.counted.take(chosen))

    def labelled(self) -> CountedTable:
        """Return the table itself: every counted row has a label."""
        return self

    def require_rows(self) -> NoReturn:
        """Raise an error: the rows are not stored."""
        raise DataError(
            "this table was counted as it was read, and its rows were not kept; read them with "
            "bl.read_grouped for what needs rows"
        )

    def take(self, rows: ArrayLike | slice) -> NoReturn:  # noqa: ARG002
        """Raise an error: the rows are not stored."""
        self.require_rows()

    def with_labels(self, labels: ArrayLike) -> NoReturn:  # noqa: ARG002
        """Raise an error: the rows are not stored."""
        self.require_rows()

    def mask_labels(self, rows: ArrayLike | slice) -> NoReturn:  # noqa: ARG002
        """Raise an error: the rows are not stored."""
        self.require_rows()

    def row_group_names(self) -> NoReturn:
        """Raise an error: the rows are not stored."""
        self.require_rows()

    def to_frame(self, *, categorical: bool = False) -> pd.DataFrame:  # noqa: ARG002
        """Raise an error: the rows are not stored."""
        self.require_rows()

    def describe(self) -> str:
        """Return a description in one line."""
        return repr(self)

    @cached_property
    def _sha256(self) -> str:
        from bayes_lcs.data.grouped_table import sha256

        digest = hashlib.sha256(sha256(self).encode("ascii"))
        # By the number of rows, not by the type of the arrays: equal counts have equal hashes.
        dtype = np.dtype(count_dtype(self.num_rows)).newbyteorder("<")
        for counts in (self.counted.labels, self.counted.features):
            digest.update(np.ascontiguousarray(counts, dtype=dtype).tobytes())
        return digest.hexdigest()

    def __repr__(self) -> str:
        return (
            f"CountedTable({self.num_rows} rows, counted, {self.num_groups} groups by "
            f"{self.group_name!r}, {self.num_features} features, label {self.label_name!r} with "
            f"{self.num_labels} values)"
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, CountedTable):
            return NotImplemented
        return self._sha256 == other._sha256

    def __hash__(self) -> int:
        return hash(self._sha256)

    def arrays(self) -> dict[str, Any]:
        """Return the counts by name, for saving them with results."""
        return {"label_count": self.counted.labels, "value_count": self.counted.features}
