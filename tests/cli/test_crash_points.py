"""A run that is killed between any two operations on files can be resumed, or begun anew.

A command runs once, and before each change on disk its folder is copied. A copy is what a process
leaves that is killed there: the command is given again on each of them.
"""

import errno
import json
import os
import shutil
from itertools import product

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import bayes_lcs as bl
from bayes_lcs.cli import app
from bayes_lcs.runtime import checkpoints
from bayes_lcs.workflows import coreset
from tests.cli.commands import out_of
from tests.crash_states import before_each_change, keep_states

COMMANDS = pytest.mark.parametrize("command", ["compare", "cluster", "scan", "coreset", "stream"])


@pytest.fixture(autouse=True)
def _all_is_kept(request, monkeypatch):
    """Works are written when they end, and those of a stream, which are short, on the way."""
    monkeypatch.setattr(checkpoints, "MAX_UNSAVED_SECONDS", -1.0)
    if "stream" in request.node.name:
        monkeypatch.setattr(checkpoints, "SECONDS_BETWEEN_SAVES", 0.0)


@pytest.fixture(autouse=True)
def keep_small_draws(request, monkeypatch):
    """Draws of a few points are kept as those of millions are; blocks of a stream stay small."""
    callspec = getattr(request.node, "callspec", None)
    if callspec is not None and callspec.params.get("command") == "coreset":
        monkeypatch.setattr("bayes_lcs.clustering.coresets.coreset.LONG", 0)


def run(files, command, folder, *more):
    words = [*files[command], "--out", out_of(command, folder), *more]
    return CliRunner().invoke(app, [str(word) for word in words])


def run_whole(files, command, folder, *more):
    folder.mkdir(exist_ok=True)
    done = run(files, command, folder, *more)
    assert done.exit_code == 0, done.output
    return folder


