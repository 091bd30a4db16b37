"""Orders that matter are seen, and others not more often than stated."""

import numpy as np
import pandas as pd

from bayes_lcs.classification.partial_scan.exchangeability import (
    PartMeans,
    neighbour_p_value,
    smoothest_p_value,
)


def test_p_values_are_uniform_where_the_order_means_nothing():
    rng = np.random.default_rng(0)
    for test in (neighbour_p_value, smoothest_p_value):
        values = [test(rng.normal(size=(12, 4)), rng) for _ in range(300)]
        assert abs(np.mean(values) - 0.5) < 4.0 * np.sqrt(1 / 12 / 300)
        assert np.mean(np.array(values) < 0.1) < 0.1 + 4.0 * np.sqrt(0.09 / 300)


def test_one_sorted_column_among_many_is_seen():
    rng = np.random.default_rng(1)
    columns = rng.normal(size=(16, 20))
    assert smoothest_p_value(columns, rng) > 0.01
    columns[:, 7] = np.linspace(-1.5, 1.5, 16)
    assert smoothest_p_value(columns, rng) < 0.001
    assert neighbour_p_value(columns, rng) > 0.001  # which the sum over all columns does not see


def test_few_parts_and_constant_columns_say_nothing():
    rng = np.random.default_rng(2)
    assert neighbour_p_value(np.arange(5.0)[:, None], rng) == 1.0
    assert smoothest_p_value(np.ones((10, 3)), rng) == 1.0


def test_means_of_names_are_shares_of_the_commonest_of_the_first_part():
    means = PartMeans()
    means.add(pd.DataFrame({"town": ["a", "a", "b"], "age": [1.0, 2.0, np.nan]}))
    means.add(pd.DataFrame({"town": ["b", "b", "b"], "age": [3.0, 3.0, 3.0]}))
    np.testing.assert_allclose(means.columns(), [[2 / 3, 1.0], [0.0, 3.0]])
