from __future__ import annotations

import numpy as np
import pytest

from bayes_lcs.core.schema import Schema


def test_cells_lie_feature_after_feature() -> None:
    schema = Schema(2, [3, 1, 4])
    assert schema.num_cells == 8
    assert schema.offsets.tolist() == [0, 3, 4, 8]
    assert [schema.cells_of(f) for f in range(3)] == [slice(0, 3), slice(3, 4), slice(4, 8)]
    assert schema.cell_feature.tolist() == [0, 0, 0, 1, 2, 2, 2, 2]


def test_sums_over_values_equal_a_loop() -> None:
    schema = Schema(2, (3, 1, 4))
    cells = np.random.default_rng(0).integers(0, 9, (5, 2, 8))
    loop = np.stack([cells[..., schema.cells_of(f)].sum(axis=-1) for f in range(3)], axis=-1)
    np.testing.assert_array_equal(schema.sum_values(cells), loop)


def test_a_schema_without_features_is_a_schema() -> None:
    schema = Schema(2, ())
    assert (schema.num_features, schema.num_cells) == (0, 0)
    assert schema.sum_values(np.zeros((4, 0))).shape == (4, 0)


def test_schemas_compare_and_hash_by_value() -> None:
    assert Schema(2, [3, 2]) == Schema(2, (3, 2))
    assert len({Schema(2, [3, 2]), Schema(2, (3, 2)), Schema(2, (2, 3))}) == 2


def test_impossible_sizes_are_refused() -> None:
    with pytest.raises(ValueError, match="num_labels must be at least 1, got 0"):
        Schema(0, (2,))
    with pytest.raises(ValueError, match="feature 1 must have at least 1 value, got 0"):
        Schema(2, (2, 0))
