"""The files that a scan leaves: the ensemble, its trace, a picture, predictions."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bayes_lcs.core.visible import visible
from bayes_lcs.data.columns import RawTable
from bayes_lcs.data.reader import raw_from_file
from bayes_lcs.data.storage import write_atomically
from bayes_lcs.report.page import Origin
from bayes_lcs.report.pictures import save_picture
from bayes_lcs.report.scan_page import save_scan_page
from bayes_lcs.report.scan_plots import plot_scan
from bayes_lcs.report.spreadsheet import free_name, write_csv

if TYPE_CHECKING:
    import pandas as pd

    from bayes_lcs.classification.partial_scan import PartialScanClassifier

__all__ = ["check_rows_to_predict", "save_scan"]


def save_scan(
    classifier: PartialScanClassifier,
    folder: Path,
    predict: str | PathLike[str] | None = None,
    *,
    header: bool = True,
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
    written.append(
        save_picture(folder / "scan.png", (7, 4.2), lambda ax: plot_scan(classifier, ax))
    )
    predicted: dict[str, Any] = {}
    if predict is not None:
        rows = _rows(raw_from_file(predict, header=header), classifier)
        shown = rows.copy()
        decisions, chances = classifier.predict(rows), classifier.predict_proba(rows)
        shown.insert(0, free_name("decision", shown.columns), decisions)
        for label, column in zip(classifier.classes_, chances.T, strict=True):
            shown[free_name(f"P({label})", shown.columns)] = column
        written.append(write_csv(shown, folder / "predictions.csv"))
        predicted = {"chances": chances, "decisions": decisions, "predicted": Path(predict).name}
    seed = classifier.random_state if isinstance(classifier.random_state, int) else None
    origin = Origin("scan", source, seed, options or {})
    return [save_scan_page(classifier, folder, origin, **predicted), *written]


def check_rows_to_predict(
    path: str | PathLike[str],
    trained_on: str | PathLike[str],
    left_out: Collection[str],
    *,
    header: bool = True,
) -> None:
    """Look, before any work, for a file to predict for and for the columns that it must have."""
    expected = raw_from_file(trained_on, header=header, expected=tuple(left_out)).names
    raw = raw_from_file(path, header=header)
    _check_columns(raw, [name for name in expected if name not in left_out])


def _check_columns(raw: RawTable, names: Iterable[str]) -> None:
    for name in names:
        if name not in raw.names:
            raise raw.source.error("the classifier needs this column; it is not there", column=name)


def _write_text(path: Path, text: str) -> None:
    path.write_text(visible(text, keep="\n"), encoding="utf-8")


def _rows(raw: RawTable, classifier: PartialScanClassifier) -> pd.DataFrame:
    """The features of a file, of the kinds that were learned from."""
    import numpy as np
    import pandas as pd

    from bayes_lcs.data.columns import parse_number

    names = [str(name) for name in classifier.feature_names_in_]
    _check_columns(raw, names)
    columns = {}
    for name, column in raw.read(names).items():
        values = np.array([*column.names, None], dtype=object)
        if name not in classifier._kinds.names:
            numbers = [np.nan if not text else parse_number(text) for text in column.names]
            for code, number in enumerate(numbers):
                if number is None or np.isinf(number):
                    what = "not a number" if number is None else "infinite, not a number"
                    raise raw.source.error(
                        f"{visible(column.names[code], 60)!r} is {what}, as this column was in "
                        "training",
                        row=column.first_row(code),
                        column=name,
                    )
            values = np.array([*numbers, np.nan], dtype=np.float64)
        columns[name] = values[column.codes]
    return pd.DataFrame(columns, columns=names)
