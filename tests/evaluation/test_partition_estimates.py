"""Partition estimates against the best of all partitions, by enumeration."""

from __future__ import annotations

import numpy as np
import pytest

from bayes_lcs.core.partitions import first_occurrence
from bayes_lcs.evaluation import partition_estimates
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


def test_many_groups_are_searched_with_fewer_draws_starts_and_sweeps(monkeypatch):
    """Draws that differ from the truth in a few groups each: it is found all the same."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, 60)
    draws = np.tile(truth, (50, 1))
    for draw in draws:
        draw[rng.choice(60, 4, replace=False)] = rng.integers(0, 3, 4)
    monkeypatch.setattr(partition_estimates, "MOST_NUMBERS", 60 * 20)
    monkeypatch.setattr(partition_estimates, "MOST_UPDATES", 10 * 60 * 2)
    begun, swept = [], []
    start, sweep = partition_estimates._Search.start, partition_estimates._Search.sweep

    def begins(self, estimate):
        begun.append(estimate)
        assert self.num_draws <= 20
        start(self, estimate)

    monkeypatch.setattr(partition_estimates._Search, "start", begins)
    monkeypatch.setattr(
        partition_estimates._Search, "sweep", lambda *args: swept.append(1) or sweep(*args)
    )
    found = estimate_partition(draws)
    np.testing.assert_array_equal(found.partition, first_occurrence(truth))
    assert len(begun) == 2
    assert all(z.max() > 0 for z in begun)
    assert len(swept) <= 20
