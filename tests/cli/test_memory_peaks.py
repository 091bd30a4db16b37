"""Commands stay within the memory and the disk that they estimate before they begin."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "memory_peak.py"

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/status").exists(), reason="peaks of memory are read from /proc"
)


def peak_and_estimate(*words):
    done = subprocess.run(
        [sys.executable, SCRIPT, *map(str, words)], capture_output=True, text=True, check=False
    )
    found = json.loads(done.stderr.splitlines()[-1])
    assert found["exit"] == 0, done.stderr
    assert 0 < found["disk"] <= found["disk_estimate"]
    return found["peak"], found["estimate"]


def numbers(path, rows, columns):
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(rows, columns)) + 3 * rng.integers(5, size=(rows, 1))).round(5)
    frame = pd.DataFrame(X, columns=[f"x{i}" for i in range(columns)])
    frame["kind"] = np.where(X[:, 0] + rng.normal(size=rows) > 3, "a", "b")
    frame.to_parquet(path) if path.suffix == ".parquet" else frame.to_csv(path, index=False)
    return path


def categories(path, rows, columns, groups=0):
    rng = np.random.default_rng(0)
    kind = rng.integers(4, size=rows)
    shares = rng.dirichlet(np.ones(4) * 0.5, size=(4, columns)).cumsum(axis=-1)
    cells = {f"c{i}": (rng.random((rows, 1)) > shares[kind, i]).sum(axis=1) for i in range(columns)}
    frame = pd.DataFrame(cells).astype(str)
    if groups:
        frame.insert(0, "who", [f"group-{i % groups}" for i in range(rows)])
    frame.to_csv(path, index=False)
    return path


def check(*words):
    peak, estimate = peak_and_estimate(*words)
    assert peak <= estimate <= max(4 * peak, 100 << 20)


@pytest.mark.parametrize("more", [(), ("--stream",)])
def test_coreset(tmp_path, more):
    path = numbers(tmp_path / "n.csv", 20_000, 5)
    check("coreset", path, "-k", 5, "--ignore", "kind", "--out", tmp_path / "small.csv", *more)


@pytest.mark.slow
@pytest.mark.parametrize("more", [(), ("--stream",)])
def test_large_coreset(tmp_path, more):
    path = numbers(tmp_path / "n.parquet", 1_000_000, 10)
    check("coreset", path, "-k", 10, "--ignore", "kind", "--out", tmp_path / "small.csv", *more)


@pytest.mark.slow
def test_a_stream_of_text_is_not_read_ahead(tmp_path):
    """The estimate does not know how long the file is (see test_needs.py)."""
    path = numbers(tmp_path / "n.csv", 400_000, 10)
    words = ["-k", 2, "--size", 100, "--ignore", "kind", "--stream", "--method", "uniform"]
    check("coreset", path, *words, "--out", tmp_path / "small.csv")


@pytest.mark.slow
@pytest.mark.parametrize(("name", "parts"), [("s.csv", 64), ("s.parquet", 4)])
def test_scan(tmp_path, name, parts):
    path = numbers(tmp_path / name, 200_000, 10)
    check("scan", path, "--label", "kind", "--whole", "--parts", parts, "--out", tmp_path / "out")


@pytest.mark.slow
@pytest.mark.parametrize("learner", ["tree", "naive_bayes"])
def test_scan_of_labels_that_nothing_explains(tmp_path, learner):
    rng, path = np.random.default_rng(0), tmp_path / "noise.csv"
    frame = pd.DataFrame(rng.normal(size=(100_000, 3)).round(4), columns=list("abc"))
    frame.assign(kind=rng.choice(["a", "b"], len(frame))).to_csv(path, index=False)
    words = ["scan", path, "--label", "kind", "--whole", "--learner", learner, "--predict", path]
    check(*words, "--out", tmp_path / "out")


@pytest.mark.slow
@pytest.mark.parametrize(("rows", "columns"), [(10_000, 10), (200_000, 20)])
def test_cluster(tmp_path, rows, columns):
    path = categories(tmp_path / "c.csv", rows, columns)
    check("cluster", path, "-k", 10, "--alpha", 0, "--out", tmp_path / "out")


@pytest.mark.slow
@pytest.mark.parametrize(("groups", "rows"), [(6, 1000), (8, 200_000), (20, 2000), (40, 800)])
def test_compare(tmp_path, groups, rows):
    path = categories(tmp_path / "g.csv", rows, 6, groups)
    words = ["compare", path, "--group", "who", "--label", "c5", "--draws", 300, "--precision", 3]
    check(*words, "--out", tmp_path / "out")
