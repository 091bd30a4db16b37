"""Runs that are killed or interrupted at random points end, resumed, in the same numbers."""

import contextlib
import os
import random
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest

import bayes_lcs as bl

KILLS = 6
"""By SIGKILL, of each of the four commands; each is sent SIGINT as well."""
MOST_ROUNDS = 8

# Checkpoints come sooner than for users, so that short runs have many.
MAIN = """
import bayes_lcs.runtime.checkpoints as c
c.SECONDS_BETWEEN_SAVES, c.MAX_UNSAVED_SECONDS, c.MAX_SECONDS_BETWEEN_SAVES = 0.1, 0.1, 0.5
from bayes_lcs.cli import main
main()
"""


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    """Compiled programs are kept, so that the runs of this module compile once."""
    return {
        **os.environ,
        "JAX_COMPILATION_CACHE_DIR": str(tmp_path_factory.mktemp("programs")),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    }


def start(words, environment):
    return subprocess.Popen(
        [sys.executable, "-c", MAIN, *map(str, words)],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def killed_and_resumed(words, out, environment, seed):
    """Results of a whole run, and those of runs that were killed again and again on their way.

    A run that comes to its end before it was killed often enough is followed by another one.
    """
    whole = out / "whole"
    whole.mkdir()
    run = start([*words, "--out", whole / "result"], environment)
    _, error = run.communicate()
    assert run.returncode == 0, error
    rng = random.Random(seed)
    left = [signal.SIGKILL] * KILLS + [signal.SIGINT]
    rng.shuffle(left)
    for number in range(MOST_ROUNDS):
        parts = out / f"parts{number}"
        parts.mkdir()
        left = one_round([*words, "--out", parts / "result"], parts, environment, rng, left)
        assert not [path for path in parts.rglob("*") if "checkpoint" in path.name]
        yield whole / "result", parts / "result"
        if not left:
            return
    pytest.fail(f"still to be sent after {MOST_ROUNDS} runs: {left}")


def one_round(words, folder, environment, rng, left):
    """Begin a run, end it by signals at random points, resume it; the signals not sent."""
    while True:
        run = start([*words, "--resume"], environment)
        if left and survived(run, folder, rng):
            run.send_signal(left[0])
            _, error = run.communicate()
            allowed = {signal.SIGKILL: -signal.SIGKILL, signal.SIGINT: 130}[left[0]]
            if run.returncode != 0:  # it was not just over
                assert run.returncode == allowed, error
                left = left[1:]
                continue
        else:
            _, error = run.communicate()
            assert run.returncode == 0, error
        if (folder / "result").exists():
            return left


def survived(run, folder, rng):
    """Whether a run is still there after some more checkpoints, or seconds, and a moment."""
    seen, wanted = set(), rng.randint(1, 3)
    seconds = time.monotonic() + rng.choice([np.inf, np.inf, rng.uniform(1.0, 5.0)])
    before = written(folder)
    while run.poll() is None:
        seen |= written(folder) - before
        if len(seen) >= wanted or time.monotonic() > seconds:
            time.sleep(rng.uniform(0.0, 0.4))
            return run.poll() is None
        time.sleep(0.02)
    return False


def written(folder):
    found = set()
    for path in folder.rglob("*.npz"):
        with contextlib.suppress(FileNotFoundError):
            found.add((path.name, path.stat().st_mtime_ns))
    return found


def same_csv(one, other, name, without=()):
    frames = [pd.read_csv(folder / name).drop(columns=list(without)) for folder in (one, other)]
    pd.testing.assert_frame_equal(*frames, check_exact=False, rtol=1e-12)


@pytest.mark.slow
def test_compare(tmp_path, programs):
    """More groups than can be summed exactly, so that all of it is sampled and annealed."""
    data, _ = bl.meeting_requests(seed=0, rows_per_person=12)
    frame = data.to_frame()
    more = frame[frame["person"].isin(list(dict.fromkeys(frame["person"]))[:5])].copy()
    more["person"] = more["person"] + "-again"
    frame = pd.concat([frame, more], ignore_index=True)
    frame.loc[[5, 77], "decision"] = None
    frame.to_csv(tmp_path / "m.csv", index=False)
    words = ["compare", tmp_path / "m.csv", "--group", "person", "--label", "decision"]
    words += ["--draws", 400, "--chains", 2, "--precision", 0.3]
    for one, other in killed_and_resumed(words, tmp_path, programs, seed=1):
        for name in ("evidence.csv", "partition.csv", "predictions.csv"):
            same_csv(one, other, name)
        draws = [bl.load(folder / "posterior.nc").partitions() for folder in (one, other)]
        np.testing.assert_array_equal(*draws)


@pytest.mark.slow
def test_cluster(tmp_path, programs):
    """Waiting costs nothing, so that no decision depends on the clock."""
    rng = np.random.default_rng(0)
    kind = rng.integers(6, size=(60_000, 1))
    shares = rng.dirichlet(np.ones(4) * 0.5, size=(6, 24)).cumsum(axis=-1)
    codes = (rng.random((60_000, 24, 1)) > shares[kind[:, 0]]).sum(axis=-1)
    frame = pd.DataFrame(codes, columns=[f"c{i}" for i in range(24)]).astype(str)
    frame.to_parquet(tmp_path / "c.parquet", index=False)
    words = ["cluster", tmp_path / "c.parquet", "-k", 12, "--alpha", 0, "--initial", 2000]
    for one, other in killed_and_resumed(words, tmp_path, programs, seed=2):
        models = [bl.load(folder / "mixture.nc") for folder in (one, other)]
        np.testing.assert_array_equal(models[0].weights_, models[1].weights_)
        np.testing.assert_array_equal(models[0].trace_, models[1].trace_)
        tables = [pd.read_parquet(folder / "assignments.parquet") for folder in (one, other)]
        pd.testing.assert_frame_equal(*tables)


@pytest.mark.slow
def test_scan(tmp_path, programs):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150_000, 8)).round(3)
    frame = pd.DataFrame(X, columns=[f"x{i}" for i in range(8)])
    frame["kind"] = np.where(X[:, 0] + X[:, 1] * X[:, 2] + rng.normal(size=len(X)) > 0, "a", "b")
    frame.to_csv(tmp_path / "s.csv", index=False)
    words = ["scan", tmp_path / "s.csv", "--label", "kind", "--parts", 24, "--whole"]
    rows = frame.drop(columns="kind").head(500)
    for one, other in killed_and_resumed(words, tmp_path, programs, seed=3):
        same_csv(one, other, "scan.csv", without=["seconds"])
        ensembles = [bl.load(folder / "ensemble.skops") for folder in (one, other)]
        np.testing.assert_array_equal(*[found.predict_proba(rows) for found in ensembles])


@pytest.mark.slow
def test_coreset(tmp_path, programs):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2_000_000, 6)) + 3 * rng.integers(5, size=(2_000_000, 1))
    pd.DataFrame(X, columns=list("abcdef")).to_parquet(
        tmp_path / "p.parquet", row_group_size=20_000
    )
    words = ["coreset", tmp_path / "p.parquet", "-k", 100, "--size", 8000, "--stream"]
    for one, other in killed_and_resumed(words, tmp_path, programs, seed=4):
        assert one.read_bytes() == other.read_bytes()
