"""The partition sampler by number of groups: cost of a sweep, memory, and recovery of the truth.

Data: 16 clusters of equal expected size, 30 rows a group, 2 labels, 8 features of 4 values
(`simulated.clustered_groups`). Every rung runs in a process of its own, so that its peak of
resident memory is its own; one chain.

*Sweeps*    from the true partition, where the sampler stays: the steady state.
*Recovery*  from one block, and from groups dealt at random to 64 blocks, until a draw has an
            adjusted Rand index of 0.99 with the truth.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from dataclasses import replace
from typing import Any

import jax
import numpy as np
from sklearn.metrics import adjusted_rand_score

import bayes_lcs as bl
from bayes_lcs.inference.chain_driver import run_chains
from bayes_lcs.inference.mcmc.collapsed_gibbs import SharingProblem, build_problem
from experiments.benchmarks.exact_partitions import MIB, peak_memory
from experiments.benchmarks.simulated import clustered_groups
from experiments.benchmarks.tables import Scale, Table

GROUPS = {
    Scale.SMOKE: (21, 60),
    Scale.NORMAL: (21, 1_000, 10_000),
    Scale.FULL: (21, 1_000, 10_000, 100_000),
}
SECONDS = {Scale.SMOKE: 2.0, Scale.NORMAL: 20.0, Scale.FULL: 180.0}  # for a recovery to begin
STARTS = {Scale.SMOKE: ("one block",), Scale.NORMAL: ("one block", "64 blocks")}
STARTS[Scale.FULL] = STARTS[Scale.NORMAL]
SPLIT_MERGE = (0, 1)
MOST_SWEEPS = 500
RECOVERED = 0.99
DRAWS = 5  # of a rung, at least


def problem_of(data: bl.GroupedTable, split_merge: int) -> SharingProblem:
    with jax.enable_x64(True):
        return build_problem(bl.ClusteredNaiveBayes(), data, split_merge)


def measure(num_groups: int) -> dict[str, float]:
    """Time and memory of sweeps in the steady state; runs in a process of its own."""
    before = peak_memory()
    began = time.perf_counter()
    data, truth = clustered_groups(num_groups)
    with_data = peak_memory()
    drawn = time.perf_counter()
    problem = replace(problem_of(data, split_merge=0), partition=truth)
    posed = time.perf_counter()
    draws = max(DRAWS, min(20_000, 400_000 // num_groups))
    found = run_chains(problem, draws=draws, warmup=2, chains=1, thin=1, seed=0, progress=False)
    return {
        "data": drawn - began,
        "pose": posed - drawn,
        "sweep": 1.0 / found.sweeps_per_second,
        "clusters": float(found.info["num_clusters"].mean()),
        "peak": float(peak_memory()),
        "peak_data": float(with_data - before),
    }


def recover(num_groups: int, start: str, split_merge: int, seconds: float) -> dict[str, Any]:
    """Sweep from ``start`` in stages until a draw is near the truth, or time is up."""
    data, truth = clustered_groups(num_groups)
    problem = problem_of(data, split_merge)
    rng = np.random.default_rng(1)
    z = np.zeros(num_groups, dtype=np.int64)
    if start == "64 blocks":
        z = rng.integers(0, min(64, num_groups), num_groups)
    stage = int(np.clip(100_000 // num_groups, 4, 50))
    sweeps, elapsed, index = 0, 0.0, 0.0
    while elapsed < seconds and sweeps < MOST_SWEEPS:
        began = time.perf_counter()
        found = run_chains(
            replace(problem, partition=z),
            draws=stage,
            warmup=0,
            chains=1,
            thin=1,
            seed=sweeps,
            progress=False,
        )
        took = time.perf_counter() - began
        for number, draw in enumerate(found.info["z"][0], start=1):
            index = float(adjusted_rand_score(truth, draw))
            if index >= RECOVERED:
                return {
                    "recovered": True,
                    "sweeps": sweeps + number,
                    "seconds": elapsed + took * number / stage,
                    "index": index,
                    "clusters": len(set(draw.tolist())),
                }
        sweeps, elapsed, z = sweeps + stage, elapsed + took, np.asarray(found.info["z"][0, -1])
    return {
        "recovered": False,
        "sweeps": sweeps,
        "seconds": elapsed,
        "index": index,
        "clusters": len(set(z.tolist())),
    }


def apart(*arguments: object) -> dict[str, Any]:
    """The figures of one rung, from a process of its own."""
    command = [sys.executable, "-m", "experiments.benchmarks.scale_ladder", *map(str, arguments)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout)


def sweeps_table(scale: Scale) -> Table:
    rows: list[tuple[Any, ...]] = []
    previous: tuple[int, float] | None = None
    for num_groups in GROUPS[scale]:
        found = apart(num_groups)
        growth = None
        if previous is not None:
            growth = (found["sweep"] / previous[1]) / (num_groups / previous[0])
        previous = num_groups, found["sweep"]
        rows.append(
            (
                num_groups,
                1e3 * found["sweep"],
                1e6 * found["sweep"] / num_groups,
                growth,
                found["clusters"],
                found["data"] + found["pose"],
                found["peak"] / MIB,
                found["peak_data"] / MIB,
            )
        )
    return Table(
        "scale_ladder_sweeps",
        "A sweep of the partition sampler by number of groups, one chain, steady state",
        (
            "groups",
            "ms a sweep",
            "us a group",
            "growth",
            "clusters",
            "to begin (s)",
            "peak MiB",
            "of which data",
        ),
        rows,
        [
            "Growth: of a sweep, over that of the groups, since the rung before; 1 is linear.",
            "To begin: drawing the data and laying them out. Peak: the whole process.",
        ],
    )


def recovery_table(scale: Scale) -> Table:
    rows = []
    for num_groups in GROUPS[scale]:
        for start in STARTS[scale]:
            for split_merge in SPLIT_MERGE:
                found = apart(num_groups, start, split_merge, SECONDS[scale])
                sweeps = found["sweeps"] if found["recovered"] else f"not in {found['sweeps']}"
                rows.append(
                    (
                        num_groups,
                        start,
                        split_merge,
                        sweeps,
                        found["seconds"],
                        found["index"],
                        found["clusters"],
                    )
                )
    return Table(
        "scale_ladder_recovery",
        "Sweeps until the known partition of 16 clusters is found",
        ("groups", "start", "split-merge", "sweeps", "seconds", "Rand index", "clusters"),
        rows,
        [
            f"Found: adjusted Rand index of at least {RECOVERED}. Seconds include compilation.",
            f"Gives up after {MOST_SWEEPS} sweeps or {SECONDS[scale]:g} s, at the end of a stage.",
        ],
    )


def run(scale: Scale) -> list[Table]:
    return [sweeps_table(scale), recovery_table(scale)]


if __name__ == "__main__":
    if len(sys.argv) == 2:
        print(json.dumps(measure(int(sys.argv[1]))))
    else:
        groups, begin, moves, limit = sys.argv[1:]
        print(json.dumps(recover(int(groups), begin, int(moves), float(limit))))
