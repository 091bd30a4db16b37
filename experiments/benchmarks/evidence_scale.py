"""Evidence of clustered naive Bayes by sampling: its error by time, its time by groups.

*Precision*  21 groups whose partition stays open, where the sum over all partitions is the truth.
             The program is compiled before the clocks start.
*Groups*     tables of the same kind with more groups, by particles and by temperatures, each in a
             process of its own that is stopped after some CPU seconds; compilation stated.
*Compare*    all four models on the built-in meeting data, 21 people with 180 requests each, in a
             fresh process: what a user waits for.

Times are CPU seconds of all threads beside wall time, which means little on a shared machine.
"""

from __future__ import annotations

import json
import resource
import signal
import subprocess
import sys
import time
import warnings
from typing import Any

from matplotlib.figure import Figure

import bayes_lcs as bl
from bayes_lcs.model_evidence.log_evidence import EvidenceWarning
from experiments.benchmarks.evidence_samplers import cpu_seconds
from experiments.benchmarks.simulated import clustered_groups
from experiments.benchmarks.tables import Scale, Table

PRECISIONS = {
    Scale.SMOKE: (0.4, 0.2),
    Scale.NORMAL: (0.4, 0.2, 0.1, 0.05, 0.025),
    Scale.FULL: (0.4, 0.2, 0.1, 0.05, 0.025, 0.0125),
}
EXACT_GROUPS = {Scale.SMOKE: 8, Scale.NORMAL: 21, Scale.FULL: 21}
GROUPS = {Scale.SMOKE: (8,), Scale.NORMAL: (21, 100, 1_000), Scale.FULL: (21, 100, 300, 1_000)}
METHODS = ("particles", "ais")
LIMIT = {Scale.SMOKE: 120, Scale.NORMAL: 900, Scale.FULL: 7_200}  # CPU seconds of a rung
COARSE = 0.3
MOST_CHAINS = 8_192
TIMED_OUT = -signal.SIGXCPU


def flat_groups(num_groups: int) -> bl.GroupedTable:
    return clustered_groups(
        num_groups, num_clusters=3, rows_per_group=6, num_features=3, evenness=1.0
    )[0]


def estimated(data: bl.GroupedTable, method: str, precision: float, seed: int) -> dict[str, float]:
    """One estimate, without reversed chains, and what it took."""
    before, clock = cpu_seconds(), time.perf_counter()
    with warnings.catch_warnings():
        # At the coarsest precision few chains are enough, and it says so.
        warnings.simplefilter("ignore", EvidenceWarning)
        found = bl.evidence(
            bl.ClusteredNaiveBayes(),
            data,
            method,
            precision=precision,
            max_chains=MOST_CHAINS,
            bracket=False,
            seed=seed,
            progress=False,
        )
    return {
        "value": found.value,
        "standard_error": found.standard_error,
        "effective": found.effective_draws,
        "cpu": cpu_seconds() - before,
        "wall": time.perf_counter() - clock,
    }


def precision_table(scale: Scale) -> Table:
    data = flat_groups(EXACT_GROUPS[scale])
    exact = bl.exact(bl.ClusteredNaiveBayes(), data, progress=False).log_evidence
    compiled = estimated(data, "ais", 1.0, 0)
    rows = []
    for number, precision in enumerate(PRECISIONS[scale], start=1):
        found = estimated(data, "ais", precision, 100 * number)
        error = found["value"] - exact
        rows.append(
            (
                precision,
                found["standard_error"],
                error,
                error / found["standard_error"],
                found["effective"],
                found["cpu"],
                found["wall"],
                found["standard_error"] ** 2 * found["cpu"],
            )
        )
    return Table(
        "evidence_scale_precision",
        f"AIS of {data.num_groups} groups by precision, against the exact {exact:.3f}",
        (
            "precision",
            "standard error",
            "error",
            "errors",
            "effective chains",
            "CPU (s)",
            "wall (s)",
            "variance x CPU",
        ),
        rows,
        [
            f"After a first run of {compiled['cpu']:.0f} CPU seconds that compiled the program.",
            "Errors: the error in standard errors. Every run settles its own temperatures.",
        ],
    )


# Groups -------------------------------------------------------------------------------------------


