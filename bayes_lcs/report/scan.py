"""The report of a partial scan: what was read, why no more, what holds, and predictions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup
from numpy.typing import ArrayLike

from bayes_lcs.classification.partial_scan.estimator import PartialScanClassifier
from bayes_lcs.classification.partial_scan.loop import DRIFT_LEVEL
from bayes_lcs.classification.partial_scan.result import Scan
from bayes_lcs.report.html import Origin, provenance, render, save_html, short
from bayes_lcs.report.prediction_table import prediction_table
from bayes_lcs.report.svg import Axis, line_chart

__all__ = ["save_scan_page", "scan_page"]

MOST_STEPS = 200
"""Rows of the trace that a page shows."""


def scan_page(
    classifier: PartialScanClassifier,
    origin: Origin | None = None,
    *,
    chances: ArrayLike | None = None,
    decisions: ArrayLike | None = None,
    predicted: str = "",
) -> str:
    """The whole page.

    Parameters
    ----------
    classifier
        Fitted.
    origin
        What was read and asked, for the provenance.
    chances, decisions
        Of the rows of another file, if there is one.
    predicted
        That file's name.
    """
    story, given = classifier.scan_, origin or Origin()
    labels = [str(label) for label in classifier.classes_]
    table = None
    if chances is not None:
        own = None if classifier.benefit is None else [str(d) for d in np.asarray(decisions)]
        table = prediction_table(chances, labels, decisions=own)
    return render(
        "scan.html.j2",
        title=f"bayes_lcs: scan of {given.name or 'a table'}",
        interrupted=story.stop_reason.startswith("interrupted"),
        name=given.name or "this table",
        story=story,
        label=str(given.options.get("label", "")),
        labels=labels,
        learner=str(given.options.get("learner", classifier.base)),
        whole=story.parts_read == story.num_parts,
        drift=_drift(story),
        performance=_performance(story),
        chart=_chart(story),
        benefit=_benefit(classifier),
        steps=_steps(story),
        table=table,
        predicted=predicted,
        short_labels=[short(label) for label in labels],
        provenance=provenance(given, (), ("scikit-learn", "numpy")),
    )


def save_scan_page(
    classifier: PartialScanClassifier, folder: Path, origin: Origin | None = None, **rows: Any
) -> Path:
    """Write the page as ``report.html``; ``rows`` are as for `scan_page`."""
    return save_html(scan_page(classifier, origin, **rows), folder / "report.html")


def _drift(story: Scan) -> str:
    """Whether the order of the rows seems to matter, in words."""
    if story.drift >= 1.0:
        return (
            "Whether the order of the rows matters was not asked: parts came in a random order, "
            "or nothing at all speaks for it."
        )
    if story.drift < DRIFT_LEVEL:
        return (
            f"The order of the rows matters (p = {story.drift:.2g}): neighbouring parts are more "
            "alike than chance allows, so that what was read may not stand for the rest. Shuffle "
            "the rows of the file, or read all of it with --whole."
        )
    return f"Nothing speaks for an order of the rows that matters (p = {story.drift:.2g})."


def _performance(story: Scan) -> list[dict[str, str]]:
    """Rows of the table of accuracies."""
    found = story.performance
    if found is None:
        return []
    own = "this ensemble"
    if found.is_single:
        own = f"such a model, trained on {found.single_rows:,} other rows"
    rows: list[tuple[str, float | None, float | None, float | None]] = [
        (own, found.accuracy, found.balanced_accuracy, found.benefit)
    ]
    if found.single_accuracy is not None and not found.is_single:
        who = f"one model of {found.single_rows:,} of the rows read"
        rows.append(
            (who, found.single_accuracy, found.single_balanced_accuracy, found.single_benefit)
        )
    interval = ""
    if found.interval is not None:
        interval = f" ({found.interval[0]:.1%} to {found.interval[1]:.1%})"
    rows.append(("the commonest label for every row", found.majority_accuracy, None, None))
    if found.constant_benefit is not None:
        rows.append(("the best decision for every row", None, None, found.constant_benefit))
    return [
        {
            "who": who,
            "accuracy": "–" if accuracy is None else f"{accuracy:.1%}" + interval * (who == own),
            "balanced": "–" if balanced is None else f"{balanced:.1%}",
            "benefit": "–" if benefit is None else f"{benefit:.4g}",
        }
        for who, accuracy, balanced, benefit in rows
    ]


def _benefit(classifier: PartialScanClassifier) -> str:
    """What the ensemble expects of its decisions, at the last look."""
    known = classifier.scan_.trace["benefit"].dropna()
    if not len(known):
        return ""
    if classifier.benefit is None:
        return f"The ensemble expects {known.iloc[-1]:.1%} of its decisions to be right."
    return f"The ensemble expects its decisions to bring {known.iloc[-1]:.4g} a row."


def _chart(story: Scan) -> Markup:
    """Share of validation rows settled, and expected benefit, against the share read."""
    trace = story.trace
    x = Axis("share of the data that was read", 0.0, 1.0, form="{:.0%}".format)
    y = Axis("validation rows settled", -0.02, 1.05, form="{:.0%}".format)
    read, settled = trace["fraction"].to_numpy(float), trace["settled"].to_numpy(float)
    looked = trace["benefit"].notna().to_numpy()
    benefit = trace["benefit"].to_numpy(float)
    lines: list[Any] = [("line", read, settled)]
    right = None
    if looked.any():
        right = Axis.over("expected benefit a row", benefit, room=0.2)
        places = y.low + right.place(benefit[looked]) * (y.high - y.low)
        lines.append(("line second", read[looked], places))
    marks = [(story.fraction, "stopped here")] if story.fraction < 1.0 else []
    title = "share of validation rows settled against the share of the data read"
    return line_chart(x, y, lines, marks=marks, right=right, title=title)


def _steps(story: Scan) -> list[dict[str, str]]:
    steps = []
    for row in story.trace.head(MOST_STEPS).to_dict("records"):
        benefit = float(row["benefit"])
        steps.append(
            {
                "part": f"{int(row['part']):,}",
                "rows": f"{int(row['rows']):,}",
                "fraction": f"{row['fraction']:.1%}",
                "settled": f"{row['settled']:.1%}",
                "benefit": "–" if np.isnan(benefit) else f"{benefit:.4g}",
                "seconds": f"{row['seconds']:.2f}",
            }
        )
    return steps
