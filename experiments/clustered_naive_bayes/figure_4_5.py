"""Evidence of no sharing and of clusters over complete sharing, against the number of rows.

Rows are drawn at random from all users together. No-Sharing and Complete-Sharing have closed
forms; Clustered Naive Bayes is summed over all partitions of the users that have a row, which
changes nothing: the Chinese restaurant process on fewer users is its own marginal.

The conditional evidence ``P(Y | X)`` sums over all labelings, by particles: of one random subset of
every second size, up to 500 rows. Labels of many users under Complete-Sharing have many modes, and
its interval is wide there: it is drawn.
"""

from __future__ import annotations

import warnings

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from numpy.typing import NDArray

import bayes_lcs as bl
from experiments.benchmarks.tables import Table
from experiments.clustered_naive_bayes.setting import NUM_GROUPS, Setting
from experiments.papers.outcome import Finding, Outcome

HUNDRED, OVERWHELMING = 100, 5.0  # rows, and nats: 150 to 1
ALONE, CLUSTERED = "No-Sharing", "Clustered Naive Bayes"
MOST_CONDITIONAL_ROWS, MOST_CONDITIONAL_ROWS_SMOKE = 500, 10
CONDITIONAL_PRECISION = 0.5  # nats


def run(setting: Setting) -> Outcome:
    data = setting.data
    sizes = np.geomspace(10, data.num_rows, 4 if setting.smoke else 9).round().astype(int)
    if data.num_rows > HUNDRED:
        sizes[1 + np.argmin(np.abs(np.log(sizes[1:-1] / HUNDRED)))] = HUNDRED
    frame = pd.DataFrame(
        [row for size in sizes for row in _ratios(setting, int(size))],
        columns=["model", "rows", "repeat", "log_ratio"],
    )
    means = frame.groupby(["model", "rows"], sort=False)["log_ratio"].agg(["mean", "sem"])
    alone = means.loc[ALONE]["mean"]
    few, hundred, full = (
        float(alone[size]) for size in (sizes[0], min(HUNDRED, sizes[-1]), sizes[-1])
    )
    conditional = _conditional_ratios(setting, sizes)
    last = conditional.iloc[-1]
    values = [bl.evidence(model, data).value for model in (bl.NoSharing(), bl.CompleteSharing())]
    findings = {
        "log_evidence_no_sharing": Finding(f"{values[0]:,.1f}", None),
        "log_evidence_complete_sharing": Finding(f"{values[1]:,.1f}", None),
        "log_evidence_ratio": Finding(f"{full:,.1f}", None),
        "log_conditional_evidence_ratio": Finding(
            f"{last['log_ratio']:,.1f} ({last['lower']:,.1f} to {last['upper']:,.1f}) at "
            f"{last['rows']:,.0f} rows",
            None,
        ),
        "no_sharing_preferred_by_all_rows": Finding(f"log ratio {full:+,.1f}", full > 0),
        "complete_sharing_preferred_by_few_rows": Finding(
            f"mean log ratio {few:+.1f} at {sizes[0]} rows", few < 0
        ),
        "not_overwhelming_below_100_rows": Finding(
            f"mean log ratio {hundred:+.1f} at {min(HUNDRED, sizes[-1])} rows; overwhelming from "
            f"{OVERWHELMING:+.0f}",
            hundred < OVERWHELMING,
        ),
        "no_sharing_gains_with_rows": Finding(
            f"log ratio {few:+.1f} at {sizes[0]} rows, {full:+,.1f} at {sizes[-1]}; lowest "
            f"{alone.min():+,.1f} at {alone.idxmin()}",
            full > few,
        ),
    }
    rows = [
        (
            int(size),
            *(float(means["mean"].get((model, size), np.nan)) for model in (ALONE, CLUSTERED)),
        )
        for size in sizes
    ]
    title = "Log evidence above Complete-Sharing, mean over random subsets of rows"
    table = Table("figure_4_5", title, ("rows", ALONE, CLUSTERED), rows)
    given = Table(
        "figure_4_5_conditional",
        "Log conditional evidence of No-Sharing above Complete-Sharing, one random subset a size",
        ("rows", "log ratio", "lower", "upper"),
        list(conditional.itertuples(index=False, name=None)),
        ["The interval is that of both brackets; wide where runs of particles differ."],
    )
    numbers = pd.concat([frame, conditional.assign(model=f"{ALONE}, conditional")])
    return Outcome([table, given], numbers, {"": _draw(means, conditional)}, findings)


