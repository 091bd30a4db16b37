"""Sets as points: distances estimate those of Jaccard."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from bayes_lcs.data.rows.minhash import min_hash


def jaccard(a, b):
    return 1.0 - (a & b).sum() / max((a | b).sum(), 1)


def test_squared_distances_have_the_mean_of_jaccard():
    rng = np.random.default_rng(0)
    sets = rng.random((6, 40)) < np.array([0.1, 0.2, 0.3, 0.5, 0.5, 0.9])[:, None]
    sets[4] = sets[3]
    points = min_hash(sets, 4000, random_state=1)
    for i in range(6):
        for j in range(i):
            found = float(((points[i] - points[j]) ** 2).sum())
            exact = jaccard(sets[i], sets[j])
            # Twice a share of 4,000 bits, each different with probability exact / 2.
            error = 2.0 * np.sqrt(exact / 2 * (1 - exact / 2) / 4000)
            assert abs(found - exact) <= 4.5 * error + 1e-6
    assert np.array_equal(points[3], points[4])


def test_sparse_and_dense_are_the_same_and_empty_sets_are_equal():
    sets = np.array([[0, 1, 1, 0], [0, 0, 0, 0], [1, 0, 0, 1], [0, 0, 0, 0]])
    dense, sparse = (min_hash(X, 64, random_state=0) for X in (sets, csr_array(sets)))
    np.testing.assert_array_equal(dense, sparse)
    np.testing.assert_array_equal(dense[1], dense[3])
    assert dense.shape == (4, 64)
    with pytest.raises(ValueError, match="num_hashes"):
        min_hash(sets, 0)
