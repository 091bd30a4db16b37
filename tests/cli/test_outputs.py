"""Existing files at --out stay unless --force is given; the input always stays."""

import json
import os
import shutil
from importlib import import_module
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

import bayes_lcs as bl
from bayes_lcs.classification.partial_scan.estimator import PartialScanClassifier
from bayes_lcs.cli import app
from bayes_lcs.runtime import checkpoints
from bayes_lcs.workflows import coreset
from tests.cli.commands import out_of

FOLDERS = pytest.mark.parametrize("command", ["compare", "cluster", "scan", "demo"])
ALL = pytest.mark.parametrize("command", ["compare", "cluster", "scan", "demo", "coreset"])
RESUMED = pytest.mark.parametrize("command", ["compare", "cluster", "scan", "coreset"])


def run(words, *more):
    return CliRunner().invoke(app, [str(word) for word in (*words, *more)])


def state(folder):
    """Everything in a folder, with its content and its time."""
    found = {}
    for path in sorted(folder.rglob("*")):
        link = str(path.readlink()) if path.is_symlink() else None
        content = path.read_bytes() if path.is_file() else None
        found[str(path.relative_to(folder))] = (link, content, path.lstat().st_mtime_ns)
    return found


def check_refused(words, folder, *told, out=None):
    """One message, exit code 2, and nothing changed."""
    before = state(folder)
    found = run(words, "--out", out if out is not None else folder / "out")
    assert found.exit_code == 2, found.output
    assert found.stdout == ""
    (line,) = found.stderr.splitlines()
    for words in told:
        assert words in line
    assert state(folder) == before


@ALL
def test_results_are_not_replaced_unasked(files, tmp_path, command):
    out = out_of(command, tmp_path)
    if command == "coreset":
        out.write_text("mine")
        named = out
    else:
        out.mkdir()
        (out / "report.html").write_text("mine")
        named = f"{out}: this folder already contains results (report.html)"
    told = (str(named), "choose another --out, or pass --force to replace")
    check_refused(files[command], tmp_path, *told, out=out)


def test_the_report_of_a_coreset_is_not_replaced_unasked(files, tmp_path):
    (tmp_path / "out-report.html").write_text("mine")
    told = (str(tmp_path / "out-report.html"), "this file already exists", "--force")
    check_refused(files["coreset"], tmp_path, *told, out=tmp_path / "out.csv")


@FOLDERS
def test_a_folder_of_other_files_is_not_written_into_unasked(files, tmp_path, command):
    (tmp_path / "out").mkdir()
    for name in "abcde":
        (tmp_path / "out" / f"{name}.txt").write_text("mine")
    told = (f"{tmp_path / 'out'}: this folder is not empty (a.txt, b.txt, c.txt and 2 more)",)
    check_refused(files[command], tmp_path, *told, "--force")


@FOLDERS
@pytest.mark.parametrize("more", [(), ("--force",)])
@pytest.mark.parametrize("kind", ["file", "link to a file", "dangling link"])
def test_a_file_is_never_replaced_by_a_folder(files, tmp_path, command, more, kind):
    out = tmp_path / "out"
    if kind == "file":
        out.write_text("mine")
    else:
        out.symlink_to(tmp_path / "target")
        if kind == "link to a file":
            (tmp_path / "target").write_text("mine")
    told = ("not a folder, but --out must be one; choose another --out",)
    check_refused([*files[command], *more], tmp_path, str(out), *told)


@pytest.mark.parametrize("is_dangling", [False, True])
def test_a_link_is_replaced_when_asked_and_what_it_leads_to_stays(files, tmp_path, is_dangling):
    out, target = tmp_path / "out.csv", tmp_path / "target.csv"
    out.symlink_to(target)
    if not is_dangling:
        target.write_text("mine")
    told = (f"{out}: this is a symbolic link to {target}", "--force")
    check_refused(files["coreset"], tmp_path, *told, out=out)
    done = run(files["coreset"], "--out", out, "--force")
    assert done.exit_code == 0, done.output
    assert not out.is_symlink()
    assert list(pd.read_csv(out)) == ["a", "b", "c", "d", "weight"]
    assert not target.exists() if is_dangling else target.read_text() == "mine"


