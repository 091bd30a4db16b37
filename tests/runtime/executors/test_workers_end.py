"""Workers end with the process that began them, however that ends."""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import bayes_lcs as bl

DEADLINE = 120.0
"""Seconds after which a test gives up; nothing here takes as long, even on a busy machine."""

SCRIPT = """
import os, sys, time
from pathlib import Path

import bayes_lcs as bl
from sklearn.base import BaseEstimator, ClassifierMixin


def work(folder):
    Path(folder, str(os.getpid())).touch()
    time.sleep(3600)


class Slow(ClassifierMixin, BaseEstimator):
    def __init__(self, folder=""):
        self.folder = folder

    def fit(self, X, y):
        work(self.folder)

    def predict_proba(self, X):
        raise NotImplementedError


if __name__ == "__main__":
    kind, folder = sys.argv[1:]
    if kind == "joblib":
        bl.PartialScanClassifier(Slow(folder), 2, n_jobs=2).fit([[0.0], [1.0]] * 50, [0, 1] * 50)
    elif kind == "left open":
        executor = bl.executor("processes", workers=2)
        executor.client.wait_for_workers(2)
        executor.run(work, [folder] * 8)  # two tasks might go to one worker
    else:
        with bl.executor(kind, workers=2) as executor:
            executor.client.wait_for_workers(2)
            executor.run(work, [folder] * 8)
"""


def has_ended(process: int) -> bool:
    """Return whether a process has ended, or is a zombie."""
    try:
        os.kill(process, 0)
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except ProcessLookupError:
        return True
    except FileNotFoundError:  # where there is no /proc, it is alive
        return Path("/proc/self/stat").exists()


def wait_until(holds: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + DEADLINE
    while not holds():
        assert time.monotonic() < deadline, what
        time.sleep(0.05)


def wait_for_the_end(workers: Iterable[int]) -> None:
    left = set(workers)

    def gone() -> bool:
        left.difference_update([process for process in left if has_ended(process)])
        return not left

    try:
        wait_until(gone, f"still there: {left}")
    finally:
        for process in left:
            os.kill(process, signal.SIGKILL)


@contextmanager
def running(kind: str, folder: Path) -> Iterator[tuple[subprocess.Popen[bytes], list[int]]]:
    """The script, as soon as its two workers are at work, and these."""
    script, marks = folder / "script.py", folder / "marks"
    script.write_text(SCRIPT)
    marks.mkdir()
    process = subprocess.Popen(
        [sys.executable, str(script), kind, str(marks)],
        env={**os.environ, "PYTHONPATH": str(Path(bl.__file__).parents[1])},
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        wait_until(
            lambda: len(list(marks.iterdir())) == 2 or process.poll() is not None,
            "the workers were not begun",
        )
        assert process.poll() is None
        yield process, [int(path.name) for path in marks.iterdir()]
    finally:
        process.kill()
        process.wait()


def interrupt_all(process: subprocess.Popen[bytes]) -> None:
    """As a terminal does it."""
    os.killpg(process.pid, signal.SIGINT)


def interrupt_it(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGINT)


def interrupt_again_and_again(process: subprocess.Popen[bytes]) -> None:
    while process.poll() is None:
        os.killpg(process.pid, signal.SIGINT)
        time.sleep(0.02)


def kill_it(process: subprocess.Popen[bytes]) -> None:
    process.kill()


ENDS = [interrupt_all, interrupt_it, interrupt_again_and_again, kill_it]
RUNS = [
    pytest.param("processes", interrupt_all),
    pytest.param("processes", kill_it),
    *[pytest.param("processes", end, marks=pytest.mark.slow) for end in ENDS[1:-1]],
    *[pytest.param("left open", end, marks=pytest.mark.slow) for end in ENDS],
    *[pytest.param("joblib", end, marks=pytest.mark.slow) for end in ENDS[:-1]],
    pytest.param("joblib", kill_it),
]


@pytest.mark.parametrize(("kind", "end"), RUNS)
def test_workers_at_work_end_with_whoever_began_them(
    kind: str, end: Callable[[subprocess.Popen[bytes]], None], tmp_path: Path
) -> None:
    if kind != "joblib" and not importlib.util.find_spec("distributed"):
        pytest.skip("there is no Dask")
    with running(kind, tmp_path) as (process, workers):
        assert not any(has_ended(worker) for worker in workers)
        end(process)
        process.wait(DEADLINE)
        wait_for_the_end(workers)
