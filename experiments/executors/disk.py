"""A file is fitted in a tenth of its size, beside what the disk alone would take.

    python -m experiments.executors.disk ALGORITHM KIND ROWS FOLDER

What comes before the passes (reading the file, keeping its rows on disk as they are worked on) and
the passes are told apart by an executor that looks at the clock. Before a pass the system is asked
to forget what it holds of the rows; the same is asked before they, or the file, are read plainly.
Prints a line of JSON.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

import bayes_lcs as bl
from bayes_lcs.runtime.executors.local import LocalExecutor
from bayes_lcs.runtime.memory import num_cores
from experiments.executors.cells import ROOT
from experiments.executors.jobs import COLUMNS, COMPONENTS, made_codes, made_points

__all__ = ["PASSES", "DiskFit", "measure_disk"]

PASSES = 10
PIECE = 1 << 20
WRITTEN_ROWS = 1 << 17


class DiskFit(NamedTuple):
    """Bytes and seconds; speeds follow.

    Attributes
    ----------
    size, kept
        Bytes of the file, and of its rows as they are kept on disk.
    limit, peak
        Bytes allowed for rows, and how far the process's memory rose in the fit.
    file_read, kept_read
        Seconds to read the file, and all that is kept, plainly.
    prepared, finished
        Seconds until the first pass, and after the last.
    passing, passing_again
        Seconds of a pass over rows that the system was asked to forget, and over the same again.
    """

    algorithm: str
    kind: str
    rows: int
    size: int
    kept: int
    limit: int
    peak: int
    file_read: float
    kept_read: float
    prepared: float
    finished: float
    passing: float
    passing_again: float


def measure_disk(algorithm: str, kind: str, rows: int) -> DiskFit:
    """In a process of its own, whose memory is then that of the fit."""
    with tempfile.TemporaryDirectory() as folder:
        asked = [algorithm, kind, str(rows), folder]
        done = subprocess.run(
            [sys.executable, "-m", "experiments.executors.disk", *asked],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode:
        raise RuntimeError(f"{algorithm} of a {kind} file failed:\n{done.stderr[-3000:]}")
    return DiskFit(**json.loads(done.stdout.splitlines()[-1]))


def write_file(path: Path, rows: int, algorithm: str) -> None:
    """Names of values, or numbers, in pieces: the process must not have held all rows."""
    writer: Any = None
    for begin in range(0, rows, WRITTEN_ROWS):
        table = _piece(min(WRITTEN_ROWS, rows - begin), begin, algorithm)
        if writer is None:
            is_csv = path.suffix == ".csv"
            kind = pyarrow.csv.CSVWriter if is_csv else pyarrow.parquet.ParquetWriter
            writer = kind(path, table.schema)
        writer.write_table(table)
    writer.close()


def _piece(rows: int, seed: int, algorithm: str) -> Any:
    if algorithm == "em":
        names = np.array([f"value {v}" for v in "abcd"])
        cells = names[made_codes(rows, 4, seed=seed)]
    else:
        cells = made_points(rows, seed=seed).round(4)
    return pa.table({f"c{c}": pa.array(cells[:, c]) for c in range(COLUMNS)})


def seconds_to_read(paths: Sequence[Path]) -> float:
    """All bytes, once the system was asked to forget them."""
    forget(paths)
    began = time.perf_counter()
    for path in paths:
        with path.open("rb", buffering=0) as stream:
            while stream.read(PIECE):
                pass
    return time.perf_counter() - began


def forget(paths: Sequence[Path]) -> None:
    """Ask the system to drop what it holds of files, once it is on the disk."""
    for path in paths:
        with path.open("rb") as stream:
            os.fsync(stream.fileno())
            if hasattr(os, "posix_fadvise"):
                os.posix_fadvise(stream.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


class _Clocked(LocalExecutor):
    """This process on all cores, as without an executor; passes over files are looked at.

    Each is made twice, and before it all that it will read is read plainly.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__(num_cores() + 1)
        self.folder = folder
        self.kept = 0
        self.seconds: list[tuple[float, float, float]] = []
        self.entered = self.left = 0.0

    def each(self, placed: Any, function: Any, params: Any = None) -> list[Any]:
        name = getattr(function, "func", function).__name__
        if name not in ("_statistics", "_assign_and_sum"):
            return super().each(placed, function, params)
        self.entered = self.entered or time.perf_counter()
        paths = sorted(self.folder.rglob("*.rows"))
        self.kept = sum(path.stat().st_size for path in paths)
        read = seconds_to_read(paths)
        forget(paths)
        times = [time.perf_counter()]
        for _ in range(2):
            found = super().each(placed, function, params)
            times.append(time.perf_counter())
        self.seconds.append((read, times[1] - times[0], times[2] - times[1]))
        self.left = times[-1]
        return found


def em(executor: _Clocked) -> Callable[..., object]:
    """What fits a mixture to a file."""
    return bl.MixtureClusterer(
        COMPONENTS,
        max_iter=PASSES,
        tol=0.0,
        init="random",
        precision="mixed",
        random_state=0,
        verbose=False,
        executor=executor,
    ).fit_file


def kmeans(executor: _Clocked) -> Callable[..., object]:
    """What finds clusters of a file."""
    start = made_points(COMPONENTS, seed=1)
    return bl.KMeans(COMPONENTS, init=start, max_iter=PASSES, tol=0.0, executor=executor).fit_file


FITS = {"em": em, "k-means": kmeans}


def fit(algorithm: str, path: Path, folder: Path, limit: int) -> tuple[_Clocked, float, float]:
    """The executor that looked on, and the seconds before and after the passes."""
    began = time.perf_counter()
    with _Clocked(folder) as executor:
        FITS[algorithm](executor)(path, memory=limit, folder=folder)
    return executor, executor.entered - began, time.perf_counter() - executor.left


def main(algorithm: str, kind: str, rows: int, folder: Path) -> None:
    small, path = folder / f"small.{kind}", folder / f"rows.{kind}"
    write_file(small, min(rows, (num_cores() + 1) * WRITTEN_ROWS), algorithm)
    write_file(path, rows, algorithm)
    size = path.stat().st_size
    file_read = seconds_to_read([path])
    fit(algorithm, small, folder, 0)  # compiles, and rises to what blocks of any file take
    before = _peak()
    forget([path])
    executor, prepared, finished = fit(algorithm, path, folder, size // 10)
    # In the first pass programs are compiled for blocks of other shapes.
    kept_read, passing, passing_again = np.median(executor.seconds[1:], axis=0).tolist()
    found = DiskFit(
        algorithm=algorithm,
        kind=kind,
        rows=rows,
        size=size,
        kept=executor.kept,
        limit=size // 10,
        peak=_peak() - before,
        file_read=file_read,
        kept_read=kept_read,
        prepared=prepared,
        finished=finished,
        passing=passing,
        passing_again=passing_again,
    )
    print(json.dumps(found._asdict()))


def _peak() -> int:
    """Bytes, on Linux."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), Path(sys.argv[4]))
