"""Log evidence by our methods and by samplers of other packages: error for the time it takes.

Problems in `evidence_problems`, contestants in `evidence_samplers`. Each pair runs in a process of
its own: packages change settings of JAX for the whole process, and a first run then compiles. Times
are CPU seconds, of all threads: wall time means little on a shared machine.

*Error*  root mean square over the runs, against the truth.
*Merit*  mean square error times the CPU seconds of a run without compilation, over that of our
         default method: how many times longer to the same error. With five runs on either side it
         is known within a factor of three or so.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from experiments.benchmarks.evidence_problems import PROBLEMS, Factor
from experiments.benchmarks.evidence_samplers import CONTESTANTS, cpu_seconds, installed
from experiments.benchmarks.tables import Scale, Table

ROOT = Path(__file__).parents[2]
RUNS = {Scale.SMOKE: 2, Scale.NORMAL: 5, Scale.FULL: 20}
LIMIT = {Scale.SMOKE: 60, Scale.NORMAL: 60, Scale.FULL: 600}  # CPU seconds, then no new run
PATIENCE = 4  # times the limit, then a run is stopped
SMOKE_PROBLEMS = ("factor, 2 values",)
SMOKE_CONTESTANTS = ("ours, importance", "PyMC SMC", "blackjax SMC", "jaxns")


def contestants(name: str) -> list[str]:
    """Those that take a problem, our default first."""
    own = ["ours, importance", "ours, AIS"]
    if not isinstance(PROBLEMS[name], Factor):
        own = ["ours, particles", "ours, AIS", "ours, exact"]
    return [*own, *(peer for peer in CONTESTANTS if not peer.startswith("ours"))]


def measure(contestant: str, problem: str, runs: int, limit: int) -> None:
    """Print the runs of one contestant so far after each of them; the first one compiles."""
    resource.setrlimit(resource.RLIMIT_CPU, (PATIENCE * limit, PATIENCE * limit))
    # Packages print to the standard output too: ours goes to the one that was there before.
    output = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    prepared = None
    found: list[dict[str, Any]] = []
    for seed in range(runs + 1):
        before, clock = cpu_seconds(), time.perf_counter()
        if prepared is None:
            prepared = CONTESTANTS[contestant][1](PROBLEMS[problem])
        estimate = prepared(seed)
        took = {"cpu": cpu_seconds() - before, "wall": time.perf_counter() - clock}
        found.append({**estimate._asdict(), **took})
        print(json.dumps(found), file=output, flush=True)
        if cpu_seconds() > limit and len(found) > 2:
            break


def apart(*arguments: object) -> list[dict[str, Any]]:
    """The runs that one contestant finished in a process of its own, none if it took too long."""
    command = [sys.executable, "-m", "experiments.benchmarks.evidence_peers", *map(str, arguments)]
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    # jaxns writes a log to the folder where it runs.
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            command,
            check=False,
            stdout=subprocess.PIPE,
            text=True,
            cwd=folder,
            env={**os.environ, "PYTHONPATH": path},
        )
    if done.returncode not in (0, -signal.SIGXCPU, -signal.SIGKILL):
        raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}")
    lines = done.stdout.splitlines()
    return json.loads(lines[-1]) if lines else []


def rows_of(name: str, scale: Scale, entered: list[str]) -> list[tuple[Any, ...]]:
    truth = PROBLEMS[name].truth()
    rows: list[tuple[Any, ...]] = []
    best: float | None = None
    for contestant in entered:
        found = apart(contestant, name, RUNS[scale], LIMIT[scale])
        if len(found) < 3:
            stopped = f"stopped at {PATIENCE * LIMIT[scale]} CPU s"
            rows.append((name, contestant, max(len(found) - 1, 0), stopped, *[None] * 7))
            continue
        values = np.array([one["value"] for one in found[1:]])
        stated = [one["standard_error"] for one in found[1:]]
        seconds = float(np.mean([one["cpu"] - one["building"] for one in found[1:]]))
        wall = float(np.mean([one["wall"] for one in found[1:]]))
        error = float(np.sqrt(np.mean((values - truth.value) ** 2)))
        merit = error**2 * seconds
        best = merit if best is None else best
        ratio = merit / best if contestant != "ours, exact" else None
        rows.append(
            (
                name,
                contestant,
                len(values),
                f"{values.mean():.3f}",
                error,
                float(np.mean(stated)) if None not in stated else None,
                float(values.std(ddof=1)),
                found[0]["cpu"],
                seconds,
                wall,
                ratio,
            )
        )
    exact = f"{truth.value:.4f}" + (f" ± {truth.error:.1g}" if truth.error else "")
    return [*rows, (name, "truth", None, exact, *[None] * 7)]


def run(scale: Scale) -> list[Table]:
    rows: list[tuple[Any, ...]] = []
    absent = [name for name in CONTESTANTS if not installed(name)]
    for name in SMOKE_PROBLEMS if scale is Scale.SMOKE else PROBLEMS:
        entered = [one for one in contestants(name) if one not in absent]
        if scale is Scale.SMOKE:
            entered = [one for one in entered if one in SMOKE_CONTESTANTS]
        rows += rows_of(name, scale, entered)
    notes = [
        "First: CPU seconds of the first run, compilation included. CPU, wall: a later run.",
        "Merit: error squared times CPU seconds, over that of the first row of the problem.",
    ]
    if absent:
        notes.append(f"Not installed, and left out: {', '.join(absent)}.")
    return [
        Table(
            "evidence_peers",
            "Log evidence: error for the time it takes",
            (
                "problem",
                "method",
                "runs",
                "log evidence",
                "error",
                "stated",
                "sd of runs",
                "first (s)",
                "CPU (s)",
                "wall (s)",
                "merit",
            ),
            rows,
            notes,
        )
    ]


if __name__ == "__main__":
    measure(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(float(sys.argv[4])))
