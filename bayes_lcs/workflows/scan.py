"""Output of ``bayes-lcs scan``: the ensemble, its trace, a figure, predictions and the report."""

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
from bayes_lcs.report.html import Provenance
from bayes_lcs.report.safe_csv import free_name, write_csv
from bayes_lcs.report.scan import save_scan_page
from bayes_lcs.runtime.atomic_files import write_atomically
from bayes_lcs.runtime.checkpoints import Arrays, content_addressed_task
from bayes_lcs.runtime.progress import prints_plain_lines, progress_bar

if TYPE_CHECKING:
    import pandas as pd

    from bayes_lcs.classification.partial_scan.estimator import PartialScanClassifier

__all__ = ["check_rows_to_predict", "save_scan"]

BATCH_SIZE = 1 << 15
"""Number of rows that are predicted together."""


def save_scan(
    classifier: PartialScanClassifier,
    folder: Path,
    predict: str | PathLike[str] | None = None,
    *,
    source: Path | str = "",
    options: Mapping[str, Any] | None = None,
) -> list[Path]:
    """Write all results into a folder; predict the rows of the file ``predict``, if given.

    The path of the report comes first; ``source`` and ``options`` are shown in its provenance
    table.
    """
    ensemble = folder / "ensemble.skops"
    classifier.save(ensemble)
    written = [ensemble, write_csv(classifier.scan_.trace, folder / "scan.csv")]
    story = classifier.scan_.explain() + "\n"
    written.append(write_atomically(folder / "scan.txt", lambda part: _write_text(part, story)))
    written.append(save_figure(folder / "scan.png", (7, 4.2), lambda ax: plot_scan(classifier, ax)))
    predicted: dict[str, Any] = {}
    if predict is not None:
        rows = classifier._check_rows(predict)
        options_of_file = classifier._spec.options
        table = open_file(predict, options_of_file)
        decisions, probabilities = _predict_rows(classifier, rows, table.stamp)
        # All columns as text, including identifiers that were not used for training, and the label.
        shown = read_frame(
            predict,
            features=table.names,
            text=table.names,
            missing_values=[],
            options=options_of_file,
        )
        shown.insert(0, free_name("decision", shown.columns), decisions)
        for label, column in zip(classifier.classes_, probabilities.T, strict=True):
            shown[free_name(f"P({label})", shown.columns)] = column
        written.append(write_csv(shown, folder / "predictions.csv"))
        predicted = {
            "probabilities": probabilities,
            "decisions": decisions,
            "predicted": Path(predict).name,
        }
    seed = classifier.random_state if isinstance(classifier.random_state, int) else None
    origin = Provenance("scan", source, seed, options or {})
    return [save_scan_page(classifier, folder, origin, **predicted), *written]


def _predict_rows(
    classifier: PartialScanClassifier, rows: pd.DataFrame, stamp: str
) -> tuple[NDArray[Any], NDArray[np.float64]]:
    """Return decisions and label probabilities, computed in batches with checkpoints."""
    scanned = classifier.scan_.trace.drop(columns="seconds").to_numpy(dtype=object)
    bar = progress_bar("predicting", len(rows), None if prints_plain_lines() else False)
    with (
        content_addressed_task("predictions", stamp, list(rows.columns), scanned) as kept,
        bar as tick,
    ):
        pieces: list[Arrays] = list(kept.iter_pieces())
        for start in range(len(pieces) * BATCH_SIZE, len(rows), BATCH_SIZE):
            some = rows.iloc[start : start + BATCH_SIZE]
            probabilities = classifier._probabilities(some)
            decisions = classifier._decisions(some, probabilities)
            pieces.append({"decisions": decisions, "probabilities": probabilities})
            kept.update(dict, pieces[-1])
            tick(len(some))
        kept.finish()
    places = np.concatenate([piece["decisions"] for piece in pieces])
    return classifier.classes_[places], np.concatenate([piece["probabilities"] for piece in pieces])


def check_rows_to_predict(
    path: str | PathLike[str],
    trained_on: str | PathLike[str],
    left_out: Collection[str],
    *,
    header: bool = True,
) -> None:
    """Check, before training, that a file to predict for has all columns of the training file."""
    options = CsvOptions(header=header)
    trained = open_file(trained_on, options, expected=tuple(left_out))
    table = open_file(path, options)
    for name in trained.names:
        if name not in (*left_out, trained.index, *table.names):
            raise table.source.error(
                "the classifier needs this column, but the file does not have it", column=name
            )


def _write_text(path: Path, text: str) -> None:
    path.write_text(visible(text, keep="\n"), encoding="utf-8")
