"""Beside scikit-learn, poLCA and StepMix on the same rows: not worse without saying so."""

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.cluster import KMeans as PeerKMeans
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import CategoricalNB
from sklearn.preprocessing import OrdinalEncoder
from sklearn.tree import DecisionTreeClassifier

import bayes_lcs as bl

PUBLISHED = {
    ("carcinoma.csv", 2): -317.2568,
    ("carcinoma.csv", 3): -293.705,
    ("carcinoma.csv", 4): -289.2858,
    ("values.csv", 1): -543.6498,
    ("values.csv", 2): -504.4677,
    ("values.csv", 3): -503.3011,
    ("cheating.csv", 2): -440.0271,
}
"""Maxima of the log-likelihood, as poLCA's manual states them."""


@pytest.mark.parametrize(("file", "classes"), PUBLISHED)
def test_latent_classes_reach_the_maxima_of_polca(file, classes):
    path = Path(os.environ.get("BAYES_LCS_DATA", "")) / "polca" / file
    if not path.is_file():
        pytest.skip(f"no file polca/{file} in the folder that BAYES_LCS_DATA names")
    frame = pd.read_csv(path)
    items = ["LIEEXAM", "LIEPAPER", "FRAUD", "COPYEXAM"] if file == "cheating.csv" else None
    rows = frame if items is None else frame[items]
    model = bl.MixtureClusterer(classes, prior=0.0, n_init=20, tol=1e-9, random_state=0).fit(rows)
    assert model.score(rows) * len(rows) == pytest.approx(PUBLISHED[file, classes], abs=2e-3)
    if classes <= 2:  # one start suffices
        read = bl.MixtureClusterer(classes, prior=0.0, tol=1e-9, random_state=0)
        read.fit_file(path, features=items)
        assert read.score(path) * len(rows) == pytest.approx(PUBLISHED[file, classes], abs=2e-3)


def test_latent_classes_beside_stepmix(visits):
    stepmix = pytest.importorskip("stepmix", reason="StepMix is not installed")
    rows = visits[["town", "member", "children"]]
    codes = OrdinalEncoder().fit_transform(rows)
    peer = stepmix.StepMix(2, measurement="categorical", n_init=5, random_state=0, verbose=0)
    peer.fit(codes)
    ours = bl.MixtureClusterer(2, prior=0.0, n_init=5, random_state=0).fit(rows)
    assert ours.score(rows) >= peer.score(codes) - 1e-4


def test_kmeans_costs_no_more_than_scikit_learn(raw_file, tmp_path):
    iris = pd.read_csv(raw_file("iris"), header=None, names=["sl", "sw", "pl", "pw", "kind"])
    iris.to_csv(tmp_path / "iris.csv", index=False)
    points = iris.drop(columns="kind")
    peer = PeerKMeans(3, n_init=10, random_state=0).fit(points)
    ours = bl.KMeans(3, n_init=10, random_state=0).fit(points)
    assert ours.inertia_ <= peer.inertia_ * (1 + 1e-6)
    with pytest.warns(bl.DataNote, match="kind"):
        read = bl.KMeans(3, n_init=10, random_state=0).fit(tmp_path / "iris.csv")
    assert read.inertia_ == pytest.approx(ours.inertia_, rel=1e-12)
    np.testing.assert_allclose(
        np.sort(ours.cluster_centers_, axis=0), np.sort(peer.cluster_centers_, axis=0), atol=1e-3
    )

    # One pass and a coreset see less, and may cost more: by a tenth at most here.
    online = bl.OnlineKMeans(3, random_state=0).fit(points)
    assert -online.score(points) <= 1.1 * peer.inertia_
    small = bl.coreset(points, 3, 75, random_state=0).kmeans(3, n_init=10, random_state=0)
    assert -small.score(points) <= 1.1 * peer.inertia_


def test_binned_measurements_find_the_clusters_of_a_gaussian_mixture():
    """A Gaussian mixture uses the numbers; a mixture of bins loses a little, not the clusters."""
    rng = np.random.default_rng(0)
    truth = np.repeat([0, 1, 2], 100)
    centers = 6 * rng.permuted(np.tile([0.0, 1.0, 2.0], (5, 1)), axis=1).T
    points = pd.DataFrame(centers[truth] + rng.normal(size=(300, 5))).add_prefix("m")
    peer = GaussianMixture(3, n_init=5, random_state=0).fit_predict(points)
    bins = points.apply(lambda column: pd.qcut(column, 5).astype(str))
    ours = bl.MixtureClusterer(3, n_init=10, random_state=0).fit(bins).predict(bins)
    assert adjusted_rand_score(truth, peer) > 0.98
    assert adjusted_rand_score(truth, ours) > 0.8


@pytest.mark.parametrize("name", ["mushroom", "car"])
@pytest.mark.filterwarnings("ignore:.*clearly better than the ensemble:bayes_lcs.DataWarning")
@pytest.mark.filterwarnings("ignore::bayes_lcs.DataNote")
@pytest.mark.filterwarnings("ignore::bayes_lcs.DriftWarning")
def test_an_ensemble_of_parts_beside_one_tree(raw_file, tmp_path, name):
    frame = pd.read_csv(raw_file(name), header=None, dtype=str).add_prefix("x")
    label = "x0" if name == "mushroom" else f"x{frame.shape[1] - 1}"
    train, test = train_test_split(frame, test_size=0.3, random_state=0, stratify=frame[label])
    train.to_csv(tmp_path / "train.csv", index=False)
    test.to_csv(tmp_path / "test.csv", index=False)

    encoder = OrdinalEncoder().fit(frame.drop(columns=label))
    tree = DecisionTreeClassifier(random_state=0)
    tree.fit(encoder.transform(train.drop(columns=label)), train[label])
    peer = tree.score(encoder.transform(test.drop(columns=label)), test[label])

    scan = bl.PartialScanClassifier("tree", n_partitions=4, early_stop=False, random_state=0)
    scan.fit_file(tmp_path / "train.csv", label=label)
    ours = (scan.predict(tmp_path / "test.csv") == test[label]).mean()
    # Each tree sees a quarter of the rows: what that costs is known, and small.
    assert ours >= peer - 0.06


@pytest.mark.filterwarnings("ignore::bayes_lcs.DataNote")
def test_naive_bayes_of_one_group_is_that_of_scikit_learn(raw_file):
    """With a flat Dirichlet prior both predict by the same counts plus one."""
    votes = pd.read_csv(raw_file("votes", "house-votes-84.data"), header=None).add_prefix("v")
    full = votes[(votes != "?").all(axis=1)]
    X, y = full.drop(columns="v0"), full["v0"]
    codes = OrdinalEncoder().fit_transform(X)
    peer = CategoricalNB(
        alpha=1.0, class_prior=((y.value_counts().sort_index() + 1) / (len(y) + 2)).to_numpy()
    )
    peer.fit(codes, y)
    ours = bl.SharedNaiveBayesClassifier("complete").fit(X, y)
    np.testing.assert_allclose(ours.predict_proba(X), peer.predict_proba(codes), rtol=1e-6)
    assert ours.classes_.tolist() == peer.classes_.tolist()

    whole = bl.SharedNaiveBayesClassifier("complete").fit(votes.drop(columns="v0"), votes["v0"])
    assert whole.score(votes.drop(columns="v0"), votes["v0"]) > 0.88  # "?" is missing, not a vote
