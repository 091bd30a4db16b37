"""A browser for the tests of pages, and one page of every command."""

import warnings

import numpy as np
import pandas as pd
import pytest

import bayes_lcs as bl
from bayes_lcs.model_evidence.compare import Comparison
from bayes_lcs.model_evidence.evidence import evidence_from_posterior
from bayes_lcs.model_evidence.log_evidence import Bracket, LogEvidence, MeanWeight
from bayes_lcs.report.compare import TableComparison, save_page
from bayes_lcs.report.coreset import save_coreset_page
from bayes_lcs.report.html import Provenance
from bayes_lcs.workflows.cluster import cluster_file, save_clusters
from bayes_lcs.workflows.coreset import coreset_of_file
from bayes_lcs.workflows.scan import save_scan
from tests.browsing import HOSTILE, NO_BROWSER, find_browser, start


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    """One for all tests of a worker."""
    if find_browser() is None:
        pytest.skip(NO_BROWSER)
    driver = start(tmp_path_factory.mktemp("profile"))
    yield driver
    driver.quit()


def hostile_names(count, start=0):
    return [HOSTILE[(start + i) % len(HOSTILE)] for i in range(count)]


@pytest.fixture(scope="session")
def compared():
    """Groups and two labels whose names would do harm; the posterior is exact.

    Evidences are made by hand: none of these tests is about them.
    """
    data, _ = bl.meeting_requests(seed=0, rows_per_person=30)
    frame = data.select_groups(list(range(len(HOSTILE)))).to_frame()
    names = dict(zip(dict.fromkeys(frame["person"]), HOSTILE, strict=True))
    frame["person"] = frame["person"].map(names)
    frame["decision"] = frame["decision"].map(
        dict(zip(sorted(set(frame["decision"])), HOSTILE[1:], strict=False))
    )
    features = [name for name in frame if name not in ("person", "decision")]
    frame = frame.drop(columns=features[5:])
    places = enumerate(features[:5])
    frame = frame.rename(columns={name: f"{HOSTILE[i]}{i}" for i, name in places})
    first = frame.columns[1]
    frame[first] = frame[first].map(lambda value: f"{value}{HOSTILE[3]}")
    table = bl.GroupedTable.from_frame(frame, group="person", label="decision")
    posterior = bl.exact(bl.ClusteredNaiveBayes(), table)
    models = (bl.ClusteredNaiveBayes(), bl.NoSharing(), bl.CompleteSharing())
    evidences = (
        evidence_from_posterior(posterior),
        LogEvidence.exact(posterior.log_evidence - 40.0, "closed-form", "No-Sharing"),
        LogEvidence.exact(posterior.log_evidence - 0.5, "closed-form", "Complete-Sharing"),
    )
    comparison = Comparison(models, table, evidences, np.full(3, 1 / 3), False, 0)
    predictions = table.to_frame().head(40)
    for name, column in zip(
        table.label_values, posterior.predict_proba(predictions).T, strict=True
    ):
        predictions[f"P({name})"] = column
    partition = posterior.map_partition()
    return TableComparison(comparison, posterior, partition, "exact", predictions, 0)


def small_table(num_groups, num_labels, seed=0):
    """Two kinds of groups that differ in how a feature tells the label."""
    rng = np.random.default_rng(seed)
    label = rng.integers(num_labels, size=(num_groups, 12))
    kind = np.arange(num_groups)[:, None] % 2
    told = np.where(rng.random(label.shape) < 0.8, (label + kind) % num_labels, 0)
    frame = pd.DataFrame(
        {
            "who": np.repeat([f"g{u:03d}" for u in range(num_groups)], 12),
            "x": told.ravel().astype(str),
            "y": rng.integers(3, size=label.size).astype(str),
            "label": np.array(["no", "perhaps", "yes", "a", "b"])[label.ravel()],
        }
    )
    return bl.GroupedTable.from_frame(frame, group="who", label="label")


