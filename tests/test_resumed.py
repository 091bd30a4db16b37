"""Every long computation, killed again and again and begun again, ends in the same numbers."""

import random
import warnings
from unittest import mock

import numpy as np
import pandas as pd
import pytest

import bayes_lcs as bl
from bayes_lcs.clustering.coresets import coreset
from bayes_lcs.inference.exact import partition_function, subset_convolution
from bayes_lcs.io.formats import csv as csv_format
from bayes_lcs.io.formats import parquet as parquet_format
from bayes_lcs.model_evidence import compare
from bayes_lcs.runtime import checkpoints as module
from bayes_lcs.workflows import scan as scan_files
from bayes_lcs.workflows.coreset import coreset_of_file
from bayes_lcs.workflows.scan import save_scan

pytestmark = pytest.mark.filterwarnings("ignore:EM has not converged")


class Killed(BaseException):
    """As if by kill -9: nobody catches it, nobody writes anything."""


@pytest.fixture
def dies(monkeypatch):
    """Sets after how many looks at the clock the run is killed; each of them writes."""
    life = {"left": None}
    keep = module.CheckpointedTask.update

    def dying(self, snapshot=dict, *pieces):
        keep(self, snapshot, *pieces)
        if life["left"] is not None and self.is_active:
            life["left"] -= 1
            if life["left"] <= 0:
                raise Killed

    monkeypatch.setattr(module.CheckpointedTask, "update", dying)
    for name in ("SECONDS_BETWEEN_SAVES", "MAX_UNSAVED_SECONDS", "MAX_SECONDS_BETWEEN_SAVES"):
        monkeypatch.setattr(module, name, 0.0)
    monkeypatch.setattr(parquet_format, "BATCH_ROWS", 500)
    monkeypatch.setattr(csv_format, "BLOCK_BYTES", 2000)
    # Convolutions of a few groups are looked at as those of many are.
    monkeypatch.setattr(subset_convolution, "CHUNK_BITS", 1)
    monkeypatch.setattr(partition_function, "MAX_GROUPS_ALL_SIZES", 0)
    return life


@pytest.fixture(scope="module")
def meetings():
    data, _ = bl.meeting_requests(seed=0, rows_per_person=15)
    return data.select_groups(range(6))


def drawn(model, data, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bl.SamplingWarning)
        post = bl.sample(model, data, draws=40, warmup=30, chains=2, seed=3, **options)
    found = {name: np.asarray(values) for name, values in post.datatree["posterior"].items()}
    latent = post.datatree["constant_data"].get("latent_probability")
    return found if latent is None else {**found, "latent": np.asarray(latent)}


def evidence(model, data, method, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bl.EvidenceWarning)
        found = bl.evidence(model, data, method, seed=3, precision=0.5, **options)
    return {"numbers": np.array([found.value, found.lower, found.upper]), "how": found.how}


def summed(data, largest=1e100):
    with mock.patch.object(partition_function, "HUGE", largest):
        posterior = bl.exact(CNB(), data)
        return {
            "evidence": posterior.log_evidence,
            "clusters": posterior.num_clusters(),
            "arithmetic": posterior.sums.arithmetic,
        }


def mixture(**options):
    rng = np.random.default_rng(0)
    X = rng.integers(3, size=(400, 5))
    model = bl.MixtureClusterer(3, random_state=0, max_iter=60, n_init=2, tol=1e-9, **options)
    model.fit(X)
    return {"weights": model.weights_, "trace": model.trace_, "n_iter": model.n_iter_}


def learning_curve():
    rng = np.random.default_rng(0)
    X = rng.integers(3, size=(3000, 5)) * rng.integers(2, size=(3000, 1))
    clusterer = bl.MixtureClusterer(3, random_state=0, max_iter=30)
    times = iter(range(10**6))
    found = bl.learning_curve_sample(
        clusterer,
        X,
        alpha=0.0,
        initial_size=200,
        holdout_size=500,
        abbreviated="fixed-3",
        clock=lambda: float(next(times)),
    )
    scores = np.array([stage.score for stage in found.stages])
    return {"scores": scores, "size": found.sample_size, "weights": found.model.weights_}


