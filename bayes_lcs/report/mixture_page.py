"""The report of mixture clustering: how many rows were worth it, the curve, and the clusters."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray
from scipy.special import xlogy

from bayes_lcs.report.inline_charts import Axis, bar, line_chart, share
from bayes_lcs.report.page import Origin, provenance, render, save_html
from bayes_lcs.report.sampling_plots import last_forecast
from bayes_lcs.scaling.rates import rate_text, seconds_text
from bayes_lcs.scaling.result import LearningCurveResult

__all__ = ["mixture_page", "save_mixture_page"]

FloatArray = NDArray[np.float64]

MOST_CLUSTERS = 60
"""Clusters that a page shows; the largest."""
MOST_WORDS = 8
"""Values that are shown of each."""
LONGEST_RATIO = 4.0
"""Bars are full at this or before: beyond a factor of 50, how much more does not matter."""


def mixture_page(
    result: LearningCurveResult,
    origin: Origin | None = None,
    counts: NDArray[np.int64] | None = None,
) -> str:
    """The whole page.

    Parameters
    ----------
    result
        From :func:`bayes_lcs.learning_curve_sample` with a `MixtureClusterer`.
    origin
        What was read and asked, for the provenance.
    counts : (K,)
        Rows that were assigned to each cluster, if they were.
    """
    given = origin or Origin(seed=result.random_state)
    return render(
        "mixture.html.j2",
        title=f"bayes_lcs: clusters of {given.name or 'a table'}",
        interrupted=result.interrupted,
        name=given.name or "this table",
        result=result,
        num_clusters=len(result.model.weights_),
        benefit=_benefit(result),
        rate=rate_text(result.preferences.alpha),
        took=seconds_text(result.runtime_seconds),
        full_took=seconds_text(result.full_seconds),
        why=_because(result.stop_reason),
        forecast=bool(last_forecast(result)),
        all_rows=result.sample_size == result.total_rows,
        chart=_chart(result),
        stages=_stages(result),
        **_clusters(result.model, counts),
        assigned=counts is not None,
        provenance=provenance(given, _own(result), ("jax", "numpy", "scikit-learn")),
    )


def save_mixture_page(
    result: LearningCurveResult,
    folder: Path,
    origin: Origin | None = None,
    counts: NDArray[np.int64] | None = None,
) -> Path:
    """Write the page as ``report.html``."""
    return save_html(mixture_page(result, origin, counts), folder / "report.html")


def _benefit(result: LearningCurveResult) -> str:
    """How good the model is against that of all rows, in a sentence."""
    full, base = result.full_score[0], result.baseline_score
    if full == base or not np.isfinite(result.benefit):
        return "How good it is against training on all rows cannot be told from so few stages."
    if not result.is_estimate:
        if result.reference is None:
            return "It cannot be better with more rows: these are all."
        return f"Its benefit is {result.benefit:.3f}, where training on all rows has 1."
    low, high = result.benefit_interval
    between = f" (between {low:.3f} and {high:.3f})" if np.isfinite([low, high]).all() else ""
    return (
        f"Its benefit is about {result.benefit:.3f}{between} where training on all rows would have "
        "1 and a single cluster 0; estimated from the curve below."
    )


def _chart(result: LearningCurveResult) -> Markup:
    """Score against rows, with the last forecast and the size chosen."""
    curve = result.curve
    sizes, scores = curve["size"].to_numpy(float), curve["score"].to_numpy(float)
    ahead = last_forecast(result)
    where = np.array(sorted(ahead), dtype=float)
    mean, sd = np.array([ahead[int(n)] for n in where]).reshape(-1, 2).T
    x = Axis.over("rows trained on", [*sizes, *where], is_log=True, form="{:,.0f}".format)
    y = Axis.over("score on the hold-out", [*scores, *(mean - 2 * sd), *(mean + 2 * sd)])
    full, base = result.full_score[0], result.baseline_score
    right = None
    if np.isfinite(full) and full != base:
        low, high = ((end - base) / (full - base) for end in (y.low, y.high))
        right = Axis("benefit", low, high)
    lines: list[Any] = [("line", sizes, scores)]
    if len(where):
        lines.insert(0, ("line dashed", where, mean))
    return line_chart(
        x,
        y,
        lines,
        band=(where, mean - 2 * sd, mean + 2 * sd) if len(where) > 1 else None,
        marks=[(float(result.sample_size), "chosen")],
        right=right,
        title="score on the hold-out against rows trained on",
    )


def _stages(result: LearningCurveResult) -> list[dict[str, str]]:
    stages = []
    for row, stage in zip(result.curve.to_dict("records"), result.stages, strict=True):
        benefit = float(row["benefit"])
        stages.append(
            {
                "size": f"{stage.fit.size:,}",
                "score": f"{stage.score:.6g}",
                "benefit": f"{benefit:.3f}" if np.isfinite(benefit) else "–",
                "elapsed": seconds_text(stage.elapsed),
                "decision": ""
                if stage.decision is None
                else ("stop" if stage.decision.stop else "go on"),
                "reason": "" if stage.decision is None else _because(stage.decision.reason),
            }
        )
    return stages


def _because(reason: str) -> str:
    """A reason without the decision, which stands beside it."""
    return reason.removeprefix("stops: ").removeprefix("goes on: ")


def _clusters(model: Any, counts: NDArray[np.int64] | None) -> dict[str, Any]:
    """Clusters by size, with the values that tell most about being in them.

    A value's part in ``KL(theta_kf || mean_f)`` is its probability in the cluster times its log
    ratio to the share in all rows: of values that are as much more common, the frequent one first.
    """
    weights: FloatArray = np.asarray(model.weights_)
    names = getattr(model, "feature_names_in_", None)
    cells = [
        (f"x{f}" if names is None else str(names[f]), str(value), f, v)
        for f, values in enumerate(model.categories_)
        for v, value in enumerate(values)
    ]
    found: list[dict[str, Any]] = []
    for k in np.argsort(-weights, kind="stable")[:MOST_CLUSTERS]:
        own = np.array([model.probabilities_[f][k, v] for _, _, f, v in cells])
        overall = np.array([weights @ model.probabilities_[f][:, v] for _, _, f, v in cells])
        parts = np.abs(xlogy(own, own) - xlogy(own, overall)) if cells else np.zeros(0)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios = np.nan_to_num(np.log(own / overall), neginf=-np.inf)
        profile = [
            {
                "feature": cells[c][0],
                "value": cells[c][1],
                "own": _percent(own[c]),
                "overall": _percent(overall[c]),
                "log": float(ratios[c]),
            }
            for c in np.argsort(-parts, kind="stable")[:MOST_WORDS]
        ]
        found.append(
            {
                "number": int(k),
                "share": _percent(weights[k]),
                "bar": share(float(weights[k])),
                "rows": None if counts is None else f"{int(counts[k]):,}",
                "profile": profile,
            }
        )
    words = [word for cluster in found for word in cluster["profile"]]
    longest = max((abs(word["log"]) for word in words), default=0.0)
    reach = min(max(longest, 1e-6), LONGEST_RATIO)
    for word in words:
        word["bar"] = bar(word["log"], reach)
    return {"clusters": found, "factor": float(np.exp(reach))}


def _times(passes: int) -> str:
    return "one pass" if passes == 1 else f"{passes:,} passes"


def _percent(part: float) -> str:
    return f"{part:.1%}" if part >= 0.0005 or part == 0 else "<0.1%"


def _own(result: LearningCurveResult) -> list[tuple[str, str]]:
    read = f"{result.reading['rows']:,} rows in {_times(result.reading['passes'])}"
    return [
        (
            "rule",
            result.method
            if result.abbreviated is None
            else f"{result.method}, {result.abbreviated}",
        ),
        ("read from files", read),
        ("held out", f"{result.holdout_size:,} rows"),
    ]
