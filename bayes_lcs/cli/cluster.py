"""``bayes-lcs cluster``: mixture clustering with learning-curve sampling."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bayes_lcs.cli.errors import check_exists, echo, print_files, print_json, writable_folder
from bayes_lcs.cli.executor_options import open_executor, row_layout
from bayes_lcs.cli.options import (
    METHOD,
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
    from bayes_lcs.learning_curve_sampling.result import LearningCurveResult

__all__ = ["cluster"]

RESULTS = (
    "report.html",
    "mixture.nc",
    "mixture.nc.sha256",
    "curve.csv",
    "curve.png",
    "profiles.png",
    "assignments.csv",
    "assignments.parquet",
)
"""Files that the command may write."""


def cluster(
    file: Annotated[Path, typer.Argument(help="A CSV or Parquet file of categorical columns.")],
    clusters: Annotated[
        int, typer.Option("-k", min=1, help="Number of clusters.", rich_help_panel=METHOD)
    ],
    alpha: Annotated[
        str,
        typer.Option(
            help="Cost of time: benefit per hour, or '1% per 10 minutes'.",
            rich_help_panel=METHOD,
        ),
    ] = "0.2",
    abbreviated: Annotated[
        str | None,
        typer.Option(
            help="Truncated training of stages: fixed-1 or thresh-0.01.", rich_help_panel=METHOD
        ),
    ] = None,
    initial: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Rows of the first sample; by default an eighth, 200 to 40,000.",
            rich_help_panel=METHOD,
        ),
    ] = None,
    holdout: Annotated[
        int | None,
        typer.Option(
            min=1, help="Rows held out; by default a fifth, at most 10,000.", rich_help_panel=METHOD
        ),
    ] = None,
    ignore: Ignore = None,
    categorical: Categorical = None,
    missing: Missing = None,
    no_header: NoHeader = False,
    seed: Seed = 0,
    resume: Resume = False,
    executor: ExecutorKind = None,
    scheduler: Scheduler = None,
    workers: Workers = None,
    out: Folder = Path("cluster-output"),
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Cluster categorical rows by a mixture model, trained on as many rows as pay off.

    Models are trained on growing samples until more rows are not expected to
    be worth their time (with --alpha 0: all rows). The model with the best
    score on held-out rows assigns a cluster to every row.

    For example:

      bayes-lcs cluster visits.parquet -k 25 --out results
      bayes-lcs cluster visits.csv -k 25 --alpha "1% per 10 minutes" --ignore id
      bayes-lcs cluster visits.csv -k 25 --abbreviated fixed-1 --json
      bayes-lcs cluster visits.parquet -k 25 --scheduler tcp://scheduler:8786
    """
    options = report_options(locals())
    from bayes_lcs.io.size_estimate import table_extent
    from bayes_lcs.runtime.memory import require_memory
    from bayes_lcs.workflows.cluster import cluster_file, sample_sizes, save_clusters
    from bayes_lcs.workflows.resource_estimates import cluster_disk, cluster_memory

    rate: float | str = alpha
    with suppress(ValueError):  # text, such as 1% per 10 minutes
        rate = float(alpha)
    if file.is_dir():  # check before training, not when the rows are written
        raise IsADirectoryError(f"{file}: this is a folder; give the path of one file")
    settings = {
        "command": "cluster",
        **options,
        "seed": seed,
        "row_layout": row_layout(executor, scheduler),
    }
    run = prepare(
        Output.in_folder(out, RESULTS),
        {"the input": check_exists(file)},
        settings,
        resume=resume,
        force=force,
        as_json=as_json,
    )
    extent = table_extent(file, ignore or ())
    sizes = sample_sizes(max(extent.rows, 2), clusters, initial, holdout)
    require_memory(
        cluster_memory(extent, clusters, sum(sizes)),
        f"clustering a sample of {extent.rows:,} rows with {extent.columns:,} columns",
        "Take smaller samples (--initial, --holdout) or fewer clusters, leave columns out with "
        "--ignore, write a Parquet file with smaller row groups, or use a larger machine",
    )
    folder = writable_folder(out, cluster_disk(extent))
    with run.checkpointing(), open_executor(executor, scheduler, workers) as runner:
        result, source = cluster_file(
            file,
            clusters,
            alpha=rate,
            abbreviated=abbreviated,
            initial_size=initial,
            holdout_size=holdout,
            ignore=ignore or (),
            categorical=categorical or (),
            missing_values=missing,
            header=not no_header,
            seed=seed,
            executor=runner,
        )
        written = run.write(
            lambda: save_clusters(
                result,
                file,
                folder,
                missing_values=missing,
                header=not no_header,
                options=options,
            ),
            is_finished=not result.interrupted,
        )
        _show(result, source.num_rows, written, as_json)
        if result.interrupted:
            raise KeyboardInterrupt("the results are those of the finished stages")


def _show(result: LearningCurveResult, num_rows: int, written: list[Path], as_json: bool) -> None:
    if as_json:
        print_json(
            {
                "sample_size": result.sample_size,
                "initial_size": result.initial_size,
                "holdout_size": result.holdout_size,
                "num_rows": num_rows,
                "score": result.score,
                "score_standard_error": result.score_standard_error,
                "baseline_score": result.baseline_score,
                "gain": result.gain,
                "gain_interval": result.gain_interval,
                "runtime_seconds": result.runtime_seconds,
                "interrupted": result.interrupted,
                "files": [str(path) for path in written],
            }
        )
        return
    echo(result.explain())
    print_files(written)
