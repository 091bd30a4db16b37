"""The report of a comparison: one HTML file that asks nothing of the network.

Names come from data files. The template escapes all of them, and scripts get them as JSON.
"""

from __future__ import annotations

import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from bayes_lcs._version import __version__
from bayes_lcs.core.partitions import blocks, first_occurrence
from bayes_lcs.data.storage import write_atomically
from bayes_lcs.evaluation.cluster_profiles import cluster_log_ratios
from bayes_lcs.models.clustered import ClusteredNaiveBayes
from bayes_lcs.report.comparison_files import MOST_DRAWN, TableComparison
from bayes_lcs.report.posterior import Posterior

__all__ = ["comparison_page", "save_page"]

MOST_WORDS = 6
"""Feature values that are shown of each cluster."""
MOST_PREDICTIONS = 5000
"""Rows that a page can bear; the CSV file has all."""


def comparison_page(found: TableComparison, source: str = "") -> str:
    """The whole page.

    Parameters
    ----------
    found
        From `bayes_lcs.report.comparison_files.compare_table`.
    source
        What was read, for the provenance.
    """
    from jinja2 import Environment, PackageLoader

    environment = Environment(
        loader=PackageLoader("bayes_lcs.report", "templates"), autoescape=True, trim_blocks=False
    )
    data = found.comparison.data
    positive = data.label_values[-1]
    return environment.get_template("comparison.html.j2").render(
        title=f"bayes_lcs: {data.label_name} by {data.group_name}",
        verdict=found.comparison.verdict(),
        group_name=data.group_name,
        label_name=data.label_name,
        label_values=list(data.label_values),
        num_rows=f"{data.num_rows:,}",
        num_groups=f"{data.num_groups:,}",
        num_features=data.num_features,
        positive=positive,
        positive_place=len(data.label_values) - 1 if data.num_labels == 2 else None,
        partition_words=_partition_words(found),
        clusters_words=_clusters_words(found),
        evidence=_evidence(found),
        clusters=_clusters(found),
        heat=_heat(found),
        trust=_trust(found),
        provenance=_provenance(found, source),
        **_predictions(found),
    )


def save_page(found: TableComparison, folder: Path, source: str = "") -> Path:
    """Write the page as ``report.html``."""
    page = comparison_page(found, source)

    def write(part: Path) -> None:
        part.write_text(page, encoding="utf-8")

    return write_atomically(folder / "report.html", write)


def _partition_words(found: TableComparison) -> str:
    number = len(found.blocks())
    clusters = "one cluster" if number == 1 else f"{number} clusters"
    return f"If groups fall into clusters, they fall most likely into {clusters}."


def _clusters_words(found: TableComparison) -> str:
    how = (
        "The most probable partition of all, summed exactly."
        if found.method == "exact"
        else f"The partition of least expected variation of information over {found.method}."
    )
    chances = found.posterior.num_clusters()
    best = int(np.argmax(chances))
    return f"{how} Most probable number of clusters: {best} (probability {chances[best]:.3f})."


def _evidence(found: TableComparison) -> list[dict[str, str]]:
    rows = []
    for row in found.comparison.table().to_dict("records"):
        exact = row["lower"] == row["upper"]
        rows.append(
            {
                "model": str(row["model"]),
                "value": f"{row['log_evidence']:,.2f}",
                "interval": "exact" if exact else f"{row['lower']:,.2f} to {row['upper']:,.2f}",
                "behind": f"{abs(row['log_bayes_factor']):,.2f}",
                "probability": f"{row['probability']:.3g}",
                "method": str(row["method"]),
            }
        )
    return rows


def _clusters(found: TableComparison) -> list[dict[str, Any]]:
    """Members, and the feature values whose log ratio is farthest from that of other clusters."""
    data, members = found.comparison.data, found.blocks()
    if data.num_labels < 2:
        return [{"members": names, "profile": []} for names in members]
    ratios = cluster_log_ratios(ClusteredNaiveBayes(), data, found.partition)
    names = [
        (feature, value)
        for feature, values in zip(data.feature_names, data.values, strict=True)
        for value in values
    ]
    result = []
    for k, own in enumerate(members):
        others = np.delete(ratios, k, axis=0)
        apart = np.abs(ratios[k] - (others.mean(axis=0) if len(others) else 0.0))
        chosen = np.argsort(-apart, kind="stable")[:MOST_WORDS]
        profile = [
            {"feature": names[c][0], "value": names[c][1], "ratio": float(ratios[k, c])}
            for c in chosen
        ]
        result.append({"members": own, "profile": profile})
    return result


def _heat(found: TableComparison) -> list[dict[str, Any]]:
    """Rows of the co-clustering matrix, ordered by the partition."""
    names = found.posterior.group_names
    if len(names) > MOST_DRAWN:
        return []
    matrix: Any = found.posterior.coclustering()
    matrix = matrix.toarray() if hasattr(matrix, "toarray") else np.asarray(matrix)
    order = [u for block in blocks(first_occurrence(found.partition)) for u in block]
    return [
        {
            "name": names[u],
            "cells": [
                {
                    "name": names[v],
                    "shade": f"{matrix[u, v]:.3f}",
                    "shown": f"{matrix[u, v]:.3f}",
                }
                for v in order
            ],
        }
        for u in order
    ]


def _trust(found: TableComparison) -> list[str]:
    lines = []
    for name, evidence in zip(found.comparison.names, found.comparison.evidences, strict=True):
        if evidence.is_exact:
            lines.append(f"{name}: the evidence is exact.")
            continue
        line = f"{name}: the evidence is an estimate, with a standard error of "
        line += f"{evidence.standard_error:.2g}."
        if evidence.bracket is not None and not evidence.bracket.agrees:
            line += " Its two ends disagree: run it longer before you rely on it."
        lines.append(line)
    if isinstance(found.posterior, Posterior):
        for name, numbers in found.posterior.diagnostics().items():
            shown = ", ".join(f"{key} {value:.3g}" for key, value in numbers.items())
            lines.append(f"Draws, {name}: {shown}. R-hat should be below 1.01.")
    else:
        lines.append("The posterior over partitions is exact: nothing was drawn.")
    return lines


def _predictions(found: TableComparison) -> dict[str, Any]:
    frame, data = found.predictions, found.comparison.data
    if frame is None:
        return {"predictions": [], "chances": []}
    columns = [f"P({name})" for name in data.label_values]
    rows: list[dict[str, Any]] = []
    for number, row in enumerate(frame.head(MOST_PREDICTIONS).to_dict("records")):
        chances = [float(row[column]) for column in columns]
        decision = data.label_values[int(np.argmax(chances))]
        group = str(row[data.group_name])
        rows.append(
            {"number": number + 1, "group": group, "probabilities": chances, "decision": decision}
        )
    return {"predictions": rows, "chances": [row["probabilities"][-1] for row in rows]}


def _provenance(found: TableComparison, source: str) -> list[tuple[str, str]]:
    data = found.comparison.data
    libraries = ", ".join(f"{name} {version(name)}" for name in ("jax", "numpyro", "numpy"))
    return [
        ("data", source or "a table"),
        ("content (sha256)", data.content_hash()),
        ("seed", str(found.seed)),
        ("how partitions were found", found.method),
        ("made with", f"bayes_lcs {__version__}, Python {sys.version.split()[0]}, {libraries}"),
    ]
