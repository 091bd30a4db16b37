"""What does not fit, into memory or on the disk, is said before long work or without losing it."""

import errno
import os
import shutil
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import bayes_lcs as bl
from bayes_lcs.cli import app, errors
from bayes_lcs.runtime import memory

runner = CliRunner()


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A file for each command, and its words."""
    folder = tmp_path_factory.mktemp("data")
    data, _ = bl.meeting_requests(seed=0, rows_per_person=15)
    data.select_groups(list(range(6))).to_frame().to_csv(folder / "m.csv", index=False)
    rng = np.random.default_rng(0)
    kind = rng.integers(3, size=(3000, 1))
    codes = np.where(rng.random((3000, 6)) < 0.8, kind, rng.integers(3, size=(3000, 6)))
    pd.DataFrame(codes, columns=list("abcdef")).to_csv(folder / "c.csv", index=False)
    return {
        "compare": ["compare", folder / "m.csv", "--group", "person", "--label", "decision"],
        "cluster": ["cluster", folder / "c.csv", "-k", 3, "--alpha", 0, "--initial", 300],
        "scan": ["scan", folder / "c.csv", "--label", "f", "--parts", 8],
        "coreset": ["coreset", folder / "c.csv", "-k", 3, "--size", 50],
    }


def run(words, *more):
    return runner.invoke(app, [str(word) for word in (*words, *more)])


COMMANDS = pytest.mark.parametrize("command", ["compare", "cluster", "scan", "coreset"])
INSTEAD = {"compare": "--draws", "cluster": "--initial", "scan": "--parts", "coreset": "--stream"}


@COMMANDS
@pytest.mark.parametrize("more", [(), ("--json",)])
def test_too_little_memory_is_said_first(files, tmp_path, monkeypatch, command, more):
    # Enough to read a table, and not to sample.
    monkeypatch.setattr(
        memory, "available_memory", lambda: (90 if command == "compare" else 30) << 20
    )
    words = files[command] if command != "compare" else [*files[command], "--draws", 10**6]
    found = run(words, "--out", tmp_path / "out" / "result.csv", *more)
    assert found.exit_code == 1, found.output
    assert found.stdout == ""
    assert len(found.stderr.splitlines()) == 1
    assert "of memory, and only" in found.stderr
    assert INSTEAD[command] in found.stderr
    assert not list(tmp_path.iterdir())


@COMMANDS
def test_a_small_disk_is_said_first(files, tmp_path, monkeypatch, command):
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(errors.shutil, "disk_usage", lambda _: usage._replace(free=100_000))
    found = run(files[command], "--out", tmp_path / "out" / "result.csv")
    assert found.exit_code == 1, found.output
    assert len(found.stderr.splitlines()) == 1
    assert "of disk, and only 97.7 KiB are free" in found.stderr
    assert not list(tmp_path.iterdir())


@COMMANDS
def test_a_folder_that_cannot_be_made_is_said_first(files, tmp_path, command):
    (tmp_path / "file").write_text("not a folder")
    found = run(files[command], "--out", tmp_path / "file" / "result" / "result.csv")
    assert found.exit_code == 1, found.output
    assert "cannot be written to" in found.stderr
    assert "--out" in found.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("number", [errno.EROFS, errno.EACCES, errno.ENOSPC])
def test_a_folder_that_refuses_writing_is_said_first(files, tmp_path, monkeypatch, number):
    def refuse(*_, **__):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(errors.tempfile, "TemporaryFile", refuse)
    found = run(files["cluster"], "--out", tmp_path / "out")
    assert found.exit_code == 1, found.output
    assert os.strerror(number) in found.stderr
    assert not list(tmp_path.iterdir())


# Everything is kept, and the disk is full when the results are written.
MAIN = """
import resource, sys
import bayes_lcs.runtime.checkpoints as c
c.SECONDS_BETWEEN_SAVES, c.MAX_UNSAVED_SECONDS, c.MAX_SECONDS_BETWEEN_SAVES = 0.0, 0.0, 0.0

c.source_task = lambda *_: c.CheckpointedTask(None)
limit = int(sys.argv.pop(1))
if limit:
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
from bayes_lcs.cli import main
main()
"""


def start(limit, words, out, *more, main=MAIN):
    command = [sys.executable, "-c", main, limit, *words, "--out", out, *more]
    return subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, check=False
    )


def left(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize(
    ("command", "limit", "tables"),
    [
        ("compare", 20_000, ["evidence.csv", "partition.csv"]),
        pytest.param("cluster", 24_000, ["curve.csv"], marks=pytest.mark.slow),
    ],
)
def test_results_that_cannot_be_written_are_kept(files, tmp_path, command, limit, tables):
    whole = start(0, files[command], tmp_path / "whole")
    assert whole.returncode == 0, whole.stderr
    assert ".checkpoint" not in left(tmp_path / "whole")
    failed = start(limit, files[command], tmp_path / "out", "--json")
    assert failed.returncode == 1, failed.stderr
    assert failed.stdout == ""
    assert "Traceback" not in failed.stderr
    message = failed.stderr.splitlines()[-1]
    assert "could not be written (File too large)" in message
    assert "the same command with --resume only writes the results" in message
    assert not [name for name in left(tmp_path / "out") if name.endswith(".part")]
    assert ".checkpoint" in left(tmp_path / "out")
    resumed = start(0, files[command], tmp_path / "out", "--resume")
    assert resumed.returncode == 0, resumed.stderr
    assert left(tmp_path / "out") == left(tmp_path / "whole")
    for name in tables:
        one, other = (pd.read_csv(tmp_path / folder / name) for folder in ("whole", "out"))
        timed = [column for column in one if column.endswith(("seconds", "cost", "reason"))]
        pd.testing.assert_frame_equal(one.drop(columns=timed), other.drop(columns=timed))


FILLED = MAIN.replace(
    "main()\n",
    """
import os, pathlib
import bayes_lcs.workflows.cluster as files
out, cluster_file = pathlib.Path(sys.argv[-1]), files.cluster_file
def and_then_the_disk_is_full(*args, **options):
    found = cluster_file(*args, **options)
    with (out / "filler").open("wb", buffering=0) as filler:
        try:
            while True:
                filler.write(bytes(1 << 12))
        except OSError:
            pass
    return found
files.cluster_file = and_then_the_disk_is_full
main()
""",
)


def test_a_disk_that_fills_on_the_way_loses_nothing(files, tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", str(disk)]
    if os.geteuid() or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("a small disk can be mounted by root only")
    try:
        words = files["cluster"]
        failed = start(0, words, disk / "out", main=FILLED)
        assert failed.returncode == 1, failed.stderr
        assert "could not be written (No space left on device)" in failed.stderr
        assert "Traceback" not in failed.stderr
        assert not [name for name in left(disk / "out") if name.endswith(".part")]
        (disk / "out" / "filler").unlink()
        resumed = start(0, words, disk / "out", "--resume")
        assert resumed.returncode == 0, resumed.stderr
        assert (disk / "out" / "assignments.csv").exists()
        assert "learning curve: rows 300, " in resumed.stderr  # recalled stages are shown, too
    finally:
        subprocess.run(["umount", str(disk)], check=True)
