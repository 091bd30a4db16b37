"""Partition estimates against the best of all partitions, by enumeration."""

from __future__ import annotations

import numpy as np
import pytest

from bayes_lcs.core.partitions import first_occurrence
from bayes_lcs.inference import partition_estimate
from bayes_lcs.inference.partition_estimate import estimate_partition, partition_distance
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
    expected = {z: mean_loss(np.array(z), draws, loss) for z in all_partitions(7)}
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


# Searches of any size ----------------------------------------------------------------------------


def mostly_apart(num_groups, num_draws, seed):
    """Singletons, but groups 0 and 1 together with probability 0.37, and a random pair a draw."""
    rng = np.random.default_rng(seed)
    draws = np.tile(np.arange(num_groups), (num_draws, 1))
    draws[rng.permutation(num_draws) < round(0.37 * num_draws), 1] = 0
    for draw in draws:
        first, second = rng.choice(np.arange(2, num_groups), 2, replace=False)
        draw[second] = draw[first]
    return draws


def noisy(num_groups, num_draws, seed, num_clusters, noise):
    """A partition of which each draw has a share of the groups in other clusters."""
    rng = np.random.default_rng(seed)
    draws = np.tile(rng.integers(0, num_clusters, num_groups), (num_draws, 1))
    moved = rng.random(draws.shape) < noise
    draws[moved] = rng.integers(0, num_clusters + 2, moved.sum())
    return draws


