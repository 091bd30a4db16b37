"""The best clustering of all, against every partition counted by hand."""

import numpy as np
import pytest

import bayes_lcs as bl
from bayes_lcs.clustering.kmeans.brute_force import exhaustive_kmeans
from bayes_lcs.clustering.kmeans.init import nearest
from tests.oracles import all_partitions


def cost_of(X, w, blocks):
    total = 0.0
    for block in blocks:
        center = np.average(X[block], axis=0, weights=w[block])
        total += float(w[block] @ ((X[block] - center) ** 2).sum(axis=1))
    return total


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("k", [1, 2, 3, 7])
def test_it_is_the_least_of_all_partitions(seed, k):
    rng = np.random.default_rng(seed)
    X, w = rng.normal(size=(7, 2)) + 100.0, rng.gamma(1.0, size=7)
    expected = min(
        cost_of(X, w, [np.flatnonzero(np.array(labels) == b) for b in set(labels)])
        for labels in all_partitions(7)
        if len(set(labels)) <= k
    )
    centers, cost = exhaustive_kmeans(X, w, k)
    assert centers.shape == (k, 2)
    assert cost == pytest.approx(expected, rel=1e-9, abs=1e-9)
    assert w @ nearest(X, centers)[1] == pytest.approx(cost, rel=1e-6, abs=1e-9)


def test_no_start_finds_a_cheaper_one():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(300, 2)) + 4.0 * rng.integers(4, size=(300, 1))
    small = bl.coreset(X, 3, 12, random_state=0)
    best = small.kmeans(3, exhaustive=True)
    many = small.kmeans(3, n_init=50, random_state=0)
    assert best.inertia_ <= many.inertia_ * (1 + 1e-12)


def test_what_is_refused():
    with pytest.raises(ValueError, match="at most 14"):
        exhaustive_kmeans(np.zeros((15, 1)), np.ones(15), 2)
    with pytest.raises(ValueError, match="num_clusters must be between"):
        exhaustive_kmeans(np.zeros((2, 1)), np.ones(2), 3)
