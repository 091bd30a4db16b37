"""Report of a model comparison: evidence, clusters, uncertainty, diagnostics, predictions."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayes_lcs.core.partitions import blocks, first_occurrence
from bayes_lcs.evaluation.cluster_log_ratios import cluster_log_ratios
from bayes_lcs.inference.exact.posterior import ExactPosterior
from bayes_lcs.inference.partition_estimate import credible_ball, partition_distance
from bayes_lcs.inference.posterior import Posterior
from bayes_lcs.model_evidence.compare import Comparison
from bayes_lcs.models.clustered_naive_bayes import ClusteredNaiveBayes
from bayes_lcs.report.coclustering_map import coclustering_map
from bayes_lcs.report.diagnostic_advice import draws_advice, evidence_advice
from bayes_lcs.report.html import Provenance, provenance_table, render, save_html, truncate
from bayes_lcs.report.prediction_table import prediction_table
from bayes_lcs.report.svg import bar, interval, share

__all__ = ["MAX_HEATMAP_GROUPS", "TableComparison", "comparison_page", "save_page"]

MAX_PROFILE_VALUES = 8
"""Maximum number of feature values in the profile of a cluster."""
MAX_CLUSTERS = 60
"""Maximum number of clusters with a profile; the largest are shown."""
MAX_CLUSTER_NUMBERS = 12
"""Maximum number of entries in the posterior of the number of clusters."""
MAX_EDGE_CLUSTERS = 6
"""Maximum number of clusters shown of a partition at the edge of the credible ball."""
EXACT_DRAWS = 1000
"""Number of draws for the credible ball of an exact posterior."""
TOO_CLOSE = 0.03
"""Differences below this share of the chart's width get a second chart."""

MAX_HEATMAP_GROUPS = 200
"""Maximum number of groups in a heat map."""


@dataclass(frozen=True)
class TableComparison:
    """Comparison of the four models on a table, posterior over partitions, and predictions.

    Attributes
    ----------
    comparison
        Comparison of the four models on the rows with a label.
    posterior
        Posterior of clustered naive Bayes.
    partition : (U,)
        The most probable partition if it is known exactly, else the one that minimises the
        expected variation of information.
    method
        Inference method of the posterior.
    predictions
        Rows without a label, with probabilities averaged over the models; None if there are none.
    seed
        Seed of all draws.
    """

    comparison: Comparison
    posterior: ExactPosterior | Posterior
    partition: NDArray[np.int64]
    method: str
    predictions: pd.DataFrame | None
    seed: int

    @property
    def interrupted(self) -> bool:
        """True if Ctrl-C interrupted the sampling; then there are no predictions."""
        return isinstance(self.posterior, Posterior) and self.posterior.interrupted

    def blocks(self) -> list[list[str]]:
        """Return the names of the groups of each cluster."""
        names = self.posterior.group_names
        return [[names[u] for u in block] for block in blocks(self.partition)]

    def partition_by_group(self) -> dict[str, int]:
        """Return the cluster of each group by its name."""
        return dict(zip(self.posterior.group_names, map(int, self.partition), strict=True))


def comparison_page(result: TableComparison, origin: Provenance | None = None) -> str:
    """Return the page as HTML.

    Parameters
    ----------
    result
        Result of `bayes_lcs.workflows.compare.compare_table`.
    origin
        Input and options, for the provenance table.
    """
    data = result.comparison.data
    return render(
        "comparison.html.j2",
        title=f"bayes_lcs: {truncate(data.label_name)} by {truncate(data.group_name)}",
        interrupted=isinstance(result.posterior, Posterior) and result.posterior.interrupted,
        verdict=result.comparison.verdict(),
        group_name=data.group_name,
        label_name=data.label_name,
        num_rows=data.num_rows,
        num_groups=data.num_groups,
        num_features=data.num_features,
        positive=data.label_values[-1],
        num_labels=data.num_labels,
        num_clusters=len(result.blocks()),
        how=_partition_method(result),
        sizes=_sizes(result),
        **_evidence(result),
        **_clusters(result),
        ball=_credible_ball(result),
        heat=_heat_map(result),
        **_diagnostics(result),
        **_predictions(result),
        provenance=_provenance(result, origin or Provenance(seed=result.seed)),
    )


