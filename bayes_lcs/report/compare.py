"""The report of a comparison: evidence, who is alike and how surely, trust, predictions."""

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
from bayes_lcs.report.diagnostic_advice import trust_in_draws, trust_in_evidence
from bayes_lcs.report.html import Origin, provenance, render, save_html, short
from bayes_lcs.report.prediction_table import prediction_table
from bayes_lcs.report.svg import bar, interval, share

__all__ = ["MOST_DRAWN", "TableComparison", "comparison_page", "save_page"]

MOST_WORDS = 8
"""Feature values that are shown of each cluster."""
MOST_CLUSTERS = 60
"""Clusters of which a page shows the profile; the largest."""
MOST_SIZES = 12
"""Numbers of clusters whose probabilities are shown."""
MOST_BLOCKS = 6
"""Clusters by which a partition at the edge of the credible ball differs."""
EXACT_DRAWS = 1000
"""From which the credible ball of an exact posterior is made."""
TOO_CLOSE = 0.03
"""Differences below this share of the picture's width get a second picture of their own."""


MOST_DRAWN = 200
"""Groups of which a heat map is still readable."""


@dataclass(frozen=True)
class TableComparison:
    """The four models on a table, the posterior over partitions, and predictions.

    Attributes
    ----------
    comparison
        Of the four models, on rows with a label.
    posterior
        Of clustered naive Bayes.
    partition : (U,)
        Its most probable partition if that is known exactly, else the one of least expected
        variation of information.
    method
        How the posterior was found.
    predictions
        Rows without a label, with probabilities averaged over the models; None if there are none.
    seed
        Of all that was drawn.
    """

    comparison: Comparison
    posterior: ExactPosterior | Posterior
    partition: NDArray[np.int64]
    method: str
    predictions: pd.DataFrame | None
    seed: int

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C ended the sampling early; then nothing is predicted."""
        return isinstance(self.posterior, Posterior) and self.posterior.interrupted

    def blocks(self) -> list[list[str]]:
        """Names of the groups of each cluster."""
        names = self.posterior.group_names
        return [[names[u] for u in block] for block in blocks(self.partition)]

    def partition_by_group(self) -> dict[str, int]:
        """Cluster of each group."""
        return dict(zip(self.posterior.group_names, map(int, self.partition), strict=True))


def comparison_page(found: TableComparison, origin: Origin | None = None) -> str:
    """The whole page.

    Parameters
    ----------
    found
        From `bayes_lcs.workflows.compare.compare_table`.
    origin
        What was read and asked, for the provenance.
    """
    data = found.comparison.data
    return render(
        "comparison.html.j2",
        title=f"bayes_lcs: {short(data.label_name)} by {short(data.group_name)}",
        interrupted=isinstance(found.posterior, Posterior) and found.posterior.interrupted,
        verdict=found.comparison.verdict(),
        group_name=data.group_name,
        label_name=data.label_name,
        num_rows=data.num_rows,
        num_groups=data.num_groups,
        num_features=data.num_features,
        positive=data.label_values[-1],
        num_labels=data.num_labels,
        num_clusters=len(found.blocks()),
        how=_how(found),
        sizes=_sizes(found),
        **_evidence(found),
        **_clusters(found),
        ball=_ball(found),
        heat=_heat(found),
        **_trust(found),
        **_predictions(found),
        provenance=_provenance(found, origin or Origin(seed=found.seed)),
    )


def save_page(found: TableComparison, folder: Path, origin: Origin | None = None) -> Path:
    """Write the page as ``report.html``."""
    return save_html(comparison_page(found, origin), folder / "report.html")


def _how(found: TableComparison) -> str:
    if found.method == "exact":
        return "The most probable partition of all, summed exactly."
    return f"The partition of least expected variation of information over {found.method}."


def _sizes(found: TableComparison) -> list[dict[str, Any]]:
    """Probable numbers of clusters, in their order."""
    chances = found.posterior.num_clusters()
    likely = np.argsort(-chances, kind="stable")[:MOST_SIZES]
    return [
        {"number": int(k), "probability": f"{chances[k]:.3f}", "bar": share(float(chances[k]))}
        for k in np.sort(likely)
        if chances[k] >= 5e-4
    ]


def _evidence(found: TableComparison) -> dict[str, Any]:
    table = found.comparison.table()
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
                "between": _between(row),
                "method": str(row["method"]),
            }
        )
    best = float(table["log_evidence"].iloc[0])
    values, lower, upper = (
        table[name].to_numpy() - best for name in ("log_evidence", "lower", "upper")
    )
    strips = [_strip(rows, values, lower, upper, np.arange(len(values)))]
    near = np.flatnonzero(values >= -TOO_CLOSE * max(np.ptp([*lower, *upper]), 1e-12))
    wide = len(near) > 1 or float(np.ptp([lower[0], upper[0]])) > 0.0
    if len(near) < len(values) and wide:
        strips.append(_strip(rows, values, lower, upper, near))
    return {"evidence": rows, "strips": strips}


def _between(row: dict[Any, Any]) -> str:
    """Where a model's probability lies, if its evidence or another's is an estimate."""
    low, high = f"{row['probability_lower']:.3g}", f"{row['probability_upper']:.3g}"
    return "" if low == high else f"{low} to {high}"


def _strip(rows: list[dict[str, str]], values: Any, lower: Any, upper: Any, shown: Any) -> Any:
    """Dots and intervals of some models, as differences to the best."""
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


def _clusters(found: TableComparison) -> dict[str, Any]:
    """Members, and the feature values whose log ratio is farthest from that of other clusters."""
    data, members = found.comparison.data, found.blocks()
    largest = np.argsort([-len(own) for own in members], kind="stable")[:MOST_CLUSTERS]
    chosen = np.sort(largest)
    if data.num_labels < 2:
        cards = [{"number": int(k), "members": members[k], "profile": []} for k in chosen]
        return {"clusters": cards}
    ratios = cluster_log_ratios(ClusteredNaiveBayes(), data, found.partition)
    names = [
        (feature, value)
        for feature, values in zip(data.feature_names, data.values, strict=True)
        for value in values
    ]
    others = (ratios.sum(axis=0) - ratios) / max(len(members) - 1, 1)  # zeros of a single one
    words = np.argsort(-np.abs(ratios - others), axis=1, kind="stable")[:, :MOST_WORDS]
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


def _ball(found: TableComparison) -> dict[str, Any]:
    """The credible ball around the partition, and what stands at its edge."""
    if isinstance(found.posterior, Posterior):
        draws = found.posterior.partitions()
    else:
        draws = found.posterior.sample(EXACT_DRAWS, seed=found.seed)
    centre = first_occurrence(found.partition)
    ball = credible_ball(centre, draws)
    own = {tuple(block) for block in blocks(centre)}
    names = found.posterior.group_names
    edges = []
    for what, z in (
        ("fewest clusters", ball.coarsest),
        ("most clusters", ball.finest),
        ("farthest away", ball.farthest),
    ):
        other = [block for block in blocks(z) if tuple(block) not in own]
        edges.append(
            {
                "what": what,
                "clusters": int(np.max(z)) + 1,
                "distance": f"{partition_distance(centre, z):.3f}",
                "blocks": [[names[u] for u in block] for block in other[:MOST_BLOCKS]],
                "more": max(len(other) - MOST_BLOCKS, 0),
            }
        )
    return {
        "level": f"{ball.level:.0%}",
        "radius": f"{ball.radius:.3f}",
        "is_point": ball.radius == 0.0,
        "largest": f"{np.log(max(len(centre), 1)):.2f}",
        "exact": not isinstance(found.posterior, Posterior),
        "draws": len(draws),
        "edges": edges,
    }


def _heat(found: TableComparison) -> dict[str, Any] | None:
    names = found.posterior.group_names
    if len(names) > MOST_DRAWN:
        return None
    return coclustering_map(np.asarray(found.posterior.coclustering()), found.partition, names)


def _trust(found: TableComparison) -> dict[str, Any]:
    both = zip(found.comparison.names, found.comparison.evidences, strict=True)
    advice = [trust_in_evidence(name, evidence) for name, evidence in both]
    rows: list[dict[str, str]] = []
    if isinstance(found.posterior, Posterior):
        chains = int(found.posterior.datatree["posterior"].sizes["chain"])
        rows, more = trust_in_draws(found.posterior.diagnostics(), chains)
        advice += more
    return {"advice": advice, "diagnostics": rows}


def _predictions(found: TableComparison) -> dict[str, Any]:
    frame, data = found.predictions, found.comparison.data
    if frame is None:
        return {"table": None, "short_labels": []}
    # By place: a column of the file may have the name of another.
    chances = frame.iloc[:, -data.num_labels :].to_numpy()
    groups = frame.iloc[:, 0].astype(str).tolist()
    table = prediction_table(chances, data.label_values, groups, data.group_name)
    return {"table": table, "short_labels": [short(name) for name in data.label_values]}


def _provenance(found: TableComparison, origin: Origin) -> list[tuple[str, str]]:
    own = [
        ("content of the table (sha256)", found.comparison.data.content_hash()),
        ("how partitions were found", found.method),
    ]
    return provenance(origin, own, ("jax", "numpyro", "numpy"))
