"""``bayes-lcs scan``: ensemble classifier that reads only as much of a file as it needs."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bayes_lcs.cli.errors import check_exists, echo, print_files, print_json, writable_folder
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
            help="Number of parts of the file; by default chosen from its rows and classes, 1 for "
            "a small file.",
            rich_help_panel=METHOD,
        ),
    ] = None,
    confidence: Annotated[
        float,
        typer.Option(
            min=0.0, max=1.0, help="Confidence of the stopping rule.", rich_help_panel=METHOD
        ),
    ] = 0.997,
    tolerance: Annotated[
        float, typer.Option(help="Share of rows that may remain undecided.", rich_help_panel=METHOD)
    ] = 0.1,
    whole: Annotated[
        bool, typer.Option("--whole", help="Read the whole file.", rich_help_panel=METHOD)
    ] = False,
    ignore: Ignore = None,
    predict: Annotated[
        Path | None,
        typer.Option(help="Another file whose labels are predicted.", rich_help_panel=DATA),
    ] = None,
    jobs: Annotated[
        int, typer.Option(min=1, help="Number of parts trained in parallel.", rich_help_panel=RUN)
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
    """Train an ensemble on parts of a file until more parts would not change its decisions.

    Each part contains rows from the whole file and trains its own classifier.
    Reading stops when the remaining parts would not change the decisions of
    the ensemble. A file of less than 16,000 rows is read completely and trains
    one classifier.

    For example:

      bayes-lcs scan transactions.csv --label kind --out results
      bayes-lcs scan transactions.csv --label kind --predict new.csv --jobs 2
      bayes-lcs scan transactions.csv --label kind --learner naive_bayes --whole
    """
    options = report_options(locals())
    if jobs > 1 and (executor or scheduler):
        raise ValueError("--jobs is for this process only; with --executor, use --workers")
    if learner not in LEARNERS:
        raise ValueError(f"--learner must be one of {', '.join(LEARNERS)}, got {learner!r}")
    from bayes_lcs.classification.partial_scan.estimator import PartialScanClassifier
    from bayes_lcs.classification.partial_scan.shards import choose_num_parts
    from bayes_lcs.io.size_estimate import table_extent
    from bayes_lcs.runtime.memory import require_memory
    from bayes_lcs.workflows.resource_estimates import scan_disk, scan_memory
    from bayes_lcs.workflows.scan import check_rows_to_predict, save_scan

    inputs = {"the input": check_exists(file)}
    if predict is not None:
        inputs["the file to predict for"] = check_exists(predict)
    run = prepare(
        Output.in_folder(out, RESULTS),
        inputs,
        {"command": "scan", **options, "seed": seed},
        resume=resume,
        force=force,
        as_json=as_json,
    )
    extent = table_extent(file, ignore or ())
    to_predict = None if predict is None else table_extent(predict)
    number = choose_num_parts(extent.rows, 2) if parts is None else parts
    require_memory(
        scan_memory(extent, number, jobs, learner, to_predict),
        f"scanning {extent.rows:,} rows with {extent.columns:,} columns in {number:,} parts",
        "Use more --parts or fewer --jobs, ignore columns with --ignore, or use a larger machine",
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
    with run.checkpointing(), open_executor(executor, scheduler, workers) as runner:
        classifier.set_params(executor=runner)
        classifier.fit_file(
            file,
            label=label,
            ignore=ignore or (),
            categorical=categorical or (),
            missing_values=missing,
            header=not no_header,
        )
        is_interrupted = classifier.scan_.stop_reason == "interrupted"
        written = run.write(
            lambda: save_scan(classifier, folder, predict, source=file, options=options),
            is_finished=not is_interrupted,
        )
        _show(classifier, written, as_json)
        if is_interrupted:
            raise KeyboardInterrupt("the results are those of the parts read so far")


def _show(classifier: PartialScanClassifier, written: list[Path], as_json: bool) -> None:
    result = classifier.scan_
    if as_json:
        print_json(
            {
                **{name: value for name, value in vars(result).items() if name != "trace"},
                "performance": None if result.performance is None else asdict(result.performance),
                "classes": classifier.classes_,
                "interrupted": result.stop_reason == "interrupted",
                "files": [str(path) for path in written],
            }
        )
        return
    echo(result.explain())
    print_files(written)
