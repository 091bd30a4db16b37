"""Exact sums over all partitions: time and memory by number of groups, and against peers.

Data: the first ``U`` of the simulated meeting requests, 40 rows a person. Above 21 groups, people
are counted twice, which changes nothing about the cost. Peers sum the same block weights:

*enumeration*  all partitions as one NumPy array, Bell(U) rows;
*recursion*    the textbook recursion over subsets in logs, one vectorised sum a subset;
*logs*         our own fall-back, forced: `convolve_relative`.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import numpy as np

import bayes_lcs as bl
from bayes_lcs.core.counts import GroupCounts
from bayes_lcs.core.dirichlet import log_rising
from bayes_lcs.inference.exact import partition_function
from bayes_lcs.inference.exact.exact import BYTES_PER_SUBSET, exact_memory
from bayes_lcs.inference.exact.partition_function import PartitionSums
from bayes_lcs.inference.exact.subset_marginals import log_block_marginals
from bayes_lcs.inference.exact.subset_masks import popcounts, subsets_of
from experiments.benchmarks.tables import Scale, Table, fastest

GROUPS = {
    Scale.SMOKE: (6, 8),
    Scale.NORMAL: (12, 16, 18, 20, 21),
    Scale.FULL: (12, 16, 18, 20, 21, 22, 24),
}
PEER_GROUPS = {
    Scale.SMOKE: (5, 6),
    Scale.NORMAL: (8, 10, 12, 14, 16),
    Scale.FULL: (8, 10, 12, 14, 16, 18),
}
ENUMERATION_LIMIT, RECURSION_LIMIT = 10, 14
AGREEMENT = 1e-8  # of log sums of some ten thousand nats
MIB = 2.0**20


def meeting_table(num_groups: int) -> bl.GroupedTable:
    """The first people; from the 22nd on, the first ones again under other names."""
    data, _ = bl.meeting_requests(seed=0, rows_per_person=40)
    if num_groups <= data.num_groups:
        return data.select_groups(range(num_groups))
    again = data.select_groups(range(num_groups - data.num_groups))
    return bl.GroupedTable.from_arrays(
        np.concatenate([data.features, again.features]),
        np.concatenate([data.labels, again.labels]),
        np.concatenate([data.groups, again.groups + data.num_groups]),
        num_values=data.num_values,
        num_labels=data.num_labels,
        num_groups=num_groups,
    )


def block_weights(counts: GroupCounts) -> np.ndarray:
    """``log w(T)`` of every subset, at concentration 1 and uniform priors."""
    shape = (counts.schema.num_labels, counts.schema.num_cells)
    sizes = np.maximum(popcounts(counts.num_groups), 1)
    return log_block_marginals(counts, np.ones(shape)) + log_rising(1.0, sizes - 1)


# Peers ------------------------------------------------------------------------------------------


def by_enumeration(log_weights: np.ndarray) -> float:
    """``log Z(all)`` from an array with one row for each partition."""
    num_groups = log_weights.size.bit_length() - 1
    z = np.zeros((1, 1), dtype=np.int8)
    for _ in range(num_groups - 1):
        choices = z.max(axis=1) + 2
        grown = np.repeat(z, choices, axis=0)
        ends = np.cumsum(choices)
        new = np.arange(ends[-1]) - np.repeat(ends - choices, choices)
        z = np.column_stack([grown, new.astype(np.int8)])
    scores = np.zeros(len(z))
    bits = 1 << np.arange(num_groups)
    for block in range(num_groups):
        masks = (z == block) @ bits
        scores += np.where(masks > 0, log_weights[masks], 0.0)
    return float(np.logaddexp.reduce(scores))


def by_recursion(log_weights: np.ndarray) -> float:
    """``log Z(all)`` by one sum over the subsets of each subset, in logs."""
    log_sums = np.zeros(log_weights.size)
    for subset in range(1, log_weights.size):
        last = 1 << (subset.bit_length() - 1)
        parts = subsets_of(subset ^ last) | last
        terms = log_weights[parts] + log_sums[subset ^ parts]
        largest = terms.max()
        log_sums[subset] = largest + np.log(np.exp(terms - largest).sum())
    return float(log_sums[-1])


def scaled(log_weights: np.ndarray) -> float:
    sums = PartitionSums(log_weights)
    assert sums.arithmetic == "scaled"
    return sums.log_total


def in_logs(log_weights: np.ndarray) -> float:
    with mock.patch.object(partition_function, "HUGE", 0.0):
        sums = PartitionSums(log_weights)
    assert sums.arithmetic == "logs"
    return sums.log_total


def peers_table(scale: Scale) -> Table:
    peers: dict[str, tuple[Callable[[np.ndarray], float], int]] = {
        "enumeration": (by_enumeration, ENUMERATION_LIMIT),
        "recursion": (by_recursion, RECURSION_LIMIT),
        "logs": (in_logs, 99),
    }
    rows = []
    for num_groups in PEER_GROUPS[scale]:
        log_weights = block_weights(meeting_table(num_groups).counts())
        expected = scaled(log_weights)
        ours = fastest(lambda: scaled(log_weights), repeats=5)  # noqa: B023
        ratios: list[float | None] = []
        for name, (peer, limit) in peers.items():
            if num_groups > limit:
                ratios.append(None)
                continue
            found = peer(log_weights)
            if abs(found - expected) > AGREEMENT:
                raise AssertionError(f"{name} says {found}, we say {expected}")
            ratios.append(fastest(lambda: peer(log_weights)) / ours)  # noqa: B023
        rows.append((num_groups, ours, *ratios))
    return Table(
        "exact_partitions_peers",
        "Sum over all partitions, given the block weights: times of peers over ours",
        ("groups", "ours (s)", *(f"{name} / ours" for name in peers)),
        rows,
        [f"All answers agree to {AGREEMENT:g}. An empty cell: too slow or too large to wait for."],
    )


# Ourselves --------------------------------------------------------------------------------------


def peak_memory() -> int:
    """High-water mark of this process's resident memory in bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise OSError("no VmHWM in /proc/self/status")