def test_links_in_a_folder_are_replaced_when_asked_and_what_they_lead_to_stays(files, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "precious").write_text("mine")
    for name in ("scan.csv", "ensemble.skops", "ensemble.skops.sha256"):
        (tmp_path / "out" / name).symlink_to(tmp_path / "precious")
    done = run(files["scan"], "--out", tmp_path / "out", "--force")
    assert done.exit_code == 0, done.output
    assert (tmp_path / "precious").read_text() == "mine"
    assert not [path for path in (tmp_path / "out").iterdir() if path.is_symlink()]
    bl.load(tmp_path / "out" / "ensemble.skops")


def test_a_link_to_a_folder_is_the_folder(files, tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "out").symlink_to(tmp_path / "real")
    done = run(files["scan"], "--out", tmp_path / "out")
    assert done.exit_code == 0, done.output
    assert (tmp_path / "out").is_symlink()
    assert (tmp_path / "real" / "scan.csv").exists()
    check_refused(files["scan"], tmp_path, "already contains results", "--force")


@pytest.mark.skipif(os.name == "nt", reason="there are no pipes with names")
def test_what_is_no_regular_file_is_never_replaced(files, tmp_path):
    os.mkfifo(tmp_path / "out.csv")
    told = ("out.csv: this is not a regular file", "choose another --out")
    words = [*files["coreset"], "--force"]
    found = run(words, "--out", tmp_path / "out.csv")
    assert found.exit_code == 2, found.output
    assert all(words in found.stderr for words in told)
    assert (tmp_path / "out.csv").is_fifo()
    (tmp_path / "out" / "scan.csv").mkdir(parents=True)
    check_refused(
        [*files["scan"], "--force"],
        tmp_path / "out",
        "scan.csv: this is not a regular file",
        out=tmp_path / "out",
    )


@pytest.mark.parametrize("kind", ["itself", "link", "hard link", "relative"])
def test_the_input_is_never_written_over(files, tmp_path, kind):
    path = out = tmp_path / "rows.csv"
    shutil.copy(files["coreset"][1], path)
    if kind == "link":
        out = tmp_path / "out.csv"
        out.symlink_to(path)
    elif kind == "hard link":
        out = tmp_path / "out.csv"
        out.hardlink_to(path)
    elif kind == "relative":
        (tmp_path / "sub").mkdir()
        out = tmp_path / "sub" / ".." / "rows.csv"
    words = ["coreset", path, "-k", 2, "--force"]
    told = ("this is the input file", str(path), "Choose another --out")
    check_refused(words, tmp_path, *told, out=out)
    check_refused(words[:-1], tmp_path, "--out", out=out)


@ALL
@pytest.mark.parametrize("more", [(), ("--force",)])
def test_a_path_through_a_folder_that_is_still_to_be_made_is_refused(
    files, tmp_path, command, more
):
    """Making the folder would turn the path into that of the input, or of other files."""
    words = list(files[command])
    if command == "demo":
        out = tmp_path / "new" / ".." / "mine"
        (tmp_path / "mine").mkdir()
        (tmp_path / "mine" / "report.html").write_text("mine")
    else:
        name = {"coreset": "rows.csv", "scan": "predictions.csv"}.get(command, "report.html")
        shutil.copy(words[1], tmp_path / name)
        words[1] = tmp_path / name
        out = tmp_path / "new" / ".." / (name if command == "coreset" else "")
    told = (f"{tmp_path / 'new'} is not a folder; write --out without '..'",)
    check_refused([*words, *more], tmp_path, *told, out=out)


@pytest.mark.parametrize("more", [(), ("--force",)])
def test_a_coreset_is_no_folder_and_its_name_fits(files, tmp_path, monkeypatch, more):
    monkeypatch.chdir(tmp_path)
    words = [*files["coreset"], *more]
    for out in (".", ""):
        check_refused(words, tmp_path, ".: this is a folder; --out must be", out=out)
    check_refused(words, tmp_path, "File name too long", out=tmp_path / ("a" * 300 + ".csv"))


