"""Report of mixture clustering: rows used, learning curve, and clusters."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray
from scipy.special import xlogy

from bayes_lcs.learning_curve_sampling.result import LearningCurveResult
from bayes_lcs.learning_curve_sampling.time_cost import rate_text, seconds_text
from bayes_lcs.report.html import Provenance, provenance_table, render, save_html
from bayes_lcs.report.svg import Axis, bar, line_chart, share

__all__ = ["mixture_page", "save_mixture_page"]

FloatArray = NDArray[np.float64]

MAX_CLUSTERS = 60
"""Maximum number of clusters on a page; the largest are shown."""
MAX_PROFILE_VALUES = 8
"""Maximum number of values in the profile of a cluster."""
MAX_LOG_RATIO = 4.0
"""Maximum log ratio of a full bar, a factor of about 50."""


def mixture_page(
    result: LearningCurveResult,
    origin: Provenance | None = None,
    counts: NDArray[np.int64] | None = None,
) -> str:
    """Return the page as HTML.

    Parameters
    ----------
    result
        Result of :func:`bayes_lcs.learning_curve_sample` with a `MixtureClusterer`.
    origin
        Input and options, for the provenance table.
    counts : (K,)
        Number of rows assigned to each cluster; None if rows were not assigned.
    """
    given = origin or Provenance(seed=result.random_state)
    return render(
        "mixture.html.j2",
        title=f"bayes_lcs: clusters of {given.name or 'a table'}",
        interrupted=result.interrupted,
        name=given.name or "this table",
        result=result,
        num_clusters=len(result.model.weights_),
        gain=_gain(result),
        rate=rate_text(result.preferences.alpha),
        took=seconds_text(result.runtime_seconds),
        why=_without_decision(result.stop_reason),
        all_rows=result.sample_size == result.total_rows,
        is_last=result.run.best is result.run.end or result.interrupted,
        chart=_chart(result),
        stages=_stages(result),
        **_clusters(result.model, counts),
        assigned=counts is not None,
        provenance=provenance_table(
            given, _provenance_rows(result), ("jax", "numpy", "scikit-learn")
        ),
    )


def save_mixture_page(
    result: LearningCurveResult,
    folder: Path,
    origin: Provenance | None = None,
    counts: NDArray[np.int64] | None = None,
) -> Path:
    """Write the page as ``report.html``."""
    return save_html(mixture_page(result, origin, counts), folder / "report.html")


def _gain(result: LearningCurveResult) -> str:
    """Return a sentence about the measured gain over one cluster."""
    if result.gain <= 0:
        return "On held-out rows it is no better than a single cluster."
    low, high = result.gain_interval
    between = f" (95 % interval {low:.4g} to {high:.4g})" if np.isfinite([low, high]).all() else ""
    return (
        f"On held-out rows its mean log probability is {result.gain:.4g} nats above that of a "
        f"single cluster{between}."
    )


def _chart(result: LearningCurveResult) -> Markup:
    """Draw the score against rows, with two standard errors and the rows of the model."""
    curve = result.curve
    sizes, scores = curve["size"].to_numpy(float), curve["score"].to_numpy(float)
    half = 2 * np.nan_to_num(curve["standard_error"].to_numpy(float))
    x = Axis.over("rows trained on", sizes, is_log=True, form="{:,.0f}".format)
    y = Axis.over("score on the hold-out", [*(scores - half), *(scores + half)])
    right = None
    if result.gain > 0:
        low, high = ((end - result.baseline_score) / result.gain for end in (y.low, y.high))
        right = Axis("gain (best model = 1)", low, high)
    return line_chart(
        x,
        y,
        [("line", sizes, scores)],
        band=(sizes, scores - half, scores + half) if len(sizes) > 1 and half.any() else None,
        marks=[(float(result.sample_size), "best model")],
        right=right,
        title="score on the hold-out against rows trained on",
    )


def _stages(result: LearningCurveResult) -> list[dict[str, str]]:
    stages = []
    for row, stage in zip(result.curve.to_dict("records"), result.stages, strict=True):
        gain, error = float(row["relative_gain"]), float(row["standard_error"])
        stages.append(
            {
                "size": f"{stage.fit.size:,}",
                "score": f"{stage.fit.score:.6g}"
                + (f" ± {error:.2g}" if np.isfinite(error) else ""),
                "gain": f"{gain:.3f}" if np.isfinite(gain) else "–",
                "elapsed": seconds_text(stage.elapsed),
                "decision": ""
                if stage.decision is None
                else ("stop" if stage.decision.stop else "go on"),
                "reason": ""
                if stage.decision is None
                else _without_decision(stage.decision.reason),
            }
        )
    return stages


def _without_decision(reason: str) -> str:
    """Remove the decision from a reason, because the table has a column for it."""
    return reason.removeprefix("stops: ").removeprefix("continues: ")


def _clusters(model: Any, counts: NDArray[np.int64] | None) -> dict[str, Any]:
    """Return clusters by size, with their most characteristic values.

    Values are ordered by their term in ``KL(theta_kf || mean_f)``, the probability in the cluster
    times the log ratio to the share in all rows. Among equal ratios frequent values come first.
    """
    weights: FloatArray = np.asarray(model.weights_)
    names = getattr(model, "feature_names_in_", None)
    cells = [
        (f"x{f}" if names is None else str(names[f]), str(value), f, v)
        for f, values in enumerate(model.categories_)
        for v, value in enumerate(values)
    ]
    found: list[dict[str, Any]] = []
    for k in np.argsort(-weights, kind="stable")[:MAX_CLUSTERS]:
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
            for c in np.argsort(-parts, kind="stable")[:MAX_PROFILE_VALUES]
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
    reach = min(max(longest, 1e-6), MAX_LOG_RATIO)
    for word in words:
        word["bar"] = bar(word["log"], reach)
    return {"clusters": found, "factor": float(np.exp(reach))}


def _times(passes: int) -> str:
    return "one pass" if passes == 1 else f"{passes:,} passes"


def _percent(part: float) -> str:
    return f"{part:.1%}" if part >= 0.0005 or part == 0 else "<0.1%"


def _provenance_rows(result: LearningCurveResult) -> list[tuple[str, str]]:
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