def _conditional_ratios(setting: Setting, sizes: NDArray[np.int64]) -> pd.DataFrame:
    """Log ``P(Y | X)`` of No-Sharing less that of Complete-Sharing, with its interval."""
    most = MOST_CONDITIONAL_ROWS_SMOKE if setting.smoke else MOST_CONDITIONAL_ROWS
    found = []
    for size in [int(size) for size in sizes if size <= most][::2]:
        order = np.random.default_rng([setting.seed, size]).permutation(setting.data.num_rows)
        part = setting.data.take(order[:size])
        part = part.select_groups(np.flatnonzero(part.group_sizes).tolist())
        with warnings.catch_warnings():
            # Said by the interval.
            warnings.simplefilter("ignore", bl.EvidenceWarning)
            alone, together = (
                bl.conditional_evidence(model, part, precision=CONDITIONAL_PRECISION)
                for model in (bl.NoSharing(), bl.CompleteSharing())
            )
        below = np.hypot(alone.value - alone.lower, together.upper - together.value)
        above = np.hypot(alone.upper - alone.value, together.value - together.lower)
        ratio = alone.value - together.value
        found.append((size, ratio, ratio - below, ratio + above))
    return pd.DataFrame(found, columns=["rows", "log_ratio", "lower", "upper"])


def _ratios(setting: Setting, size: int) -> list[tuple[str, int, int, float]]:
    """Log evidence of each model less that of Complete-Sharing on random subsets of rows."""
    data, found = setting.data, []
    everything = size == data.num_rows
    repeats = 1 if everything else 5 if setting.smoke else 50
    exact_repeats = 1 if everything else 2 if setting.smoke else 4
    rng = np.random.default_rng([setting.seed, size])
    for repeat in range(repeats):
        part = data.take(rng.permutation(data.num_rows)[:size])
        base = bl.evidence(bl.CompleteSharing(), part).value
        found.append((ALONE, size, repeat, bl.evidence(bl.NoSharing(), part).value - base))
        present = np.flatnonzero(part.group_sizes).tolist()
        if repeat < exact_repeats and len(present) <= NUM_GROUPS:
            clustered = bl.evidence(
                bl.ClusteredNaiveBayes(), part.select_groups(present), progress=False
            )
            found.append((CLUSTERED, size, repeat, clustered.value - base))
    return found


def _draw(means: pd.DataFrame, conditional: pd.DataFrame) -> Figure:
    figure, axes = plt.subplots(figsize=(6.8, 4.4), layout="constrained")
    axes.axhline(0, color="0.4", linewidth=1, linestyle="--")
    for name, marker in ((CLUSTERED, "D"), (ALONE, "o")):
        if name in means.index:
            own = means.loc[name]
            axes.errorbar(
                own.index,
                own["mean"],
                1.96 * own["sem"].fillna(0.0),
                marker=marker,
                capsize=2,
                markersize=4,
                label=name,
            )
    ratio = conditional["log_ratio"]
    axes.errorbar(
        conditional["rows"],
        ratio,
        np.array([ratio - conditional["lower"], conditional["upper"] - ratio]),
        marker="s",
        capsize=2,
        markersize=4,
        linestyle=":",
        label=f"{ALONE}, labels given features",
    )
    axes.set_xscale("log")
    axes.set_yscale("symlog", linthresh=10)
    axes.set_xlabel("rows, drawn at random from all users")
    axes.set_ylabel("nats of evidence above Complete-Sharing")
    axes.grid(alpha=0.25)
    axes.legend(frameon=False)
    return figure
