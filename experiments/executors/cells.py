"""Jobs on executors, each kind and number of workers in a process of its own.

    python -m experiments.executors.cells '{"kind": "dask", "workers": 2, "jobs": [["em", 100000]]}'

A process of its own, because the number of host devices is decided when JAX starts, and because no
executor then profits from what another has loaded. Prints a line of JSON.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

import bayes_lcs as bl
from bayes_lcs.runtime.memory import num_cores
from experiments.executors.cost_model import Pass
from experiments.executors.jobs import JOBS, Job, Timed, made_codes
from experiments.executors.peers import PEERS

__all__ = ["Cell", "measure_cells", "overhead_of"]

ROOT = Path(__file__).parents[2]

SMALL_ROWS, SMALL_PASSES = 2_000, 20
PATIENCE = 900.0


class Cell(NamedTuple):
    """A job on some workers, and what it took."""

    kind: str
    workers: int
    job: Job
    timed: Timed

    @property
    def seconds(self) -> float:
        """Of a pass, the median."""
        return float(np.median(self.timed.passes))

    @property
    def spread(self) -> tuple[float, float]:
        """Quartiles of the passes."""
        lower, upper = np.quantile(self.timed.passes, [0.25, 0.75])
        return float(lower), float(upper)

    @property
    def terms(self) -> Pass:
        """As the cost model sees it: more devices than cores share the cores."""
        timed, sharing = self.timed, min(self.workers, num_cores())
        return Pass(timed.units, timed.blocks, timed.sent + timed.received, sharing)


def measure_cells(
    kind: str, workers: int, jobs: list[Job], *, enough: float = 3.0, repeats: int = 9
) -> tuple[list[Cell], dict[str, Any]]:
    """Jobs one after the other on one executor in a new process, and what it costs by itself."""
    order = {"kind": kind, "workers": workers, "jobs": jobs, "enough": enough, "repeats": repeats}
    size = workers if kind == "devices" else 1
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count={size}"
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    # A worker is a thread, also of BLAS and OpenMP; peers are told how many they have.
    threads = {} if kind in PEERS else {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "experiments.executors.cells", json.dumps(order)],
        env={**os.environ, **threads, "XLA_FLAGS": flags.strip(), "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{kind} with {workers} workers failed:\n{done.stderr[-3000:]}")
    said = json.loads(done.stdout.splitlines()[-1])
    cells = [
        Cell(kind, workers, job, Timed(*one)) for job, one in zip(jobs, said["cells"], strict=True)
    ]
    return cells, said["overhead"]


def overhead_of(make: Any) -> tuple[Any, dict[str, Any]]:
    """An executor, and what it costs on so small a job that nothing else does."""
    began = time.perf_counter()
    executor = make()
    executor.run(abs, [-1])
    start = time.perf_counter() - began
    calls = []
    for _ in range(30):
        began = time.perf_counter()
        executor.run(abs, [-1])
        calls.append(time.perf_counter() - began)
    rows = made_codes(SMALL_ROWS, 4)
    times = []
    for _ in range(4):
        began = time.perf_counter()
        clusterer = bl.MixtureClusterer(
            4, executor=executor, max_iter=SMALL_PASSES, tol=0.0, random_state=0, verbose=False
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # a number of passes, not a fit
            clusterer.fit(rows)
        times.append(time.perf_counter() - began)
    return executor, {
        "start": start,
        "call": float(np.median(calls)),
        "first fit": times[0],
        "fit": float(np.median(times[1:])),
    }


def main(order: dict[str, Any]) -> None:
    kind, workers = order["kind"], order["workers"]
    if kind in PEERS:
        given = [Job(*job) for job in order["jobs"]]
        cells = PEERS[kind](workers, given, order["enough"], order["repeats"])
        print(json.dumps({"cells": cells, "overhead": {}}))
        return
    options = {"serial": {}, "devices": {"devices": workers}}.get(kind, {"workers": workers})
    executor, overhead = overhead_of(lambda: bl.executor(kind, **options))
    with executor:
        cells = []
        for given in order["jobs"]:
            job = Job(*given)
            cells.append(JOBS[job.algorithm](executor, job, order["enough"], order["repeats"]))
    print(json.dumps({"cells": cells, "overhead": overhead}))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