def two_modes(num_groups, num_draws, seed):
    """Half of the draws near a fine partition, half near a coarse one."""
    fine = noisy(num_groups, num_draws, seed, max(num_groups // 6, 2), 0.1)
    coarse = noisy(num_groups, num_draws, seed + 1, 3, 0.1)
    return np.where(np.arange(num_draws)[:, None] % 2 == 0, fine, coarse)


def unrelated(num_groups, num_draws, seed):
    """Draws that have nothing in common: all groups apart is the best."""
    return np.random.default_rng(seed).integers(0, num_groups, (num_draws, num_groups))


POSTERIORS = {
    "mostly apart": mostly_apart,
    "few clusters": lambda *args: noisy(*args, num_clusters=5, noise=0.3),
    "many clusters": lambda *args: noisy(*args, num_clusters=max(args[0] // 4, 2), noise=0.2),
    "two modes": two_modes,
    "unrelated": unrelated,
    "all together but a few": lambda *args: noisy(*args, num_clusters=1, noise=0.05),
}


def mean_loss(z, draws, loss):
    """Expected loss from contingency tables, without the package."""
    num_groups, total = len(z), 0.0
    f = (lambda n: n * np.log(n)) if loss == "vi" else (lambda n: n.astype(float) ** 2)
    for draw in draws:
        for sign, codes in ((1, z), (1, draw), (-2, z * (draw.max() + 1) + draw)):
            sizes = np.unique_counts(codes).counts if len(z) > 50 else np.bincount(codes)
            total += sign * f(sizes[sizes > 0]).sum()
    scale = num_groups if loss == "vi" else num_groups * (num_groups - 1)
    return total / len(draws) / scale


def best_single_move(z, draws, loss, groups):
    """Least expected loss after moving one of the groups anywhere, a new cluster included."""
    num_groups, clusters = len(z), int(z.max()) + 2
    f = np.concatenate([[0.0], np.arange(1, num_groups + 2) ** 1.0])
    f = f * np.log(np.maximum(f, 1)) if loss == "vi" else f**2
    scale = num_groups if loss == "vi" else num_groups * (num_groups - 1)
    start, least = mean_loss(z, draws, loss), np.inf
    for group in groups:
        others = np.arange(num_groups) != group
        sizes = np.bincount(z[others], minlength=clusters)
        cost = f[sizes + 1] - f[sizes]
        for draw in draws:
            joint = np.bincount(z[others & (draw == draw[group])], minlength=clusters)
            cost = cost - 2 / len(draws) * (f[joint + 1] - f[joint])
        least = min(least, start + (cost - cost[z[group]]).min() / scale)
    return least


@pytest.mark.parametrize("loss", ["vi", "binder"])
@pytest.mark.parametrize(
    ("num_groups", "num_draws"), [(10, 40), (35, 600), (120, 150), (300, 60), (1000, 30)]
)
@pytest.mark.parametrize("posterior", POSTERIORS)
def test_nothing_simple_is_better_than_the_estimate(posterior, num_groups, num_draws, loss):
    draws = POSTERIORS[posterior](num_groups, num_draws, 3)
    found = estimate_partition(draws, loss)
    expected = mean_loss(found.partition, draws, loss)
    assert found.expected_loss == pytest.approx(expected, abs=1e-10)
    rng = np.random.default_rng(0)
    others = [np.zeros(num_groups, int), np.arange(num_groups)]
    others.extend(rng.permutation(draws)[: 3000 // num_draws])
    for z in others:
        assert expected <= mean_loss(z, draws, loss) + 1e-12
    some = rng.permutation(num_groups)[: 3000 // num_draws]
    assert expected <= best_single_move(found.partition, draws, loss, some) + 1e-12


@pytest.mark.parametrize("seed", range(2))
def test_a_pair_that_is_rarely_together_stays_apart_among_many_clusters(seed):
    """All draws count, not those that come first when distinct draws are sorted."""
    draws = mostly_apart(300, 1000, seed)
    assert len(np.unique(draws, axis=0)) > 980
    for loss in ("binder", "vi"):
        found = estimate_partition(draws, loss)
        assert found.partition[0] != found.partition[1]
        alone = mean_loss(np.arange(300), draws, loss)
        assert found.expected_loss == pytest.approx(alone, abs=1e-12)


def test_the_expected_loss_is_that_of_all_draws_and_max_draws_takes_evenly_spaced_ones():
    draws = noisy(40, 1500, 5, 4, 0.3)
    found = estimate_partition(draws)
    assert found.expected_loss == pytest.approx(mean_loss(found.partition, draws, "vi"), abs=1e-12)
    few = estimate_partition(draws, max_draws=16)
    kept = draws[np.linspace(0, 1499, 16).astype(int)]
    assert few.expected_loss == pytest.approx(mean_loss(few.partition, kept, "vi"), abs=1e-12)


@pytest.mark.parametrize("loss", ["vi", "binder"])
def test_results_depend_on_the_seed_alone(loss):
    draws = two_modes(80, 700, 1)
    first, again = (estimate_partition(draws, loss, seed=4) for _ in range(2))
    np.testing.assert_array_equal(first.partition, again.partition)
    shuffled = np.random.default_rng(0).permutation(draws)
    assert estimate_partition(shuffled, loss, seed=4).expected_loss == first.expected_loss


@pytest.mark.parametrize("loss", ["vi", "binder"])
def test_more_clusters_than_any_start(loss):
    draws = np.tile(np.arange(60), (3, 1))
    assert len(set(estimate_partition(draws, loss, num_starts=1).partition)) == 60
    # From one cluster the search has to open sixty.
    search = partition_estimate._PairGains if loss == "binder" else partition_estimate._GainMatrix
    rng = np.random.default_rng(0)
    found = search(draws[:1], np.ones(1, int), loss).descend(np.zeros(60, int), rng, 100)
    np.testing.assert_array_equal(found, np.arange(60))


@pytest.mark.parametrize("loss", ["vi", "binder"])
@pytest.mark.parametrize("posterior", POSTERIORS)
def test_the_three_ways_to_keep_gains_agree(posterior, loss):
    """Each search ends where no other finds a move."""
    draws = first_occurrence(POSTERIORS[posterior](40, 50, 2))
    unique, counts = np.unique(draws, axis=0, return_counts=True)
    names = ["_GainMatrix", "_CountTable"] + ["_PairGains"] * (loss == "binder")
    searches = {n: getattr(partition_estimate, n)(unique, counts, loss) for n in names}
    for name, search in searches.items():
        for start in (np.zeros(40, int), np.arange(40), draws[7]):
            z = search.descend(start, np.random.default_rng(1), 1000)
            for other_name, other in searches.items():
                still = other.descend(z, np.random.default_rng(2), 1000)
                np.testing.assert_array_equal(z, still, f"{name}, then {other_name}")


def test_bad_arguments():
    with pytest.raises(ValueError, match="'vi' or 'binder'"):
        estimate_partition([[0, 1]], loss="rand")
    with pytest.raises(ValueError, match="draws is empty"):
        estimate_partition(np.zeros((0, 3), dtype=int))
    with pytest.raises(ValueError, match="num_starts must be at least 1"):
        estimate_partition([[0, 1]], num_starts=0)
    with pytest.raises(ValueError, match="max_draws must be at least 1"):
        estimate_partition([[0, 1]], max_draws=0)
    with pytest.raises(ValueError, match="same one-dimensional shape"):
        partition_distance([0, 1], [0, 1, 2])


@pytest.mark.parametrize("loss", ["vi", "binder"])
def test_many_groups_are_searched_with_bounded_memory(monkeypatch, loss):
    """Draws that differ from the truth in a few groups each: it is found all the same."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, 60)
    draws = np.tile(truth, (50, 1))
    for draw in draws:
        draw[rng.choice(60, 4, replace=False)] = rng.integers(0, 3, 4)
    monkeypatch.setattr(partition_estimate, "MAX_NUMBERS", 60 * 20)
    monkeypatch.setattr(partition_estimate, "MAX_DENSE_GROUPS", 50)
    monkeypatch.setattr(partition_estimate, "MAX_TABLE_NUMBERS", 4000)
    tables, descents = [], []
    start, descend = (
        partition_estimate._CountTable._initialize,
        partition_estimate._CountTable.descend,
    )

    def begin(self, z):
        start(self, z)
        tables.append(self.table.size)

    def record(self, *args):
        descents.append(args)
        return descend(self, *args)

    monkeypatch.setattr(partition_estimate._CountTable, "_initialize", begin)
    monkeypatch.setattr(partition_estimate._CountTable, "descend", record)
    monkeypatch.setattr(partition_estimate, "MAX_VISITS", 10 * 60 * 2)
    found = estimate_partition(draws, loss)
    np.testing.assert_array_equal(found.partition, first_occurrence(truth))
    kept = draws[np.linspace(0, 49, 20).astype(int)]
    assert found.expected_loss == pytest.approx(mean_loss(found.partition, kept, loss), abs=1e-12)
    assert 0 < max(tables) <= 4000
    assert len(descents) <= 3
    assert all(sweeps <= 10 for _, _, sweeps in descents)


def test_more_clusters_than_the_table_holds_end_the_search_with_what_was_found(monkeypatch):
    monkeypatch.setattr(partition_estimate, "MAX_DENSE_GROUPS", 50)
    monkeypatch.setattr(partition_estimate, "MAX_TABLE_NUMBERS", 2000)
    draws = mostly_apart(90, 40, 0)
    found = estimate_partition(draws, "binder")
    assert found.expected_loss <= mean_loss(np.arange(90), draws, "binder") + 1e-15
