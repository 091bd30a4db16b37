"""Run the command and say how much memory and disk it took, and what was estimated.

    python scripts/memory_peak.py cluster visits.parquet -k 10

One line of JSON on standard error, in bytes: the peak of memory above that of the imports, the
estimate that the command compares with what is free, and the imports; the most that lay in its
folder at one time beyond what was there, and the estimate of that. Memory of other processes (with
``--jobs``) is added if they run when it is looked at. Linux only.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import threading
from pathlib import Path

from bayes_lcs.runtime import memory

COMMANDS = ("compare", "cluster", "scan", "coreset")

IMPORTS = (
    "arviz_base",
    "arviz_stats",
    "h5netcdf",
    "jax",
    "jinja2",
    "matplotlib.pyplot",
    "numpyro",
    "pandas",
    "pyarrow.csv",
    "pyarrow.parquet",
    "rich.live",
    "sklearn.ensemble",
    "bayes_lcs.classification.partial_scan.estimator",
    "bayes_lcs.report.compare",
    "bayes_lcs.report.coreset",
    "bayes_lcs.workflows.cluster",
    "bayes_lcs.workflows.scan",
)


def peak() -> int:
    """The most memory that this program has had so far."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    line = next(line for line in status.splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024


class Watch(threading.Thread):
    """Looks, many times a second, at the folder of results and at processes that were started."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.folder: Path | None = None
        self.need, self.before, self.disk, self.others = 0.0, 0, 0, 0
        self._done = threading.Event()

    def begin(self, folder: Path, need: float) -> None:
        """The folder that the command will write to."""
        self.folder, self.need = folder, need
        self.before = size(folder)

    def require_room(self, _: Path, need: float) -> None:
        """More is known of what it will write."""
        self.need = max(self.need, need)

    def run(self) -> None:
        """Until told to end."""
        while not self._done.wait(0.02):
            self.look()

    def look(self) -> None:
        """Remember what is larger than before."""
        if self.folder is not None:
            self.disk = max(self.disk, size(self.folder) - self.before)
        self.others = max(self.others, sum(resident(process) for process in children(os.getpid())))

    def end(self) -> None:
        """Look once more."""
        self._done.set()
        self.join()
        self.look()


def size(folder: Path) -> int:
    """Bytes of all files in a folder and below, as many as are still there when looked at."""
    total = 0
    for place, _, files in os.walk(folder):
        for name in files:
            try:
                total += os.lstat(Path(place, name)).st_size
            except OSError:
                continue
    return total


def children(process: int) -> list[int]:
    """Processes that a process started, and those that these did."""
    found = []
    try:
        for listed in Path(f"/proc/{process}/task").glob("*/children"):
            for child in map(int, listed.read_text(encoding="utf-8").split()):
                found += [child, *children(child)]
    except OSError:
        return found
    return found


def resident(process: int) -> int:
    """Memory of a process that it shares with no file."""
    try:
        status = Path(f"/proc/{process}/status").read_text(encoding="utf-8")
    except OSError:
        return 0
    lines = [line for line in status.splitlines() if line.startswith("RssAnon")]
    return int(lines[0].split()[1]) * 1024 if lines else 0


def main() -> None:
    """Run, and report."""
    for name in IMPORTS:
        importlib.import_module(name)
    from bayes_lcs.cli import app, errors

    needs = []
    memory.require_memory = lambda need, *_: needs.append(need)  # type: ignore[assignment]
    watch = Watch()

    def watched(path: Path, need: float = 0.0) -> Path:
        folder = errors.writable_folder(path, need)
        watch.begin(folder, need)
        return folder

    for name in COMMANDS:
        module = importlib.import_module(f"bayes_lcs.cli.{name}")
        module.writable_folder = watched  # type: ignore[attr-defined]
        if hasattr(module, "require_room"):
            module.require_room = watch.require_room
    before = peak()
    watch.start()
    code: object = 0
    try:
        app()
    except SystemExit as end:
        code = end.code
    watch.end()
    found = {
        "peak": peak() - before + watch.others,
        "estimate": max(needs, default=0.0),
        "imports": before,
        "disk": watch.disk,
        "disk_estimate": watch.need,
    }
    print(json.dumps({**found, "exit": code}), file=sys.stderr)


if __name__ == "__main__":
    main()
