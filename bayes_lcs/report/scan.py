"""Report of a partial scan: share read, stopping reason, guarantee, accuracy, predictions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup
from numpy.typing import ArrayLike

from bayes_lcs.classification.partial_scan.estimator import PartialScanClassifier
from bayes_lcs.classification.partial_scan.loop import DRIFT_LEVEL
from bayes_lcs.classification.partial_scan.result import Scan
from bayes_lcs.report.html import Provenance, provenance_table, render, save_html, truncate
from bayes_lcs.report.prediction_table import prediction_table
from bayes_lcs.report.svg import Axis, line_chart

__all__ = ["save_scan_page", "scan_page"]

MAX_STEPS = 200
"""Maximum number of rows of the trace on a page."""


def scan_page(
    classifier: PartialScanClassifier,
    origin: Provenance | None = None,
    *,
    probabilities: ArrayLike | None = None,
    decisions: ArrayLike | None = None,
    predicted: str = "",
) -> str:
    """Return the page as HTML.

    Parameters
    ----------
    classifier
        Fitted classifier.
    origin
        Input and options, for the provenance table.
    probabilities, decisions
        Predictions for the rows of another file, if there is one.
    predicted
        Name of that file.
    """
    story, given = classifier.scan_, origin or Provenance()
    labels = [str(label) for label in classifier.classes_]
    table = None
    if probabilities is not None:
        own = None if classifier.benefit is None else [str(d) for d in np.asarray(decisions)]
        table = prediction_table(probabilities, labels, decisions=own)
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
        drift=_order_test(story),
        performance=_performance(story),
        chart=_chart(story),
        benefit=_benefit(classifier),
        steps=_steps(story),
        table=table,
        predicted=predicted,
        short_labels=[truncate(label) for label in labels],
        provenance=provenance_table(given, (), ("scikit-learn", "numpy")),
    )


def save_scan_page(
    classifier: PartialScanClassifier, folder: Path, origin: Provenance | None = None, **rows: Any
) -> Path:
    """Write the page as ``report.html``; ``rows`` are arguments of `scan_page`."""
    return save_html(scan_page(classifier, origin, **rows), folder / "report.html")


def _order_test(story: Scan) -> str:
    """Return the result of the exchangeability test of the row order, in words."""
    if story.drift >= 1.0:
        return (
            "The order of the rows was not tested, because parts were read in random order, or "
            "there is no evidence at all that it matters."
        )
    if story.drift < DRIFT_LEVEL:
        return (
            f"The order of the rows matters (p = {story.drift:.2g}): neighbouring parts are more "
            "alike than expected by chance, so the parts read may not represent the rest. Shuffle "
            "the rows of the file, or read all of it with --whole."
        )
    return f"There is no evidence that the order of the rows matters (p = {story.drift:.2g})."


def _performance(story: Scan) -> list[dict[str, str]]:
    """Return the rows of the table of accuracies."""
    found = story.performance
    if found is None:
        return []
    own = "this ensemble"
    if found.is_single:
        own = f"a single model, trained on {found.single_rows:,} other rows"
    rows: list[tuple[str, float | None, float | None, float | None]] = [
        (own, found.accuracy, found.balanced_accuracy, found.benefit)
    ]
    if found.single_accuracy is not None and not found.is_single:
        who = f"one model trained on {found.single_rows:,} of the rows read"
        rows.append(
            (who, found.single_accuracy, found.single_balanced_accuracy, found.single_benefit)
        )
    interval = ""
    if found.interval is not None:
        interval = f" ({found.interval[0]:.1%} to {found.interval[1]:.1%})"
    rows.append(("the most common label for every row", found.majority_accuracy, None, None))
    if found.constant_benefit is not None:
        rows.append(("the best constant decision", None, None, found.constant_benefit))
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
    """Return a sentence about the expected accuracy or benefit at the last evaluation."""
    known = classifier.scan_.trace["benefit"].dropna()
    if not len(known):
        return ""
    if classifier.benefit is None:
        return f"The ensemble expects {known.iloc[-1]:.1%} of its decisions to be correct."
    return f"The expected benefit of the ensemble's decisions is {known.iloc[-1]:.4g} per row."


def _chart(story: Scan) -> Markup:
    """Draw the share of decided validation rows and the expected benefit against the share read."""
    trace = story.trace
    x = Axis("share of the data that was read", 0.0, 1.0, form="{:.0%}".format)
    y = Axis("validation rows decided", -0.02, 1.05, form="{:.0%}".format)
    read, decided = trace["fraction"].to_numpy(float), trace["settled"].to_numpy(float)
    evaluated = trace["benefit"].notna().to_numpy()
    benefit = trace["benefit"].to_numpy(float)
    lines: list[Any] = [("line", read, decided)]
    right = None
    if evaluated.any():
        right = Axis.over("expected benefit per row", benefit, room=0.2)
        places = y.low + right.place(benefit[evaluated]) * (y.high - y.low)
        lines.append(("line second", read[evaluated], places))
    marks = [(story.fraction, "stopped here")] if story.fraction < 1.0 else []
    title = "share of validation rows decided against the share of the data read"
    return line_chart(x, y, lines, marks=marks, right=right, title=title)


def _steps(story: Scan) -> list[dict[str, str]]:
    steps = []
    for row in story.trace.head(MAX_STEPS).to_dict("records"):
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
