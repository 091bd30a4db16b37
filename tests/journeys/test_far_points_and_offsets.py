"""Numbers as logs have them: times in seconds since 1970, large identifiers, a few far rows."""

import json
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import adjusted_rand_score
from sklearn.tree import DecisionTreeClassifier
from typer.testing import CliRunner

import bayes_lcs as bl
from bayes_lcs.cli.app import app


@pytest.fixture(scope="module")
def events(tmp_path_factory):
    """A CSV file of three kinds of events within minutes, and twelve transfers that are far off."""
    rng = np.random.default_rng(3)
    kind = np.append(rng.integers(3, size=8000), np.full(12, 3))
    second = np.array([0.0, 300.0, 600.0, 300.0])[kind] + rng.normal(size=8012) * 20.0
    frame = pd.DataFrame(
        {
            "time": 1.7e9 + second,
            "cell": 1e8 + 50.0 * (kind % 3) + rng.normal(size=8012) * 4.0,
            "bytes": np.where(kind == 3, 9e5, 200.0) + rng.normal(size=8012) * 30.0,
        }
    )
    order = rng.permutation(8012)
    path = tmp_path_factory.mktemp("events") / "events.csv"
    frame.iloc[order].to_csv(path, index=False)
    return path, kind[order]


def test_kmeans_finds_the_kinds_from_a_frame_a_file_and_in_one_pass(events):
    path, kind = events
    frame = pd.read_csv(path)
    plain = frame - frame.min()
    moved = bl.KMeans(4, n_init=10, random_state=0).fit(frame)
    same = bl.KMeans(4, n_init=10, random_state=0).fit(plain)
    assert adjusted_rand_score(kind, moved.labels_) > 0.999
    assert moved.inertia_ == pytest.approx(same.inertia_, rel=1e-6)
    assert -moved.score(frame) == pytest.approx(same.inertia_, rel=1e-6)
    np.testing.assert_array_equal(moved.predict(frame), moved.labels_)
    np.testing.assert_allclose(moved.transform(frame), same.transform(plain), atol=1e-3)
    of_file = bl.KMeans(4, n_init=10, random_state=0).fit_file(path)
    assert of_file.inertia_ == pytest.approx(same.inertia_, rel=1e-6)
    assert adjusted_rand_score(kind, of_file.labels_) > 0.999
    online = bl.OnlineKMeans(4, random_state=0).fit(frame)
    assert adjusted_rand_score(kind, online.predict(frame)) > 0.999


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("learner", ["naive_bayes", "prototype", "stump", "tree"])
def test_learners_give_the_clusters_of_the_numbers_without_offset(events, learner):
    frame = pd.read_csv(events[0])[["time", "cell"]]
    if learner == "tree":
        # Trees compute in float32, in which numbers from 1e9 on are 64 apart.
        learner, frame = DecisionTreeClassifier(max_depth=3), frame[["cell"]] + 1e9
    labels = [
        bl.GeneralizedClusterer(learner, 3, random_state=1).fit(data).labels_
        for data in (frame - frame.min(), frame)
    ]
    assert len(np.unique(labels[0])) == 3
    assert adjusted_rand_score(*labels) > 0.999


def test_a_coreset_keeps_the_far_rows_and_says_how_good_it_is(events):
    path, kind = events
    frame = pd.read_csv(path)
    small = bl.coreset(frame, 4, 100, random_state=0)
    assert (small.points[:, 2] > 1e5).any()
    clusters = small.kmeans(4, random_state=5)
    assert adjusted_rand_score(kind, clusters.predict(frame)) > 0.999
    centers = clusters.cluster_centers_
    assert abs(small.distortion(frame, centers)) <= small.largest_error < 1.0


@pytest.mark.parametrize("more", [(), ("--stream",)])
def test_the_command_warns_of_a_coreset_without_the_far_rows(events, tmp_path, more):
    words = ["coreset", events[0], "-k", 4, "--size", 200, "--json", *more]
    told = {}
    for method in ("uniform", "sensitivity"):
        out = tmp_path / f"{method}.csv"
        with warnings.catch_warnings():
            warnings.simplefilter("default")
            run = CliRunner().invoke(app, [*map(str, words), "--method", method, "--out", str(out)])
        assert run.exit_code == 0, run.output
        errors = json.loads(run.stdout)["distortions"]
        page = out.with_name(f"{method}-report.html").read_text()
        told[method] = (max(map(abs, errors)), run.stderr, page)
    error, lines, page = told["uniform"]
    assert error > 100
    assert "do not stand for the data" in lines
    assert "Do not rely on them" in page
    error, lines, page = told["sensitivity"]
    assert error < 0.5
    assert "do not stand" not in lines
    assert "Do not rely on them" not in page
