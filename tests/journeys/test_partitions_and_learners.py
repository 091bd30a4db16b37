"""From a table to one partition to report, and to clusters that a classifier makes."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import adjusted_rand_score
from sklearn.tree import DecisionTreeClassifier

import bayes_lcs as bl

LOSSES = ("vi", "binder")


def shops(num_shops, num_kinds, rows_each, seed):
    """Rows of shops of a few kinds, and the kind of each."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(num_kinds, size=num_shops)
    theta = rng.dirichlet(np.full(3, 0.7), size=(num_kinds, 2, 2))
    who = np.repeat(np.arange(num_shops), rows_each)
    y = rng.integers(2, size=len(who))
    pairs = zip(who, y, strict=True)
    x = np.array([[rng.choice(3, p=theta[kind[w], f, v]) for f in (0, 1)] for w, v in pairs])
    return pd.DataFrame({"shop": [f"s{w:03d}" for w in who], "y": y, "a": x[:, 0], "b": x[:, 1]})


def mean_distance(z, draws, loss):
    """Mean distance, from the numbers of pairs or from entropies."""
    if loss == "binder":
        off = ~np.eye(len(z), dtype=bool)
        same = z[:, None] == z
        return np.mean([((draw[:, None] == draw) != same)[off].mean() for draw in draws])

    def entropy(codes):
        share = np.unique_counts(codes).counts / len(codes)
        return -(share * np.log(share)).sum()

    joint = [2 * entropy(z * len(z) + draw) - entropy(draw) for draw in draws]
    return np.mean(joint) - entropy(z)


@pytest.fixture(scope="module")
def sampled():
    data = bl.GroupedTable.from_frame(shops(60, 4, 6, 0), group="shop", label="y")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bl.SamplingWarning)
        return bl.sample(bl.ClusteredNaiveBayes(), data, draws=150, chains=2, seed=0)


@pytest.mark.parametrize("loss", LOSSES)
def test_no_draw_and_no_single_move_is_better_than_the_reported_partition(sampled, loss):
    draws = sampled.partitions()
    estimate = sampled.partition_estimate(loss)
    least = mean_distance(estimate.partition, draws, loss)
    assert estimate.expected_loss == pytest.approx(least, abs=1e-10)
    np.testing.assert_array_equal(sampled.partition(loss), estimate.partition)
    for z in [np.zeros(60, int), np.arange(60), *np.unique(draws, axis=0)[::20]]:
        assert least <= mean_distance(z, draws, loss) + 1e-12
    for group in range(0, 60, 7):
        for cluster in range(estimate.partition.max() + 2):
            moved = estimate.partition.copy()
            moved[group] = cluster
            assert least <= mean_distance(moved, draws, loss) + 1e-12


def test_a_partition_of_the_exact_posterior():
    data = bl.GroupedTable.from_frame(shops(10, 5, 8, 2), group="shop", label="y")
    posterior = bl.exact(bl.ClusteredNaiveBayes(), data)
    draws = posterior.sample(500, seed=2)
    found = {loss: posterior.partition(loss, draws=500, seed=2) for loss in LOSSES}
    for loss in LOSSES:
        least = mean_distance(found[loss], draws, loss)
        for z in [found["vi"], found["binder"], posterior.map_partition(), *draws[:100]]:
            assert least <= mean_distance(z, draws, loss) + 1e-12
    assert not np.array_equal(found["vi"], found["binder"])
    alone = bl.exact(bl.NoSharing(), data)
    assert alone.partition("binder").tolist() == list(range(10))


def test_clusters_by_a_classifier_from_a_file(points, tmp_path):
    """Several starts, weights, a score to compare with, and a warning where nothing was learned."""
    points.to_csv(tmp_path / "points.csv", index=False)
    kind = np.repeat([0, 1, 2], 100)
    clusterer = bl.GeneralizedClusterer(LogisticRegression(), 3, n_init=8, random_state=0)
    found = clusterer.fit(tmp_path / "points.csv")
    assert found.converged_
    assert adjusted_rand_score(kind, found.labels_) > 0.9
    assert found.score(points) == pytest.approx(found.objective_)
    once = bl.GeneralizedClusterer(LogisticRegression(), 3, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        assert once.fit(points).objective_ <= found.objective_
    # The first two groups alone, by weights.
    two = bl.GeneralizedClusterer("naive_bayes", 2, n_init=4, random_state=0)
    two.fit(points, sample_weight=(kind < 2).astype(float))
    assert adjusted_rand_score(kind[:200], two.labels_[:200]) > 0.95
    tree = bl.GeneralizedClusterer(DecisionTreeClassifier(), 3, init="random", random_state=0)
    with pytest.warns(ConvergenceWarning, match="limit its size"):
        tree.fit(points)
    assert not tree.converged_
    assert abs(adjusted_rand_score(kind, tree.labels_)) < 0.1