def scan():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=900), "b": rng.choice(list("xyz"), 900)})
    y = np.where(X["a"] + (X["b"] == "x") + rng.normal(size=900) > 0, "yes", "no")
    model = bl.PartialScanClassifier("tree", 12, random_state=0).fit(X, y)
    return {"chances": model.predict_proba(X), "trace": model.scan_.trace.drop(columns="seconds")}


def averaged(data):
    found = bl.compare([CNB(), bl.NoSharing()], data, prior=[0.5, 0.5])
    with (
        mock.patch.object(bl.Comparison, "probability_intervals", return_value=np.ones((2, 2))),
        mock.patch.object(compare, "BATCH_SIZE", 7),
    ):
        return {"chances": found.predict_proba(data)}


def predicted(folder):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=900).round(3), "b": rng.choice(list("xyz"), 900)})
    y = np.where(X["a"] + (X["b"] == "x") + rng.normal(size=900) > 0, "yes", "no")
    if not (folder / "rows.csv").exists():
        X.to_csv(folder / "rows.csv", index=False)
    model = bl.PartialScanClassifier("tree", 4, random_state=0).fit(X, y)
    with mock.patch.object(scan_files, "BATCH_SIZE", 70):
        save_scan(model, folder, folder / "rows.csv")
    return {"predictions": pd.read_csv(folder / "predictions.csv")}


def points(folder, kind):
    path = folder / f"points.{kind}"
    if not path.exists():
        frame = pd.DataFrame(np.random.default_rng(0).normal(size=(6000, 3)), columns=list("abc"))
        if kind == "parquet":
            frame.to_parquet(path, row_group_size=500)
        else:
            frame.to_csv(path, index=False)
    return path


def small(folder, kind="parquet", **options):
    found, _ = coreset_of_file(points(folder, kind), 3, 50, **options)
    checks = np.array(found.distortions)
    return {"points": found.points, "weights": found.weights, "checks": checks}


def drawn_points():
    X = np.random.default_rng(0).normal(size=(3000, 3))
    with mock.patch.object(coreset, "LONG", 0):
        found = bl.coreset(X, 3, 300, queries=8, random_state=0)
    return {"points": found.points, "checks": np.array(found.distortions)}


def tree(folder, kind):
    with bl.executor("serial") as here:
        X = bl.row_source(points(folder, kind), kind="numbers")
        found = bl.coreset_tree(X, 3, 50, block_rows=700, executor=here)
    checks = np.array(found.distortions)
    return {"points": found.points, "checks": checks, "rows": found.num_rows}


def tree_of_large_pieces(folder):
    """Many leaves lie in one piece of the file."""
    with mock.patch.object(csv_format, "BLOCK_BYTES", 1 << 20):
        X = bl.row_source(points(folder, "csv"), kind="numbers")
        found = bl.coreset_tree(X, 3, 50, block_rows=200)
    return {"points": found.points, "weights": found.weights, "rows": found.num_rows}


def array_tree():
    X = np.random.default_rng(0).normal(size=(6000, 3))
    found = bl.coreset_tree(X, 3, 50, block_rows=700)
    return {"points": found.points, "checks": np.array(found.distortions)}


def files_of_names(folder):
    """Three files: text, packed text, and Parquet."""
    if not (folder / "names").exists():
        (folder / "names").mkdir()
        rng = np.random.default_rng(0)
        frame = pd.DataFrame({name: rng.choice(list("bca"), 3000) for name in ("x", "y", "user")})
        frame.to_csv(folder / "names" / "1.csv", index=False)
        many = pd.concat([frame.replace("a", 'é"\n')] * 20)  # packed text is read in larger pieces
        many.to_csv(folder / "names" / "2.csv.gz", index=False)
        frame.to_parquet(folder / "names" / "3.parquet", row_group_size=700)
    return folder / "names"


