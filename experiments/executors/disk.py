"""A file is fitted in a tenth of its size, and read plainly, for comparison.

    python -m experiments.executors.disk ROWS FOLDER KIND

The pass over the file (coding its rows, laying them out on disk) and the passes over what was laid
out are told apart by an executor that looks at the clock. Prints a line of JSON. What was
written shortly before may still be in the system's memory when it is read: plain reading is timed
after asking the system to forget the file, and again.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

import bayes_lcs as bl
from bayes_lcs.core.cores import num_cores
from bayes_lcs.core.local_executor import LocalExecutor
from experiments.executors.cells import ROOT
from experiments.executors.jobs import COLUMNS, made_codes

__all__ = ["DiskFit", "measure_disk"]

PASSES = 9
PIECE = 1 << 20


class DiskFit(NamedTuple):
    """Bytes and seconds; speeds follow.

    Attributes
    ----------
    size, laid_out
        Bytes of the file, and of the rows as they are laid out on disk.
    forgotten, plain
        Seconds to read the file, after the system was asked to forget it and again.
    parsed
        Seconds that pyarrow takes to read it into tables, piece by piece.
    prepared, passing
        Seconds until the first pass of EM, and of each pass.
    limit, peak
        Bytes allowed for laid-out rows, and how far the process's memory rose in the fit.
    """

    rows: int
    size: int
    laid_out: int
    forgotten: float
    plain: float
    parsed: float
    prepared: float
    passing: float
    limit: int
    peak: int


def measure_disk(rows: int, kind: str) -> DiskFit:
    """In a process of its own, whose memory is then that of the fit."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, "-m", "experiments.executors.disk", str(rows), folder, kind],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode:
        raise RuntimeError(f"the fit of a {kind} file failed:\n{done.stderr[-3000:]}")
    return DiskFit(**json.loads(done.stdout.splitlines()[-1]))


def write_file(path: Path, rows: int) -> None:
    """Names of values, in pieces: the process must not have held all rows."""
    names = np.array([f"value {v}" for v in "abcd"])
    writer: Any = None
    for begin in range(0, rows, 1 << 17):
        codes = made_codes(min(1 << 17, rows - begin), 4, seed=begin)
        columns = {f"c{c}": pa.array(names[codes[:, c]]) for c in range(COLUMNS)}
        table = pa.table(columns)
        if writer is None:
            csv = path.suffix == ".csv"
            kind = pyarrow.csv.CSVWriter if csv else pyarrow.parquet.ParquetWriter
            writer = kind(path, table.schema)
        (writer.write_table if path.suffix == ".parquet" else writer.write)(table)
    writer.close()


def read_plainly(path: Path) -> float:
    """Seconds to read all bytes."""
    began = time.perf_counter()
    with path.open("rb", buffering=0) as stream:
        while stream.read(PIECE):
            pass
    return time.perf_counter() - began


def forget(path: Path) -> None:
    """Ask the system to drop what it holds of a file, once it is on the disk."""
    with path.open("rb") as stream:
        os.fsync(stream.fileno())
        if hasattr(os, "posix_fadvise"):
            os.posix_fadvise(stream.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def parse(path: Path) -> float:
    began = time.perf_counter()
    if path.suffix == ".csv":
        for _ in pyarrow.csv.open_csv(path):
            pass
    else:
        for _ in pyarrow.parquet.ParquetFile(path).iter_batches():
            pass
    return time.perf_counter() - began


class _Clocked(LocalExecutor):
    """This process on all cores; seconds of everything that was asked of blocks are kept."""

    def __init__(self) -> None:
        super().__init__(num_cores())
        self.seconds: list[float] = []

    def each(self, placed: Any, function: Any, params: Any = None) -> list[Any]:
        began = time.perf_counter()
        found = super().each(placed, function, params)
        self.seconds.append(time.perf_counter() - began)
        return found


def fit(path: Path, folder: Path, limit: int) -> tuple[float, float]:
    """Seconds of everything that comes before the passes, and of a pass."""
    began = time.perf_counter()
    with _Clocked() as executor:
        clusterer = bl.MixtureClusterer(
            16,
            max_iter=PASSES,
            tol=0.0,
            init="random",
            precision="mixed",
            random_state=0,
            verbose=False,
            executor=executor,
        )
        clusterer.fit_file(path, memory=limit, folder=folder)
        passes = executor.seconds[-PASSES:]
    return time.perf_counter() - began - sum(passes), float(np.median(passes[1:]))


class _Watched:
    """The most bytes that layouts take in a folder while something is done."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.most, self._over = folder, 0, threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def _watch(self) -> None:
        while not self._over.wait(0.05):
            found = 0
            for path in self.folder.rglob("layout-*"):
                try:
                    found += path.stat().st_size
                except FileNotFoundError:
                    continue
            self.most = max(self.most, found)

    def __enter__(self) -> _Watched:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()


def main(rows: int, folder: Path, kind: str) -> None:
    small, path = folder / f"small.{kind}", folder / f"rows.{kind}"
    write_file(small, 1 << 17)
    write_file(path, rows)
    forget(path)
    forgotten = read_plainly(path)
    size = path.stat().st_size
    fit(small, folder, 0)  # compiles, and rises to what blocks of any file take
    before = _peak()
    with _Watched(folder) as watched:
        prepared, passing = fit(path, folder, size // 10)
    peak = _peak() - before
    found = DiskFit(
        rows=rows,
        size=size,
        laid_out=watched.most,
        forgotten=forgotten,
        plain=read_plainly(path),
        parsed=parse(path),
        prepared=prepared,
        passing=passing,
        limit=size // 10,
        peak=peak,
    )
    print(json.dumps(found._asdict()))


def _peak() -> int:
    """Bytes, on Linux."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]), sys.argv[3])
