"""``--executor``, ``--scheduler`` and ``--workers``: the same results, elsewhere."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import bayes_lcs as bl
from bayes_lcs.cli import app, workers
from bayes_lcs.report import comparison_files

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
    pytest.param(("dask", "--workers", 2), marks=pytest.mark.slow),
]


@pytest.mark.parametrize("where", ELSEWHERE, ids=lambda where: where[0])
def test_results_do_not_depend_on_the_executor(files, where):
    for command, words in commands(files).items():
        first = ("--executor", "serial") if command == "coreset" else ()
        folders = [files / f"{command}-{name}" / "out" for name in ("plain", where[0])]
        for folder, more in zip(folders, (first, ("--executor", *where)), strict=True):
            done = run(*words, *more, "--out", folder, "--json")
            assert done.exit_code == 0, done.output
            json.loads(done.stdout)  # nothing else is on standard output
            if more[1:2] == ("dask",):
                assert "dashboard: http://127.0.0.1:" in done.stderr
        one, other = (result(command, folder) for folder in folders)
        np.testing.assert_allclose(other, one, rtol=1e-9, atol=1e-12, err_msg=command)


@pytest.mark.slow
def test_chains_of_compare_do_not_depend_on_the_executor(files, monkeypatch):
    monkeypatch.setattr(comparison_files, "fits", lambda _: False)  # it is sampled, not summed
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
        (("--executor", "serial", "--scheduler", "tcp://a:1"), 2, "not of 'serial'"),
        (("--scheduler", "tcp://a:1", "--workers", 2), 2, "--workers or --scheduler"),
        (("--executor", "devices", "--workers", 999), 2, "999 were asked for"),
        (("--scheduler", "nonsense"), 2, "'nonsense' is no address of a scheduler"),
        (("--scheduler", "http://a:1"), 2, "unknown address scheme 'http'"),
        (("--scheduler", "tcp://127.0.0.1:9"), 1, "no Dask scheduler answers at tcp://127.0.0.1:9"),
    ],
)
@pytest.mark.parametrize("command", ["cluster", "coreset"])
def test_what_cannot_be_is_one_message(files, tmp_path, monkeypatch, command, more, code, message):
    pytest.importorskip("distributed")
    monkeypatch.setattr(workers, "PATIENCE", 0.5)
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


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["processes", "dask"])
def test_ctrl_c_ends_the_workers(kind, tmp_path):
    """As a terminal does it: all processes are told, and only the command answers."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400_000, 4))
    pd.DataFrame(X, columns=list("abcd")).to_parquet(tmp_path / "p.parquet")
    words = ["coreset", tmp_path / "p.parquet", "-k", 400, "--size", 20_000]
    words += ["--executor", kind, "--workers", 2, "--out", tmp_path / "out.csv"]
    program = "from bayes_lcs.cli import main; main()"
    command = subprocess.Popen(
        [sys.executable, "-c", program, *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    # Python with its libraries, two workers, and what keeps count of their resources.
    while len(living(command.pid)) < 4 and command.poll() is None:
        time.sleep(0.05)
    time.sleep(1.0)
    os.killpg(command.pid, signal.SIGINT)
    out, error = command.communicate(timeout=60)
    assert command.returncode == 130, error
    assert out == ""
    assert "Traceback" not in error
    deadline = time.monotonic() + 30
    while living(command.pid) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not living(command.pid)


def living(group):
    """Processes of a group that have not ended."""
    shown = subprocess.run(
        ["ps", "-eo", "pgid=,stat=,args="], check=True, capture_output=True, text=True
    )
    rows = [line.split(None, 2) for line in shown.stdout.splitlines()]
    return [row for row in rows if int(row[0]) == group and not row[1].startswith("Z")]
