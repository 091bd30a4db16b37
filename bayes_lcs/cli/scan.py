"""``bayes-lcs scan``: an ensemble that reads no more of a file than it needs."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bayes_lcs.cli.errors import print_files, print_json, readable, say, writable_folder
from bayes_lcs.cli.executor_options import open_executor
from bayes_lcs.cli.options import (
    DATA,
    METHOD,
    RUN,
    AsJson,
    Categorical,
    ExecutorKind,
    Folder,
    Force,
    Ignore,
    Missing,
    NoHeader,
    Resume,
    Scheduler,
    Seed,
    Workers,
    report_options,
)
from bayes_lcs.cli.output import Output
from bayes_lcs.cli.resume import prepare

if TYPE_CHECKING:
    from bayes_lcs.classification.partial_scan.estimator import PartialScanClassifier

__all__ = ["scan"]

RESULTS = (
    "report.html",
    "ensemble.skops",
    "ensemble.skops.sha256",
    "scan.csv",
    "scan.txt",
    "scan.png",
    "predictions.csv",
)
"""Files that the command may write."""
LEARNERS = ("tree", "naive_bayes", "rules")


def scan(
    file: Annotated[Path, typer.Argument(help="A CSV or Parquet file.")],
    label: Annotated[str, typer.Option(help="The column to be predicted.", rich_help_panel=DATA)],
    learner: Annotated[
        str, typer.Option(help="tree, naive_bayes or rules.", rich_help_panel=METHOD)
    ] = "tree",
    parts: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Parts of the file; by default as its rows and classes allow, and a small file "
            "is one.",
            rich_help_panel=METHOD,
        ),
    ] = None,
    confidence: Annotated[
        float, typer.Option(min=0.0, max=1.0, help="How sure to be.", rich_help_panel=METHOD)
    ] = 0.997,
    tolerance: Annotated[
        float, typer.Option(help="Share of rows that need not be settled.", rich_help_panel=METHOD)
    ] = 0.1,
    whole: Annotated[
        bool, typer.Option("--whole", help="Read all of it: one scan.", rich_help_panel=METHOD)
    ] = False,
    ignore: Ignore = None,
    predict: Annotated[
        Path | None, typer.Option(help="Another file to predict for.", rich_help_panel=DATA)
    ] = None,
    jobs: Annotated[
        int, typer.Option(min=1, help="Parts trained side by side.", rich_help_panel=RUN)
    ] = 1,
    categorical: Categorical = None,
    missing: Missing = None,
    no_header: NoHeader = False,
    seed: Seed = 0,
    resume: Resume = False,
    executor: ExecutorKind = None,
    scheduler: Scheduler = None,
    workers: Workers = None,
    out: Folder = Path("scan-output"),
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Train on parts of a file until more of it would decide the same.

    Each part holds rows from all over the file, and trains a learner of its own.
    Reading ends when the parts to come would not change what all of them together
    decide. A file of less than 16,000 rows is read whole and trained as one model.

    For example:

      bayes-lcs scan transactions.csv --label kind --out results
      bayes-lcs scan transactions.csv --label kind --predict new.csv --jobs 2
      bayes-lcs scan transactions.csv --label kind --learner naive_bayes --whole
    """
    asked = report_options(locals())
    if jobs > 1 and (executor or scheduler):
        raise ValueError("--jobs are of this process; with --executor, ask for --workers")
    if learner not in LEARNERS:
        raise ValueError(f"--learner must be one of {', '.join(LEARNERS)}, got {learner!r}")
    from bayes_lcs.classification.partial_scan.estimator import PartialScanClassifier
    from bayes_lcs.classification.partial_scan.shards import choose_num_parts
    from bayes_lcs.io.size_estimate import table_extent
    from bayes_lcs.runtime.memory import require_memory
    from bayes_lcs.workflows.resource_estimates import scan_disk, scan_memory
    from bayes_lcs.workflows.scan import check_rows_to_predict, save_scan

    inputs = {"the input": readable(file)}
    if predict is not None:
        inputs["the file to predict for"] = readable(predict)
    run = prepare(
        Output.in_folder(out, RESULTS),
        inputs,
        {"command": "scan", **asked, "seed": seed},
        resume=resume,
        force=force,
        as_json=as_json,
    )
    extent = table_extent(file, ignore or ())
    to_predict = None if predict is None else table_extent(predict)
    number = choose_num_parts(extent.rows, 2) if parts is None else parts
    require_memory(
        scan_memory(extent, number, jobs, learner, to_predict),
        f"scanning {extent.rows:,} rows of {extent.columns:,} columns in {number:,} parts",
        "Take more --parts or fewer --jobs, leave columns out with --ignore, or use a larger "
        "machine",
    )
    folder = writable_folder(out, scan_disk(extent, learner, to_predict))
    if predict is not None:
        check_rows_to_predict(predict, file, (label, *(ignore or ())), header=not no_header)
    classifier = PartialScanClassifier(
        learner,
        "auto" if parts is None else parts,
        confidence=confidence,
        tolerance=tolerance,
        early_stop=not whole,
        n_jobs=jobs,
        random_state=seed,
    )
    with run.keep(), open_executor(executor, scheduler, workers) as runner:
        classifier.set_params(executor=runner)
        classifier.fit_file(
            file,
            label=label,
            ignore=ignore or (),
            categorical=categorical or (),
            missing_values=missing,
            header=not no_header,
        )
        is_cut = classifier.scan_.stop_reason == "interrupted"
        written = run.write(
            lambda: save_scan(classifier, folder, predict, source=file, options=asked),
            is_finished=not is_cut,
        )
        _show(classifier, written, as_json)
        if is_cut:
            raise KeyboardInterrupt("the results are those of the parts that were read")


def _show(classifier: PartialScanClassifier, written: list[Path], as_json: bool) -> None:
    story = classifier.scan_
    if as_json:
        print_json(
            {
                **{name: value for name, value in vars(story).items() if name != "trace"},
                "performance": None if story.performance is None else asdict(story.performance),
                "classes": classifier.classes_,
                "interrupted": story.stop_reason == "interrupted",
                "files": [str(path) for path in written],
            }
        )
        return
    say(story.explain())
    print_files(written)