@pytest.mark.parametrize(
    ("command", "name"), [("cluster", "assignments.csv"), ("scan", "predictions.csv")]
)
def test_results_of_before_are_not_written_over_while_they_are_read(files, tmp_path, command, name):
    (tmp_path / "out").mkdir()
    shutil.copy(files[command][1], tmp_path / "out" / name)
    words = [command, tmp_path / "out" / name, *files[command][2:], "--force"]
    check_refused(words, tmp_path, f"{name}: this is the input file")
    if command == "scan":
        words = [*files[command], "--predict", tmp_path / "out" / name, "--force"]
        check_refused(words, tmp_path, f"{name}: this is the input file")


@pytest.mark.parametrize("more", [(), ("--force",)])
def test_results_do_not_come_to_lie_among_the_files_that_are_read(files, tmp_path, more):
    (tmp_path / "rows").mkdir()
    shutil.copy(files["coreset"][1], tmp_path / "rows" / "c.csv")
    words = ["coreset", tmp_path / "rows", "-k", 2, *more]
    told = ("the results would be written to the input folder", "choose another --out")
    check_refused(words, tmp_path, *told, out=tmp_path / "rows" / "small.csv")
    done = run(words, "--out", tmp_path / "rows" / "small" / "small.csv", "--stream")
    assert done.exit_code == 0, done.output


@ALL
@pytest.mark.parametrize("more", [(), ("--force",), ("--resume",)])
@pytest.mark.parametrize("hidden", ["results.json", "checkpoint", "checkpoint.before"])
def test_links_under_names_of_our_own_are_not_followed(files, tmp_path, command, more, hidden):
    """They would lead to the input, or to other files of the user."""
    if command == "demo" and more == ("--resume",):
        pytest.skip("demo cannot be resumed")
    out = out_of(command, tmp_path)
    name = f".{hidden}" if out.suffix == "" else f".{out.name}.{hidden}"
    path = out / name if out.suffix == "" else tmp_path / name
    words = list(files[command])
    target = tmp_path / "rows.csv"
    if hidden != "results.json":
        target = tmp_path / "real"
        target.mkdir()
        (target / checkpoints.RUN).write_text("mine")
    elif command == "demo":
        target.write_text("mine")
    else:
        shutil.copy(words[1], target)
        words[1] = target
    path.parent.mkdir(exist_ok=True)
    path.symlink_to(target)
    told = (str(path), "move it away, or choose another --out")
    check_refused([*words, *more], tmp_path, *told, out=out)


@pytest.mark.parametrize("command", ["scan", "coreset"])
@pytest.mark.parametrize("hidden", ["results.json", "checkpoint"])
@pytest.mark.parametrize("content", ["mine", "{}", "[" * 50_000])
def test_files_under_names_of_our_own_are_not_replaced(files, tmp_path, command, hidden, content):
    out = out_of(command, tmp_path)
    path = out / f".{hidden}" if out.suffix == "" else tmp_path / f".{out.name}.{hidden}"
    path.parent.mkdir(exist_ok=True)
    path.write_text(content)
    told = (str(path), "move it away, or choose another --out")
    for more in ((), ("--force",), ("--resume",)):
        check_refused([*files[command], *more], tmp_path, *told, out=out)


def test_force_replaces_results_and_leaves_other_files(files, tmp_path):
    out = tmp_path / "out"
    done = run(files["scan"], "--out", out, "--predict", files["scan"][1])
    assert done.exit_code == 0, done.output
    (out / "notes.txt").write_text("mine")
    (out / "curve.csv").write_text("of another command, or mine")
    before = state(out)
    done = run(files["scan"], "--out", out, "--seed", 1, "--force", "--json")
    assert done.exit_code == 0, done.output
    assert "predictions.csv" in before
    assert not (out / "predictions.csv").exists(), "it is of the run before"
    after = state(out)
    assert {name for name in after if after[name] == before.get(name)} == {"notes.txt", "curve.csv"}
    assert set(after) == set(before) - {"predictions.csv"}


