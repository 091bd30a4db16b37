"""Partition estimates against the best of all partitions, by enumeration."""

from __future__ import annotations

import numpy as np
import pytest

from bayes_lcs.evaluation.partition_estimates import estimate_partition, partition_distance
from tests.oracles import all_partitions


def entropy_distance(a: np.ndarray, b: np.ndarray) -> float:
    """Variation of information as H(A|B) + H(B|A), from probabilities."""
    total = 0.0
    for k in set(a):
        for label in set(b):
            both = np.mean((a == k) & (b == label))
            if both > 0:
                total -= both * np.log(both / np.mean(a == k))
                total -= both * np.log(both / np.mean(b == label))
    return float(total)


def pair_distance(a: np.ndarray, b: np.ndarray) -> float:
    """Share of the pairs on which two partitions disagree."""
    pairs = np.triu_indices(len(a), 1)
    together = [(z[:, None] == z)[pairs] for z in (a, b)]
    return float(np.mean(together[0] != together[1]))


@pytest.mark.parametrize(("loss", "oracle"), [("vi", entropy_distance), ("binder", pair_distance)])
def test_distances_are_those_of_the_definitions(loss, oracle):
    rng = np.random.default_rng(0)
    for _ in range(50):
        a, b = rng.integers(0, 4, (2, 9))
        assert partition_distance(a, b, loss) == pytest.approx(oracle(a, b), abs=1e-12)


@pytest.mark.parametrize("loss", ["vi", "binder"])
@pytest.mark.parametrize("seed", range(12))
def test_search_finds_the_best_of_all_partitions(loss, seed):
    rng = np.random.default_rng(seed)
    centre = rng.integers(0, 3, 7)
    draws = np.tile(centre, (40, 1))
    noisy = rng.random(draws.shape) < 0.3
    draws[noisy] = rng.integers(0, 4, noisy.sum())
    found = estimate_partition(draws, loss)
    expected = {
        z: np.mean([partition_distance(z, draw, loss) for draw in draws]) for z in all_partitions(7)
    }
    assert found.expected_loss == pytest.approx(min(expected.values()), abs=1e-9)
    assert found.expected_loss == pytest.approx(expected[tuple(found.partition)], abs=1e-9)


def test_the_estimate_need_not_be_a_draw():
    draws = np.array([[0, 0, 0, 1, 2, 3], [0, 0, 1, 1, 2, 3], [0, 0, 1, 2, 2, 2]])
    found = estimate_partition(np.repeat(draws, 5, axis=0), "binder")
    assert not (found.partition == draws).all(axis=1).any()


def test_credible_ball_holds_its_share_of_the_draws_and_no_more_than_needed():
    rng = np.random.default_rng(3)
    draws = np.where(rng.random((400, 8)) < 0.8, [0, 0, 0, 0, 1, 1, 1, 1], rng.integers(0, 3, 8))
    found = estimate_partition(draws, level=0.9)
    distance = np.array([partition_distance(found.partition, z) for z in draws])
    inside = distance <= found.ball.radius + 1e-12
    assert inside.mean() >= 0.9
    assert (distance < found.ball.radius - 1e-12).mean() < 0.9
    clusters = np.array([len(set(z)) for z in draws[inside]])
    assert len(set(found.ball.coarsest)) == clusters.min()
    assert len(set(found.ball.finest)) == clusters.max()
    assert partition_distance(found.partition, found.ball.farthest) == pytest.approx(
        found.ball.radius
    )


def test_more_blocks_than_any_start():
    draws = np.tile(np.arange(60), (3, 1))
    assert len(set(estimate_partition(draws, num_starts=1).partition)) == 60


def test_bad_arguments():
    with pytest.raises(ValueError, match="'vi' or 'binder'"):
        estimate_partition([[0, 1]], loss="rand")
    with pytest.raises(ValueError, match="no draws"):
        estimate_partition(np.zeros((0, 3), dtype=int))
    with pytest.raises(ValueError, match="cannot be compared"):
        partition_distance([0, 1], [0, 1, 2])
