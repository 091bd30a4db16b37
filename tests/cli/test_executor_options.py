"""``--executor``, ``--scheduler`` and ``--workers``: the same results, elsewhere."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import bayes_lcs as bl
from bayes_lcs.cli import app, executor_options
from bayes_lcs.workflows import compare

runner = CliRunner()


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(0)
    kind = rng.integers(3, size=(1500, 1))
    codes = np.where(rng.random((1500, 6)) < 0.8, kind, rng.integers(3, size=(1500, 6)))
    pd.DataFrame(codes, columns=list("abcdef")).to_csv(folder / "rows.csv", index=False)
    data, _ = bl.meeting_requests(seed=0, rows_per_person=12)
    data.select_groups(list(range(6))).to_frame().to_csv(folder / "meetings.csv", index=False)
    return folder


def run(*words):
    return runner.invoke(app, [str(word) for word in words])


def commands(files):
    rows = files / "rows.csv"
    cluster = ["cluster", rows, "-k", 3, "--alpha", 0, "--initial", 500]
    return {
        "cluster": cluster,
        "scan": ["scan", rows, "--label", "f", "--parts", 6, "--whole"],
        "coreset": ["coreset", rows, "-k", 3, "--size", 50],
    }


def result(command, out):
    if command == "cluster":
        return np.hstack(bl.load(out / "mixture.nc").probabilities_)
    if command == "scan":
        return bl.load(out / "ensemble.skops").predict_proba(
            pd.read_csv(out.parent.parent / "rows.csv", dtype=float).drop(columns="f")
        )
    return pd.read_csv(out).to_numpy()


ELSEWHERE = [
    ("serial",),
    pytest.param(("devices",), marks=pytest.mark.slow),
    pytest.param(("processes", "--workers", 2), marks=pytest.mark.slow),
]


@pytest.mark.parametrize("where", ELSEWHERE, ids=lambda where: where[0])
def test_results_do_not_depend_on_the_executor(files, where):
    for command, words in commands(files).items():
        first = ("--executor", "serial") if command == "coreset" else ()
        folders = [files / f"{command}-{name}" / "out" for name in ("plain", where[0])]
        for folder, more in zip(folders, (first, ("--executor", *where)), strict=True):
            done = run(*words, *more, "--out", folder, "--json", "--force")
            assert done.exit_code == 0, done.output
            json.loads(done.stdout)  # nothing else is on standard output
        one, other = (result(command, folder) for folder in folders)
        np.testing.assert_allclose(other, one, rtol=1e-9, atol=1e-12, err_msg=command)


@pytest.mark.slow
def test_chains_of_compare_do_not_depend_on_the_executor(files, monkeypatch):
    monkeypatch.setattr(compare, "fits", lambda _: False)  # it is sampled, not summed
    words = ["compare", files / "meetings.csv", "--group", "person", "--label", "decision"]
    words += ["--draws", 50, "--chains", 2]
    for name, where in {"plain": (), "elsewhere": ("--executor", "processes")}.items():
        done = run(*words, *where, "--out", files / name)
        assert done.exit_code == 0, done.output
    found = [bl.load(files / name / "posterior.nc") for name in ("plain", "elsewhere")]
    np.testing.assert_array_equal(*[one.partitions() for one in found])


@pytest.mark.parametrize(
    ("more", "code", "message"),
    [
        (("--executor", "clouds"), 2, "must be one of serial, processes, dask, devices"),
        (("--workers", 2), 2, "--workers needs --executor"),
        (("--executor", "serial", "--scheduler", "tcp://a:1"), 2, "leave out --executor serial"),
        (("--scheduler", "tcp://a:1", "--workers", 2), 2, "--workers or --scheduler"),
        (("--executor", "devices", "--workers", 999), 2, "but devices=999"),
        (("--scheduler", "nonsense"), 2, "'nonsense' is not the address of a scheduler"),
        (("--scheduler", "http://a:1"), 2, "unknown address scheme 'http'"),
        (("--scheduler", "tcp://127.0.0.1:9"), 1, "no Dask scheduler answers at tcp://127.0.0.1:9"),
    ],
)
@pytest.mark.parametrize("command", ["cluster", "coreset"])
def test_what_cannot_be_is_one_message(files, tmp_path, monkeypatch, command, more, code, message):
    pytest.importorskip("distributed")
    monkeypatch.setattr(executor_options, "TIMEOUT", 0.5)
    words = commands(files)[command]
    done = run(*words, *more, "--out", tmp_path / "new" / "out")
    assert done.exit_code == code
    assert done.stdout == ""
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not list(tmp_path.iterdir())


def test_jobs_and_executors_do_not_mix(files, tmp_path):
    words = commands(files)["scan"]
    done = run(*words, "--jobs", 2, "--executor", "serial", "--out", tmp_path / "out")
    assert done.exit_code == 2
    assert "--workers" in done.stderr


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """Files of which every command has work for longer than it takes to begin the workers."""
    folder = tmp_path_factory.mktemp("large")
    rng = np.random.default_rng(0)
    points = pd.DataFrame(rng.normal(size=(400_000, 4)), columns=list("abcd"))
    points.to_parquet(folder / "points.parquet")
    codes = pd.DataFrame(rng.integers(8, size=(400_000, 10)), columns=list("abcdefghij"))
    codes.astype(str).to_parquet(folder / "codes.parquet")
    people = pd.DataFrame(rng.integers(3, size=(60_000, 8)), columns=list("abcdefgh"))
    people.assign(person=rng.integers(200, size=60_000)).to_csv(folder / "people.csv", index=False)
    return {
        "cluster": ["cluster", folder / "codes.parquet", "-k", 40, "--alpha", 0],
        "compare": ["compare", folder / "people.csv", "--group", "person", "--label", "a"],
        "coreset": ["coreset", folder / "points.parquet", "-k", 3000, "--size", 20_000],
        "scan": ["scan", folder / "codes.parquet", "--label", "a", "--parts", 64, "--whole"],
    }


DEADLINE = 120.0


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are listed by /proc")
@pytest.mark.parametrize("command", ["cluster", "compare", "coreset", "scan"])
@pytest.mark.parametrize("how", ["ctrl-c", "interrupt", "kill"])
def test_ctrl_c_and_kill_end_the_workers(large, how, command, tmp_path):
    """Ctrl-C in a terminal is told to all processes, of which only the command answers."""
    words = [
        *large[command],
        "--executor",
        "processes",
        "--workers",
        2,
        "--out",
        tmp_path / "out.csv",
    ]
    program = "from bayes_lcs.cli import main; main()"
    running = subprocess.Popen(
        [sys.executable, "-c", program, *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        # Python with its libraries, two workers, and what keeps count of their resources.
        wait_until(lambda: len(living(running.pid)) >= 4 or running.poll() is not None)
        assert running.poll() is None
        if how == "ctrl-c":
            os.killpg(running.pid, signal.SIGINT)
        else:
            running.send_signal(signal.SIGKILL if how == "kill" else signal.SIGINT)
        out, error = running.communicate(timeout=DEADLINE)
        assert running.returncode == (-signal.SIGKILL if how == "kill" else 130), error
        if how != "kill":
            assert out == ""
            assert "Traceback" not in error
        wait_until(lambda: not living(running.pid))
    finally:
        with suppress(ProcessLookupError):
            os.killpg(running.pid, signal.SIGKILL)
        running.wait()


def wait_until(holds):
    deadline = time.monotonic() + DEADLINE
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def living(group):
    """Processes of a group that have not ended."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended meanwhile
            state, _, own = (folder / "stat").read_text().rpartition(")")[2].split()[:3]
            if int(own) == group and state != "Z":
                found.append(int(folder.name))
    return found
