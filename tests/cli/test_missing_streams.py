"""Programs with windows and services have no standard streams; work goes on without them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import bayes_lcs as bl
from bayes_lcs.runtime import live_table, progress

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(bl.__file__).parents[1])}
COMMAND = "from bayes_lcs.cli import main; main()"


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(0)
    codes = pd.DataFrame(rng.integers(3, size=(400, 4)), columns=list("abcd"))
    codes.to_csv(folder / "rows.csv", index=False)
    return folder


def words_of(command: str, files: Path) -> list[str]:
    rows = str(files / "rows.csv")
    return {
        "cluster": ["cluster", rows, "-k", "2", "--alpha", "0", "--initial", "100"],
        "compare": ["compare", rows, "--group", "a", "--label", "b", "--draws", "20"],
        "coreset": ["coreset", rows, "-k", "2", "--size", "20"],
        "scan": ["scan", rows, "--label", "b", "--parts", "4"],
        "demo": ["demo"],
    }[command]


@pytest.mark.parametrize("enabled", [True, None])
@pytest.mark.parametrize("is_closed", [True, False])
def test_bars_and_tables_show_nothing(
    enabled: bool | None, is_closed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115
    stream.close()
    monkeypatch.setattr(progress, "SECONDS_BEFORE_BAR", 0.0)
    for name in ("stdout", "stderr"):
        monkeypatch.setattr(sys, name, stream if is_closed else None)
    with progress.plain_lines(0.0):
        with progress.progress_bar("Working", 2, enabled) as tick:
            tick(1, "half")
        with live_table.live_table("Working", 2, ["a", "b", "c"], enabled=enabled) as add:
            add(["1", "2"], 1.0)
        progress.write_line("done")


FITS = """
import sys
sys.stdin = sys.stdout = sys.stderr = None
import numpy as np
import bayes_lcs as bl
from bayes_lcs.runtime import progress
progress.SECONDS_BEFORE_BAR = 0.0
rng = np.random.default_rng(0)
X = rng.integers(3, size=(200, 4))
data, _ = bl.meeting_requests(seed=0, rows_per_person=10)
posterior = bl.sample(bl.ClusteredNaiveBayes(), data, draws=20, chains=2, progress=True)
bl.PartialScanClassifier("tree", 4).fit_file(sys.argv[2], label="a", progress=True)
bl.learning_curve_sample(
    bl.MixtureClusterer(2), X, alpha=0.0, initial_size=50, holdout_size=50, progress=True
)
posterior.save(sys.argv[1])
"""


def test_fits_that_should_show_how_far_they_are_go_on(files: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FITS, tmp_path / "a.nc", files / "rows.csv"],
        env=ENVIRONMENT,
        check=False,
    )
    assert done.returncode == 0
    assert len(bl.load(tmp_path / "a.nc").partitions()) == 40


DEMO = pytest.param("demo", marks=pytest.mark.slow)


@pytest.mark.parametrize("command", ["cluster", "compare", "coreset", "scan", DEMO])
def test_commands_write_their_results(command: str, files: Path, tmp_path: Path) -> None:
    out = tmp_path / ("out.csv" if command == "coreset" else "out")
    program = f"import sys; sys.stdin = sys.stdout = sys.stderr = None; {COMMAND}"
    done = subprocess.run(
        [sys.executable, "-c", program, *words_of(command, files), "--out", str(out)],
        env=ENVIRONMENT,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == b""
    assert out.is_file() if command == "coreset" else (out / "report.html").is_file()


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["--help"], 0),
        (["--version"], 0),
        ([], 2),
        (["scan", "missing.csv", "--label", "b"], 2),
        (["scan", "--nonsense"], 2),
    ],
)
def test_exit_codes_are_the_same(words: list[str], code: int, tmp_path: Path) -> None:
    program = f"import sys; sys.stdin = sys.stdout = sys.stderr = None; {COMMAND}"
    done = subprocess.run(
        [sys.executable, "-c", program, *words], env=ENVIRONMENT, cwd=tmp_path, check=False
    )
    assert done.returncode == code


@pytest.mark.skipif(shutil.which("sh") is None, reason="a shell closes the streams")
@pytest.mark.parametrize("closed", ["<&- >&- 2>&-", ">&-", "2>&-"])
def test_streams_that_a_shell_has_closed(closed: str, files: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    words = [sys.executable, "-c", COMMAND, *words_of("coreset", files), "--out", str(out)]
    done = subprocess.run(
        ["sh", "-c", f'exec "$@" {closed}', "sh", *words], env=ENVIRONMENT, check=False
    )
    assert done.returncode == 0
    assert list(pd.read_csv(out)) == ["a", "b", "c", "d", "weight"]