def test_force_removes_nothing_that_is_not_known_to_be_a_result(files, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "predictions.csv").write_text("mine")
    (tmp_path / "out" / ".checkpoint").mkdir()
    (tmp_path / "out" / ".checkpoint" / "weights.npz").write_text("mine")
    for more in ((), ("--seed", 1)):
        done = run(files["scan"], "--out", tmp_path / "out", "--force", *more)
        assert done.exit_code == 0, done.output
    assert (tmp_path / "out" / "predictions.csv").read_text() == "mine"
    assert (tmp_path / "out" / ".checkpoint" / "weights.npz").read_text() == "mine"


def test_an_option_that_fails_leaves_results_as_they_were(files, tmp_path):
    out = tmp_path / "out"
    assert run(files["cluster"], "--out", out).exit_code == 0
    before = state(out)
    failed = run([*files["cluster"], "-k", 1000], "--out", out, "--force")
    assert failed.exit_code == 2, failed.output
    assert state(out) == before


# --resume -----------------------------------------------------------------------------------------


@RESUMED
def test_resuming_what_is_finished_says_so_and_does_nothing(files, tmp_path, command):
    out = out_of(command, tmp_path)
    done = run(files[command], "--out", out)
    assert done.exit_code == 0, done.output
    before = state(tmp_path)
    if command != "coreset":  # a file that the command does not know it would not protect
        known = import_module(f"bayes_lcs.cli.{command}").RESULTS
        assert {path.name for path in out.iterdir()} <= {*known, ".results.json"}
    for more in ((), ("--json",)):
        again = run(files[command], "--out", out, "--resume", *more)
        assert again.exit_code == 0, again.output
        (line,) = again.stderr.splitlines()
        assert f"this run is finished and its results are in {out}; there is nothing to do" in line
        assert "pass --force instead of --resume" in line
        assert state(tmp_path) == before
    told = json.loads(again.stdout)
    assert told["finished"] is True
    assert all(Path(path).exists() for path in told["files"])
    other = run(files[command], "--out", out, "--resume", "--seed", 5)
    assert other.exit_code == 2, other.output
    assert "belong to another run, which is finished: seed was '0' and is '5'" in other.stderr
    assert "choose another --out, or pass --force to replace them" in other.stderr
    assert state(tmp_path) == before


def test_predictions_that_were_not_made_are_not_finished(files, tmp_path):
    assert run(files["scan"], "--out", tmp_path / "out").exit_code == 0
    words = [*files["scan"], "--predict", files["scan"][1]]
    found = run(words, "--out", tmp_path / "out", "--resume")
    assert found.exit_code == 2, found.output
    assert "predict was 'None' and is" in found.stderr


@RESUMED
@pytest.mark.parametrize("is_there", [False, True])
def test_where_nothing_is_resuming_is_the_beginning(files, tmp_path, command, is_there):
    out = out_of(command, tmp_path)
    if is_there and command != "coreset":
        out.mkdir()
    done = run(files[command], "--out", out, "--resume")
    assert done.exit_code == 0, done.output
    notes = [line for line in done.stderr.splitlines() if "resume" in line]
    assert notes == [f"note: there is nothing to resume in {out}; a new run starts"]


def test_resuming_needs_a_run_and_not_just_files(files, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "notes.txt").write_text("mine")
    check_refused([*files["scan"], "--resume"], tmp_path, "not empty (notes.txt)", "--force")
    (tmp_path / "out.csv").write_text("mine")
    words = [*files["coreset"], "--resume"]
    check_refused(words, tmp_path, "already exists", "--force", out=tmp_path / "out.csv")


@pytest.fixture
def unfinished(files, tmp_path, monkeypatch):
    """Runs of a command that end before their results are written; their work is kept."""
    monkeypatch.setattr(checkpoints, "MAX_UNSAVED_SECONDS", -1.0)
    # Draws of a few points are kept as those of millions are.
    monkeypatch.setattr("bayes_lcs.clustering.coresets.coreset.LONG", 0)

    def begin(command, *more):
        def do_and_stop(*args, **options):
            do(*args, **options)
            raise KeyboardInterrupt

        owner, name = {
            "scan": (PartialScanClassifier, "fit_file"),
            "coreset": (coreset, "coreset_of_file"),
        }[command]
        do = getattr(owner, name)
        with monkeypatch.context() as patched:
            patched.setattr(owner, name, do_and_stop)
            done = run(files[command], "--out", out_of(command, tmp_path), *more)
        assert done.exit_code == 130, done.output
        assert "run the same command with --resume" in done.stderr

    return begin