def save_page(result: TableComparison, folder: Path, origin: Provenance | None = None) -> Path:
    """Write the page as ``report.html``."""
    return save_html(comparison_page(result, origin), folder / "report.html")


def _partition_method(result: TableComparison) -> str:
    if result.method == "exact":
        return "The most probable partition, from the exact sum over all partitions."
    return (
        f"The partition that minimises the expected variation of information, from {result.method}."
    )


def _sizes(result: TableComparison) -> list[dict[str, Any]]:
    """Return the probable numbers of clusters in increasing order."""
    probabilities = result.posterior.num_clusters()
    likely = np.argsort(-probabilities, kind="stable")[:MAX_CLUSTER_NUMBERS]
    return [
        {
            "number": int(k),
            "probability": f"{probabilities[k]:.3f}",
            "bar": share(float(probabilities[k])),
        }
        for k in np.sort(likely)
        if probabilities[k] >= 5e-4
    ]


def _evidence(result: TableComparison) -> dict[str, Any]:
    table = result.comparison.table()
    rows = []
    for row in table.to_dict("records"):
        exact = row["lower"] == row["upper"]
        rows.append(
            {
                "model": str(row["model"]),
                "value": f"{row['log_evidence']:,.2f}",
                "interval": "exact" if exact else f"{row['lower']:,.2f} to {row['upper']:,.2f}",
                "behind": f"{abs(row['log_bayes_factor']):,.2f}",
                "probability": f"{row['probability']:.3g}",
                "between": _probability_interval(row),
                "method": str(row["method"]),
            }
        )
    best = float(table["log_evidence"].iloc[0])
    values, lower, upper = (
        table[name].to_numpy() - best for name in ("log_evidence", "lower", "upper")
    )
    strips = [_interval_chart(rows, values, lower, upper, np.arange(len(values)))]
    near = np.flatnonzero(values >= -TOO_CLOSE * max(np.ptp([*lower, *upper]), 1e-12))
    wide = len(near) > 1 or float(np.ptp([lower[0], upper[0]])) > 0.0
    if len(near) < len(values) and wide:
        strips.append(_interval_chart(rows, values, lower, upper, near))
    return {"evidence": rows, "strips": strips}


def _probability_interval(row: dict[Any, Any]) -> str:
    """Return the interval of a model's probability; empty if all evidences are exact."""
    low, high = f"{row['probability_lower']:.3g}", f"{row['probability_upper']:.3g}"
    return "" if low == high else f"{low} to {high}"


def _interval_chart(
    rows: list[dict[str, str]], values: Any, lower: Any, upper: Any, shown: Any
) -> Any:
    """Draw dots and intervals of some models, as differences to the best."""
    low, high = float(lower[shown].min()), float(upper[shown].max())
    if high - low < 1e-9:
        low, high = low - 1.0, high + 1.0
    drawn = [
        {
            "model": rows[i]["model"],
            "svg": interval(float(values[i]), float(lower[i]), float(upper[i]), low, high),
            "behind": "the best" if i == 0 else f"{values[i]:,.2f}",
        }
        for i in shown
    ]
    return {"models": drawn, "low": f"{low:,.2f}", "high": f"{high:,.2f}"}


