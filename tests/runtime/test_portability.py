"""Linux-only functions have a fallback for macOS and Windows."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import bayes_lcs as bl

PACKAGE = Path(bl.__file__).parent

GUARDED = {
    "sched_getaffinity": "runtime/memory.py",
    "pthread_sigmask": "runtime/interrupts.py",
    "SIG_BLOCK": "runtime/interrupts.py",
    "SIG_SETMASK": "runtime/interrupts.py",
    "pthread_kill": "cli/errors.py",
}
"""Names of `os` and `signal` that not every system has, and the one file that looks first."""
PORTABLE = {
    *("PathLike", "_exit", "cpu_count", "devnull", "environ", "fsync", "getpid", "getppid"),
    *("fspath", "kill", "linesep", "listdir", "lstat", "name", "path", "replace", "scandir"),
    *("raise_signal", "sep", "stat", "strerror", "unlink", "urandom", "walk"),
    *("SIGINT", "SIGTERM", "SIG_DFL", "SIG_IGN", "default_int_handler", "getsignal", "signal"),
}
"""Names that all systems have; one that is missing here and is portable can be added."""
MODULES = {"fcntl", "grp", "posix", "pty", "pwd", "resource", "syslog", "termios", "tty"}


def test_what_not_every_system_has_is_used_in_one_place() -> None:
    for path in sorted(PACKAGE.rglob("*.py")):
        file = path.relative_to(PACKAGE).as_posix()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                if node.value.id in ("os", "signal") and node.attr not in PORTABLE:
                    assert GUARDED.get(node.attr) == file, f"{file}, line {node.lineno}"
            elif isinstance(node, ast.Import):
                assert not MODULES & {alias.name for alias in node.names}, file
            elif isinstance(node, ast.ImportFrom):
                assert node.module not in MODULES, file


PROGRAM = """
import multiprocessing.popen_fork, multiprocessing.resource_tracker, os, pathlib, signal, sys
import jax, joblib, numpyro, pandas, pyarrow.parquet, skops.io  # have ways of their own

for name in ("sched_getaffinity", "posix_fadvise", "posix_fallocate", "fork", "sysconf",
             "getuid", "geteuid", "getloadavg", "O_DIRECTORY", "uname", "killpg", "setsid"):
    if hasattr(os, name):
        delattr(os, name)
for name in ("SIGKILL", "SIGHUP", "SIGUSR1", "pthread_sigmask", "pthread_kill", "sigwait"):
    if hasattr(signal, name):
        delattr(signal, name)
multiprocessing.popen_fork.Popen.kill = multiprocessing.popen_fork.Popen.terminate  # as on Windows
multiprocessing.resource_tracker._HAVE_SIGMASK = False  # which was found out before
for name in ("fcntl", "grp", "pwd", "resource", "termios"):
    sys.modules[name] = None

read_text = pathlib.Path.read_text


def read_or_not(self, *arguments, **options):
    if str(self).startswith(("/proc", "/sys/fs")):
        raise FileNotFoundError(str(self))
    return read_text(self, *arguments, **options)


pathlib.Path.read_text = read_or_not

import numpy as np
import bayes_lcs as bl
from bayes_lcs.cli import app
from bayes_lcs.runtime.memory import num_cores
from bayes_lcs.runtime.memory import available_memory


if __name__ == "__main__":
    folder = pathlib.Path(sys.argv[1])
    assert num_cores() == (os.cpu_count() or 1)
    assert available_memory() is None
    rng = np.random.default_rng(0)
    X = rng.integers(3, size=(300, 4))
    frame = pandas.DataFrame(X, columns=list("abcd"))
    frame.to_csv(folder / "rows.csv", index=False)
    data, _ = bl.meeting_requests(seed=0, rows_per_person=10)
    few = data.select_groups(list(range(6)))

    bl.MixtureClusterer(2, random_state=0).fit(X).save(folder / "mixture.nc")
    bl.KMeans(2, random_state=0).fit(X.astype(float))
    bl.sample(bl.ClusteredNaiveBayes(), few, draws=20, chains=2).save(folder / "posterior.nc")
    bl.exact(bl.ClusteredNaiveBayes(), few)
    for method in ("particles", "ais"):
        bl.evidence(bl.ClusteredNaiveBayes(), few, method, max_chains=8, bracket=False)
    scanned = bl.PartialScanClassifier("tree", 4, random_state=0)
    scanned.fit_file(folder / "rows.csv", label="a").save(folder / "ensemble.skops")
    words = ["scan", str(folder / "rows.csv"), "--label", "a", "--parts", "4"]
    assert not app([*words, "--out", str(folder / "out")], standalone_mode=False)
"""


def test_the_package_works_without_what_only_linux_has(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(PROGRAM)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(script), str(tmp_path)],
        env={**os.environ, "PYTHONPATH": str(PACKAGE.parent)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    for name in ("mixture.nc", "posterior.nc", "ensemble.skops", "out/ensemble.skops"):
        bl.load(tmp_path / name)