@pytest.mark.parametrize("command", ["scan", "coreset"])
def test_an_unfinished_run_is_resumed_or_begun_anew_only_when_asked(
    files, tmp_path, unfinished, command
):
    out = out_of(command, tmp_path)
    unfinished(command)
    told = (f"{out}: this is the output of an unfinished run", "--resume", "--force to start again")
    check_refused(files[command], tmp_path, *told, out=out)
    copy = shutil.copytree(tmp_path, tmp_path.with_name(f"copy-{command}"))
    resumed = run(files[command], "--out", out, "--resume")
    assert resumed.exit_code == 0, resumed.output
    assert "resume" not in resumed.stderr
    forced = run(files[command], "--out", out_of(command, copy), "--force")
    assert forced.exit_code == 0, forced.output
    assert "earlier run are moved to" in forced.stderr
    names = [{path.name for path in folder.rglob("*")} for folder in (tmp_path, copy)]
    assert names[0] == names[1]
    assert not [name for name in names[0] if "checkpoint" in name]


def test_resuming_replaces_no_file_that_came_meanwhile(files, tmp_path, unfinished):
    unfinished("coreset")
    (tmp_path / "out.csv").write_text("mine")
    words = [*files["coreset"], "--resume"]
    told = ("out.csv: this file does not belong to the unfinished run", "move it away", "--force")
    check_refused(words, tmp_path, *told, out=tmp_path / "out.csv")
    done = run(words, "--out", tmp_path / "out.csv", "--force")
    assert done.exit_code == 0, done.output
    assert "weight" in pd.read_csv(tmp_path / "out.csv")


def test_resuming_a_forced_run_needs_no_force(files, tmp_path, unfinished):
    (tmp_path / "out.csv").write_text("an earlier result")
    unfinished("coreset", "--force")
    assert (tmp_path / "out.csv").read_text() == "an earlier result"
    done = run(files["coreset"], "--out", tmp_path / "out.csv", "--resume")
    assert done.exit_code == 0, done.output
    assert "weight" in pd.read_csv(tmp_path / "out.csv")


def test_ctrl_c_before_anything_is_kept_leaves_earlier_results(files, tmp_path, monkeypatch):
    assert run(files["scan"], "--out", tmp_path / "out").exit_code == 0
    before = state(tmp_path)

    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(PartialScanClassifier, "fit_file", stop)
    done = run(files["scan"], "--out", tmp_path / "out", "--seed", 1, "--force")
    assert done.exit_code == 130, done.output
    assert "no checkpoint was saved yet" in done.stderr
    after = state(tmp_path)
    assert {name: value[:2] for name, value in after.items()} == {
        name: value[:2] for name, value in before.items()
    }


def test_results_of_an_interrupted_run_are_not_taken_for_finished_ones(
    files, tmp_path, monkeypatch
):
    fit = PartialScanClassifier.fit_file

    def cut(self, *args, **options):
        found = fit(self, *args, **options)
        object.__setattr__(self.scan_, "stop_reason", "interrupted")
        return found

    with monkeypatch.context() as patched:
        patched.setattr(PartialScanClassifier, "fit_file", cut)
        done = run(files["scan"], "--out", tmp_path / "out")
    assert done.exit_code == 130, done.output
    assert "--resume starts again" in done.stderr
    check_refused(files["scan"], tmp_path, "this is the output of an unfinished run", "--resume")
    resumed = run(files["scan"], "--out", tmp_path / "out", "--resume")
    assert resumed.exit_code == 0, resumed.output
    assert (
        "this run is finished" in run(files["scan"], "--out", tmp_path / "out", "--resume").stderr
    )