def sampled(folder):
    source = bl.row_source(files_of_names(folder), memory=4 * 3 * 200, seed=1)
    one, other = source.take(0, 150).X, source.take(100, 2000).X
    return {"first": one, "larger": other, "rows": source.num_rows}


def grouped(folder, name):
    table = bl.read_grouped(files_of_names(folder) / name, group="user", label="y")
    return {"features": table.features, "labels": table.labels, "names": table.group_names}


def masked(data):
    return data.mask_labels(np.arange(0, data.num_rows, 5))


CNB = bl.ClusteredNaiveBayes
WORKS = {
    "clustered": lambda data, _: drawn(CNB(), data),
    "clustered, labels missing": lambda data, _: drawn(CNB(), masked(data)),
    "learned": lambda data, _: drawn(
        CNB(concentration=bl.Gamma(1, 1), feature_prior=bl.Gamma(2, 1)), data, thin=2
    ),
    "complete sharing": lambda data, _: drawn(bl.CompleteSharing(), masked(data)),
    "prototype": lambda data, _: drawn(bl.Prototype(), data),
    "annealed": lambda data, _: evidence(CNB(), data, "ais", max_chains=32),
    "annealed, labels missing": lambda data, _: evidence(
        bl.NoSharing(), masked(data), "ais", max_chains=32
    ),
    "guided": lambda data, _: evidence(CNB(), data, "guided", max_chains=32),
    "particles of groups": lambda data, _: evidence(CNB(), data, "particles", max_chains=32),
    "particles of labels": lambda data, _: evidence(
        bl.CompleteSharing(), masked(data), "particles", max_chains=32
    ),
    "exact sum": lambda data, _: summed(data),
    "exact sum, in logs": lambda data, _: summed(data, largest=0.0),
    "prototype integrals": lambda data, _: evidence(bl.Prototype(), data, "importance"),
    "em": lambda *_: mixture(acceleration=None),
    "em, accelerated": lambda *_: mixture(),
    "averaged predictions": lambda data, _: averaged(data),
    "learning curve": lambda *_: learning_curve(),
    "scan": lambda *_: scan(),
    "predictions of a scan": lambda _, folder: predicted(folder),
    "coreset of a stream": lambda _, folder: small(folder, stream=True),
    "coreset of a stream of text": lambda _, folder: small(folder, "csv", stream=True),
    "coreset of many rows": lambda *_: drawn_points(),
    "coreset tree of an array": lambda *_: array_tree(),
    "coreset tree of text": lambda _, folder: tree(folder, "csv"),
    "coreset tree of large pieces": lambda _, folder: tree_of_large_pieces(folder),
    "coreset tree of parquet": lambda _, folder: tree(folder, "parquet"),
}


@pytest.mark.parametrize("name", WORKS)
def test_killed_and_resumed_it_ends_in_the_same_numbers(name, dies, meetings, tmp_path):
    expected = WORKS[name](meetings, tmp_path)
    rng = random.Random(name)
    kills = 0
    while True:
        dies["left"] = rng.randint(1, 5) if kills < 12 else None
        try:
            with bl.checkpoints(tmp_path / "kept") as kept:
                found = WORKS[name](meetings, tmp_path)
        except Killed:
            kills += 1
            continue
        break
    assert kills >= 1
    assert kept.recalled >= 1
    assert found.keys() == expected.keys()
    for key, values in expected.items():
        if key == "latent":  # sums of chunks whose lengths the clock decides
            np.testing.assert_allclose(found[key], values, rtol=1e-12)
        elif isinstance(values, pd.DataFrame):
            pd.testing.assert_frame_equal(found[key], values)
        else:
            np.testing.assert_array_equal(found[key], values)
