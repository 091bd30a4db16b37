"""Which users share their parameters: the partition found, and how certain it is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import adjusted_rand_score

from bayes_lcs.core.partitions import blocks
from bayes_lcs.plots.partitions import plot_coclustering
from experiments.benchmarks.tables import Table
from experiments.clustered_naive_bayes.partitions import FoundPartition, find_partition
from experiments.clustered_naive_bayes.setting import NUM_GROUPS, Setting
from experiments.papers.outcome import Finding, Outcome

PEAKED, MOST_NAMES, MOST_DRAWN = 0.5, 8, 150


def run(setting: Setting) -> Outcome:
    found = find_partition(setting)
    clusters = blocks(found.partition)
    certainty = [_certainty(found, block) for block in clusters]
    rows: list[tuple[Any, ...]] = [
        (number, len(block), _names(setting, block), _institutions(setting, block), inside, outside)
        for number, (block, (inside, outside)) in enumerate(
            zip(clusters, certainty, strict=True), start=1
        )
    ]
    columns: tuple[str, ...] = ("cluster", "size", setting.data.group_name, "institution")
    columns += ("least probable pair inside", "most probable pair across")
    if setting.institutions is None:
        columns, rows = columns[:3] + columns[4:], [row[:3] + row[4:] for row in rows]
    summary = (
        f"{len(clusters)} clusters of {setting.data.num_groups} groups by {found.method}; "
        f"posterior mean of their number {found.expected_clusters:.2f}; "
        f"probability of the most probable partition {found.probability:.3g}."
    )
    notes = [summary]
    if setting.partition is not None:
        score = adjusted_rand_score(setting.partition, found.partition)
        notes.append(f"Adjusted Rand index with the true partition: {score:.3f}.")
    table = Table("table_4_1", "The partition found", columns, rows, notes + found.notes)
    return Outcome(
        [table], _numbers(setting, found), _figures(setting, found), _answers(setting, found)
    )


def _certainty(found: FoundPartition, block: list[int]) -> tuple[float | None, float | None]:
    """Smallest probability of a pair inside the block, and largest of a pair across its border."""
    members = np.array(block)
    rest = np.setdiff1d(np.arange(len(found.partition)), members)
    inside = found.coclustering[np.ix_(members, members)]
    across = found.coclustering[np.ix_(members, rest)]
    return (
        float(inside.min()) if len(block) > 1 else None,
        float(across.max()) if len(rest) else None,
    )


def _names(setting: Setting, block: list[int]) -> str:
    names = [setting.data.group_names[group] for group in block]
    more = len(names) - MOST_NAMES
    return ", ".join(names[:MOST_NAMES]) + (f" and {more} more" if more > 0 else "")


def _institutions(setting: Setting, block: list[int]) -> str:
    if setting.institutions is None:
        return ""
    return ", ".join(sorted({setting.institutions[group] for group in block}))


def _numbers(setting: Setting, found: FoundPartition) -> pd.DataFrame:
    frame = pd.DataFrame({"group": setting.data.group_names, "cluster": found.partition + 1})
    together = found.partition[:, None] == found.partition[None, :]
    np.fill_diagonal(together, False)
    mates = np.where(together.any(axis=1), together.sum(axis=1), np.nan)
    frame["mean_probability_with_cluster"] = (found.coclustering * together).sum(axis=1) / mates
    if setting.partition is not None:
        frame["true_cluster"] = setting.partition + 1
        frame["institution"] = setting.institutions
    return frame


def _figures(setting: Setting, found: FoundPartition) -> dict[str, Any]:
    names = setting.data.group_names
    axes = plot_coclustering(found.coclustering, found.partition, names)
    figure: Any = axes.figure
    if len(names) > MOST_DRAWN:
        axes.set_xticks([])
        axes.set_yticks([])
    if len(names) > NUM_GROUPS:
        figure.set_size_inches(9.0, 8.0)
        axes.tick_params(labelsize=max(2.0, min(8.0, 450 / len(names))))
    return {"": figure}


def _answers(setting: Setting, found: FoundPartition) -> dict[str, Finding]:
    clusters = blocks(found.partition)
    alone = sum(len(block) == 1 for block in clusters)
    simulated = setting.institutions is not None
    pure = simulated and all("," not in _institutions(setting, block) for block in clusters)
    return {
        "nine_groups": Finding(
            f"{len(clusters)} of {setting.data.num_groups}",
            len(clusters) == 9 if simulated else None,
        ),
        "four_singletons": Finding(f"{alone}", alone == 4 if simulated else None),
        "institutions_do_not_mix": Finding(
            ("none mixed" if pure else "mixed") if simulated else "institutions are not known",
            pure if simulated else None,
        ),
        "one_mode": Finding(
            f"probability of the most probable partition {found.probability:.3g}; peaked from "
            f"{PEAKED}",
            found.probability >= PEAKED,
        ),
    }