def rung(num_groups: int, method: str, limit: int) -> dict[str, float]:
    """A run of this many groups twice, the second without compilation; in its own process."""
    resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
    data = flat_groups(num_groups)
    first = estimated(data, method, COARSE, 0)
    print(json.dumps({**first, "first": first["cpu"]}), flush=True)
    if cpu_seconds() < limit / 3:
        again = estimated(data, method, COARSE, 1)
        print(json.dumps({**again, "first": first["cpu"]}), flush=True)
    return first


def compare() -> None:
    """The comparison of the four models, import of the package included."""
    clock = time.perf_counter()
    data, _ = bl.meeting_requests(seed=0)
    models = [bl.NoSharing(), bl.CompleteSharing(), bl.Prototype(), bl.ClusteredNaiveBayes()]
    found = bl.compare(models, data, progress=False).table()
    first = {"cpu": cpu_seconds(), "wall": time.perf_counter() - clock}
    rows = found[["model", "log_evidence", "standard_error", "method"]].to_numpy().tolist()
    print(json.dumps({**first, "rows": rows}))


def apart(*arguments: object) -> Any:
    """The last line that a process of its own printed, or None if it was stopped before one."""
    command = [sys.executable, "-m", "experiments.benchmarks.evidence_scale", *map(str, arguments)]
    done = subprocess.run(command, check=False, stdout=subprocess.PIPE, text=True)
    if done.returncode not in (0, TIMED_OUT, -signal.SIGKILL):
        raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}")
    lines = done.stdout.splitlines()
    return json.loads(lines[-1]) if lines else None


def groups_table(scale: Scale) -> Table:
    rows: list[tuple[Any, ...]] = []
    for method in METHODS:
        previous: tuple[int, float] | None = None
        for num_groups in GROUPS[scale]:
            found = apart(num_groups, method, LIMIT[scale])
            if found is None:
                late = f"not in {LIMIT[scale]}"
                rows.append((method, num_groups, None, late, *[None] * 4))
                continue
            growth = None
            if previous is not None:
                growth = (found["cpu"] / previous[1]) / (num_groups / previous[0])
            previous = num_groups, found["cpu"]
            rows.append(
                (
                    method,
                    num_groups,
                    f"{found['value']:.2f}",
                    found["first"],
                    found["cpu"],
                    found["wall"],
                    found["standard_error"],
                    growth,
                )
            )
    return Table(
        "evidence_scale_groups",
        f"Evidence by number of groups, precision {COARSE}",
        (
            "method",
            "groups",
            "log evidence",
            "first (CPU s)",
            "CPU (s)",
            "wall (s)",
            "standard error",
            "growth",
        ),
        rows,
        [
            "First: compilation included. CPU, wall: of a second run, where there was time for it.",
            "Growth: of CPU seconds over that of the groups, since the rung before; 1 is linear.",
        ],
    )


def compare_table() -> Table:
    found = apart("compare")
    return Table(
        "evidence_scale_compare",
        "All four models on the meeting data, 21 x 180, fresh process",
        ("model", "log evidence", "standard error", "method"),
        [(name, f"{value:.2f}", error, how) for name, value, error, how in found["rows"]],
        [f"{found['wall']:.1f} s of wall time, {found['cpu']:.1f} CPU seconds, imports included."],
    )


def run(scale: Scale) -> list[Table]:
    return [precision_table(scale), groups_table(scale), compare_table()]


def figure(tables: list[Table]) -> Figure:
    """Standard error by time, and time by groups."""
    precision, groups = tables[0], tables[1]
    drawn = Figure(figsize=(9.0, 3.6), layout="constrained")
    left, right = drawn.subplots(1, 2)
    seconds = [row[5] for row in precision.rows]
    left.loglog(seconds, [row[1] for row in precision.rows], "o-", label="standard error")
    left.loglog(seconds, [abs(row[2]) for row in precision.rows], "x", label="error")
    left.set(xlabel="CPU seconds", ylabel="nats", title=precision.title)
    left.legend()
    for method in METHODS:
        known = [row for row in groups.rows if row[0] == method and row[4] is not None]
        right.loglog([row[1] for row in known], [row[4] for row in known], "o-", label=method)
    right.legend()
    right.set(xlabel="groups", ylabel="CPU seconds", title=groups.title)
    for panel in (left, right):
        panel.title.set_fontsize("small")
        panel.grid(alpha=0.3)
    return drawn


if __name__ == "__main__":
    if sys.argv[1] == "compare":
        compare()
    else:
        rung(int(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
