"""Where chains over many groups start: how near they come to a chain from the true partition.

Data: 20 clusters that overlap, 8 rows a group, 2 labels, 5 features of 4 values
(`simulated.clustered_groups`). One chain from each start, without split-merge moves; its log joint
over the last sweeps is compared with that of a chain from the truth. Time includes the start, and
compilation.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import adjusted_rand_score

import bayes_lcs as bl
from bayes_lcs.inference.chain_driver import run_chains
from experiments.benchmarks.scale_ladder import problem_of
from experiments.benchmarks.simulated import clustered_groups
from experiments.benchmarks.tables import Scale, Table

GROUPS = {
    Scale.SMOKE: (40,),
    Scale.NORMAL: (1_000, 10_000),
    Scale.FULL: (1_000, 10_000, 100_000),
}
SWEEPS, LAST = 10, 4
STARTS = ("truth", "grown", "one block", "64 blocks")


def overlapping(num_groups: int) -> tuple[bl.GroupedTable, NDArray[np.int64]]:
    return clustered_groups(
        num_groups, num_clusters=20, rows_per_group=8, num_features=5, evenness=2.0
    )


def run_from(start: str, data: bl.GroupedTable, truth: NDArray[np.int64]) -> dict[str, float]:
    """One chain from a start: its level, and how near it is to the truth."""
    began, num_groups = time.perf_counter(), data.num_groups
    problem = replace(problem_of(data, split_merge=0), start_kind="grown")
    blocks = {
        "truth": truth,
        "one block": np.zeros(num_groups, dtype=np.int64),
        "64 blocks": np.random.default_rng(1).integers(0, min(64, num_groups), num_groups),
    }
    found = run_chains(
        replace(problem, partition=blocks.get(start)),
        draws=SWEEPS,
        warmup=0,
        chains=1,
        thin=1,
        seed=0,
        progress=False,
    )
    return {
        "level": float(found.info["log_joint"][0, -LAST:].mean()),
        "index": float(adjusted_rand_score(truth, found.info["z"][0, -1])),
        "clusters": float(found.info["num_clusters"][0, -1]),
        "seconds": time.perf_counter() - began,
    }


def run(scale: Scale) -> list[Table]:
    """Levels of chains from every start."""
    rows: list[tuple[Any, ...]] = []
    for num_groups in GROUPS[scale]:
        data, truth = overlapping(num_groups)
        level = 0.0
        for start in STARTS:
            found = run_from(start, data, truth)
            level = found["level"] if start == "truth" else level
            rows.append(
                (
                    num_groups,
                    start,
                    found["level"] - level,
                    found["index"],
                    found["clusters"],
                    found["seconds"],
                )
            )
    return [
        Table(
            "many_group_starts",
            f"Chains from several starts after {SWEEPS} sweeps, 20 clusters that overlap",
            ("groups", "start", "log joint", "Rand index", "clusters", "seconds"),
            rows,
            [f"Log joint: mean of the last {LAST} sweeps, less that of the chain from the truth."],
        )
    ]
