"""The files that a scan leaves: the ensemble, its trace, a picture, predictions."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bayes_lcs.core.escape import visible
from bayes_lcs.io.frames import read_frame
from bayes_lcs.io.open_tables import open_file
from bayes_lcs.io.options import CsvOptions
from bayes_lcs.plots.figure import save_figure
from bayes_lcs.plots.scan import plot_scan
from bayes_lcs.report.html import Origin
from bayes_lcs.report.safe_csv import free_name, write_csv
from bayes_lcs.report.scan import save_scan_page
from bayes_lcs.runtime.atomic_files import write_atomically
from bayes_lcs.runtime.checkpoints import Arrays, content_addressed_task
from bayes_lcs.runtime.progress import prints_plain_lines, progress_bar

if TYPE_CHECKING:
    import pandas as pd

    from bayes_lcs.classification.partial_scan.estimator import PartialScanClassifier

__all__ = ["check_rows_to_predict", "save_scan"]

ROWS_AT_ONCE = 1 << 15
"""Rows that are predicted together."""


def save_scan(
    classifier: PartialScanClassifier,
    folder: Path,
    predict: str | PathLike[str] | None = None,
    *,
    source: Path | str = "",
    options: Mapping[str, Any] | None = None,
) -> list[Path]:
    """Write everything into a folder; rows of another file are predicted if one is named.

    The report comes first; ``source`` and ``options`` are what was read and asked, for its end.
    """
    ensemble = folder / "ensemble.skops"
    classifier.save(ensemble)
    written = [ensemble, write_csv(classifier.scan_.trace, folder / "scan.csv")]
    story = classifier.scan_.explain() + "\n"
    written.append(write_atomically(folder / "scan.txt", lambda part: _write_text(part, story)))
    written.append(save_figure(folder / "scan.png", (7, 4.2), lambda ax: plot_scan(classifier, ax)))
    predicted: dict[str, Any] = {}
    if predict is not None:
        rows = classifier._known(predict)
        options_of_file = classifier._spec.options
        table = open_file(predict, options_of_file)
        decisions, chances = _predicted(classifier, rows, table.stamp)
        # All columns as they are written: an identifier that was not learned from, and the label.
        shown = read_frame(
            predict,
            features=table.names,
            text=table.names,
            missing_values=[],
            options=options_of_file,
        )
        shown.insert(0, free_name("decision", shown.columns), decisions)
        for label, column in zip(classifier.classes_, chances.T, strict=True):
            shown[free_name(f"P({label})", shown.columns)] = column
        written.append(write_csv(shown, folder / "predictions.csv"))
        predicted = {"chances": chances, "decisions": decisions, "predicted": Path(predict).name}
    seed = classifier.random_state if isinstance(classifier.random_state, int) else None
    origin = Origin("scan", source, seed, options or {})
    return [save_scan_page(classifier, folder, origin, **predicted), *written]


def _predicted(
    classifier: PartialScanClassifier, rows: pd.DataFrame, stamp: str
) -> tuple[NDArray[Any], NDArray[np.float64]]:
    """Decisions, and chances of the labels, some rows at a time; they are kept on the way."""
    scanned = classifier.scan_.trace.drop(columns="seconds").to_numpy(dtype=object)
    bar = progress_bar("predicting", len(rows), None if prints_plain_lines() else False)
    with (
        content_addressed_task("predictions", stamp, list(rows.columns), scanned) as kept,
        bar as tick,
    ):
        pieces: list[Arrays] = list(kept.iter_pieces())
        for start in range(len(pieces) * ROWS_AT_ONCE, len(rows), ROWS_AT_ONCE):
            some = rows.iloc[start : start + ROWS_AT_ONCE]
            chances = classifier._probabilities(some)
            decisions = classifier._decisions(some, chances)
            pieces.append({"decisions": decisions, "chances": chances})
            kept.update(dict, pieces[-1])
            tick(len(some))
        kept.finish()
    places = np.concatenate([piece["decisions"] for piece in pieces])
    return classifier.classes_[places], np.concatenate([piece["chances"] for piece in pieces])


def check_rows_to_predict(
    path: str | PathLike[str],
    trained_on: str | PathLike[str],
    left_out: Collection[str],
    *,
    header: bool = True,
) -> None:
    """Check, before any work, that a file to predict for has the columns that it must have."""
    options = CsvOptions(header=header)
    trained = open_file(trained_on, options, expected=tuple(left_out))
    table = open_file(path, options)
    for name in trained.names:
        if name not in (*left_out, trained.index, *table.names):
            raise table.source.error(
                "the classifier needs this column; it is not there", column=name
            )


def _write_text(path: Path, text: str) -> None:
    path.write_text(visible(text, keep="\n"), encoding="utf-8")