def _clusters(result: TableComparison) -> dict[str, Any]:
    """Return members and profiles: values whose log ratio differs most from other clusters."""
    data, members = result.comparison.data, result.blocks()
    largest = np.argsort([-len(own) for own in members], kind="stable")[:MAX_CLUSTERS]
    chosen = np.sort(largest)
    if data.num_labels < 2:
        cards = [{"number": int(k), "members": members[k], "profile": []} for k in chosen]
        return {"clusters": cards}
    ratios = cluster_log_ratios(ClusteredNaiveBayes(), data, result.partition)
    names = [
        (feature, value)
        for feature, values in zip(data.feature_names, data.values, strict=True)
        for value in values
    ]
    others = (ratios.sum(axis=0) - ratios) / max(len(members) - 1, 1)  # zero for a single cluster
    words = np.argsort(-np.abs(ratios - others), axis=1, kind="stable")[:, :MAX_PROFILE_VALUES]
    reach = float(np.abs(np.take_along_axis(ratios, words, axis=1)).max(initial=0.0))
    cards = []
    for k in chosen:
        profile = [
            {
                "feature": names[c][0],
                "value": names[c][1],
                "ratio": f"{ratios[k, c]:+.2f}",
                "bar": bar(ratios[k, c], reach, others[k, c] if len(members) > 1 else None),
            }
            for c in words[k]
        ]
        cards.append({"number": int(k), "members": members[k], "profile": profile})
    return {"clusters": cards}


def _credible_ball(result: TableComparison) -> dict[str, Any]:
    """Return the credible ball around the partition, and partitions at its edge."""
    if isinstance(result.posterior, Posterior):
        draws = result.posterior.partitions()
    else:
        draws = result.posterior.sample(EXACT_DRAWS, seed=result.seed)
    centre = first_occurrence(result.partition)
    ball = credible_ball(centre, draws)
    own = {tuple(block) for block in blocks(centre)}
    names = result.posterior.group_names
    edges = []
    for name, z in (
        ("fewest clusters", ball.coarsest),
        ("most clusters", ball.finest),
        ("farthest away", ball.farthest),
    ):
        other = [block for block in blocks(z) if tuple(block) not in own]
        edges.append(
            {
                "name": name,
                "clusters": int(np.max(z)) + 1,
                "distance": f"{partition_distance(centre, z):.3f}",
                "blocks": [[names[u] for u in block] for block in other[:MAX_EDGE_CLUSTERS]],
                "more": max(len(other) - MAX_EDGE_CLUSTERS, 0),
            }
        )
    return {
        "level": f"{ball.level:.0%}",
        "radius": f"{ball.radius:.3f}",
        "is_point": ball.radius == 0.0,
        "largest": f"{np.log(max(len(centre), 1)):.2f}",
        "exact": not isinstance(result.posterior, Posterior),
        "draws": len(draws),
        "edges": edges,
    }


def _heat_map(result: TableComparison) -> dict[str, Any] | None:
    names = result.posterior.group_names
    if len(names) > MAX_HEATMAP_GROUPS:
        return None
    return coclustering_map(np.asarray(result.posterior.coclustering()), result.partition, names)


def _diagnostics(result: TableComparison) -> dict[str, Any]:
    both = zip(result.comparison.names, result.comparison.evidences, strict=True)
    advice = [evidence_advice(name, evidence) for name, evidence in both]
    rows: list[dict[str, str]] = []
    if isinstance(result.posterior, Posterior):
        chains = int(result.posterior.datatree["posterior"].sizes["chain"])
        rows, more = draws_advice(result.posterior.diagnostics(), chains)
        advice += more
    return {"advice": advice, "diagnostics": rows}


def _predictions(result: TableComparison) -> dict[str, Any]:
    frame, data = result.predictions, result.comparison.data
    if frame is None:
        return {"table": None, "short_labels": []}
    # By position: a column of the file may have the same name.
    probabilities = frame.iloc[:, -data.num_labels :].to_numpy()
    groups = frame.iloc[:, 0].astype(str).tolist()
    table = prediction_table(probabilities, data.label_values, groups, data.group_name)
    return {"table": table, "short_labels": [truncate(name) for name in data.label_values]}


def _provenance(result: TableComparison, origin: Provenance) -> list[tuple[str, str]]:
    own = [
        ("content of the table (sha256)", result.comparison.data.content_hash()),
        ("inference of partitions", result.method),
    ]
    return provenance_table(origin, own, ("jax", "numpyro", "numpy"))
