"""``bayes-lcs scan``: an ensemble that reads no more of a file than it needs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bayes_lcs.cli.asked import as_asked
from bayes_lcs.cli.keeping import Resume, resumable
from bayes_lcs.cli.manners import (
    LARGEST_SEED,
    announce_files,
    print_json,
    readable,
    say,
    writable_folder,
)

if TYPE_CHECKING:
    from bayes_lcs.classification.partial_scan import PartialScanClassifier

__all__ = ["scan"]


def scan(
    file: Annotated[Path, typer.Argument(help="A CSV or Parquet file.")],
    label: Annotated[str, typer.Option(help="The column to be predicted.")],
    learner: Annotated[str, typer.Option(help="tree, naive_bayes or rules.")] = "tree",
    parts: Annotated[int, typer.Option(min=1, help="Parts of the file.")] = 64,
    confidence: Annotated[float, typer.Option(help="How sure to be.")] = 0.997,
    tolerance: Annotated[float, typer.Option(help="Rows that need not be settled.")] = 0.1,
    whole: Annotated[bool, typer.Option("--whole", help="Read all of it: one scan.")] = False,
    ignore: Annotated[list[str] | None, typer.Option(help="Columns to leave out.")] = None,
    predict: Annotated[Path | None, typer.Option(help="Another file to predict for.")] = None,
    jobs: Annotated[int, typer.Option(help="Parts trained side by side.")] = 1,
    no_header: Annotated[
        bool, typer.Option("--no-header", help="Columns have no names: column_1, column_2, …")
    ] = False,
    seed: Annotated[
        int, typer.Option(min=0, max=LARGEST_SEED, help="Seed of all that is random.")
    ] = 0,
    resume: Resume = False,
    out: Annotated[Path, typer.Option(help="Folder for the results.")] = Path("scan-output"),
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON only.")] = False,
) -> None:
    """Train on parts of a file until more of it would decide the same.

    Example: bayes-lcs scan transactions.csv --label kind --learner tree --out results
    """
    asked = as_asked(locals())
    from bayes_lcs.classification.partial_scan import PartialScanClassifier
    from bayes_lcs.report.scan_files import check_rows_to_predict, save_scan

    readable(file)
    folder = writable_folder(out)
    if predict is not None:
        check_rows_to_predict(predict, file, (label, *(ignore or ())), header=not no_header)
    classifier = PartialScanClassifier(
        learner,
        parts,
        confidence=confidence,
        tolerance=tolerance,
        early_stop=not whole,
        n_jobs=jobs,
        random_state=seed,
    )
    settings = {**asked, "seed": seed}
    with resumable(folder / ".checkpoint", resume, file, settings):
        classifier.fit_file(file, label=label, ignore=ignore or (), header=not no_header)
        written = save_scan(
            classifier, folder, predict, header=not no_header, source=file, options=asked
        )
        _show(classifier, written, as_json)
        if classifier.scan_.stop_reason == "interrupted":
            raise KeyboardInterrupt("the results are those of the parts that were read")


def _show(classifier: PartialScanClassifier, written: list[Path], as_json: bool) -> None:
    story = classifier.scan_
    if as_json:
        print_json(
            {
                **{name: value for name, value in vars(story).items() if name != "trace"},
                "classes": classifier.classes_,
                "files": [str(path) for path in written],
            }
        )
        return
    say(story.explain())
    announce_files(written)