def sampled_comparison(data, probabilities=None):
    """A comparison of drawn partitions with evidences made by hand, one of them in doubt."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bl.SamplingWarning)
        posterior = bl.sample(bl.ClusteredNaiveBayes(), data, draws=20, chains=2, warmup=5)
    doubt = Bracket(MeanWeight(-903.0, 0.5, 40.0), MeanWeight(-890.0, 0.5, 30.0), False)
    evidences = (
        LogEvidence.estimated(doubt.forward, "ais", "Clustered Naive Bayes", bracket=doubt),
        LogEvidence.exact(-20_000.0, "closed-form", "No-Sharing"),
        LogEvidence.estimated(MeanWeight(-904.5, 0.2, 3.0), "importance", "Prototype"),
    )
    models = (bl.ClusteredNaiveBayes(), bl.NoSharing(), bl.Prototype())
    comparison = Comparison(models, data, evidences, np.full(3, 1 / 3), False, 0)
    predictions = None
    if probabilities is not None:
        predictions = data.to_frame().head(len(probabilities))
        for name, column in zip(data.label_values, np.transpose(probabilities), strict=True):
            predictions[f"P({name})"] = column
    method = "2 chains of 20 draws"
    return TableComparison(comparison, posterior, posterior.partition(), method, predictions, 0)


def sixteenths(num_labels, seed=0):
    """Probabilities without rounding, all of which tie with another at some power of two."""
    rng = np.random.default_rng(seed)
    rows = rng.multinomial(16, np.full(num_labels, 1 / num_labels), size=80) / 16
    even = np.full((1, num_labels), 0.0)
    even[0, :2] = 0.5
    return np.vstack([even, rows])


@pytest.fixture(scope="session")
def three_labels():
    data = small_table(8, 3)
    return sampled_comparison(data, sixteenths(3))


@pytest.fixture(scope="session")
def pages(compared, three_labels, tmp_path_factory):
    """One page of each kind, made of files full of hostile names, by name."""
    folder = tmp_path_factory.mktemp("pages")
    source = folder / "<b>data<b>.csv"
    frame, numbers = _hostile_frame(), _hostile_numbers()
    frame.to_csv(source, index=False)
    numbers.to_csv(folder / "numbers.csv", index=False)
    found = {}
    origin = Provenance("compare", source, 0, {"group": HOSTILE[0], "bins": [HOSTILE[1]]})
    for name, comparison in (
        ("compare", compared),
        ("compare-three-labels", three_labels),
        ("compare-200-groups", sampled_comparison(small_table(200, 2))),
    ):
        (folder / name).mkdir()
        found[name] = save_page(comparison, folder / name, origin)
    for name in ("cluster", "scan"):
        (folder / name).mkdir()
    result, _ = cluster_file(source, 3, alpha=0.2, initial_size=100, holdout_size=100)
    found["cluster"] = save_clusters(result, source, folder / "cluster")[0]
    label = frame.columns[-1]
    frame.head(30).drop(columns=label).to_csv(folder / "new.csv", index=False)
    scan = bl.PartialScanClassifier("tree", 12, random_state=0)
    scan.fit_file(source, label=label)
    options = {"label": label, "learner": "tree"}
    found["scan"] = save_scan(
        scan, folder / "scan", folder / "new.csv", source=source, options=options
    )[0]
    small, names = coreset_of_file(folder / "numbers.csv", 3, 60)
    origin = Provenance("coreset", source, 0, {"clusters": 3, "size": 60})
    found["coreset"] = save_coreset_page(small, names, folder / "small.csv", origin)
    return found


def _hostile_frame():
    """Three kinds of rows; columns, values and labels have hostile names."""
    rng = np.random.default_rng(0)
    kind = rng.integers(3, size=600)
    columns = {}
    for i in range(5):
        values = np.array(hostile_names(3, i), dtype=object)
        columns[f"{HOSTILE[i]} {i}"] = values[np.where(rng.random(600) < 0.8, kind, 0)]
    columns[HOSTILE[10]] = np.array([HOSTILE[1], HOSTILE[10]], dtype=object)[kind % 2]
    return pd.DataFrame(columns)


def _hostile_numbers():
    rng = np.random.default_rng(0)
    columns = [HOSTILE[0], HOSTILE[10], HOSTILE[2], HOSTILE[8]]
    return pd.DataFrame(rng.normal(size=(500, 4)), columns=columns)