def measure(num_groups: int) -> dict[str, float]:
    """Times and memory of one size; runs in a process of its own."""
    data = meeting_table(num_groups)
    model = bl.ClusteredNaiveBayes()
    bl.exact(model, data.select_groups(range(4))).coclustering()  # imports, threads, BLAS buffers
    before = peak_memory()
    start = time.perf_counter()
    posterior = bl.exact(model, data, max_groups=num_groups, progress=False)
    middle = time.perf_counter()
    posterior.coclustering()
    end = time.perf_counter()
    result = {
        "exact": middle - start,
        "coclustering": end - middle,
        "total": end - start,
        "peak": float(peak_memory() - before),
    }
    for name, ask in (
        ("map", posterior.map_partition),
        ("sample", lambda: posterior.sample(1000)),
        ("num_clusters", posterior.num_clusters),
    ):
        start = time.perf_counter()
        ask()
        result[name] = time.perf_counter() - start
        result[f"peak_{name}"] = float(peak_memory() - before)
    return result


def measure_apart(num_groups: int, repeats: int) -> dict[str, float]:
    """The smallest of each figure over processes of their own."""
    command = [sys.executable, "-m", "experiments.benchmarks.exact_partitions", str(num_groups)]
    runs = []
    for _ in range(repeats):
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        runs.append(json.loads(done.stdout))
    return {name: min(run[name] for run in runs) for name in runs[0]}


def growth_tables(scale: Scale) -> list[Table]:
    times, memory = [], []
    previous: tuple[int, float] | None = None
    for num_groups in GROUPS[scale]:
        found = measure_apart(num_groups, repeats=2 if num_groups <= 21 else 1)
        growth = None
        if previous is not None:
            growth = (found["total"] / previous[1]) ** (1.0 / (num_groups - previous[0]))
        previous = num_groups, found["total"]
        answers = (found[name] for name in ("coclustering", "map", "sample", "num_clusters"))
        times.append((num_groups, found["exact"], growth, *answers))
        memory.append(
            (
                num_groups,
                found["peak"] / MIB,
                exact_memory(num_groups) / MIB,
                found["peak"] / 2**num_groups,
                found["peak_num_clusters"] / 2**num_groups,
            )
        )
    return [
        Table(
            "exact_partitions_times",
            "Exact posterior of meeting requests: seconds for each answer",
            ("groups", "exact", "growth", "co-cl.", "MAP", "1000 draws", "num. clusters"),
            times,
            ["Growth: factor of time for each group more, of the posterior with co-clustering."],
        ),
        Table(
            "exact_partitions_memory",
            "Peak of resident memory, over what a tiny posterior needs",
            ("groups", "MiB", "MiB stated", "bytes a subset", "with num. clusters"),
            memory,
            [f"Stated: what bl.exact asks for, {BYTES_PER_SUBSET} bytes a subset."],
        ),
    ]


def run(scale: Scale) -> list[Table]:
    return [*growth_tables(scale), peers_table(scale)]


if __name__ == "__main__":
    print(json.dumps(measure(int(sys.argv[1]))))