def contents(folder):
    """Names of all files, and tables without what the clock decides."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        found[name] = None
        if path.suffix == ".csv":
            table = pd.read_csv(path)
            timed = [c for c in table if c.endswith(("seconds", "cost", "reason", "utility"))]
            found[name] = table.drop(columns=timed).to_csv()
    return found


def has_run(folder):
    return any(path.name == checkpoints.RUN for path in folder.rglob("*"))


def is_empty(folder):
    """Return whether only files of a run that has not begun were written."""
    names = [path.name for path in folder.rglob("*") if path.is_file()]
    return all(name.startswith(".run.json") for name in names)


@COMMANDS
def test_killed_while_checkpoints_are_removed_it_is_finished(files, tmp_path, command):
    folder = tmp_path / "place"
    folder.mkdir()
    with keep_states(folder, tmp_path / "states"):
        run_whole(files, command, folder)
    expected = contents(folder)
    states = [state for state in sorted((tmp_path / "states").iterdir()) if not has_run(state)]
    states = [state for state in states if not is_empty(state)]
    assert len(states) >= 4, "of which the last is the removal of the folder"
    for state in states:
        refused = run(files, command, state)
        assert refused.exit_code == 2, refused.output
        assert "--force" in refused.stderr
        resumed = run(files, command, state, "--resume", "--json")
        assert resumed.exit_code == 0, resumed.output
        assert "this run is finished" in resumed.stderr
        assert "nothing to resume" not in resumed.stderr
        assert json.loads(resumed.stdout)["finished"] is True
        assert contents(state) == expected


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "earlier"),
    [
        *((command, "nothing") for command in ("compare", "cluster")),
        *product(("scan", "coreset", "stream"), ("nothing", "finished", "unfinished")),
    ],
)
def test_killed_anywhere_it_is_resumed(files, tmp_path, command, earlier):
    """Also a run that was forced over the results, or the checkpoints, of an earlier one."""
    expected = contents(run_whole(files, command, tmp_path / "whole"))
    folder = tmp_path / "place"
    folder.mkdir()
    more = []
    if earlier == "unfinished":
        with keep_states(folder, tmp_path / "before"):
            run_whole(files, command, folder)
        begun = [state for state in sorted((tmp_path / "before").iterdir()) if has_run(state)]
        shutil.rmtree(folder)
        shutil.copytree(begun[-1], folder)
        more = ["--force"]
    elif earlier == "finished":
        run_whole(files, command, folder, "--seed", 1)
        more = ["--force"]
    with keep_states(folder, tmp_path / "states"):
        done = run(files, command, folder, *more)
    assert done.exit_code == 0, done.output
    assert contents(folder) == expected
    for number, state in enumerate(sorted((tmp_path / "states").iterdir())):
        if number % 5 == 0:
            anew = tmp_path / f"anew{number}"
            shutil.copytree(state, anew)
            forced = run(files, command, anew, "--force")
            assert forced.exit_code == 0, forced.output
            assert contents(anew) == expected
        if not is_empty(state):
            refused = run(files, command, state)
            assert refused.exit_code == 2, refused.output
            assert "--force" in refused.stderr
        was_begun = has_run(state)
        resumed = run(files, command, state, "--resume")
        if earlier == "finished" and not was_begun and resumed.exit_code == 2:
            assert "seed was '1' and is '0'" in resumed.stderr  # the earlier run is finished
            continue
        assert resumed.exit_code == 0, (state, resumed.output)
        assert ("nothing to resume" in resumed.stderr) == is_new(resumed, was_begun)
        assert contents(state) == expected, state


def is_new(resumed, was_begun):
    return not was_begun and "this run is finished" not in resumed.stderr


@COMMANDS
@pytest.mark.parametrize("room", [1, -2])
def test_a_full_disk_leaves_what_resume_needs(files, tmp_path, monkeypatch, command, room):
    """Room for the first file among the results, or for all but two: nothing is renamed later."""
    moved = []
    with before_each_change(tmp_path, lambda name, path: moved.append((name, path))):
        expected = contents(run_whole(files, command, tmp_path / "whole"))
    results = [path for name, path in moved if name == "replace" and "checkpoint" not in str(path)]
    last = len(results) + room if room < 0 else room
    (tmp_path / "place").mkdir()
    replace, written = os.replace, []

    def fill(source, target):
        if "place" in str(target) and "checkpoint" not in str(target):
            if len(written) >= last:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            written.append(target)
        return replace(source, target)

    with monkeypatch.context() as full:
        full.setattr(os, "replace", fill)
        failed = run(files, command, tmp_path / "place")
    assert failed.exit_code == 1, failed.output
    message = failed.stderr.splitlines()[-1]
    assert "could not be written (No space left on device)" in message
    assert (
        "free some space and run the same command with --resume, which only writes the results"
        in message
    )
    assert run(files, command, tmp_path / "place").exit_code == 2
    resumed = run(files, command, tmp_path / "place", "--resume")
    assert resumed.exit_code == 0, resumed.output
    assert contents(tmp_path / "place") == expected


def test_a_full_disk_after_work_that_was_not_kept(files, tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoints, "MAX_UNSAVED_SECONDS", 1000.0)
    expected = contents(run_whole(files, "coreset", tmp_path / "whole"))
    (tmp_path / "place").mkdir()
    replace = os.replace

    def fill(source, target):
        if str(target).endswith("out.csv"):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return replace(source, target)

    with monkeypatch.context() as full:
        full.setattr(os, "replace", fill)
        failed = run(files, "coreset", tmp_path / "place")
    assert failed.exit_code == 1, failed.output
    assert "Free some space and run the same command with --resume" in failed.stderr
    resumed = run(files, "coreset", tmp_path / "place", "--resume")
    assert resumed.exit_code == 0, resumed.output
    assert "the earlier run had saved nothing yet" in resumed.stderr
    assert contents(tmp_path / "place") == expected


def test_a_stream_that_cannot_be_written_down_is_read_again(files, tmp_path, monkeypatch):
    """A full disk of temporary files leaves no place in the file without the rows before it."""
    path = files["stream"][1]

    def small():
        with bl.checkpoints(tmp_path / "kept"):
            return coreset.coreset_of_file(path, 2, 20, stream=True)[0]

    expected = coreset.coreset_of_file(path, 2, 20, stream=True)[0]
    with monkeypatch.context() as full:
        full.setattr(coreset, "model_to_arrays", lambda _: None)
        with pytest.warns(bl.CheckpointWarning, match="not enough disk space"):
            found = small()
    np.testing.assert_array_equal(found.points, expected.points)
    for _ in range(2):
        np.testing.assert_array_equal(small().points, expected.points)
