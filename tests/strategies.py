"""Hypothesis strategies for small tables, shared by the tests."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from bayes_lcs.core.counts import GroupCounts, count_rows
from bayes_lcs.core.schema import Schema


class SmallTable(NamedTuple):
    schema: Schema
    num_groups: int
    groups: NDArray[np.int64]
    labels: NDArray[np.int64]
    features: NDArray[np.int64]

    def counts(self) -> GroupCounts:
        return count_rows(self.schema, self.num_groups, self.groups, self.labels, self.features)


@st.composite
def small_tables(draw: st.DrawFn, max_groups: int = 4, max_rows: int = 12) -> SmallTable:
    """Tables with missing features, missing labels, empty groups and one-valued features."""
    num_values = draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
    schema = Schema(draw(st.integers(1, 3)), num_values)
    num_groups = draw(st.integers(1, max_groups))
    num_rows = draw(st.integers(0, max_rows))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    features = rng.integers(-1, num_values, (num_rows, len(num_values)))
    return SmallTable(
        schema,
        num_groups,
        rng.integers(0, num_groups, num_rows),
        rng.integers(-1, schema.num_labels, num_rows),
        features,
    )


def priors(schema: Schema) -> st.SearchStrategy[tuple[NDArray[np.float64], NDArray[np.float64]]]:
    """Asymmetric ``alpha`` ``(L,)`` and ``beta`` ``(L, C)``, between 0.05 and 20."""

    def make(seed: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        rng = np.random.default_rng(seed)
        shape = (schema.num_labels, schema.num_cells)
        return (
            np.exp(rng.uniform(np.log(0.05), np.log(20.0), schema.num_labels)),
            np.exp(rng.uniform(np.log(0.05), np.log(20.0), shape)),
        )

    return st.integers(0, 2**32 - 1).map(make)
